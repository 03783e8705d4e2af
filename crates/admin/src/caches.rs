//! What buckets do that are served as caches, as it is asked and answered.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::json::plain;

/// Lists the buckets that have clients over memcached, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListCaches {}

/// A bucket as a cache: what it holds, and what its clients did since it serves as one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheShown {
    /// The bucket's name.
    pub bucket: String,
    /// Connections now.
    pub connections: u64,
    /// Connections by now.
    pub connections_total: u64,
    /// Items that it holds.
    pub items: u64,
    /// What they take, as memcached counts it.
    pub item_bytes: u64,
    /// What they may take.
    pub item_bytes_max: Option<u64>,
    /// Items that are in memory as well.
    pub hot_items: u64,
    /// Memory that those take.
    pub hot_bytes: u64,
    /// Reads that found their item.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Values that were sent to be stored.
    pub stores: u64,
    /// Items that were deleted.
    pub deletes: u64,
    /// Items that went to make room.
    pub evictions: u64,
    /// Bytes that clients sent.
    pub in_bytes: u64,
    /// Bytes that they were sent.
    pub out_bytes: u64,
}

/// Says what caches there are.
pub type CacheLister = Box<dyn Fn() -> Vec<CacheShown> + Send + Sync>;

/// Who knows the caches of the store. It can be set after the server has started.
#[derive(Clone, Default)]
pub struct SharedCaches(Arc<OnceLock<CacheLister>>);

impl SharedCaches {
    /// Has `lister` asked from now on; the first that is set stays.
    pub fn set(&self, lister: CacheLister) {
        let _ = self.0.set(lister);
    }

    pub(crate) fn list(&self) -> Vec<CacheShown> {
        self.0.get().map_or_else(Vec::new, |lister| lister())
    }
}

plain!(ListCaches, CacheShown);
