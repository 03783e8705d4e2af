//! Many versions of one volume: what looks at them takes the time and the memory of what there is
//! of pages, not of what there is of versions.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use disk::{Completion, Disk, Io, IoKind, Loss, MemoryDisk};
use engine::{Caches, Problem, Reply, SnapshotRequest, WeightRequest, Zone, control, repair};

use crate::stand::{CHUNK, GIB, Hand, MIB, Opens, Stand, Wish, check, check_clean, packed};

/// Chunks to which a leaf of a map has room.
const LEAF_CHUNKS: u64 = 677;

/// A disk that counts the blocks of tables that are read.
struct Counting {
    disk: MemoryDisk,
    blocks: Arc<AtomicU64>,
    /// Reads of tables that begin while no other is under way.
    lone: Arc<AtomicU64>,
}

impl Disk for Counting {
    fn submit(&mut self, io: Io) {
        if let (Zone::Tables, IoKind::Read { buf }) = (io.zone, &io.kind) {
            self.blocks.fetch_add(buf.len() as u64 / 4096, Ordering::Relaxed);
            self.lone.fetch_add(u64::from(self.disk.in_flight() == 0), Ordering::Relaxed);
        }
        self.disk.submit(io);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        self.disk.poll(done);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        self.disk.wait(done);
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.disk.size_bytes(zone)
    }
}

fn snap(stand: &Stand, volume: &str, name: &str) {
    let (volumes, name) = (vec![volume.to_owned()], name.to_owned());
    stand.client.ask(SnapshotRequest { volumes, name, taken_unix_s: 7 }).unwrap();
}

/// A volume of so many leaves with so many snapshots that hold the same; both roots name all of it.
fn with_snapshots(leaves: u64, snapshots: u32) -> MemoryDisk {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", GIB);
    for leaf in 0..leaves {
        stand.write(&volume, leaf * LEAF_CHUNKS * CHUNK, &packed(leaf));
    }
    // What is not on the disk yet would be copied for each.
    let stand = Wish::default().open(stand.close());
    for number in 0..snapshots {
        snap(&stand, "v", &format!("s{number}"));
    }
    let disk = Wish::default().open(stand.close()).close();
    check_clean(&disk);
    disk
}

#[test]
fn a_check_reads_what_versions_share_once() {
    let blocks_read = |snapshots| {
        let blocks = Arc::new(AtomicU64::new(0));
        let disk = with_snapshots(60, snapshots);
        let counting = Counting { disk, blocks: Arc::clone(&blocks), lone: Arc::default() };
        let report = engine::check(Box::new(counting), &mut |_| {}).unwrap();
        assert!(report.problems.is_empty(), "{report:?}");
        blocks.load(Ordering::Relaxed)
    };
    let (one, fifty) = (blocks_read(1), blocks_read(50));
    assert!(fifty < one + 50 * 3, "{one} blocks, and {fifty} with fifty snapshots");
}

#[test]
fn a_check_reads_many_leaves_at_a_time() {
    let (leaves, lone) = (300, Arc::new(AtomicU64::new(0)));
    // Where the snapshot and the volume differ, both maps are read.
    let disk = with_snapshots(leaves, 1);
    let stand = Wish::default().open(disk);
    let volume = stand.client.volume("v").unwrap();
    for leaf in 0..leaves {
        stand.write(&volume, leaf * LEAF_CHUNKS * CHUNK, &packed(leaves + leaf));
    }
    let counting =
        Counting { disk: stand.close(), blocks: Arc::default(), lone: Arc::clone(&lone) };
    let report = engine::check(Box::new(counting), &mut |_| {}).unwrap();
    assert!(report.problems.is_empty(), "{report:?}");
    let lone = lone.load(Ordering::Relaxed);
    assert!(lone < leaves / 4, "{lone} times a read was waited for");
}

#[test]
fn a_check_reads_less_the_more_memory_it_has_and_finds_the_same() {
    let disk = with_snapshots(300, 1);
    // The maps are walked once more to say whose a lost chunk is.
    let map = engine::structures(Box::new(disk.left_by_power_loss(0, Loss::None))).unwrap();
    let frame = map.iter().find(|structure| structure.kind == "frame").unwrap();
    disk.corrupt(frame.zone, frame.offset_bytes + 40, |byte| *byte ^= 0x40);
    let checked_within = |memory_bytes| {
        let blocks = Arc::new(AtomicU64::new(0));
        let (disk, lone) = (disk.clone(), Arc::default());
        let counting = Counting { disk, blocks: Arc::clone(&blocks), lone };
        let report = engine::check_within(Box::new(counting), memory_bytes, &mut |_| {}).unwrap();
        assert!(!report.problems.is_empty());
        (report, blocks.load(Ordering::Relaxed))
    };
    let ((little, more_blocks), (much, blocks)) = (checked_within(MIB), checked_within(64 * MIB));
    assert_eq!(format!("{little:?}"), format!("{much:?}"));
    assert!(more_blocks > blocks + 100, "{more_blocks} blocks with little, {blocks} with much");
}

/// Damages the leaves of the map, or so many of them.
fn spoil_leaves(disk: &MemoryDisk, most: usize) {
    let map = engine::structures(Box::new(disk.left_by_power_loss(0, Loss::None))).unwrap();
    let leaves: BTreeSet<u64> = map
        .iter()
        .filter(|structure| structure.kind == "map, leaf")
        .map(|structure| structure.offset_bytes)
        .collect();
    for at in leaves.into_iter().take(most) {
        disk.corrupt(Zone::Tables, at + 600, |byte| *byte ^= 0x40);
    }
}

#[test]
fn a_repair_reads_what_versions_share_once() {
    let blocks_read = |snapshots| {
        let blocks = Arc::new(AtomicU64::new(0));
        let disk = with_snapshots(60, snapshots);
        spoil_leaves(&disk, 1);
        let counting =
            Counting { disk: disk.clone(), blocks: Arc::clone(&blocks), lone: Arc::default() };
        let report = repair(Box::new(counting), &mut |_| {}).unwrap();
        assert_eq!(report.lost_chunks, LEAF_CHUNKS * (1 + u64::from(snapshots)));
        let is_lost = |problem: &Problem| matches!(problem, Problem::LostChunks { .. });
        assert!(check(&disk).problems.iter().all(is_lost));
        blocks.load(Ordering::Relaxed)
    };
    let (one, fifty) = (blocks_read(1), blocks_read(50));
    assert!(fifty < one + 50 * 10, "{one} blocks, and {fifty} with fifty snapshots");
}

#[test]
fn a_repair_writes_what_versions_share_once() {
    let disk = with_snapshots(20, 40);
    spoil_leaves(&disk, 20);
    let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    assert!(report.lost_chunks > 20 * 40, "{report:?}");
    assert!(report.pages_written < 2 * 20 + 40, "{} pages", report.pages_written);
    let lost = check(&disk).problems.len();
    let stand = Wish::default().open(disk);
    let volume = stand.client.volume("v").unwrap();
    stand.trim(&volume, 0, GIB);
    // Those of its snapshots are lost still.
    let left = check(&stand.close()).problems.len();
    assert!(left < lost && left >= 40, "{left} of {lost}");
}

#[test]
fn a_volume_of_many_clones_is_weighed_in_little_memory() {
    let pages = 64;
    let cache = Caches {
        pages,
        dirty_pages_max: 48,
        young_max: 1000,
        directory_entries: 0,
        frame_bytes: MIB,
        lends: false,
    };
    let wish = Wish { cache: Some(cache), ..Wish::default() };
    let stand = wish.stand();
    let volume = stand.volume("v", MIB);
    for lba in 0..100 {
        stand.write(&volume, lba * CHUNK, &packed(lba));
    }
    snap(&stand, "v", "s");
    for number in 0..200 {
        let name = format!("clone{number}");
        stand.client.clone_volume("v@s", &name).unwrap();
        let clone = stand.client.volume(&name).unwrap();
        // None keeps what stood in the first half; all keep the second.
        stand.trim(&clone, 0, 50 * CHUNK);
        stand.write(&clone, 0, &packed(1000 + number));
    }
    stand.trim(&volume, 0, 50 * CHUNK);
    let mut hand = Hand::open(&wish, stand.close());
    let (weighed, done) = hand.done();
    let request = WeightRequest { volume: "v@s".to_owned(), leaf: 0, pbns: 0..u64::MAX };
    hand.client.administer(request, done);
    let mut most_pages = 0;
    let step = loop {
        let (stats, done) = hand.done();
        hand.client.administer(control::GetStats {}, done);
        let Reply::Stats(stats) = hand.wait(stats).unwrap() else { panic!("no figures") };
        most_pages = most_pages.max(stats.tables.cached_pages);
        match hand.outcome(weighed) {
            Some(Ok(Reply::Weight(step))) => break step,
            Some(other) => panic!("{other:?}"),
            None => {}
        }
    };
    assert_eq!((step.mapped, step.single.chunks, step.single_own.chunks), (100, 100, 50));
    assert!(most_pages < pages as u64 + 40, "{most_pages} pages");
}
