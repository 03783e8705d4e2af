//! What the tables cost: entries that were looked up, and pages that had to be moved for them.
//!
//! An entry is counted when it is looked at or changed and not at each attempt to have its page: an
//! operation that waits for pages asks for all of them again. A page that was missing is counted
//! when it is read. So what is between the two is what the cache gave.

use tables::TableTraffic;

use crate::engine::Engine;
use crate::stats::{TableFigures, TablesFigures};

impl Engine {
    pub(crate) fn tables_figures(&self) -> TablesFigures {
        let store = &self.state.store;
        let (traffic, seen) = (store.traffic(), &self.state.entries_seen);
        TablesFigures {
            hash_pbn: figures(traffic.hash_pbn, seen.hash_pbn),
            pbn_pba: figures(traffic.pbn_pba, seen.pbn_pba),
            maps: figures(traffic.maps, seen.maps),
            others: figures(traffic.others, 0),
            cached_pages: store.resident_pages() as u64,
            cached_pages_max: store.cache_pages() as u64,
            dirty_pages: store.dirty_pages() as u64,
        }
    }
}

fn figures(traffic: TableTraffic, entries_seen: u64) -> TableFigures {
    let TableTraffic { leaf_reads, inner_reads, writes } = traffic;
    let missed = leaf_reads as f64 / entries_seen.max(1) as f64;
    TableFigures {
        lookups: entries_seen,
        leaf_reads,
        inner_reads,
        page_writes: writes,
        hit_ratio: (1.0 - missed).max(0.0),
    }
}
