//! What the tables cost: entries that were looked up, and pages that had to be moved for them.
//!
//! An entry is counted when it is looked at or changed and not at each attempt to have its page: an
//! operation that waits for pages asks for all of them again. A page that was missing is counted
//! when it is read. So what is between the two is what the cache gave.

use tables::TableTraffic;

use crate::engine::Engine;
use crate::state::State;
use crate::stats::{TableFigures, TablesFigures};

impl Engine {
    pub(crate) fn tables_figures(&self) -> TablesFigures {
        let State { store, hash, .. } = &self.state;
        let (traffic, seen) = (store.traffic(), &self.state.entries_seen);
        let merge_reads = self.counters.merge_reads;
        let hash_reads = traffic.hash_pbn.leaf_reads;
        TablesFigures {
            hash_pbn: TableFigures {
                hit_ratio: hit_ratio(hash_reads.saturating_sub(merge_reads), seen.hash_pbn),
                ..figures(traffic.hash_pbn, seen.hash_pbn)
            },
            pbn_pba: figures(traffic.pbn_pba, seen.pbn_pba),
            maps: figures(traffic.maps, seen.maps),
            others: figures(traffic.others, 0),
            cached_pages: store.resident_pages() as u64,
            cached_pages_max: store.cache_pages() as u64,
            dirty_pages: store.dirty_pages() as u64,
            young_entries: hash.young_entries(),
            merge_reads,
            found_by_directory: self.counters.chunks_found_by_directory,
            directories_read: self.counters.directories_read,
            directory_bytes: self.directories.resident_bytes(),
            young_bytes: hash.young_bytes(),
            filter_bytes: hash.filter_bytes(),
        }
    }
}

fn figures(traffic: TableTraffic, entries_seen: u64) -> TableFigures {
    let TableTraffic { leaf_reads, inner_reads, writes } = traffic;
    TableFigures {
        lookups: entries_seen,
        leaf_reads,
        inner_reads,
        page_writes: writes,
        hit_ratio: hit_ratio(leaf_reads, entries_seen),
    }
}

fn hit_ratio(leaf_reads: u64, entries_seen: u64) -> f64 {
    (1.0 - leaf_reads as f64 / entries_seen.max(1) as f64).max(0.0)
}
