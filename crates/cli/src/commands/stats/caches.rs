//! What the buckets of a served store do that are caches.

use admin::CacheShown;
use serde::Serialize;

use crate::size::{human_bytes, human_count};
use crate::table::{Align, Table};

/// A bucket as a cache.
#[derive(Debug, Serialize)]
pub(super) struct Cache {
    bucket: String,
    connections: u64,
    connections_total: u64,
    items: u64,
    item_bytes: u64,
    item_bytes_max: Option<u64>,
    hot_items: u64,
    hot_bytes: u64,
    hits: u64,
    misses: u64,
    stores: u64,
    deletes: u64,
    evictions: u64,
    in_bytes: u64,
    out_bytes: u64,
}

impl From<CacheShown> for Cache {
    fn from(shown: CacheShown) -> Self {
        Self {
            bucket: shown.bucket,
            connections: shown.connections,
            connections_total: shown.connections_total,
            items: shown.items,
            item_bytes: shown.item_bytes,
            item_bytes_max: shown.item_bytes_max,
            hot_items: shown.hot_items,
            hot_bytes: shown.hot_bytes,
            hits: shown.hits,
            misses: shown.misses,
            stores: shown.stores,
            deletes: shown.deletes,
            evictions: shown.evictions,
            in_bytes: shown.bytes_in,
            out_bytes: shown.bytes_out,
        }
    }
}

/// None where no bucket is one.
pub(super) fn table(caches: &[Cache]) -> Option<Table> {
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
