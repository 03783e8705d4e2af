//! Directories: who writes again what was written in one go finds it without a bucket for each, and
//! is never led to what is not there any more.

use disk::MemoryDisk;
use engine::{Caches, Zone};

use crate::stand::{CHUNK, MIB, Stand, Wish, check_clean, fresh};

/// What is written, and written again: ten containers.
const BYTES: u64 = 40 * MIB;
const CHUNKS: u64 = BYTES / CHUNK;

/// A cache of a few pages: buckets are on disk.
fn wish() -> Wish {
    let cache = Caches {
        pages: 48,
        dirty_pages_max: 36,
        young_max: 100,
        directory_entries: 20_000,
        frame_bytes: 1 << 20,
        lends: false,
    };
    Wish { cache: Some(cache), ..Wish::default() }
}

fn written() -> Stand {
    let stand = wish().stand();
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 0, &fresh(1, BYTES));
    stand.flush();
    stand
}

#[test]
fn a_run_is_found_without_its_buckets() {
    let stand = written();
    let before = stand.stats();
    let again = stand.volume("again", 64 * MIB);
    stand.write(&again, 0, &fresh(1, BYTES));
    stand.flush();
    let after = stand.stats();
    assert_eq!(after.unique_chunks, before.unique_chunks);
    assert_eq!(after.counters.chunks_duplicate - before.counters.chunks_duplicate, CHUNKS);
    let found = after.tables.found_by_directory - before.tables.found_by_directory;
    assert!(found > CHUNKS / 2, "{found} of {CHUNKS}: {:?}", after.tables);
    assert!(after.tables.directories_read <= 11, "each once: {:?}", after.tables);
    assert!(stand.read(&again, 0, BYTES) == fresh(1, BYTES));
    check_clean(&stand.close());
}

/// The containers and the names of chunks have other contents, in the same places, while
/// directories of their earlier life are in memory.
#[test]
fn what_a_directory_says_of_an_earlier_life_does_not_count() {
    let wish = Wish { capacities: vec![64 * MIB], ..wish() };
    let stand = wish.stand();
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 0, &fresh(1, BYTES));
    stand.write(&volume, 0, &fresh(1, BYTES));
    stand.flush();
    assert!(stand.stats().tables.directories_read > 0);
    for round in 2..5 {
        stand.trim(&volume, 0, BYTES);
        stand.flush();
        stand.write(&volume, 0, &fresh(round, BYTES));
        stand.flush();
        // Brings in what is there now, and leaves some of it.
        stand.write(&volume, 0, &fresh(round, BYTES));
        assert!(stand.read(&volume, 0, BYTES) == fresh(round, BYTES));
        stand.trim(&volume, 0, BYTES);
        stand.write(&volume, 0, &fresh(round - 1, BYTES));
        stand.flush();
        assert!(stand.read(&volume, 0, BYTES) == fresh(round - 1, BYTES));
    }
    check_clean(&stand.close());
}

fn spoil_directories(disk: &MemoryDisk) {
    for container in 1..=10_u64 {
        disk.corrupt(Zone::Data(0), container * 4 * MIB - 2000, |byte| *byte ^= 4);
    }
}

#[test]
fn damaged_directories_are_done_without() {
    let stand = written();
    let disk = stand.close();
    spoil_directories(&disk);
    let stand = wish().open(disk);
    let again = stand.volume("again", 64 * MIB);
    stand.write(&again, 0, &fresh(1, BYTES));
    stand.flush();
    let after = stand.stats();
    assert_eq!(after.unique_chunks, CHUNKS);
    assert!(after.tables.directories_read > 0 && after.writing_stopped.is_none());
    assert!(stand.read(&again, 0, BYTES) == fresh(1, BYTES));
}
