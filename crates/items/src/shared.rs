//! What the connections of a cache and its upkeep share.

use std::sync::atomic::{AtomicUsize, Ordering};

use buckets::OpenBucket;
use memcached::{Fault, Figures, Operation, Request};
use objects::bucket::Bucket;
use store::Durability;

use crate::evict::{Eviction, used_bytes};
use crate::fault::fault_of;
use crate::flush::Flushes;
use crate::hot::HotItems;
use crate::totals::Totals;

/// What connections and upkeep share.
pub(crate) struct Shared {
    pub(crate) bucket: Bucket,
    pub(crate) durability: Durability,
    pub(crate) hot: HotItems,
    pub(crate) flushes: Flushes,
    pub(crate) totals: Totals,
    pub(crate) waiting: WaitingChanges,
    /// None: the cache has no bound.
    pub(crate) eviction: Option<Eviction>,
    /// The bucket stays open as long as it serves as a cache.
    #[expect(dead_code, reason = "it is held, and not looked at")]
    pub(crate) open: Option<OpenBucket>,
}

impl Shared {
    /// Carries out a flush whose time has come.
    pub(crate) fn flush_if_due(&self, now_s: u64) -> Result<(), Fault> {
        let flushed = self.flushes.flush_if_due(&self.bucket, now_s, self.durability);
        flushed.map_err(|error| fault_of(&error))
    }

    /// Evicts until the bucket is within its bound. What fails is tried again behind the next
    /// change: the change before it was made.
    pub(crate) fn keep_bound(&self, now_s: u64) {
        if let Some(eviction) = &self.eviction {
            let _ = eviction.keep_bound(&self.bucket, now_s.saturating_mul(1000));
        }
    }

    /// What the cache tells of itself.
    pub(crate) fn figures(&self) -> Figures {
        let (eviction, bucket) = (self.eviction.as_ref(), &self.bucket);
        self.totals.fill(Figures {
            items: bucket.figures().objects,
            bytes: used_bytes(bucket),
            bytes_max: eviction
                .map_or(bucket.quota_bytes(), |eviction| Some(eviction.bytes_max()))
                .unwrap_or(0),
            evictions: eviction.map_or(0, |eviction| eviction.evicted.get()),
            expired: bucket.expired_objects(),
            ..Figures::default()
        })
    }

    /// Whether requests may wait: one reads an item that is not in memory, or what they change
    /// finds the write buffer full, or finds another change that found it so, which has keys
    /// locked. The index, which changes read, is in memory but for large buckets.
    pub(crate) fn would_wait(&self, requests: &[Request<'_>]) -> bool {
        let is_hot = |key| self.hot.answers(&self.bucket, key);
        let reads_wait = requests.iter().any(|request| match &request.operation {
            Operation::Get(get) => !is_hot(get.key),
            Operation::Inspect { key } => !is_hot(key),
            Operation::Store(_)
            | Operation::Delete(_)
            | Operation::Touch(_)
            | Operation::Arithmetic(_) => self.durability == Durability::Durable,
            Operation::Flush { .. } => true,
        });
        reads_wait
            || (requests.iter().any(|request| request.operation.is_change())
                && self.changes_wait(requests))
    }

    /// Whether the write buffer has no room for changes, or others wait for it.
    fn changes_wait(&self, requests: &[Request<'_>]) -> bool {
        self.waiting.are_some() || self.finds_buffer_full(requests)
    }

    fn finds_buffer_full(&self, requests: &[Request<'_>]) -> bool {
        self.bucket.would_wait(requests.iter().map(|request| match &request.operation {
            Operation::Store(store) => store.value.len(),
            _ => 0,
        }))
    }

    /// Counts changes that are about to begin among those that wait, if they find the write buffer
    /// full.
    pub(crate) fn begin_changes(&self, requests: &[Request<'_>]) -> Option<Waiting<'_>> {
        self.finds_buffer_full(requests).then(|| self.waiting.begin())
    }
}

/// Changes that are under way, and that found the write buffer full when they began.
#[derive(Default)]
pub(crate) struct WaitingChanges(AtomicUsize);

/// One of them; dropped, it is over.
#[must_use]
pub(crate) struct Waiting<'a>(&'a WaitingChanges);

impl WaitingChanges {
    fn are_some(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    fn begin(&self) -> Waiting<'_> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Waiting(self)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let before = self.0.0.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "a change that is over had begun");
    }
}
