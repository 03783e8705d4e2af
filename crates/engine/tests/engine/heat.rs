//! What `stats` says of the three tables: hits and misses, pages in the cache, and what is hot.

use engine::TablesFigures;

use crate::stand::{CHUNK, MIB, Stand, Wish, fresh};

fn tables(stand: &Stand) -> TablesFigures {
    stand.stats().tables
}

/// Every table's hits and misses are its look-ups, and the pages of all tables are the cache's.
fn assert_sums(tables: &TablesFigures) {
    let each = [&tables.hash_pbn, &tables.pbn_pba, &tables.maps, &tables.others];
    for table in &each[..3] {
        assert_eq!(table.hits + table.misses, table.lookups, "{table:?}");
        assert!(table.dirty_pages <= table.cached_pages, "{table:?}");
        let heat = &table.heat;
        let shares = [heat.hottest_1_percent_ratio, heat.hottest_10_percent_ratio];
        assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{table:?}");
        assert!(shares[0] <= shares[1], "{table:?}");
    }
    assert_eq!(each.map(|table| table.cached_pages).iter().sum::<u64>(), tables.cached_pages);
    assert_eq!(each.map(|table| table.dirty_pages).iter().sum::<u64>(), tables.dirty_pages);
}

#[test]
fn a_chunk_that_everybody_writes_makes_its_page_hot() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 64 * MIB);
    assert_eq!(tables(&stand).hash_pbn.heat, engine::HeatFigures::default());
    let blocks = 2_000;
    stand.write(&volume, 0, &fresh(1, blocks * CHUNK));
    stand.flush();
    assert!(tables(&stand).hash_pbn.heat.hot_pages.is_empty(), "what is new wants no page");
    // One chunk three times of four, the others in turn.
    let popular = fresh(1, CHUNK);
    for number in 0..40_u64 {
        let mut piece = fresh(1 + number % 3, 100 * CHUNK);
        for (at, chunk) in piece.chunks_exact_mut(CHUNK as usize).enumerate() {
            if at % 4 != 0 {
                chunk.copy_from_slice(&popular);
            }
        }
        stand.write(&volume, 8 * MIB + number * 100 * CHUNK, &piece);
    }
    stand.flush();
    let tables = tables(&stand);
    assert_sums(&tables);
    let heat = &tables.hash_pbn.heat;
    assert!(heat.hot_pages[0].is_young && heat.hot_pages[0].ratio > 0.7, "{heat:?}");
    assert!(heat.hottest_1_percent_ratio > 0.7 && heat.pages < 30, "{heat:?}");
    assert!(tables.maps.heat.pages >= 3, "{tables:?}");
    assert!(tables.pbn_pba.heat.pages >= 1 && tables.pbn_pba.heat.hot_pages.is_empty());
}
