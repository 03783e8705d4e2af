//! A store of an earlier format version is used by this program, and the power may go at any moment
//! of the opening that makes it one of today's.

use disk::{Doorbell, MemoryDisk};
use engine::{Detection, FingerprintKind, OpenError, Problem, RepairError, Zone};
use format::superblock::{GEOMETRY_BLOCKS, Geometry};
use format::{FORMAT_VERSION, FORMAT_VERSION_COMMON};

use crate::stand::{CHUNK, Looker, MIB, Wish, check, check_clean, fresh};

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
        rewrite(&disk, block, |today| Geometry { version: 1, ..today.clone() }.encode().to_vec());
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

/// A block of the geometry, changed by `change`.
fn rewrite(disk: &MemoryDisk, block: u64, change: impl Fn(&Geometry) -> Vec<u8>) {
    let at = block * BLOCK;
    let today = Geometry::decode(&disk.peek(Zone::Superblock, at, BLOCK as usize)).unwrap();
    for (offset, byte) in (at..).zip(change(&today)) {
        disk.corrupt(Zone::Superblock, offset, |at| *at = byte);
    }
}

#[test]
fn one_copy_of_the_geometry_that_is_of_a_newer_version_refuses_the_store() {
    let wish = Wish::default();
    for block in GEOMETRY_BLOCKS {
        let disk = wish.stand().close();
        rewrite(&disk, block, |today| {
            Geometry { version: FORMAT_VERSION + 1, ..today.clone() }.encode().to_vec()
        });
        let before = (disk.peek(Zone::Superblock, 0, 4 * BLOCK as usize), all_but_geometry(&disk));
        let boxed = || Box::new(disk.clone());
        let is_newer = |error: &OpenError| matches!(error, OpenError::Newer(_));
        let doorbell = Doorbell::new().unwrap();
        assert!(is_newer(&engine::open(boxed(), doorbell, &wish.options).err().unwrap()));
        assert!(is_newer(&engine::check(boxed(), &mut |_| {}).unwrap_err()));
        let refused = engine::repair(boxed(), &mut |_| {}).unwrap_err();
        assert!(matches!(refused, RepairError::Open(error) if is_newer(&error)));
        let after = (disk.peek(Zone::Superblock, 0, 4 * BLOCK as usize), all_but_geometry(&disk));
        assert!(before == after, "block {block}");
    }
}

#[test]
fn a_version_that_rotted_in_one_copy_of_the_geometry_is_damage() {
    let wish = Wish::default();
    for block in GEOMETRY_BLOCKS {
        let disk = wish.stand().close();
        disk.corrupt(Zone::Superblock, block * BLOCK + 12, |byte| *byte |= 0x40);
        assert_eq!(check(&disk).problems, [Problem::GeometryCopy { block }]);
        engine::repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
        check_clean(&disk);
    }
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
