//! A store that is full grows, and the power may go at any moment of it.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod stand;

use disk::MemoryDisk;
use engine::{CreateOptions, GrowOptions, Growing, RequestError, Zone, plan_growth};
use format::superblock::Geometry;
use stand::{CHUNK, Looker, MIB, Wish, check_clean, fresh};

/// Data zones of the grown store; the first has half of that before.
const ZONE_BYTES: u64 = 128 * MIB;

/// A store of one data zone on a disk that has room for what it will be.
fn small_store(wish: &Wish) -> (MemoryDisk, Geometry) {
    let geometry = engine::plan(&CreateOptions {
        capacity_bytes: vec![ZONE_BYTES / 2],
        chunk_bytes: wish.chunk_bytes,
        compression: wish.compression,
        tables_bytes: None,
        journal_bytes: None,
        uuid: [3; 16],
        bucket_seed: [5; 16],
    })
    .unwrap();
    let zones = [
        (Zone::Superblock, 64 << 10),
        (Zone::Journal, geometry.journal_bytes),
        (Zone::Tables, 2 * geometry.tables_bytes),
        (Zone::Data(0), ZONE_BYTES),
        (Zone::Data(1), ZONE_BYTES),
    ];
    let disk = MemoryDisk::new(&zones, wish.seed);
    engine::create(Box::new(disk.clone()), &geometry, wish.compression).unwrap();
    (disk, geometry)
}

fn larger() -> GrowOptions {
    GrowOptions {
        last_zone_bytes: Some(ZONE_BYTES),
        added_bytes: vec![ZONE_BYTES],
        tables_bytes_max: None,
    }
}

fn geometry_in(disk: &MemoryDisk, block: u64) -> Geometry {
    Geometry::decode(&disk.peek(Zone::Superblock, block * 4096, 4096)).unwrap()
}

#[test]
fn a_full_store_grows_and_goes_on() {
    let wish = Wish::default();
    let (disk, geometry) = small_store(&wish);
    let stand = wish.open(disk);
    let volume = stand.volume("v", 1 << 30);
    let mut written = 0;
    while stand.client.write_at(&volume, written * MIB, &fresh(written, MIB)).is_ok() {
        written += 1;
    }
    let full = stand.client.write_at(&volume, written * MIB, &fresh(written, MIB));
    assert_eq!(full.unwrap_err(), RequestError::NoSpace);
    // Not closed: what the journal holds is replayed in the grown store.
    stand.flush();
    let disk = stand.kill(1);

    let growing = Growing::begin(Box::new(disk.clone())).unwrap();
    assert_eq!(growing.geometry(), &geometry);
    let grown = plan_growth(&geometry, &larger()).unwrap();
    growing.finish(&grown).unwrap();

    let stand = wish.open(disk);
    let volume = stand.client.volume("v").unwrap();
    for number in written..written + 150 {
        stand.write(&volume, number * MIB, &fresh(number, MIB));
    }
    for number in 0..written + 150 {
        assert!(stand.read(&volume, number * MIB, MIB) == fresh(number, MIB), "MiB {number}");
    }
    let disk = stand.close();
    check_clean(&disk);
    assert!(geometry_in(&disk, 0) == grown && geometry_in(&disk, 3) == grown);
}

/// At each of the growth's writes and syncs the power goes, in each way that it can; the store is
/// the old one or the new one, and after it was opened no copy says otherwise.
#[test]
fn a_growth_that_is_cut_leaves_the_old_store_or_the_new_one() {
    let wish = Wish::default();
    let (disk, geometry) = small_store(&wish);
    let stand = wish.open(disk);
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 0, &fresh(7, 16 * CHUNK));
    let disk = stand.close();
    let grown = plan_growth(&geometry, &larger()).unwrap();
    let (looker, left) = Looker::new(disk);
    Growing::begin(Box::new(looker)).unwrap().finish(&grown).unwrap();

    let left = std::mem::take(&mut *left.lock().unwrap());
    assert_eq!(left.len(), 4 * 2, "two writes and two syncs");
    let (mut old, mut differing) = (0, 0);
    for disk in left {
        differing += usize::from(geometry_in(&disk, 0) != geometry_in(&disk, 3));
        let stand = wish.open(disk);
        let volume = stand.client.volume("v").unwrap();
        assert!(stand.read(&volume, 0, 16 * CHUNK) == fresh(7, 16 * CHUNK));
        stand.write(&volume, MIB, &fresh(8, MIB));
        let disk = stand.close();
        check_clean(&disk);
        assert_eq!(geometry_in(&disk, 0), geometry_in(&disk, 3));
        old += usize::from(geometry_in(&disk, 0) == geometry);
    }
    assert!(old > 0 && differing > 0, "{old} found the old store, {differing} two that differ");
}
