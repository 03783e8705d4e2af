//! What the tables cost: entries that were looked up, and pages that had to be moved for them.
//!
//! An entry is counted when it is looked at or changed and not at each attempt to have its page: an
//! operation that waits for pages asks for all of them again. A page that was missing is counted
//! when it is read. So what is between the two is what the cache gave.

use format::units::TreeId;
use tables::{HashPbn, HeatName, HotPage, PageStore, TableKind, TableTraffic};

use crate::engine::Engine;
use crate::state::State;
use crate::stats::{HeatFigures, HotPageFigures, TableFigures, TablesFigures};

/// Pages that are named when they are hot by themselves.
const HOT_PAGES_MAX: usize = 5;

impl Engine {
    pub(crate) fn tables_figures(&self) -> TablesFigures {
        let State { store, hash, .. } = &self.core.state;
        let (traffic, seen) = (store.traffic(), &self.core.state.entries_seen);
        let merge_reads = self.core.counters.merge_reads;
        let of = |table, traffic, merge_reads, entries_seen| TableFigures {
            heat: heat(store, table),
            ..figures(store, table, traffic, merge_reads, entries_seen)
        };
        TablesFigures {
            hash_pbn: of(TableKind::HashPbn, traffic.hash_pbn, merge_reads, seen.hash_pbn),
            pbn_pba: of(TableKind::PbnPba, traffic.pbn_pba, 0, seen.pbn_pba),
            maps: of(TableKind::Maps, traffic.maps, 0, seen.maps),
            others: figures(store, TableKind::Others, traffic.others, 0, 0),
            cached_pages: store.resident_pages() as u64,
            cached_pages_max: store.cache_pages() as u64,
            dirty_pages: store.dirty_pages() as u64,
            young_entries: hash.young_entries(),
            merge_reads,
            found_by_directory: self.core.counters.chunks_found_by_directory,
            directories_read: self.core.counters.directories_read,
            directory_bytes: self.duplicates.directories.resident_bytes(),
            young_bytes: hash.young_bytes(),
            filter_bytes: hash.filter_bytes(),
        }
    }
}

/// All but the heat, which nobody counts of the other tables.
fn figures(
    store: &PageStore,
    table: TableKind,
    traffic: TableTraffic,
    merge_reads: u64,
    entries_seen: u64,
) -> TableFigures {
    let TableTraffic { leaf_reads, inner_reads, writes } = traffic;
    let misses = leaf_reads.saturating_sub(merge_reads);
    let (cached_pages, dirty_pages) = store.held_of(table);
    TableFigures {
        lookups: entries_seen,
        leaf_reads,
        inner_reads,
        page_writes: writes,
        hit_ratio: hit_ratio(misses, entries_seen),
        hits: entries_seen.saturating_sub(misses),
        misses,
        cached_pages: cached_pages as u64,
        dirty_pages: dirty_pages as u64,
        heat: HeatFigures::default(),
    }
}

fn hit_ratio(misses: u64, entries_seen: u64) -> f64 {
    (1.0 - misses as f64 / entries_seen.max(1) as f64).max(0.0)
}

fn heat(store: &PageStore, table: TableKind) -> HeatFigures {
    let heat = store.heat(table);
    // A page of counts or of a map tells nothing by itself: hot chunks lie beside one another.
    let hot_pages = match table {
        TableKind::HashPbn => heat.hottest(HOT_PAGES_MAX).into_iter().map(hot_page).collect(),
        _ => Vec::new(),
    };
    HeatFigures {
        pages: heat.pages(),
        hottest_1_percent_ratio: heat.share_of_hottest(1),
        hottest_10_percent_ratio: heat.share_of_hottest(10),
        hot_pages,
    }
}

fn hot_page(HotPage { page, ratio }: HotPage) -> HotPageFigures {
    let (tree, leaf) = HeatName(page).hash_leaf();
    let is_young = tree == TreeId::YOUNG;
    let number = if is_young { leaf } else { HashPbn::bucket_in(leaf) };
    HotPageFigures { number, is_young, ratio }
}
