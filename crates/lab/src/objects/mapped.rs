//! Copies that move no bytes: the volume maps chunks that another bucket holds, here a snapshot, or
//! the bucket itself.

use std::sync::Arc;

use engine::RequestError;
use objects::bucket::{Bucket as Doors, BucketError, Condition, PutOptions, Writer};
use objects::values::ChunkCopy;

use crate::failure::Broken;
use crate::objects::bucket::Bucket;
use crate::objects::failures::broken;
use crate::objects::history::{Object, Objects};
use crate::objects::kinds;
use crate::objects::life::Life;
use crate::objects::step_volume::StepVolume;
use crate::objects::terms::NUMBER;
use crate::objects::whole::finish;

/// Where a copy comes from.
struct Source {
    volume: Arc<StepVolume>,
    /// None: the bucket that is copied to.
    snapshot: Option<Box<dyn Bucket>>,
    objects: Objects,
}

impl Life<'_> {
    /// Copies a range of an object; the copy is ended, or dropped.
    pub(super) fn copy_mapped(&mut self) -> Result<(), Broken> {
        let from = self.found_key(NUMBER);
        let Some(source) = self.source()? else { return Ok(()) };
        let Some(Object { bytes, .. }) = source.objects.get(&from).cloned() else { return Ok(()) };
        if bytes.is_empty() {
            return Ok(());
        }
        let (to, dice) = (self.key(), &mut self.run.dice);
        let start = dice.below(bytes.len() as u64);
        let end = start + 1 + dice.below(bytes.len() as u64 - start);
        let (ends, durability) = (!dice.once_in(8), self.durability());
        let copied = &bytes[start as usize..end as usize];
        let next =
            self.with(NUMBER, |objects| drop(objects.insert(to.clone(), Object::of(copied))));
        let (Some(target), Some(volume)) = (self.doors(), self.store.volume(NUMBER)) else {
            return Ok(());
        };
        let now_ms = self.store.stepped.now_ms();
        let read = source.snapshot.as_ref().map_or(Some(target), |bucket| bucket.doors());
        let map = |read: &Doors| -> Result<Option<Writer>, BucketError> {
            let Some(mut reader) = read.get(&from, &Condition::None, now_ms)? else {
                return Ok(None);
            };
            let mut map = |copy| volume.map(&source.volume, copy);
            let options = PutOptions { durability, ..PutOptions::new(now_ms) };
            let mut writer = target.put(&to, options)?;
            writer.map_from(&mut reader, start..end, &mut map)?;
            Ok(Some(writer))
        };
        let Some(read) = read else { return Ok(()) };
        let outcome = match map(read) {
            Ok(Some(writer)) if ends => finish(writer, copied),
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {
                let what = "an object that is to be copied is not found".to_owned();
                return Err(Broken::Objects { what });
            }
            Err(error) => Err(error),
        };
        self.settle_with("a mapped copy", outcome, next, durability)
    }

    /// The bucket, or a snapshot of it if there is one.
    fn source(&mut self) -> Result<Option<Source>, Broken> {
        let now_ms = self.store.stepped.now_ms();
        let state = self.run.history.now().at(now_ms);
        let of_bucket = state.snapshots.iter().find(|(_, (of, _))| *of == NUMBER);
        let found = of_bucket.and_then(|(number, (_, held))| Some((*number, held.clone()?)));
        let Some((number, held)) = found.filter(|_| self.run.dice.once_in(2)) else {
            let Some(volume) = self.store.volume(NUMBER) else { return Ok(None) };
            return Ok(Some(Source { volume, snapshot: None, objects: self.living(NUMBER) }));
        };
        let Some(volume) = self.store.volume(number) else { return Ok(None) };
        let opened = kinds::open(NUMBER, &volume, true);
        let snapshot = opened.map_err(|error| broken("the opening of a snapshot", &error))?;
        Ok(Some(Source { volume, snapshot, objects: held.objects }))
    }
}

impl StepVolume {
    /// Maps chunks of another volume.
    pub(super) fn map(&self, from: &Self, copy: ChunkCopy) -> Result<(), RequestError> {
        let ChunkCopy { to_bytes, from_bytes, length_bytes } = copy;
        self.stepped.ask(|client, done| {
            let to = (self.open(), to_bytes);
            client.copy_range(from.open(), from_bytes, to.0, to.1, length_bytes, false, done);
        })?;
        self.heal_written(to_bytes, length_bytes);
        Ok(())
    }
}
