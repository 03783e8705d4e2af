//! Blocks that cannot be read: an error for exactly what needs them.

use std::collections::BTreeSet;

use disk::{Completion, Disk, Fault, Io, IoKind, Loss, MemoryDisk};
use engine::{Address, DeleteRequest, OpenError, RequestError, Zone};
use format::root::Root;

use crate::scrub::{filled, place_of};
use crate::stand::{CHUNK, Hand, MIB, Opens, Stand, Wish, check_clean, fresh};

const DATA: Zone = Zone::Data(0);
const BLOCK: u64 = 4096;

/// Where the newest root and the one before it lie in the superblock, and both.
fn roots(disk: &MemoryDisk) -> [(u64, Root); 2] {
    let mut roots = [1, 2].map(|block| {
        let bytes = disk.peek(Zone::Superblock, block * BLOCK, BLOCK as usize);
        (block * BLOCK, Root::decode(&bytes, [3; 16]).unwrap())
    });
    roots.sort_by_key(|(_, root)| std::cmp::Reverse(root.generation));
    roots
}

/// Zone, first byte and length of what a store consists of if it is opened from the newest root, or
/// from the one before.
fn structures(disk: &MemoryDisk, newest: bool) -> BTreeSet<(Zone, u64, u64)> {
    let copy = disk.left_by_power_loss(0, Loss::None);
    let lost_at = roots(disk)[usize::from(newest)].0;
    copy.corrupt(Zone::Superblock, lost_at + 40, |byte| *byte ^= 0x40);
    let all = engine::structures(Box::new(copy)).unwrap();
    all.into_iter().map(|part| (part.zone, part.offset_bytes, part.length_bytes)).collect()
}

/// Records behind the newest root: first byte and length.
fn records(disk: &MemoryDisk) -> Vec<(u64, u64)> {
    let all = structures(disk, true).into_iter();
    all.filter(|part| part.0 == Zone::Journal).map(|part| (part.1, part.2)).collect()
}

/// More chunks, each flushed.
fn write_flushed(stand: &Stand, chunks: std::ops::Range<u64>) {
    let volume = stand.client.volume("a").unwrap();
    for number in chunks {
        stand.write(&volume, number * CHUNK, &fresh(number, CHUNK));
        stand.flush();
    }
}

/// Which of the first chunks cannot be read. The others read right.
fn unread(stand: &Stand, chunks: u64) -> Vec<u64> {
    let volume = stand.client.volume("a").unwrap();
    let is_lost = |number: &u64| match stand.try_read(&volume, number * CHUNK, CHUNK) {
        Ok(bytes) => {
            assert!(bytes == fresh(*number, CHUNK), "chunk {number}");
            false
        }
        Err(_) => true,
    };
    (0..chunks).filter(is_lost).collect()
}

#[test]
fn what_lies_behind_the_journals_end_may_be_unreadable() {
    for further in [0, 5] {
        let (stand, _) = filled(300);
        write_flushed(&stand, 300..300 + further);
        let disk = if further == 0 { stand.close() } else { stand.kill(1) };
        let root_at = roots(&disk)[0].1.journal.offset_bytes;
        let end = records(&disk).last().map_or(root_at, |(start, length)| start + length);
        for offset_bytes in [end + 2 * BLOCK, end + 50 * BLOCK] {
            disk.inject(Fault::Read { zone: Zone::Journal, offset_bytes });
        }
        let stand = Wish::default().open(disk);
        assert_eq!(unread(&stand, 300 + further), [0; 0]);
        let disk = stand.close();
        disk.heal();
        check_clean(&disk);
    }
}

#[test]
fn what_lies_behind_the_fill_of_the_open_container_may_be_unreadable() {
    let (stand, _) = filled(1100);
    let disk = stand.close();
    disk.inject(Fault::Read { zone: DATA, offset_bytes: 7 * MIB });
    let stand = Wish::default().open(disk);
    write_flushed(&stand, 1100..1110);
    assert_eq!(unread(&stand, 1110), [0; 0]);
    let disk = stand.close();
    disk.heal();
    check_clean(&disk);
}

#[test]
fn a_block_of_the_open_container_that_cannot_be_read_costs_the_chunks_on_it() {
    let (stand, _) = filled(1100);
    let disk = stand.close();
    let offset_bytes = place_of(&disk, &fresh(1090, CHUNK)) + 2048;
    disk.inject(Fault::Read { zone: DATA, offset_bytes });
    let stand = Wish::default().open(disk);
    write_flushed(&stand, 1100..1110);
    let lost = unread(&stand, 1110);
    assert!(lost.contains(&1090) && lost.len() <= 3, "{lost:?}");
    let disk = stand.close();
    disk.heal();
    let stand = Wish::default().open(disk);
    assert_eq!(unread(&stand, 1110), [0; 0]);
    check_clean(&stand.close());
}

/// A place where nothing has been written for long, and which waits for what the journal has.
#[test]
fn where_carried_frames_belong_blocks_may_be_unreadable() {
    const CHUNKS: std::ops::Range<u64> = 1100..1120;
    let (stand, _) = filled(CHUNKS.start);
    let volume = stand.client.volume("a").unwrap();
    stand.write(&volume, 0, &fresh(0, CHUNK));
    stand.flush();
    let before = stand.stats().counters.data_bytes_written;
    write_flushed(&stand, CHUNKS);
    assert_eq!(stand.stats().counters.data_bytes_written, before, "nothing is carried");
    let disk = stand.kill(1);
    let placed = Wish::default().open(disk.left_by_power_loss(0, Loss::None)).close();
    let places: Vec<u64> = CHUNKS.map(|number| place_of(&placed, &fresh(number, CHUNK))).collect();
    for unreadable in [&places[..1], &places[9..10], &places[19..], &places[..]] {
        let disk = disk.left_by_power_loss(0, Loss::None);
        for &place in unreadable {
            disk.inject(Fault::Read { zone: DATA, offset_bytes: place });
            disk.inject(Fault::Read { zone: DATA, offset_bytes: place + CHUNK - 1 });
        }
        let stand = Wish::default().open(disk);
        let lost = unread(&stand, CHUNKS.end);
        assert!(lost.len() <= 3 * unreadable.len(), "{lost:?}");
        // The container is used on, and its directory lacks nothing.
        write_flushed(&stand, 1120..1130);
        let disk = stand.close();
        disk.heal();
        check_clean(&disk);
        let stand = Wish::default().open(disk);
        assert_eq!(unread(&stand, 1130), [0; 0]);
        let container = |lba| {
            let told = stand.client.explain("a", Address::Lba(lba)).unwrap();
            told.chunk.unwrap().place.unwrap().container
        };
        assert_eq!(container(1129), container(1100));
    }
}

#[test]
fn a_directory_that_cannot_be_read_is_written_again_by_an_opening() {
    let (stand, _) = filled(600);
    let mut hand = Hand::open(&Wish::default(), stand.close());
    let volume = hand.beside(|client| client.volume("a").unwrap());
    // No sync covers the record that seals the container, and its frames are there.
    for first in [600, 1200, 1800] {
        for number in first..first + 600 {
            hand.write(&volume, number * CHUNK, &fresh(number, CHUNK));
        }
        hand.settle();
    }
    let disk = hand.disk.restart(1);
    disk.inject(Fault::Read { zone: DATA, offset_bytes: 4 * MIB - 30 });
    let stand = Wish::default().open(disk);
    let disk = stand.close();
    disk.heal();
    check_clean(&disk);
}

/// What only the older root needs is damaged: its journal, or its tables. Nobody misses it.
#[test]
fn an_opening_that_fails_leaves_the_root_that_it_could_not_read() {
    for zone in [Zone::Journal, Zone::Tables] {
        let (stand, _) = filled(300);
        write_flushed(&stand, 300..310);
        let disk = stand.close();
        let newest_at = roots(&disk)[0].0;
        let needed = structures(&disk, true);
        let mut spoiled = structures(&disk, false);
        spoiled.retain(|part| part.0 == zone && !needed.contains(part));
        // Records behind the damaged one tell that it is missing.
        let count = if zone == Zone::Journal { 1 } else { spoiled.len() };
        for (_, offset_bytes, _) in spoiled.into_iter().take(count) {
            disk.corrupt(zone, offset_bytes + 16, |byte| *byte ^= 0x40);
        }
        disk.inject(Fault::Read { zone: Zone::Superblock, offset_bytes: newest_at });
        let refused = Wish::default().try_open(disk.clone()).err();
        assert!(
            matches!(refused, Some(OpenError::Journal { .. } | OpenError::Page(_))),
            "{zone:?}: {refused:?}"
        );
        disk.heal();
        let stand = Wish::default().open(disk);
        assert_eq!(unread(&stand, 310), [0; 0], "{zone:?}");
        check_clean(&stand.close());
    }
}

/// A memory disk that fails the first read of a block.
struct FailsOnce {
    disk: MemoryDisk,
    zone: Zone,
    offset_bytes: Option<u64>,
}

impl Disk for FailsOnce {
    fn submit(&mut self, io: Io) {
        self.disk.heal();
        let is_read = io.zone == self.zone && matches!(io.kind, IoKind::Read { .. });
        if is_read
            && let Some(offset_bytes) = self.offset_bytes.take_if(|at| *at == io.offset_bytes)
        {
            self.disk.inject(Fault::Read { zone: io.zone, offset_bytes });
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

#[test]
fn a_root_that_cannot_be_read_once_is_asked_for_again() {
    let (stand, _) = filled(300);
    let disk = stand.close();
    let offset_bytes = Some(roots(&disk)[0].0);
    let through = FailsOnce { disk: disk.clone(), zone: Zone::Superblock, offset_bytes };
    let (_, _, report, _) = Wish::default().load_through(&disk, Box::new(through)).unwrap();
    assert!(report.clean && !report.older_root, "{report:?}");
}

/// Whether an opening through a disk leaves the older root in its slot.
fn keeps_older_root(disk: &MemoryDisk, through: Box<dyn Disk>) -> bool {
    Wish::default().load_through(disk, through).unwrap();
    let [(_, newest), (_, older)] = roots(disk);
    newest.generation > older.generation
}

#[test]
fn an_older_root_whose_pages_cannot_be_read_goes_before_they_are_written_over() {
    let (stand, _) = filled(300);
    write_flushed(&stand, 300..310);
    let closed = stand.close();
    let needed = structures(&closed, true);
    let pages = structures(&closed, false).into_iter();
    let pages = pages.filter(|part| part.0 == Zone::Tables && !needed.contains(part));
    let copy = || closed.left_by_power_loss(0, Loss::None);
    let mut lost = 0;
    for (zone, offset_bytes, _) in pages {
        let disk = copy();
        let offset = Some(offset_bytes);
        let through = FailsOnce { disk: disk.clone(), zone, offset_bytes: offset };
        assert!(keeps_older_root(&disk, Box::new(through)), "what comes the second time is there");
        let disk = copy();
        disk.inject(Fault::Read { zone, offset_bytes });
        lost += u32::from(!keeps_older_root(&disk, Box::new(disk.clone())));
    }
    // Leaves have nothing below them.
    assert!(lost > 1, "{lost}");
}

#[test]
fn a_page_that_the_device_failed_to_give_is_read_when_it_is_wanted_later() {
    let (stand, _) = filled(300);
    let disk = stand.close();
    let pages = structures(&disk, true).into_iter().filter(|part| part.0 == Zone::Tables);
    let mut hand = Hand::open(&Wish::default(), disk);
    let volume = hand.beside(|client| client.volume("a").unwrap());
    for (zone, offset_bytes, _) in pages {
        hand.disk.inject(Fault::Read { zone, offset_bytes });
    }
    let (tag, done) = hand.done();
    hand.client.read(&volume, 0, CHUNK as u32, done);
    let refused = hand.wait(tag).err();
    assert!(is_of_tables(refused.as_ref()), "{refused:?}");
    hand.disk.heal();
    hand.engine.tick();
    assert!(hand.read(&volume, 0, CHUNK as u32) == fresh(0, CHUNK));
    check_clean(&hand.close());
}

fn is_of_tables(error: Option<&RequestError>) -> bool {
    matches!(error, Some(RequestError::ReadFailed { zone, .. }) if zone == "tables")
}

/// A store whose tables cannot be read, that has begun to give a deleted volume back.
fn deletion_without_tables() -> Hand {
    let (stand, _) = filled(300);
    stand.volume("b", MIB);
    let disk = stand.close();
    let pages = structures(&disk, true).into_iter().filter(|part| part.0 == Zone::Tables);
    let mut hand = Hand::open(&Wish::default(), disk);
    for (zone, offset_bytes, _) in pages {
        hand.disk.inject(Fault::Read { zone, offset_bytes });
    }
    // On this thread: one beside it may be answered late, and time passes until then.
    let (deleted, done) = hand.done();
    hand.client.administer(DeleteRequest { even_if_open: true, ..DeleteRequest::of("a") }, done);
    hand.wait(deleted).unwrap();
    hand.settle();
    hand
}

#[test]
fn work_waits_some_seconds_for_a_page_that_the_device_fails_to_give() {
    let mut hand = deletion_without_tables();
    for _ in 0..20 {
        hand.engine.tick();
        hand.settle();
    }
    hand.disk.heal();
    hand.engine.tick();
    hand.settle();
    let volume = hand.beside(|client| client.volume("b").unwrap());
    assert_eq!(hand.write(&volume, 0, &fresh(1, CHUNK)), None);
    let flush = hand.flush();
    hand.wait(flush).unwrap();
    let stats = hand.beside(|client| client.stats().unwrap());
    assert_eq!((stats.deletions, stats.unique_chunks), (0, 1), "the deletion went on");
    check_clean(&hand.close());
}

#[test]
fn a_page_that_the_device_never_gives_stops_the_writing_and_says_so() {
    let mut hand = deletion_without_tables();
    for _ in 0..200 {
        hand.engine.tick();
        hand.settle();
    }
    let flush = hand.flush();
    let refused = hand.wait(flush).err();
    assert!(is_of_tables(refused.as_ref()), "{refused:?}");
}

/// A record in the middle has rotted, and a block behind it cannot be read.
#[test]
fn a_damaged_journal_is_told_from_its_end_although_a_block_behind_it_is_unreadable() {
    let (stand, _) = filled(300);
    write_flushed(&stand, 300..310);
    let disk = stand.kill(1);
    let (middle, _) = records(&disk)[5];
    disk.corrupt(Zone::Journal, middle + 16, |byte| *byte ^= 0x40);
    disk.inject(Fault::Read { zone: Zone::Journal, offset_bytes: middle + MIB });
    let refused = Wish::default().try_open(disk).err();
    assert!(matches!(refused, Some(OpenError::Journal { .. })), "{refused:?}");
}
