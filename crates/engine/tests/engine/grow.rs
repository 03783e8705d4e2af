//! A store that is full grows, closed or running, and the power may go at any moment of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use disk::{Completion, Disk, Doorbell, Fault, Io, IoKind, Loss, MemoryDisk, ZoneGrowth};
use engine::{
    CreateOptions, GrowOptions, Growing, RequestError, ScrubRequest, Zone, control, plan_growth,
};
use format::mark::Mark;
use format::superblock::Geometry;

use crate::stand::{CHUNK, Hand, Holder, Looker, MIB, Opens, Wish, check_clean, fresh, put};

/// Data zones of the grown store; the first has half of that before.
const ZONE_BYTES: u64 = 128 * MIB;

/// A store of one data zone on a disk that has room for what it will be.
fn small_store(wish: &Wish) -> (MemoryDisk, Geometry) {
    let geometry = engine::plan(&CreateOptions {
        capacity_bytes: vec![ZONE_BYTES / 2],
        chunk_bytes: wish.chunk_bytes,
        compression: wish.compression,
        detection: Default::default(),
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
    // As whoever adds a zone does before the store grows.
    let zone = Zone::Data(1);
    put(&disk, zone, &Mark { uuid: geometry.uuid, zone }.encode());
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

/// Its first copy is in a cache only then; the second must not outlive it.
#[test]
fn a_growth_whose_sync_failed_is_written_again_from_its_first_copy_on() {
    let wish = Wish::default();
    let (disk, geometry) = small_store(&wish);
    let grown = plan_growth(&geometry, &larger()).unwrap();
    disk.inject(Fault::Sync { zone: Zone::Superblock });
    Growing::begin(Box::new(disk.clone())).unwrap().finish(&grown).unwrap_err();
    disk.heal();
    let disk = disk.restart(1);
    drop(wish.load(&disk).unwrap());
    let left = disk.left_by_power_loss(1, Loss::All);
    assert!(geometry_in(&left, 0) == grown && geometry_in(&left, 3) == grown);
}

/// What the power leaves of a store that grows, if it goes at one of the growth's writes or syncs;
/// and the geometry before and after.
fn cut_growth(wish: &Wish) -> (Vec<MemoryDisk>, [Geometry; 2]) {
    let (disk, geometry) = small_store(wish);
    let stand = wish.open(disk);
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 0, &fresh(7, 16 * CHUNK));
    let disk = stand.close();
    let grown = plan_growth(&geometry, &larger()).unwrap();
    let (looker, left) = Looker::new(disk);
    Growing::begin(Box::new(looker)).unwrap().finish(&grown).unwrap();
    let left = std::mem::take(&mut *left.lock().unwrap());
    (left, [geometry, grown])
}

/// At each of the growth's writes and syncs the power goes, in each way that it can; the store is
/// the old one or the new one, and after it was opened no copy says otherwise.
#[test]
fn a_growth_that_is_cut_leaves_the_old_store_or_the_new_one() {
    let wish = Wish::default();
    let (left, [geometry, _]) = cut_growth(&wish);
    assert_eq!(left.len(), 4 * 2, "two writes and two syncs");
    let (mut old, mut differing) = (0, 0);
    for disk in left {
        differing += usize::from(geometry_in(&disk, 0) != geometry_in(&disk, 3));
        let disk = wish.use_again(disk);
        assert_eq!(geometry_in(&disk, 0), geometry_in(&disk, 3));
        old += usize::from(geometry_in(&disk, 0) == geometry);
    }
    assert!(old > 0 && differing > 0, "{old} found the old store, {differing} two that differ");
}

/// The power goes between the two copies, and the next opening does not get the old one.
#[test]
fn an_old_geometry_that_could_not_be_read_never_comes_back() {
    let wish = Wish::default();
    let (left, [geometry, grown]) = cut_growth(&wish);
    let is_half_grown =
        |disk: &&MemoryDisk| geometry_in(disk, 0) == grown && geometry_in(disk, 3) == geometry;
    let disk = left.iter().find(is_half_grown).unwrap().clone();

    disk.inject(Fault::Read { zone: Zone::Superblock, offset_bytes: 3 * 4096 });
    let disk = wish.open(disk).close();
    disk.heal();
    disk.inject(Fault::Read { zone: Zone::Superblock, offset_bytes: 0 });
    let stand = wish.open(disk);
    assert_eq!(stand.client.geometry().unwrap(), grown);
    stand.close();
}

/// Writes MiB after MiB until one fails for want of room; how many are there.
fn fill(hand: &mut Hand, volume: &engine::OpenVolume) -> u64 {
    for number in 0.. {
        let later = hand.write(volume, number * MIB, &fresh(number, MIB));
        if later.is_some_and(|tag| hand.wait(tag).is_err()) {
            return number;
        }
        hand.settle();
    }
    unreachable!("a store has an end");
}

/// A memory disk that keeps writes of the superblock back for as long as it is told to.
struct Withheld {
    disk: MemoryDisk,
    holds: Arc<AtomicBool>,
    held: Vec<Io>,
}

impl Disk for Withheld {
    fn submit(&mut self, io: Io) {
        let is_write = matches!(io.kind, IoKind::Write { .. }) && io.zone == Zone::Superblock;
        if is_write && self.holds.load(Ordering::Relaxed) {
            return self.held.push(io);
        }
        self.disk.submit(io);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        if !self.holds.load(Ordering::Relaxed) {
            self.held.drain(..).for_each(|io| self.disk.submit(io));
        }
        self.disk.poll(done);
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        self.disk.wait(done);
    }

    fn in_flight(&self) -> usize {
        self.disk.in_flight() + self.held.len()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.disk.size_bytes(zone)
    }
}

/// What is new is used only when the geometry says so durably: what is flushed into it before
/// would be lost with the power.
#[test]
fn nothing_is_stored_beyond_the_old_end_before_the_geometry_is_durable() {
    let wish = Wish::default();
    let (disk, _) = small_store(&wish);
    let mut hand = Hand::open(&wish, disk);
    let volume = hand.volume("v", 1 << 30);
    let written = fill(&mut hand, &volume);
    let disk = hand.close();
    let holds = Arc::new(AtomicBool::new(false));
    let withheld = Withheld { disk: disk.clone(), holds: Arc::clone(&holds), held: Vec::new() };
    let doorbell = Doorbell::new().unwrap();
    let (engine, client, _) = engine::open(Box::new(withheld), doorbell, &wish.options).unwrap();
    let mut hand = Hand::of(disk, engine, client);
    let volume = hand.beside(|client| client.volume("v")).unwrap();
    holds.store(true, Ordering::Relaxed);
    let growth = ask_to_grow(&mut hand);
    let durable = hand.write_durable(&volume, written * MIB, &fresh(written, MIB));
    for _ in 0..3000 {
        hand.engine.step();
        hand.engine.tick();
    }
    assert!(hand.outcome(durable).is_none() && hand.outcome(growth).is_none());
    holds.store(false, Ordering::Relaxed);
    hand.wait(growth).unwrap();
    hand.wait(durable).unwrap();
    assert!(hand.read(&volume, written * MIB, MIB as u32) == fresh(written, MIB));
    check_clean(&hand.close());
}

/// Asks for the growth; the tag of its answer.
fn ask_to_grow(hand: &mut Hand) -> u64 {
    let (tag, done) = hand.done();
    let zones = ZoneGrowth::default();
    hand.client.administer(control::Grow { options: larger(), zones }, done);
    tag
}

#[test]
fn a_full_store_grows_while_it_runs() {
    let wish = Wish::default();
    let (disk, geometry) = small_store(&wish);
    let mut hand = Hand::open(&wish, disk);
    let volume = hand.volume("v", 1 << 30);
    let written = fill(&mut hand, &volume);
    let before = hand.beside(|client| client.stats()).unwrap();
    // A write that waits for space gets it; a scrub of the superblock finds nothing amiss.
    let growth = ask_to_grow(&mut hand);
    let (scrubbed, done) = hand.done();
    hand.client.administer(ScrubRequest::default(), done);
    let later = hand.write(&volume, written * MIB, &fresh(written, MIB));
    hand.wait(growth).unwrap();
    assert!(later.is_none_or(|tag| hand.wait(tag).is_ok()));
    let Ok(engine::Reply::Scrub(step)) = hand.wait(scrubbed) else { panic!() };
    assert!(step.findings.is_empty(), "{step:?}");
    let grown = plan_growth(&geometry, &larger()).unwrap();
    let after = hand.beside(|client| client.stats()).unwrap();
    assert_eq!(after.capacity_bytes, grown.capacity_bytes());
    assert!(after.capacity_bytes > before.capacity_bytes);
    assert!(after.data_used_ratio < before.data_used_ratio / 2.0);

    for number in written..written + 150 {
        let later = hand.write(&volume, number * MIB, &fresh(number, MIB));
        assert!(later.is_none_or(|tag| hand.wait(tag).is_ok()), "MiB {number}");
        hand.settle();
    }
    for number in 0..written + 150 {
        assert!(hand.read(&volume, number * MIB, MIB as u32) == fresh(number, MIB), "{number}");
    }
    let disk = hand.close();
    assert!(geometry_in(&disk, 0) == grown && geometry_in(&disk, 3) == grown);
    check_clean(&disk);
}

/// A write that finds room in pieces only, and of which a shrink forbids the rest: its first piece
/// counts against the quota until it is mapped.
#[test]
fn a_refused_write_keeps_its_share_of_a_quota_while_a_piece_of_it_is_on_its_way() {
    const CHUNKS: u64 = 512;
    let wish = Wish::default();
    let (disk, _) = small_store(&wish);
    let mut hand = Hand::open(&wish, disk);
    let volume = hand.volume("v", 1 << 30);
    // A leaf of the map in which the piece will be, so that it waits for that.
    hand.write(&volume, 700 * CHUNK, &fresh(1 << 32, CHUNK));
    hand.beside(|client| client.set_quota("v", Some((CHUNKS + 1) * CHUNK))).unwrap();
    drop(volume);
    let (mut hand, held) = Holder::open(&wish, hand.close());
    let volume = hand.beside(|client| client.volume("v").unwrap());
    let full = hand.volume("w", 1 << 30);
    let room_bytes = |hand: &mut Hand| hand.beside(|client| client.stats()).unwrap().free_bytes;
    let mut written = 0;
    while room_bytes(&mut hand) > 7 * MIB / 4 {
        assert_eq!(hand.write(&full, written * MIB, &fresh(written, MIB / 2)), None);
        written += 1;
        hand.settle();
    }
    held.hold(Zone::Tables);
    let first = 800;
    let refused = hand.write(&volume, first * CHUNK, &fresh(2 << 32, CHUNKS * CHUNK)).unwrap();
    hand.settle();
    assert!(held.count() > 0, "a piece of it waits for pages");
    let (_, done) = hand.done();
    let (name, size_bytes) = ("v".to_owned(), (first + CHUNKS - 1) * CHUNK);
    let request = control::ResizeVolume { name, size_bytes, may_shrink: true, even_if_open: true };
    hand.client.administer(request, done);
    let grown = ask_to_grow(&mut hand);
    hand.wait(grown).unwrap();
    hand.settle();
    let outcome = hand.outcome(refused).expect("its rest has room, and no place");
    assert!(matches!(outcome, Err(RequestError::OutOfRange { .. })), "{outcome:?}");
    let other = hand.write(&volume, 0, &fresh(3 << 32, CHUNKS * CHUNK)).unwrap();
    hand.settle();
    held.let_go();
    let at_quota = RequestError::QuotaExceeded { volume: "v".to_owned() };
    assert_eq!(hand.wait(other).map(drop), Err(at_quota));
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let volumes = hand.beside(|client| client.volumes()).unwrap();
    let mapped_chunks = volumes[0].mapped_bytes / CHUNK;
    assert!((2..=CHUNKS).contains(&mapped_chunks), "{mapped_chunks} chunks: a piece is there");
    drop((volume, full));
    check_clean(&hand.close());
}

#[test]
fn a_running_store_refuses_what_its_files_have_no_room_for() {
    let wish = Wish::default();
    let (disk, geometry) = small_store(&wish);
    let stand = wish.open(disk);
    let grow = |options: GrowOptions| {
        stand.client.ask(control::Grow { options, zones: ZoneGrowth::default() })
    };
    let refused = |outcome: Result<Geometry, RequestError>| {
        assert!(matches!(outcome, Err(RequestError::CannotGrow { .. })), "{outcome:?}");
    };
    refused(grow(GrowOptions::default()));
    refused(grow(GrowOptions { last_zone_bytes: Some(2 * ZONE_BYTES), ..Default::default() }));
    refused(grow(GrowOptions { added_bytes: vec![ZONE_BYTES; 2], ..larger() }));
    assert_eq!(stand.client.geometry().unwrap(), geometry);
    grow(larger()).unwrap();
    assert_eq!(stand.client.geometry().unwrap(), plan_growth(&geometry, &larger()).unwrap());
    stand.close();
}

/// A full store grows and is written on; at every write and sync of it, and at many of what
/// follows, the power goes. Whatever is left opens, and holds what was flushed before.
#[test]
fn a_running_growth_that_is_cut_leaves_the_old_store_or_the_new_one() {
    let wish = Wish::default();
    let (disk, geometry) = small_store(&wish);
    let mut hand = Hand::open(&wish, disk);
    let volume = hand.volume("v", 1 << 30);
    let written = fill(&mut hand, &volume);
    let (mut hand, left) = Looker::open(&wish, hand.close());
    let volume = hand.beside(|client| client.volume("v")).unwrap();
    left.lock().unwrap().clear();
    let growth = ask_to_grow(&mut hand);
    // In flight beside it, so that what is new is used as soon as it may be.
    let mut later = Vec::new();
    for number in written..written + 8 {
        later.extend(hand.write(&volume, number * MIB, &fresh(number, MIB)));
    }
    hand.wait(growth).unwrap();
    later.into_iter().for_each(|tag| assert!(hand.wait(tag).is_ok()));
    let flush = hand.flush();
    hand.wait(flush).unwrap();

    let left = std::mem::take(&mut *left.lock().unwrap());
    let (mut old, mut new, mut differing) = (0, 0, 0);
    let looked_at = left.into_iter().enumerate().filter(|(at, _)| *at < 12 || at % 40 == 0);
    for (at, disk) in looked_at {
        differing += usize::from(geometry_in(&disk, 0) != geometry_in(&disk, 3));
        let stand = wish.open(disk);
        let volume = stand.client.volume("v").unwrap();
        for number in [0, written / 2, written - 1] {
            assert!(stand.read(&volume, number * MIB, MIB) == fresh(number, MIB), "{at}: {number}");
        }
        let disk = stand.close();
        check_clean(&disk);
        let found = geometry_in(&disk, 0);
        assert_eq!(found, geometry_in(&disk, 3), "{at}");
        if found == geometry { old += 1 } else { new += 1 }
    }
    assert!(old > 0 && new > 8 && differing > 0, "{old} old, {new} new, {differing} differing");
}
