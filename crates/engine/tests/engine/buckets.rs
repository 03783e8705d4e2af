//! Volumes of another kind than block, and stores with features: the first bucket of a store comes
//! without a moment that harms, keeps its kind for life, and programs that do not know what a store
//! has keep their hands off it.

use disk::MemoryDisk;
use engine::{
    Growing, NewVolume, OpenError, RepairError, SnapshotRequest, VolumeKind, Zone, repair,
};
use format::FORMAT_VERSION;
use format::superblock::{GEOMETRY_BLOCKS, Geometry};

use crate::stand::{CHUNK, Looker, MIB, Opens, Stand, Wish, check_clean, fresh};

const BLOCK: u64 = 4096;

fn bucket(name: &str) -> NewVolume {
    let (name, size_bytes, kind) = (name.to_owned(), 64 * MIB, VolumeKind::Bucket);
    NewVolume { name, size_bytes, kind, ..NewVolume::default() }
}

fn geometry(disk: &MemoryDisk, block: u64) -> Geometry {
    Geometry::decode(&disk.peek(Zone::Superblock, block * BLOCK, BLOCK as usize)).unwrap()
}

fn kinds(stand: &Stand) -> Vec<(String, VolumeKind)> {
    let volumes = stand.client.volumes().unwrap();
    let opened = |name: &str| stand.client.volume(name).unwrap().kind();
    assert!(volumes.iter().all(|volume| volume.kind == opened(&volume.name)));
    volumes.into_iter().map(|volume| (volume.name, volume.kind)).collect()
}

/// Through snapshots, clones, replay, a checkpoint and a repair.
#[test]
fn a_bucket_is_one_for_life() {
    let wish = Wish::default();
    let stand = wish.stand();
    stand.volume("disk", 64 * MIB);
    assert_eq!(stand.client.ask(bucket("b")).unwrap().kind, VolumeKind::Bucket);
    let b = stand.client.volume("b").unwrap();
    stand.write(&b, 0, &fresh(7, 16 * CHUNK));
    let (volumes, name) = (vec!["b".to_owned()], "s".to_owned());
    let request = SnapshotRequest { volumes, name, taken_unix_s: 1 };
    stand.client.ask(request).unwrap();
    stand.client.clone_volume("b@s", "branch").unwrap();
    drop(b);
    let [disk, kind] = [VolumeKind::Block, VolumeKind::Bucket];
    let all = [("b", kind), ("b@s", kind), ("branch", kind), ("disk", disk)];
    let all = all.map(|(name, kind)| (name.to_owned(), kind));
    assert_eq!(kinds(&stand), all);
    // By replay, then by the catalog, then by a repair of both.
    let stand = wish.open(stand.cut_power_flushed(1));
    assert_eq!(kinds(&stand), all);
    let stand = wish.open(stand.close());
    assert_eq!(kinds(&stand), all);
    let left = stand.cut_power_flushed(2);
    repair(Box::new(left.clone()), &mut |_| {}).unwrap();
    check_clean(&left);
    let stand = wish.open(left);
    assert_eq!(kinds(&stand), all);
    assert!(stand.read(&stand.client.volume("b").unwrap(), 0, 16 * CHUNK) == fresh(7, 16 * CHUNK));
}

#[test]
fn a_store_without_buckets_stays_of_the_version_that_it_was() {
    let stand = Wish::default().stand();
    stand.volume("v", 64 * MIB);
    let disk = stand.close();
    assert_eq!(GEOMETRY_BLOCKS.map(|block| geometry(&disk, block).version), [2, 2]);
}

/// The power goes at every write of the first bucket's making: no bucket is there before both
/// copies of the geometry say that there may be one, and so refuse older programs.
#[test]
fn a_first_bucket_may_be_cut_off_at_every_write() {
    let wish = Wish::default();
    let stand = wish.stand();
    let v = stand.volume("v", 64 * MIB);
    stand.write(&v, 0, &fresh(7, 16 * CHUNK));
    drop(v);
    let (mut hand, left) = Looker::open(&wish, stand.close());
    // Two at once: both get what they asked for.
    let tags = ["a", "b"].map(|name| {
        let (tag, done) = hand.done();
        hand.client.administer(bucket(name), done);
        tag
    });
    tags.into_iter().for_each(|tag| drop(hand.wait(tag).unwrap()));
    drop(hand);
    let mut seen = [0; 3];
    for disk in std::mem::take(&mut *left.lock().unwrap()) {
        let versions = GEOMETRY_BLOCKS.map(|block| geometry(&disk, block).version);
        seen[versions.iter().filter(|&&version| version == FORMAT_VERSION).count()] += 1;
        assert!(versions[0] >= versions[1], "the second block was raised first");
        let stand = wish.open(wish.use_again(disk));
        let has_bucket = kinds(&stand).iter().any(|(_, kind)| *kind == VolumeKind::Bucket);
        assert!(!has_bucket || versions == [FORMAT_VERSION; 2], "a bucket without its feature");
        // And one can be made now.
        stand.client.ask(bucket("c")).unwrap();
        check_clean(&stand.close());
    }
    assert!(seen.iter().all(|&count| count > 0), "none, one, both: {seen:?}");
}

/// A closed store, of which one copy of the geometry has got a feature.
fn with_feature(block: u64, word_at: usize) -> MemoryDisk {
    let stand = Wish::default().stand();
    stand.client.ask(bucket("b")).unwrap();
    let disk = stand.close();
    for to in GEOMETRY_BLOCKS.into_iter().filter(|to| block == 0 || *to == block) {
        let at = to * BLOCK;
        let mut bytes = disk.peek(Zone::Superblock, at, BLOCK as usize).to_vec();
        bytes[word_at + 7] = 0x40;
        let crc = format::checksum::crc32c(&bytes[12..]);
        bytes[8..12].copy_from_slice(&crc.to_le_bytes());
        for (offset, byte) in (at..).zip(bytes) {
            disk.corrupt(Zone::Superblock, offset, |at| *at = byte);
        }
    }
    disk
}

fn superblock(disk: &MemoryDisk) -> Vec<u8> {
    disk.peek(Zone::Superblock, 0, 16 * BLOCK as usize).to_vec()
}

#[test]
fn a_store_with_an_unknown_incompatible_feature_is_left_alone() {
    let wish = Wish::default();
    let refused = |result: Result<(), OpenError>| {
        assert!(matches!(result, Err(OpenError::Newer(_))), "{result:?}");
    };
    for block in GEOMETRY_BLOCKS {
        let disk = with_feature(block, 384);
        let (before, boxed) = (superblock(&disk), || Box::new(disk.clone()));
        let doorbell = disk::Doorbell::new().unwrap();
        refused(engine::open(boxed(), doorbell, &wish.options).map(drop));
        refused(engine::check(boxed(), &mut |_| {}).map(drop));
        refused(Growing::begin(boxed()).map(drop));
        match repair(boxed(), &mut |_| {}) {
            Err(RepairError::Open(error)) => refused(Err(error)),
            other => panic!("{other:?}"),
        }
        assert!(superblock(&disk) == before, "it was written to, block {block}");
    }
}

#[test]
fn a_store_with_an_unknown_feature_for_writers_may_be_checked() {
    let wish = Wish::default();
    let disk = with_feature(0, 376);
    let (before, boxed) = (superblock(&disk), || Box::new(disk.clone()));
    check_clean(&disk);
    let doorbell = disk::Doorbell::new().unwrap();
    let refused = engine::open(boxed(), doorbell, &wish.options).map(drop);
    assert!(matches!(refused, Err(OpenError::Newer(_))), "{refused:?}");
    assert!(matches!(Growing::begin(boxed()).map(drop), Err(OpenError::Newer(_))));
    let refused = repair(boxed(), &mut |_| {}).unwrap_err();
    assert!(matches!(refused, RepairError::Open(OpenError::Newer(_))), "{refused}");
    assert!(superblock(&disk) == before, "it was written to");
}

#[test]
fn a_compatible_feature_is_kept_whatever_is_written() {
    let wish = Wish::default();
    let disk = with_feature(0, 368);
    let stand = wish.open(disk);
    stand.client.set_dedup("b", engine::Dedup::Off).unwrap();
    let disk = stand.close();
    for block in GEOMETRY_BLOCKS {
        let geometry = geometry(&disk, block);
        assert_eq!((geometry.features.compatible, geometry.detection.asides), (0x40 << 56, true));
    }
    check_clean(&disk);
}
