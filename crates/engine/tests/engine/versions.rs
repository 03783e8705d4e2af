//! A store of an earlier format version is used by this program, and the power may go at any moment
//! of the opening that makes it one of today's.

use disk::MemoryDisk;
use engine::{Detection, FingerprintKind, Zone};
use format::FORMAT_VERSION_COMMON;
use format::superblock::{GEOMETRY_BLOCKS, Geometry};

use crate::stand::{CHUNK, Looker, MIB, Wish, check_clean, fresh};

const BLOCK: u64 = 4096;

fn version_in(disk: &MemoryDisk, block: u64) -> u32 {
    let block = disk.peek(Zone::Superblock, block * BLOCK, BLOCK as usize);
    Geometry::decode(&block).unwrap().version
}

/// Everything but the geometry.
fn all_but_geometry(disk: &MemoryDisk) -> Vec<Vec<u8>> {
    let zones = [Zone::Journal, Zone::Tables, Zone::Data(0)];
    let whole = |zone| disk.peek(zone, 0, disk::Disk::size_bytes(disk, zone) as usize);
    let roots = disk.peek(Zone::Superblock, BLOCK, 2 * BLOCK as usize);
    zones.into_iter().map(whole).chain([roots]).collect()
}

/// A store with a volume and something in its journal, whose geometry says version 1.
fn old_store(wish: &Wish) -> MemoryDisk {
    let stand = wish.stand();
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 0, &fresh(7, 16 * CHUNK));
    let disk = stand.cut_power_flushed(1);
    for block in GEOMETRY_BLOCKS {
        let at = block * BLOCK;
        let today = disk.peek(Zone::Superblock, at, BLOCK as usize);
        let old = Geometry { version: 1, ..Geometry::decode(&today).unwrap() };
        for (offset, byte) in (at..).zip(old.encode()) {
            disk.corrupt(Zone::Superblock, offset, |at| *at = byte);
        }
    }
    disk
}

#[test]
fn a_check_leaves_the_version_as_it_is() {
    let disk = old_store(&Wish::default());
    let before = all_but_geometry(&disk);
    check_clean(&disk);
    assert!(all_but_geometry(&disk) == before);
    assert_eq!(GEOMETRY_BLOCKS.map(|block| version_in(&disk, block)), [1, 1]);
}

/// Whatever is written beside the geometry is written when both its blocks say so, durably.
#[test]
fn a_raised_version_may_be_cut_off_at_every_write() {
    let wish = Wish::default();
    let disk = old_store(&wish);
    let before = all_but_geometry(&disk);
    let (hand, left) = Looker::open(&wish, disk);
    drop(hand);
    let left = std::mem::take(&mut *left.lock().unwrap());
    let mut seen = [0; 3];
    for disk in left {
        let versions = GEOMETRY_BLOCKS.map(|block| version_in(&disk, block));
        seen[versions.iter().filter(|&&version| version == FORMAT_VERSION_COMMON).count()] += 1;
        if versions != [FORMAT_VERSION_COMMON; 2] {
            assert!(versions[0] >= versions[1], "the second block was raised first");
            assert!(all_but_geometry(&disk) == before, "something was written too early");
        }
        let disk = wish.use_again(disk);
        assert_eq!(
            GEOMETRY_BLOCKS.map(|block| version_in(&disk, block)),
            [FORMAT_VERSION_COMMON; 2]
        );
    }
    assert!(seen.iter().all(|&count| count > 0), "old, differing, today's: {seen:?}");
}

/// What has nothing of version 3 stays readable by programs of version 2.
#[test]
fn a_store_gets_the_version_that_it_needs_and_keeps_it() {
    for (kind, version) in [(FingerprintKind::Blake3, 2), (FingerprintKind::Sha256, 3)] {
        let wish = Wish {
            detection: Detection { kind, verify: false, ..Default::default() },
            ..Wish::default()
        };
        let stand = wish.stand();
        let volume = stand.volume("v", 64 * MIB);
        stand.write(&volume, 0, &fresh(7, 16 * CHUNK));
        let disk = wish.use_again(stand.cut_power_flushed(1));
        assert_eq!(GEOMETRY_BLOCKS.map(|block| version_in(&disk, block)), [version; 2], "{kind}");
    }
}
