//! Memory that frames and young entries leave is lent to the pages of the tables, and comes back.

use engine::{Caches, OpenVolume, Stats};

use crate::stand::{CHUNK, GIB, MIB, Stand, Wish, check_clean, fresh, packed};

/// What the cache of the tables has of its own.
const OWN_PAGES: u64 = 200;
/// Of 16 MiB for frames an eighth is for what is read ahead; what is left is what is shared.
const FRAMES_BYTES: u64 = 14 * MIB;
/// What a page is counted at that is lent.
const LENT_PAGE_BYTES: u64 = 6528;
const READ_BYTES: u64 = 32 << 10;
/// A page of a map for each.
const SPARSE_CHUNKS: u64 = 700;

fn wish(lends: bool) -> Wish {
    let cache = Caches {
        pages: OWN_PAGES as usize,
        dirty_pages_max: 64,
        young_max: 1000,
        directory_entries: 0,
        frame_bytes: 16 * MIB,
        lends,
    };
    Wish { cache: Some(cache), ..Wish::default() }
}

/// Changes a page of the map for each of so many chunks.
fn write_sparsely(stand: &Stand, sparse: &OpenVolume, numbers: u64) {
    for number in 0..numbers {
        stand.write(sparse, number * SPARSE_CHUNKS * CHUNK, &packed(number % 7));
    }
    stand.flush();
}

/// The figures, of which pages and frames together never take more than their shares.
fn shares(stand: &Stand) -> Stats {
    let stats = stand.stats();
    let lent_pages = stats.tables.cached_pages_max.saturating_sub(OWN_PAGES);
    let frames_bytes = stats.read_cache.bytes;
    // The index may have lent fifteen bytes for each of its entries.
    let most_bytes = FRAMES_BYTES + 15_000;
    assert!(lent_pages * LENT_PAGE_BYTES + frames_bytes <= most_bytes, "{stats:?}");
    stats
}

#[test]
fn who_only_writes_has_the_memory_of_frames_until_somebody_reads() {
    let stand = wish(true).stand();
    let (volume, sparse) = (stand.volume("v", 64 * MIB), stand.volume("sparse", 1024 * GIB));
    stand.write(&volume, 0, &fresh(1, 32 * MIB));
    write_sparsely(&stand, &sparse, 1000);
    let written = shares(&stand);
    let most = OWN_PAGES + FRAMES_BYTES / LENT_PAGE_BYTES;
    assert!((1000..most).contains(&written.tables.cached_pages_max), "{written:?}");
    assert!(written.tables.cached_pages > 1000, "all that was written is there: {written:?}");

    // Not one behind the other: nothing is to be read ahead.
    for number in 0..4096 {
        stand.read(&volume, number * 389 % 1024 * READ_BYTES, READ_BYTES);
        if number % 16 == 0 {
            shares(&stand);
        }
    }
    let read = shares(&stand);
    assert!(read.read_cache.bytes > FRAMES_BYTES / 10 * 9, "frames have their share: {read:?}");
    assert!(read.tables.cached_pages_max < OWN_PAGES + 100, "{read:?}");
    stand.wait_until("pages have left", |stats| stats.tables.cached_pages <= OWN_PAGES + 120);

    (0..24).for_each(|_| write_sparsely(&stand, &sparse, 1000));
    let written = shares(&stand);
    assert!(written.tables.cached_pages_max > 1000, "nobody reads any more: {written:?}");
    assert!(stand.read(&volume, 0, 32 * MIB) == fresh(1, 32 * MIB));
    check_clean(&stand.close());
}

#[test]
fn a_cache_that_is_lent_nothing_keeps_to_its_own() {
    let stand = wish(false).stand();
    write_sparsely(&stand, &stand.volume("sparse", 1024 * GIB), 1000);
    let stats = stand.stats();
    assert_eq!(stats.tables.cached_pages_max, OWN_PAGES);
    stand.wait_until("pages have left", |stats| stats.tables.cached_pages <= OWN_PAGES + 64);
    check_clean(&stand.close());
}
