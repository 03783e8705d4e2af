//! A device has failed and nothing is written any more: what was acknowledged is read as it was.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use disk::Fault;
use engine::{
    Caches, CollectRequest, Completions, Done, NewVolume, Notice, OpenVolume, Reply, RequestError,
    Zone, control,
};

use crate::stand::{CHUNK, GIB, Hand, Held, Holder, MIB, Opens, Wish, fresh};

const CONTAINER: u64 = 4 * MIB;
const LEAF_CHUNKS: u64 = 677;
/// In the second leaf of a map.
const FAR: u64 = LEAF_CHUNKS * CHUNK;

/// In which all that can end does.
const STEPS: u64 = 100;

/// Writes chunks, each so far behind the one before, until one is refused. How many were
/// acknowledged.
fn write_until_refused(hand: &mut Hand, volume: &OpenVolume, step: u64) -> u64 {
    for number in 0..volume.size_bytes() / step {
        if hand.write(volume, number * step, &fresh(number, CHUNK)).is_some() {
            return number;
        }
        hand.settle();
    }
    panic!("nothing has failed");
}

fn assert_reads(hand: &mut Hand, volume: &OpenVolume, numbers: u64, step: u64) {
    for number in 0..numbers {
        let read = hand.read(volume, number * step, CHUNK as u32);
        assert!(read == fresh(number, CHUNK), "chunk {number} of {numbers}");
    }
}

/// The write that fails is one that only sealing makes, so that no other is to come.
#[test]
fn frames_that_the_device_did_not_take_are_read_from_memory() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", 16 * MIB);
    for container in 1..=4 {
        let offset_bytes = container * CONTAINER - 192 * 1024;
        hand.disk.inject(Fault::Write { zone: Zone::Data(0), offset_bytes });
    }
    let numbers = write_until_refused(&mut hand, &volume, CHUNK);
    assert_reads(&mut hand, &volume, numbers, CHUNK);
    assert!(hand.beside(|client| client.close()).is_err());
}

/// More leaves of a map than the cache has room for, of which none comes to the device.
#[test]
fn pages_that_the_device_did_not_take_stay_in_the_cache() {
    let (dirty_pages_max, young_max, directory_entries, frame_bytes) = (96, 1000, 0, 0);
    let cache = Caches {
        pages: 128,
        dirty_pages_max,
        young_max,
        directory_entries,
        frame_bytes,
        lends: false,
    };
    let mut hand = Hand::new(&Wish { cache: Some(cache), ..Wish::default() });
    let volume = hand.volume("v", 4 * GIB);
    let blocks = disk::Disk::size_bytes(&hand.disk, Zone::Tables) / 4096;
    for offset_bytes in (0..blocks).map(|block| block * 4096) {
        hand.disk.inject(Fault::Write { zone: Zone::Tables, offset_bytes });
    }
    let step = LEAF_CHUNKS * CHUNK;
    let numbers = write_until_refused(&mut hand, &volume, step);
    assert!(numbers > 64, "{numbers}");
    assert_reads(&mut hand, &volume, numbers, step);
    assert!(hand.beside(|client| client.close()).is_err());
}

/// A store that holds chunks on its device, opened so that reads of them can be kept back, with
/// something written that the next round of a flush has to make durable. The page of the map that
/// names the first chunk is in the cache.
fn with_chunks(wish: &Wish) -> (Hand, Held, OpenVolume) {
    let mut hand = Hand::new(wish);
    let volume = hand.volume("v", 16 * MIB);
    hand.write(&volume, 0, &fresh(1, CHUNK));
    hand.write(&volume, FAR, &fresh(3, CHUNK));
    let (mut hand, held) = Holder::open(wish, hand.close());
    let volume = hand.beside(|client| client.volume("v").unwrap());
    hand.write(&volume, CHUNK, &fresh(2, CHUNK));
    for _ in 0..2 {
        hand.steps(STEPS);
        hand.engine.tick();
    }
    hand.steps(STEPS);
    (hand, held, volume)
}

/// Whom nobody should tell anything.
struct Panics;

impl Completions for Panics {
    fn complete(&self, _: u64, _: Result<Reply, RequestError>) {
        panic!("on the core's thread, as a mistake of ours would");
    }
}

/// A write of a sector waits for the device, and all else for that write's group.
#[test]
fn everybody_who_waits_is_told_when_the_core_panics() {
    let (mut hand, held, volume) = with_chunks(&Wish::default());
    held.hold(Zone::Data(0));
    let sector = write_sector(&mut hand, &volume, 1);
    let (created, done) = hand.done();
    let new = NewVolume { name: "w".to_owned(), size_bytes: MIB, ..NewVolume::default() };
    hand.client.administer(new, done);
    let flushed = hand.flush();
    let durable = hand.write_durable(&volume, 2 * CHUNK, &fresh(4, CHUNK));
    hand.steps(STEPS);
    let (panics, (closed, done)) = (Done::new(Arc::new(Panics), 0), hand.done());
    hand.client.extents(&volume, 0, CHUNK, 1, panics);
    hand.client.administer(control::Close {}, done);
    assert!(catch_unwind(AssertUnwindSafe(|| hand.steps(STEPS))).is_err());
    drop(std::mem::replace(&mut hand.engine, Hand::new(&Wish::default()).engine));
    for waits in [sector, created, flushed, durable, closed] {
        assert!(matches!(hand.outcome(waits), Some(Err(RequestError::Closing))), "{waits}");
    }
    let Err(refused) = hand.client.volumes() else { panic!("it is answered") };
    assert!(matches!(refused, RequestError::Closing));
}

/// A store whose core panics over a request to collect: that is in nobody's queue then, only on the
/// stack that is unwound.
fn panicking_collector() -> Hand {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", GIB);
    hand.write(&volume, 0, &fresh(1, 8 * MIB));
    let trimmed = hand.trim(&volume, 0, MIB);
    hand.wait(trimmed).unwrap();
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    hand.engine.observe(Box::new(|notice| {
        assert!(!matches!(notice, Notice::CollectionBegan { .. }), "as a mistake of ours would");
    }));
    hand
}

#[test]
fn who_asked_for_what_the_core_panics_over_is_told() {
    let mut hand = panicking_collector();
    let (told, outcome) = mpsc::channel();
    let client = hand.client.clone();
    let asked = thread::spawn(move || told.send(client.ask(CollectRequest::default())));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        while !asked.is_finished() {
            hand.engine.step();
        }
    }));
    assert!(panicked.is_err());
    drop(std::mem::replace(&mut hand.engine, Hand::new(&Wish::default()).engine));
    let outcome = outcome.recv_timeout(Duration::from_secs(20));
    assert_eq!(outcome.expect("nobody waits for ever"), Err(RequestError::Closing));
}

/// Commands have one for all that they ask, and wait at it for as many outcomes.
#[test]
fn a_sink_that_outlives_the_request_is_told_of_what_the_core_panics_over() {
    let mut hand = panicking_collector();
    let (asked, done) = hand.done();
    hand.client.administer(CollectRequest::default(), done);
    assert!(catch_unwind(AssertUnwindSafe(|| hand.steps(STEPS))).is_err());
    drop(std::mem::replace(&mut hand.engine, Hand::new(&Wish::default()).engine));
    assert!(matches!(hand.outcome(asked), Some(Err(RequestError::Closing))));
}

fn read_later(hand: &mut Hand, volume: &OpenVolume, offset_bytes: u64) -> u64 {
    let (tag, done) = hand.done();
    hand.client.read(volume, offset_bytes, CHUNK as u32, done);
    tag
}

/// The sync of an idle store fails.
fn stop_writing(hand: &mut Hand) {
    hand.disk.inject(Fault::Sync { zone: Zone::Journal });
    for _ in 0..20 {
        hand.steps(STEPS);
        hand.engine.tick();
    }
    let stats = hand.beside(|client| client.stats()).unwrap();
    assert!(stats.writing_stopped.is_some());
}

/// Writes `sector` of the first chunk, beside whatever holds the sectors around it.
fn write_sector(hand: &mut Hand, volume: &OpenVolume, sector: u64) -> u64 {
    let written = hand.write(volume, sector * 512, &[sector as u8; 512]).expect("not at the door");
    hand.steps(STEPS);
    written
}

/// The second part waits for the first, in a group of its own, and that one for the device.
#[test]
fn parts_of_a_chunk_are_filled_and_read_although_writing_has_stopped() {
    let (mut hand, held, volume) = with_chunks(&Wish::default());
    held.hold(Zone::Data(0));
    let mut answers = vec![write_sector(&mut hand, &volume, 1), hand.flush()];
    hand.steps(STEPS);
    answers.push(write_sector(&mut hand, &volume, 2));
    let read = read_later(&mut hand, &volume, 0);
    stop_writing(&mut hand);
    assert!(answers.into_iter().all(|tag| hand.outcome(tag).unwrap().is_err()));
    assert!(held.count() == 1 && hand.outcome(read).is_none());
    held.let_go();
    let mut expected = fresh(1, CHUNK);
    (1..3).for_each(|sector| expected[sector * 512..][..512].fill(sector as u8));
    assert!(hand.bytes_of(read) == expected);
}

/// One waits for a frame, one for what is around a part, two for a page.
#[test]
fn who_still_waits_hears_that_the_engine_has_ended() {
    let (mut hand, held, volume) = with_chunks(&Wish::default());
    held.hold(Zone::Data(0));
    let mut waiting = vec![read_later(&mut hand, &volume, 0)];
    hand.steps(STEPS);
    let written = write_sector(&mut hand, &volume, 1);
    waiting.push(read_later(&mut hand, &volume, 0));
    held.hold(Zone::Tables);
    waiting.push(read_later(&mut hand, &volume, FAR));
    let (extents, done) = hand.done();
    hand.client.extents(&volume, FAR, CHUNK, 1, done);
    waiting.push(extents);
    stop_writing(&mut hand);
    assert!(hand.outcome(written).unwrap().is_err());
    assert!(waiting.iter().all(|&tag| hand.outcome(tag).is_none()));
    let other = Hand::new(&Wish::default());
    drop(std::mem::replace(&mut hand.engine, other.engine));
    for tag in waiting {
        assert_eq!(hand.outcome(tag).unwrap().unwrap_err(), RequestError::Closing);
    }
}
