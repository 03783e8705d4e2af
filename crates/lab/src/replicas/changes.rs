//! What clients and upkeep ask of the primary's bucket.

use engine::Durability;
use objects::bucket::{Bucket, BucketError, Condition, DeleteOptions, FinishOptions, PutOptions};
use replication::Standing;

use crate::failure::Broken;
use crate::objects::failures::{broken, of_engine};
use crate::replicas::World;
use crate::replicas::content::bytes_of;
use crate::replicas::side::NOW_MS;
use crate::replicas::wire::Strike;

/// Keys that are put.
const KEYS: u64 = 12;
/// Ranges that are trimmed at a time.
const TRIMMED_MAX: u64 = 20;

impl World {
    /// Has the bucket do a change, in which one of the servers or the connection may be struck.
    fn change(
        &mut self,
        key: &[u8],
        content: Option<u64>,
        durability: Durability,
        work: impl FnOnce(&Bucket) -> Result<(), BucketError>,
    ) -> Result<(), Broken> {
        let Some(acting) = &self.acting else { return Ok(()) };
        self.wire.set_strikes(true);
        let done = work(&acting.bucket);
        self.wire.set_strikes(false);
        let goes_alone = acting.mirrored.primary().standing() == Standing::Alone;
        match done {
            Ok(()) => {
                self.summary.acknowledged += 1;
                self.oracle.ask(key, content, true);
                self.replica_lacks |= goes_alone;
                if durability == Durability::Durable && !goes_alone {
                    self.oracle.make_durable();
                }
            }
            Err(error) if of_engine(&error).is_none() => return Err(broken("a change", &error)),
            Err(_) => {
                self.summary.failed += 1;
                self.oracle.ask(key, content, false);
            }
        }
        match self.wire.take_strike() {
            Some(Strike::PrimaryDied) => self.primary_dies(),
            Some(Strike::SecondaryDied) => self.replica_dies(),
            None => Ok(()),
        }
    }

    fn durability(&mut self) -> Durability {
        match self.dice.once_in(3) {
            true => Durability::Durable,
            false => Durability::Acknowledged,
        }
    }

    fn key(&mut self) -> Vec<u8> {
        format!("k{}", self.dice.below(KEYS)).into_bytes()
    }

    pub(super) fn put(&mut self) -> Result<(), Broken> {
        let (key, durability) = (self.key(), self.durability());
        self.contents += 1;
        let content = self.contents;
        let bytes = bytes_of(content, self.dice.roll());
        self.change(&key, Some(content), durability, |bucket| put(bucket, &key, &bytes, durability))
    }

    pub(super) fn delete(&mut self) -> Result<(), Broken> {
        let (key, durability) = (self.key(), self.durability());
        let options = DeleteOptions { durability, now_ms: NOW_MS };
        self.change(&key, None, durability, |bucket| {
            bucket.delete(&key, &Condition::None, options).map(drop)
        })
    }

    /// What upkeep does.
    pub(super) fn tend(&mut self) -> Result<(), Broken> {
        let Some(acting) = &self.acting else { return Ok(()) };
        let done = match self.dice.once_in(2) {
            true => acting.bucket.trim_some(TRIMMED_MAX).map(drop),
            false => acting.bucket.clone().close(),
        };
        match done {
            Err(error) if of_engine(&error).is_none() => Err(broken("upkeep", &error)),
            _ => Ok(()),
        }
    }
}

/// Puts an object.
pub(super) fn put(
    bucket: &Bucket,
    key: &[u8],
    bytes: &[u8],
    durability: Durability,
) -> Result<(), BucketError> {
    let options = PutOptions { durability, ..PutOptions::new(NOW_MS) };
    let mut writer = bucket.put(key, options)?;
    writer.write(bytes)?;
    writer.finish(FinishOptions::new([0; 16])).map(drop)
}
