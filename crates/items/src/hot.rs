//! Items in memory, in shards: what is read often is answered without the bucket.
//!
//! ```text
//! look ──> shard of the key ──> entry ──valid──> copied out under the shard's lock
//!                                  └─ not valid, or none: the bucket is read, then fill
//! commit ──> replace, for each key that changed ──> advance, for each of them
//! ```
//!
//! The bucket has a count of changes for each of 65,536 parts of the keys (`objects`, moments.rs).
//! A shard knows of each of its parts the moment at which all valid entries of the part were what
//! the bucket holds, and an *age*: entries of an earlier age are not valid. An entry is answered if
//! its age is that of its part and the bucket's count is still at the part's moment. A change by
//! this cache moves the moment along, so other entries of the part stay valid. A change by another
//! door leaves the moment behind, and the next fill of an entry begins a new age.
//!
//! Invariants: a part's moment moves on only from the one directly before the change, which the
//! bucket's lock of these keys makes certain, and after the changed keys were replaced; the bytes
//! of a shard are at most its bound.
//!
//! Which entries stay: [`Shard`].

mod entry;
mod ghosts;
mod queue;
mod shard;

use std::hash::BuildHasher;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::DefaultHashBuilder;
use memcached::Item;
use objects::bucket::{Bucket, MOMENT_COUNTS, Moment, moment_number};

pub(crate) use entry::{HOT_VALUE_BYTES_MAX, HotItem, NewEntry};
pub(crate) use shard::HotFigures;
use shard::{Shard, Where};

const SHARDS_MAX: usize = 64;
/// Least memory of a shard, so that it holds some of the longest values.
const SHARD_BYTES_MIN: u64 = 1 << 20;

pub(crate) struct HotItems {
    shards: Box<[Mutex<Shard>]>,
    hasher: DefaultHashBuilder,
}

/// A key that a commit has changed.
pub(crate) struct Replaced<'a> {
    pub(crate) key: &'a [u8],
    /// The moment before the change, taken while the key was locked already.
    pub(crate) before: Option<Moment>,
    pub(crate) now: Replacement,
}

/// What a changed key holds.
pub(crate) enum Replacement {
    Entry(NewEntry),
    /// The same value with another item, and the object's version.
    Item(Item, u64),
    Nothing,
}

impl HotItems {
    /// At most `bytes_max` bytes of keys, values and what is kept with them.
    pub(crate) fn new(bytes_max: u64) -> Self {
        let fitting = (bytes_max / SHARD_BYTES_MIN).clamp(1, SHARDS_MAX as u64) as usize;
        let shards = 1 << fitting.ilog2();
        let shard_bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX) / shards;
        let shard = || Mutex::new(Shard::new(shard_bytes_max, MOMENT_COUNTS / shards));
        Self {
            shards: (0..shards).map(|_| shard()).collect(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Calls `see` with the valid entry of a key, under the lock of its shard.
    pub(crate) fn look<R>(
        &self,
        bucket: &Bucket,
        key: &[u8],
        see: impl FnOnce(HotItem<'_>) -> R,
    ) -> Option<R> {
        let (mut shard, place) = self.shard_of(key);
        let now = bucket.moment(key)?;
        Some(see(shard.valid(place, key, now)?))
    }

    /// Whether a read of the key finds all it needs here.
    pub(crate) fn answers(&self, bucket: &Bucket, key: &[u8]) -> bool {
        let (shard, place) = self.shard_of(key);
        bucket.moment(key).is_some_and(|now| shard.has_value(place, key, now))
    }

    /// Keeps what was read of the bucket since `moment`, unless the key has changed meanwhile.
    pub(crate) fn fill(&self, bucket: &Bucket, key: &[u8], moment: Moment, entry: NewEntry) {
        let (mut shard, place) = self.shard_of(key);
        if bucket.is_unchanged(key, moment) {
            shard.set_moment(place, moment);
            shard.insert(place, key, entry);
        }
    }

    /// Takes what a commit has written, before the bucket unlocks the keys.
    pub(crate) fn replace<'a>(&self, bucket: &Bucket, all: impl Iterator<Item = Replaced<'a>>) {
        let mut moves = Vec::new();
        for Replaced { key, before, now } in all {
            let (mut shard, place) = self.shard_of(key);
            let (Some(before), Some(after)) = (before, bucket.moment(key)) else {
                shard.remove(place, key);
                continue;
            };
            shard.set_moment_before_change(place, before, after);
            match now {
                Replacement::Entry(entry) => shard.insert(place, key, entry),
                Replacement::Item(item, version) => shard.set_item(place, key, item, version),
                Replacement::Nothing => shard.remove(place, key),
            }
            moves.push((key, before, after));
        }
        for (key, before, after) in moves {
            let (mut shard, place) = self.shard_of(key);
            shard.advance(place, before, after);
        }
    }

    pub(crate) fn figures(&self) -> HotFigures {
        let add = |sum: HotFigures, shard: &Mutex<Shard>| {
            let HotFigures { items, bytes } = lock(shard).figures();
            HotFigures { items: sum.items + items, bytes: sum.bytes + bytes }
        };
        self.shards.iter().fold(HotFigures::default(), add)
    }

    fn shard_of(&self, key: &[u8]) -> (MutexGuard<'_, Shard>, Where) {
        let number = moment_number(key);
        let hash = self.hasher.hash_one(key);
        let place = Where { hash, part: number / self.shards.len() };
        (lock(&self.shards[number % self.shards.len()]), place)
    }
}

fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    // A panic under the lock is an assertion of a shard's; what it holds is checked at each use.
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}
