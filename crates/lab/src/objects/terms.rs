//! What only the bucket of doors is asked: objects that expire, conditions, a quota. Time passes
//! between requests.

use engine::Durability;
use format::objects::record::ETag;
use objects::bucket::{
    Bucket as Doors, BucketError, Condition, DeleteOptions, ObjectInfo, PutOptions,
};

use crate::failure::Broken;
use crate::objects::bucket::Bucket;
use crate::objects::content::content;
use crate::objects::failures::broken;
use crate::objects::history::{Object, State};
use crate::objects::life::Life;
use crate::objects::whole::put_with;

/// The bucket of doors.
pub(super) const NUMBER: u32 = 1;
/// How long an object stays that expires, and how much time passes at once, at most.
const STAY_MS: u64 = 1500;
const PASS_MS: u64 = 1500;
/// Bytes that a quota leaves, at most.
const QUOTA_LEFT_BYTES: u64 = 40_000;

fn failed(what: String) -> Result<(), Broken> {
    Err(Broken::Objects { what })
}

impl Life<'_> {
    pub(super) fn ask_on_terms(&mut self) -> Result<(), Broken> {
        if self.doors().is_none() {
            return Ok(()); // It could not be made for want of room.
        }
        match self.run.dice.below(9) {
            0..3 => self.put_on_terms(),
            3 => self.delete_on_terms(),
            4 => self.set_quota(),
            5..7 => self.remove_expired(),
            _ => {
                let passed_ms = self.run.dice.below(PASS_MS);
                self.store.stepped.pass(passed_ms);
                Ok(())
            }
        }
    }

    pub(super) fn doors(&self) -> Option<&Doors> {
        self.bucket(NUMBER).and_then(Bucket::doors)
    }

    /// A condition, and whether the object of the key meets it.
    fn condition(&mut self, key: &[u8]) -> Result<(Condition, bool), Broken> {
        let roll = self.run.dice.below(8);
        let there = self.held(NUMBER, key).is_some();
        let Some(doors) = self.doors() else { return Ok((Condition::None, true)) };
        let found = doors.head(key, &Condition::None, self.store.stepped.now_ms());
        let found = found.map_err(|error| broken("a head", &error))?;
        if found.is_some() != there {
            let what = format!("a head finds an object: {}, and there is one: {there}", !there);
            return Err(Broken::Objects { what });
        }
        let other = ETag { md5: [0xee; 16], parts: None };
        let etag = found.as_ref().map_or(other, |info: &ObjectInfo| info.etag);
        let version = found.map_or(0, |info| info.version);
        Ok(match roll {
            0 => (Condition::Absent, !there),
            1 => (Condition::Present, there),
            2 => (Condition::ETagIn(vec![other, etag]), there),
            3 => (Condition::ETagIn(vec![other]), false),
            4 => (Condition::ETagNotIn(vec![etag]), !there),
            5 => (Condition::Version(version), there),
            6 => (Condition::Version(version + 1), false),
            _ => (Condition::None, true),
        })
    }

    /// A request with a condition is done if that holds, and refused if not.
    fn settle_on_terms(
        &mut self,
        asked: &str,
        outcome: Result<(), BucketError>,
        is_met: bool,
        next: State,
        durability: Durability,
    ) -> Result<(), Broken> {
        match (&outcome, is_met) {
            (Err(BucketError::ConditionFailed { .. }), false) => {
                self.run.summary.unmet += 1;
                Ok(())
            }
            (Err(BucketError::ConditionFailed { .. }), true) => {
                failed(format!("{asked} is refused for a condition that holds"))
            }
            (Ok(()), false) => failed(format!("{asked} is done, and its condition does not hold")),
            _ => self.settle_with(asked, outcome, next, durability),
        }
    }

    fn put_on_terms(&mut self) -> Result<(), Broken> {
        let key = if self.run.dice.once_in(2) { self.key() } else { self.found_key(NUMBER) };
        let (bytes, _) = content(&mut self.run.dice);
        let durability = self.durability();
        let now_ms = self.store.stepped.now_ms();
        let expires_ms = match self.run.dice.once_in(3) {
            true => None,
            false => Some(now_ms + 1 + self.run.dice.below(STAY_MS)),
        };
        let (condition, is_met) = self.condition(&key)?;
        let object = Object { expires_ms, ..Object::of(bytes.clone()) };
        let next = self.with(NUMBER, |objects| drop(objects.insert(key.clone(), object)));
        let options = PutOptions {
            expires_unix_ms: expires_ms,
            condition,
            durability,
            ..PutOptions::new(now_ms)
        };
        let Some(doors) = self.doors() else { return Ok(()) };
        let outcome = put_with(doors, &key, &bytes, options);
        self.settle_on_terms("a put with a condition", outcome, is_met, next, durability)
    }

    fn delete_on_terms(&mut self) -> Result<(), Broken> {
        let key = if self.run.dice.once_in(4) { self.key() } else { self.found_key(NUMBER) };
        let durability = self.durability();
        let (condition, is_met) = self.condition(&key)?;
        let next = self.with(NUMBER, |objects| drop(objects.remove(&key)));
        let Some(doors) = self.doors() else { return Ok(()) };
        let options = DeleteOptions { durability, now_ms: self.store.stepped.now_ms() };
        let outcome = doors.delete(&key, &condition, options).map(drop);
        self.no_deletion_is_refused(&outcome)?;
        self.settle_on_terms("a deletion with a condition", outcome, is_met, next, durability)
    }

    /// A quota near what the bucket holds, below it as well, or none.
    fn set_quota(&mut self) -> Result<(), Broken> {
        let Some(doors) = self.doors() else { return Ok(()) };
        let figures = doors.figures();
        let used_bytes = figures.object_bytes + figures.part_bytes;
        let quota_bytes = match self.run.dice.below(3) {
            0 => None,
            1 => Some(used_bytes / 2),
            _ => Some(used_bytes + self.run.dice.below(QUOTA_LEFT_BYTES)),
        };
        let durability = self.durability();
        let mut next = self.run.history.now().clone();
        next.buckets.entry(NUMBER).or_default().quota_bytes = quota_bytes;
        let Some(doors) = self.doors() else { return Ok(()) };
        let outcome = doors.set_quota(quota_bytes, durability);
        self.settle_with("setting a quota", outcome, next, durability)
    }

    /// What has expired is removed, which nobody sees but the figures.
    fn remove_expired(&mut self) -> Result<(), Broken> {
        let objects_max = 1 + self.run.dice.below(12);
        let Some(doors) = self.doors() else { return Ok(()) };
        let outcome = doors.expire_some(self.store.stepped.now_ms(), objects_max);
        self.no_deletion_is_refused(&outcome)?;
        let Ok(expired) = outcome else {
            let outcome = outcome.map(drop);
            return self.settle("removing what has expired", outcome, None).map(drop);
        };
        if expired.stale > 0 || expired.damaged > 0 {
            return failed(format!("entries of what expires are wrong: {expired:?}"));
        }
        let Some(figures) = self.doors().map(Doors::figures) else {
            return Ok(());
        };
        self.run.summary.expired += expired.objects;
        let living = self.living(NUMBER);
        let bytes: u64 = living.values().map(|object| object.bytes.len() as u64).sum();
        let is_right = (figures.objects, figures.object_bytes) == (living.len() as u64, bytes);
        if expired.is_done && !is_right {
            let count = living.len();
            return failed(format!("{figures:?} are counted of {count} objects of {bytes} bytes"));
        }
        Ok(())
    }

    /// Deletions are not refused for want of room, however full the store is.
    pub(super) fn no_deletion_is_refused<T>(
        &mut self,
        outcome: &Result<T, BucketError>,
    ) -> Result<(), Broken> {
        match outcome {
            Err(error) if error.is_no_space() => {
                failed(format!("a deletion is refused for want of room: {error}"))
            }
            _ => {
                self.run.summary.deleted_when_full += u64::from(self.is_full);
                Ok(())
            }
        }
    }
}
