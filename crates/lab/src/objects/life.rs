//! One life of a store with buckets: operations that the seed chooses, and what each must come to.

use std::sync::Arc;

use engine::{Durability, RequestError};
use objects::bucket::BucketError;
use objects::values::ValueError;

use crate::failure::Broken;
use crate::objects::aside::look;
use crate::objects::bucket::{Bucket, SlowReader};
use crate::objects::content::{CONTENTS, bytes_of, content};
use crate::objects::failures::{broken, of_engine, said};
use crate::objects::history::{Contents, Object, Objects, State};
use crate::objects::kinds;
use crate::objects::run::{Outcome, Run, in_run};
use crate::objects::store::{BLOCK, BUCKETS, Store, block_chunks_used};
use crate::simulation::tap::Point;
use crate::simulation::trouble::{Trouble, is_of_writes};

/// Different keys of a bucket.
const KEYS: u64 = 24;
/// Chunks that the block volume is written at a time, at most.
const BLOCK_BURST: u64 = 12;
/// The same where room is short.
const BLOCK_BURST_TIGHT: u64 = 400;

/// A reader, of which bucket, and the bytes that it must give.
pub(super) struct Reading {
    pub(super) bucket: u32,
    pub(super) reader: SlowReader,
    pub(super) bytes: Arc<[u8]>,
}

/// A life under way.
pub(super) struct Life<'a> {
    pub(super) run: &'a mut Run,
    pub(super) store: Store,
    /// The store writes no more.
    pub(super) stopped: bool,
    /// A crash in the middle of the last operation.
    pub(super) last: Option<Point>,
    /// The last put or write found no room.
    pub(super) is_full: bool,
    /// The disk fails from some operation on.
    trouble: Option<Trouble>,
    /// Somebody reads slowly, whatever becomes of the object.
    pub(super) reading: Option<Reading>,
}

impl<'a> Life<'a> {
    pub(super) fn new(run: &'a mut Run, store: Store) -> Self {
        Self {
            run,
            store,
            stopped: false,
            last: None,
            is_full: false,
            trouble: None,
            reading: None,
        }
    }

    pub(super) fn go_through(&mut self) -> Outcome<()> {
        self.make_volumes()?;
        let fails = self.run.dice.once_in(4);
        let fails_at = self.run.dice.below(self.run.plan.steps.max(1));
        for step in 0..self.run.plan.steps {
            self.run.step += 1;
            self.run.summary.operations += 1;
            if fails && step == fails_at {
                self.begin_trouble();
            }
            self.perform().map_err(in_run)?;
            let steps = self.run.dice.below(30);
            for _ in 0..steps {
                self.store.stepped.opening().step();
            }
            self.look_aside()?;
            if self.stopped {
                return self.look_at_stopped();
            }
        }
        self.end_reading().map_err(in_run)
    }

    /// Whether the disk fails by now.
    pub(super) fn fails(&self) -> bool {
        self.trouble.is_some()
    }

    fn begin_trouble(&mut self) {
        let number = self.run.dice.roll();
        let trouble =
            if self.run.dice.once_in(2) { Trouble::Unwritable } else { Trouble::Unsyncable };
        self.trouble = Some(trouble);
        self.store.stepped.opening().ear.heard().mischief.begin(trouble, number);
    }

    /// A store that writes no more still gives what was asked of it, or what was before the change
    /// that failed.
    fn look_at_stopped(&mut self) -> Outcome<()> {
        self.run.summary.stopped += 1;
        let found = self.store.find().map_err(in_run)?;
        let newest = self.run.history.newest();
        let now_ms = self.store.stepped.now_ms();
        self.run.history.explain(newest.saturating_sub(1), &found, now_ms).map_err(in_run)
    }

    fn look_aside(&mut self) -> Outcome<()> {
        self.store.stepped.take_stuck().map_err(in_run)?;
        let mut points = self.store.stepped.opening().ear.take_points();
        let now_ms = self.store.stepped.now_ms();
        for point in &points {
            look(point, &self.run.history, &self.run.shape, now_ms, &mut self.run.summary.points)
                .map_err(|(aside, broken)| (Some(aside), broken))?;
        }
        self.last = match points.len() as u64 {
            0 => None,
            count => Some(points.swap_remove(self.run.dice.below(count) as usize)),
        };
        Ok(())
    }

    fn make_volumes(&mut self) -> Outcome<()> {
        for number in 0..=BLOCK {
            if self.store.volume(number).is_none() {
                let made = self.store.create_volume(number);
                match made {
                    Err(RequestError::NoSpace) if self.run.shape.tight => continue,
                    made => made.map_err(|error| in_run(Broken::Request(error)))?,
                }
                self.store.open_volume(number, format!("v{number}")).map_err(in_run)?;
            }
            if number < BUCKETS && !self.store.buckets.contains_key(&number) {
                let Some(volume) = self.store.volume(number) else { continue };
                let seed = self.run.dice.roll();
                let mut next = self.run.history.now().clone();
                next.buckets.insert(number, Contents::default());
                let made = kinds::create(number, &volume, seed);
                self.settle("making a bucket", made, Some(next)).map_err(in_run)?;
                self.store.open_bucket(number).map_err(in_run)?;
            }
            self.look_aside()?;
        }
        Ok(())
    }

    /// An operation has ended: what it changed is acknowledged, or refused, or in doubt.
    pub(super) fn settle(
        &mut self,
        asked: &str,
        outcome: Result<(), BucketError>,
        next: Option<State>,
    ) -> Result<bool, Broken> {
        match outcome {
            Ok(()) => {
                if let Some(next) = next {
                    self.is_full &= next.count() <= self.run.history.now().count();
                    self.run.history.push(next);
                    self.store.stepped.acknowledge(self.run.history.newest());
                }
                Ok(true)
            }
            Err(error) if error.is_no_space() && self.run.shape.tight => {
                self.run.summary.refused += 1;
                self.is_full = true;
                Ok(false)
            }
            Err(BucketError::QuotaExceeded { quota_bytes, used_bytes, growth_bytes, .. })
                if growth_bytes > 0 && used_bytes + growth_bytes > quota_bytes =>
            {
                self.run.summary.over_quota += 1;
                Ok(false)
            }
            Err(error) if self.trouble.is_some() && of_engine(&error).is_some_and(is_of_writes) => {
                self.stopped = true;
                if let Some(next) = next {
                    self.run.history.push(next);
                }
                Ok(false)
            }
            Err(error) => Err(broken(asked, &error)),
        }
    }

    pub(super) fn bucket(&self, number: u32) -> Option<&dyn Bucket> {
        self.store.buckets.get(&number).map(|bucket| &**bucket)
    }

    fn perform(&mut self) -> Result<(), Broken> {
        let number = u32::from(!self.run.dice.once_in(3));
        if self.bucket(number).is_none() {
            return Ok(()); // It could not be made for want of room.
        }
        match self.run.dice.below(100) {
            0..30 => self.put(number),
            30..40 => self.delete(number),
            40..46 => self.copy(number),
            46..52 => self.copy_range(number),
            52..54 => self.give_up_put(number),
            54..58 => self.get(number),
            58..63 => self.merge(number),
            63..69 => self.trim(number),
            69..72 => self.flush(),
            72..77 => self.write_block(),
            77..79 => self.change_version(number),
            79..81 => self.rot(number),
            81..83 => self.begin_reading(number),
            83..96 => self.ask_on_terms(),
            96..99 => self.copy_mapped(),
            _ => {
                self.store.stepped.opening().tick();
                Ok(())
            }
        }
    }

    pub(super) fn key(&mut self) -> Vec<u8> {
        format!("key-{:02}", self.run.dice.below(KEYS)).into_bytes()
    }

    /// A key that there is, mostly.
    pub(super) fn found_key(&mut self, number: u32) -> Vec<u8> {
        let roll = self.run.dice.roll() as usize;
        let objects = self.living(number);
        let keys: Vec<&Vec<u8>> = objects.keys().collect();
        match keys.is_empty() {
            true => self.key(),
            false => keys[roll % keys.len()].clone(),
        }
    }

    fn put(&mut self, number: u32) -> Result<(), Broken> {
        let (key, (bytes, cut)) = (self.key(), content(&mut self.run.dice));
        let durability = self.durability();
        let next = self.with(number, |objects| {
            objects.insert(key.clone(), Object::of(bytes.clone()));
        });
        let Some(bucket) = self.bucket(number) else { return Ok(()) };
        let outcome = bucket.put(&key, &bytes, cut, durability);
        self.settle_with("a put", outcome, next, durability)
    }

    pub(super) fn durability(&mut self) -> Durability {
        match self.run.dice.once_in(4) {
            true => Durability::Durable,
            false => Durability::Acknowledged,
        }
    }

    /// The state after a change of a bucket.
    pub(super) fn with(&self, number: u32, change: impl FnOnce(&mut Objects)) -> State {
        let mut next = self.run.history.now().clone();
        change(&mut next.buckets.entry(number).or_default().objects);
        next
    }

    pub(super) fn settle_with(
        &mut self,
        asked: &str,
        outcome: Result<(), BucketError>,
        next: State,
        durability: Durability,
    ) -> Result<(), Broken> {
        if self.settle(asked, outcome, Some(next))? && durability == Durability::Durable {
            self.store.stepped.note_durable();
        }
        Ok(())
    }

    fn delete(&mut self, number: u32) -> Result<(), Broken> {
        // What does not fit into one batch is deleted one by one.
        let most = if self.run.shape.tight { 1 } else { 3 };
        let count = 1 + self.run.dice.below(most);
        let mut keys: Vec<Vec<u8>> = (0..count).map(|_| self.found_key(number)).collect();
        keys.sort_unstable();
        keys.dedup();
        let durability = self.durability();
        let next =
            self.with(number, |objects| keys.iter().for_each(|key| drop(objects.remove(key))));
        let Some(bucket) = self.bucket(number) else { return Ok(()) };
        let named: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let outcome = bucket.delete(&named, durability);
        self.no_deletion_is_refused(&outcome)?;
        self.settle_with("a deletion", outcome, next, durability)
    }

    fn copy(&mut self, number: u32) -> Result<(), Broken> {
        let (from, to) = (self.found_key(number), self.key());
        let Some(object) = self.held(number, &from) else { return Ok(()) };
        let next = self.with(number, |objects| drop(objects.insert(to.clone(), object)));
        let Some(bucket) = self.bucket(number) else { return Ok(()) };
        let outcome = bucket.copy(&from, &to);
        self.settle("a copy", outcome, Some(next)).map(drop)
    }

    fn copy_range(&mut self, number: u32) -> Result<(), Broken> {
        let (from, to) = (self.found_key(number), self.key());
        let Some(Object { bytes, .. }) = self.held(number, &from) else { return Ok(()) };
        let dice = &mut self.run.dice;
        let start = dice.below(bytes.len() as u64 + 1);
        let end = start + dice.below(bytes.len() as u64 + 1 - start);
        let length = dice.below(700) as usize;
        let head = bytes_of(dice.below(CONTENTS), length);
        let whole = [&head, &bytes[start as usize..end as usize]].concat();
        let next = self.with(number, |objects| drop(objects.insert(to.clone(), Object::of(whole))));
        let Some(bucket) = self.bucket(number) else { return Ok(()) };
        match bucket.copy_range(&from, &to, &head, start..end) {
            // Copies of copies: a door would write its bytes.
            Err(BucketError::Value(ValueError::TooDeep)) => Ok(()),
            outcome => self.settle("a copy of a range", outcome, Some(next)).map(drop),
        }
    }

    pub(super) fn held(&self, number: u32, key: &[u8]) -> Option<Object> {
        self.living(number).remove(key)
    }

    /// The objects that there are now.
    pub(super) fn living(&self, number: u32) -> Objects {
        let mut state = self.run.history.now().at(self.store.stepped.now_ms());
        state.buckets.remove(&number).map_or_else(Objects::new, |contents| contents.objects)
    }

    /// Bytes are written that nobody names.
    fn give_up_put(&mut self, number: u32) -> Result<(), Broken> {
        let (bytes, cut) = content(&mut self.run.dice);
        let ends = self.run.dice.once_in(2);
        let Some(bucket) = self.bucket(number) else { return Ok(()) };
        let outcome = bucket.give_up(&bytes, cut, ends);
        self.settle("a put that is dropped", outcome, None).map(drop)
    }

    fn merge(&mut self, number: u32) -> Result<(), Broken> {
        let Some(bucket) = self.bucket(number) else { return Ok(()) };
        let outcome = bucket.merge();
        self.settle("a merge", outcome, None).map(drop)
    }

    fn trim(&mut self, number: u32) -> Result<(), Broken> {
        let entries = 1 + self.run.dice.below(20);
        let Some(bucket) = self.bucket(number) else { return Ok(()) };
        let outcome = bucket.trim_some(entries).map(drop);
        self.settle("trimming", outcome, None).map(drop)
    }

    fn flush(&mut self) -> Result<(), Broken> {
        let outcome = self.store.stepped.flush().map_err(said);
        self.settle("a flush", outcome, None).map(drop)
    }

    fn write_block(&mut self) -> Result<(), Broken> {
        if self.store.volume(BLOCK).is_none() {
            return Ok(()); // It could not be made for want of room.
        }
        let burst = if self.run.shape.tight { BLOCK_BURST_TIGHT } else { BLOCK_BURST };
        let count = 1 + self.run.dice.below(burst);
        let first = self.run.dice.below(block_chunks_used(&self.run.shape) - count);
        for chunk in first..first + count {
            let content = 1 + self.run.dice.below(1 << 40);
            let mut next = self.run.history.now().clone();
            next.block.insert(chunk, content);
            let outcome = self.store.write_block(chunk, content).map_err(said);
            if !self.settle("a write to the block volume", outcome, Some(next))? {
                break;
            }
        }
        Ok(())
    }
}
