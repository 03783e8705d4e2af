//! What the buckets of a served store do that are caches.

use admin::CacheShown;

use crate::size::{human_bytes, human_count};
use crate::table::{Align, Table};

/// None where no bucket is one.
pub(super) fn table(caches: &[CacheShown]) -> Option<Table> {
    if caches.is_empty() {
        return None;
    }
    let mut table = Table::with_heading([
        ("CACHE", Align::Left),
        ("CLIENTS", Align::Right),
        ("ITEMS", Align::Right),
        ("SIZE", Align::Right),
        ("IN MEMORY", Align::Right),
        ("HITS", Align::Right),
        ("MISSES", Align::Right),
        ("STORED", Align::Right),
        ("EVICTED", Align::Right),
    ]);
    for cache in caches {
        table.row([
            cache.bucket.clone(),
            cache.connections.to_string(),
            human_count(cache.items),
            human_bytes(cache.item_bytes),
            human_bytes(cache.hot_bytes),
            human_count(cache.hits),
            human_count(cache.misses),
            human_count(cache.stores),
            human_count(cache.evictions),
        ]);
    }
    Some(table)
}
