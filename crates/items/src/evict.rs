//! Caches with a bound: what goes when the bucket holds more.
//!
//! ```text
//! objects in the order of their keys   ... o o O o | O o o O ...     O was read since
//!                            spared, deleted ──hand──> looked at next
//! ```
//!
//! A hand goes round over the objects, as that of CLOCK does. One that was read since the hand was
//! there is spared, and counts as read once less, three times at most: so goes S3-FIFO's main
//! queue. One that is among the newest eighth is spared as well, since it had no time to be read.
//! All others go until the bucket is within its bound. The order of keys stands for the order in
//! which objects came, so that no table of that order is written with each put, and what is there
//! after a restart is what was there before (decision 065).
//!
//! Invariant: a change that makes the bucket larger evicts before its answer. So the bucket is
//! beyond its bound by at most what is being stored at that moment.

use std::sync::{Mutex, PoisonError};

use objects::bucket::{Bucket, BucketError, Condition, DeleteOptions, ListOptions, Listed};
use store::Durability;

use crate::totals::Total;
use crate::wanted::Wanted;

/// What an object counts beside its bytes: its record in the index.
pub(crate) const OBJECT_BYTES: u64 = 64;
/// Objects that are looked at in one step.
const STEP_OBJECTS: usize = 64;
/// An object is new until this part of all objects, one in `NEW_PART`, is newer.
const NEW_PART: u64 = 8;

/// The bound of a cache.
pub(crate) struct Eviction {
    bytes_max: u64,
    wanted: Wanted,
    hand: Mutex<Hand>,
    pub(crate) evicted: Total,
}

#[derive(Default)]
struct Hand {
    /// The key that is looked at next, or where one would be.
    from: Vec<u8>,
}

impl Eviction {
    pub(crate) fn new(bytes_max: u64) -> Self {
        let (wanted, hand, evicted) = (Wanted::new(), Mutex::default(), Total::default());
        Self { bytes_max, wanted, hand, evicted }
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// The key was read.
    pub(crate) fn read(&self, key: &[u8]) {
        self.wanted.add(key);
    }

    /// Evicts until the bucket is within its bound, or there is nothing to evict.
    ///
    /// # Errors
    /// [`BucketError`]; what was evicted is gone.
    pub(crate) fn keep_bound(&self, bucket: &Bucket, now_ms: u64) -> Result<(), BucketError> {
        if self.excess_bytes(bucket) == 0 {
            return Ok(());
        }
        // A panic leaves the hand at some place, and any place will do.
        let mut hand = self.hand.lock().unwrap_or_else(PoisonError::into_inner);
        let mut spares_new = true;
        let mut evicted_in_round = 0;
        loop {
            let excess_bytes = self.excess_bytes(bucket);
            if excess_bytes == 0 {
                return Ok(());
            }
            let (evicted, is_round) =
                self.step(&mut hand, bucket, excess_bytes, spares_new, now_ms)?;
            evicted_in_round += evicted;
            if is_round {
                if evicted_in_round == 0 && bucket.figures().objects == 0 {
                    return Ok(());
                }
                spares_new = evicted_in_round > 0;
                evicted_in_round = 0;
            }
        }
    }

    fn excess_bytes(&self, bucket: &Bucket) -> u64 {
        used_bytes(bucket).saturating_sub(self.bytes_max)
    }

    /// Looks at some objects; returns how many were evicted, and whether the round is over.
    fn step(
        &self,
        hand: &mut Hand,
        bucket: &Bucket,
        excess_bytes: u64,
        spares_new: bool,
        now_ms: u64,
    ) -> Result<(u64, bool), BucketError> {
        let (prefix, delimiter, from) = (Vec::new(), Vec::new(), std::mem::take(&mut hand.from));
        let options = ListOptions { prefix, delimiter, from, limit: STEP_OBJECTS, now_ms };
        let listing = bucket.list(&options)?;
        let new_objects = bucket.figures().objects / NEW_PART;
        let new_from = bucket.next_version().saturating_sub(new_objects);
        let mut freed_bytes = 0;
        let mut victims: Vec<&Listed> = Vec::new();
        let mut next = listing.next.clone();
        for listed in &listing.objects {
            if freed_bytes >= excess_bytes {
                next = Some(listed.key.clone());
                break;
            }
            let is_new = spares_new && listed.info.version >= new_from;
            if !is_new && !self.wanted.take(&listed.key) {
                freed_bytes += listed.info.size_bytes + OBJECT_BYTES;
                victims.push(listed);
            }
        }
        let evicted = delete_listed(bucket, victims, now_ms)?;
        self.evicted.add(evicted);
        let is_round = next.is_none();
        hand.from = next.unwrap_or_default();
        Ok((evicted, is_round))
    }
}

/// Deletes objects as they were listed: one that was replaced meanwhile stays. Returns how many are
/// gone.
///
/// # Errors
/// [`BucketError`].
pub(crate) fn delete_listed<'a>(
    bucket: &Bucket,
    objects: impl IntoIterator<Item = &'a Listed>,
    now_ms: u64,
) -> Result<u64, BucketError> {
    let as_listed = |listed: &'a Listed| (&listed.key[..], Condition::Version(listed.info.version));
    let keys: Vec<(&[u8], Condition)> = objects.into_iter().map(as_listed).collect();
    if keys.is_empty() {
        return Ok(0);
    }
    let durability = Durability::Acknowledged;
    let outcomes = bucket.delete_many(&keys, DeleteOptions { durability, now_ms })?;
    Ok(outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64)
}

/// What a bucket holds, as its bound counts it.
pub(crate) fn used_bytes(bucket: &Bucket) -> u64 {
    let figures = bucket.figures();
    figures.object_bytes.saturating_add(figures.objects.saturating_mul(OBJECT_BYTES))
}
