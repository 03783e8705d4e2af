//! What the connections of a cache and its upkeep share.

use buckets::OpenBucket;
use memcached::{Fault, Operation, Request};
use objects::bucket::Bucket;
use store::Durability;

use crate::evict::Eviction;
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

    /// Whether requests may wait for the disk: one reads an item that is not in memory. What
    /// changes items reads the index, which is in memory but for large buckets, and goes to the
    /// write buffer.
    pub(crate) fn would_wait(&self, requests: &[Request<'_>]) -> bool {
        let is_hot = |key| self.hot.answers(&self.bucket, key);
        requests.iter().any(|request| match &request.operation {
            Operation::Get(get) => !is_hot(get.key),
            Operation::Inspect { key } => !is_hot(key),
            Operation::Store(_)
            | Operation::Delete(_)
            | Operation::Touch(_)
            | Operation::Arithmetic(_) => self.durability == Durability::Durable,
            Operation::Flush { .. } => true,
        })
    }
}
