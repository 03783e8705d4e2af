//! `flush_all`: a document of the bucket says which objects it has ended.
//!
//! ```text
//! u8 version = 1 | u64 ended below | u64 deleted below | u64 ends at, seconds since 1970, 0 never
//! little-endian, 25 bytes, document `memcached.flush`
//! ```
//!
//! Objects of versions that are smaller than *ended below* are gone for memcached clients from the
//! flush on, however many they are; upkeep deletes them, and then raises *deleted below*. A flush
//! that is to come has a time, and the first request behind it carries it out. A put that took
//! its version before a flush and ends behind it counts as one of before: both were under way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use objects::bucket::{Bucket, BucketError};
use store::Durability;

const DOCUMENT: &str = "memcached.flush";
const VERSION: u8 = 1;
const BYTES: usize = 25;

/// The document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flushed {
    ended_below: u64,
    deleted_below: u64,
    at_s: Option<u64>,
}

impl Flushed {
    fn encode(self) -> [u8; BYTES] {
        let numbers = [self.ended_below, self.deleted_below, self.at_s.unwrap_or(0)];
        let mut bytes = [VERSION; BYTES];
        for (place, number) in bytes[1..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// None: a newer program wrote it, or nobody knows who.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&VERSION, numbers) = bytes.split_first()? else { return None };
        let (numbers, []) = numbers.as_chunks::<8>() else { return None };
        let &[ended_below, deleted_below, at_s] = numbers else { return None };
        let at_s = Some(u64::from_le_bytes(at_s)).filter(|at_s| *at_s != 0);
        let [ended_below, deleted_below] = [ended_below, deleted_below].map(u64::from_le_bytes);
        Some(Self { ended_below, deleted_below, at_s })
    }
}

/// Flushes of one bucket.
pub(crate) struct Flushes {
    /// As the bucket has it; held while it changes.
    flushed: Mutex<Flushed>,
    /// Copies that each request looks at.
    ended_below: AtomicU64,
    /// `u64::MAX`: no flush is to come.
    at_s: AtomicU64,
}

impl Flushes {
    /// As the bucket has them; none: its document is not one of this program's.
    pub(crate) fn open(bucket: &Bucket) -> Result<Option<Self>, BucketError> {
        let flushed = match bucket.document(DOCUMENT)? {
            None => Some(Flushed::default()),
            Some(bytes) => Flushed::decode(&bytes),
        };
        Ok(flushed.map(|flushed| Self {
            ended_below: AtomicU64::new(flushed.ended_below),
            at_s: AtomicU64::new(flushed.at_s.unwrap_or(u64::MAX)),
            flushed: Mutex::new(flushed),
        }))
    }

    /// Whether an object of this version is there for clients.
    pub(crate) fn is_live(&self, version: u64) -> bool {
        version >= self.ended_below.load(Ordering::Acquire)
    }

    /// Ends all that is there, now or at a time, which replaces another flush that is to come.
    pub(crate) fn flush(
        &self,
        bucket: &Bucket,
        at_s: Option<u64>,
        durability: Durability,
    ) -> Result<(), BucketError> {
        let flushed = self.lock();
        let after = match at_s {
            Some(_) => Flushed { at_s, ..*flushed },
            None => Flushed { ended_below: bucket.next_version(), at_s, ..*flushed },
        };
        self.change(bucket, flushed, after, durability)
    }

    /// Carries out a flush whose time has come.
    pub(crate) fn flush_if_due(
        &self,
        bucket: &Bucket,
        now_s: u64,
        durability: Durability,
    ) -> Result<(), BucketError> {
        if self.at_s.load(Ordering::Acquire) > now_s {
            return Ok(());
        }
        let flushed = self.lock();
        match flushed.at_s {
            Some(at_s) if at_s <= now_s => {
                let after = Flushed { ended_below: bucket.next_version(), at_s: None, ..*flushed };
                self.change(bucket, flushed, after, durability)
            }
            _ => Ok(()), // Another one was quicker.
        }
    }

    /// Versions whose objects upkeep is to delete: those below; none: there are none.
    pub(crate) fn to_delete_below(&self) -> Option<u64> {
        let flushed = self.lock();
        (flushed.deleted_below < flushed.ended_below).then_some(flushed.ended_below)
    }

    /// All objects of versions below are deleted.
    pub(crate) fn deleted(&self, bucket: &Bucket, below: u64) -> Result<(), BucketError> {
        let flushed = self.lock();
        let after = Flushed { deleted_below: below.max(flushed.deleted_below), ..*flushed };
        self.change(bucket, flushed, after, Durability::Acknowledged)
    }

    fn change(
        &self,
        bucket: &Bucket,
        mut flushed: MutexGuard<'_, Flushed>,
        after: Flushed,
        durability: Durability,
    ) -> Result<(), BucketError> {
        assert!(after.ended_below >= flushed.ended_below, "versions grow");
        bucket.set_document(DOCUMENT, Some(&after.encode()), durability)?;
        *flushed = after;
        self.ended_below.store(after.ended_below, Ordering::Release);
        self.at_s.store(after.at_s.unwrap_or(u64::MAX), Ordering::Release);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Flushed> {
        // It changes in one step.
        self.flushed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Flushed;

    #[test]
    fn the_layout_stays_and_others_are_refused() {
        let flushed = Flushed { ended_below: 2, deleted_below: 1, at_s: Some(3) };
        let mut expected = vec![1, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
        expected.extend([3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(flushed.encode()[..], expected[..]);
        assert_eq!(Flushed::decode(&expected), Some(flushed));
        assert_eq!(Flushed::decode(&Flushed::default().encode()), Some(Flushed::default()));
        expected[0] = 2;
        assert_eq!(Flushed::decode(&expected), None);
        expected[0] = 1;
        assert_eq!(Flushed::decode(&expected[..24]), None);
        expected.push(0);
        assert_eq!(Flushed::decode(&expected), None);
        assert_eq!(Flushed::decode(&[]), None);
    }
}
