//! One body of tests over every disk: what holds for one of them holds for all.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod scratch;

use std::collections::HashSet;
use std::thread;

use disk::{
    AlignedBuf, Completion, Disk, Doorbell, Io, IoEngine, IoError, IoKind, MemoryDisk,
    SUPERBLOCK_BYTES, SharedBuf, create_store_files, open_store_files,
};
use format::units::{BLOCK_BYTES, Zone};
use proptest::prelude::{Strategy, any, prop, prop_oneof};
use proptest::test_runner::{Config, TestRunner};
use scratch::Scratch;

const BLOCK: u64 = BLOCK_BYTES as u64;
const ZONE_BLOCKS: u64 = 64;
const ZONES: [(Zone, u64); 4] = [
    (Zone::Journal, ZONE_BLOCKS * BLOCK),
    (Zone::Tables, 4096 * BLOCK),
    (Zone::Data(0), ZONE_BLOCKS * BLOCK),
    (Zone::Data(1), 32 << 20),
];

/// A disk under test, and what it stands on.
struct Subject {
    name: &'static str,
    disk: Box<dyn Disk>,
    doorbell: Doorbell,
    scratch: Option<Scratch>,
}

fn on_files(engine: IoEngine) -> Subject {
    let scratch = Scratch::new();
    let doorbell = Doorbell::new().unwrap();
    create_store_files(&scratch.path().join("store"), &ZONES, &[], [1; 16]).unwrap();
    let files = open_store_files(&scratch.path().join("store"), engine, &doorbell).unwrap();
    let name = files.identity.engine;
    Subject { name, disk: files.disk, doorbell, scratch: Some(scratch) }
}

fn in_memory(seed: u64) -> Subject {
    let superblock = (Zone::Superblock, SUPERBLOCK_BYTES);
    let zones: Vec<_> = ZONES.into_iter().chain([superblock]).collect();
    let disk = MemoryDisk::new(&zones, seed);
    let doorbell = Doorbell::new().unwrap();
    disk.set_doorbell(&doorbell);
    Subject { name: "memory", disk: Box::new(disk), doorbell, scratch: None }
}

fn subjects() -> [Subject; 3] {
    [on_files(IoEngine::Uring), on_files(IoEngine::Psync), in_memory(42)]
}

fn filled(blocks: usize, byte: u8) -> SharedBuf {
    let mut buf = AlignedBuf::new_zeroed(blocks * BLOCK_BYTES);
    buf.fill(byte);
    buf.into()
}

fn write(zone: Zone, block: u64, buf: SharedBuf, tag: u64) -> Io {
    // What is written durably is written all the same.
    let durable = tag.is_multiple_of(2);
    Io { zone, offset_bytes: block * BLOCK, kind: IoKind::Write { buf, durable }, tag }
}

fn read(zone: Zone, block: u64, blocks: usize, tag: u64) -> Io {
    let kind = IoKind::Read { buf: AlignedBuf::new_zeroed(blocks * BLOCK_BYTES) };
    Io { zone, offset_bytes: block * BLOCK, kind, tag }
}

fn sync(zone: Zone, tag: u64) -> Io {
    Io { zone, offset_bytes: 0, kind: IoKind::Sync, tag }
}

fn drain(disk: &mut dyn Disk) -> Vec<Completion> {
    let mut done = Vec::new();
    while disk.in_flight() > 0 {
        let before = done.len();
        disk.wait(&mut done);
        assert!(done.len() > before, "a wait came back with nothing");
    }
    done
}

/// Submits one operation and waits for it alone.
fn run(disk: &mut dyn Disk, io: Io) -> Completion {
    let tag = io.tag;
    disk.submit(io);
    let mut done = drain(disk);
    assert_eq!(done.len(), 1);
    let completion = done.pop().unwrap();
    assert_eq!(completion.tag, tag);
    completion
}

#[derive(Clone, Debug)]
enum Step {
    Write { block: u64, blocks: u64, byte: u8 },
    Read { block: u64, blocks: u64 },
    Sync,
    Poll,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = (0..ZONE_BLOCKS, 1_u64..20)
        .prop_map(|(block, blocks)| (block, blocks.min(ZONE_BLOCKS - block)));
    let step = prop_oneof![
        4 => (range.clone(), any::<u8>())
            .prop_map(|((block, blocks), byte)| Step::Write { block, blocks, byte }),
        4 => range.prop_map(|(block, blocks)| Step::Read { block, blocks }),
        1 => proptest::strategy::Just(Step::Sync),
        1 => proptest::strategy::Just(Step::Poll),
    ];
    prop::collection::vec(step, 1..80)
}

/// Plays steps against a plain array. What overlaps is kept apart in time, as the caller must.
struct Play<'a> {
    disk: &'a mut dyn Disk,
    model: Vec<u8>,
    busy: HashSet<u64>,
    expected: Vec<Option<u8>>,
    reads: Vec<(u64, Vec<u8>)>,
    done: Vec<Completion>,
}

impl Play<'_> {
    fn step(&mut self, tag: u64, step: &Step) {
        match *step {
            Step::Write { block, blocks, byte } => {
                self.claim(block, blocks);
                let range = block as usize..(block + blocks) as usize;
                self.model[range].fill(byte);
                self.disk.submit(write(Zone::Data(0), block, filled(blocks as usize, byte), tag));
            }
            Step::Read { block, blocks } => {
                self.claim(block, blocks);
                let range = block as usize..(block + blocks) as usize;
                self.reads.push((tag, self.model[range].to_vec()));
                self.disk.submit(read(Zone::Data(0), block, blocks as usize, tag));
            }
            Step::Sync => self.disk.submit(sync(Zone::Data(0), tag)),
            Step::Poll => {
                self.disk.poll(&mut self.done);
                return;
            }
        }
        self.expected.push(None);
    }

    fn claim(&mut self, block: u64, blocks: u64) {
        if (block..block + blocks).any(|block| self.busy.contains(&block)) {
            self.done.extend(drain(self.disk));
            self.busy.clear();
        }
        self.busy.extend(block..block + blocks);
    }

    fn finish(mut self) {
        self.done.extend(drain(self.disk));
        assert_eq!(self.done.len(), self.expected.len());
        let tags: HashSet<u64> = self.done.iter().map(|done| done.tag).collect();
        assert_eq!(tags.len(), self.done.len(), "a tag completed twice");
        for (tag, blocks) in self.reads {
            let done = self.done.iter().find(|done| done.tag == tag).unwrap();
            assert_eq!(done.result, Ok(()));
            let buf = done.buf.as_ref().unwrap();
            for (bytes, &byte) in buf.chunks(BLOCK_BYTES).zip(&blocks) {
                assert!(bytes.iter().all(|&read| read == byte));
            }
        }
    }
}

#[test]
fn any_history_reads_like_a_plain_array() {
    for mut subject in subjects() {
        let mut runner = TestRunner::new(Config { cases: 24, ..Config::default() });
        let zone_blocks = ZONE_BLOCKS as usize;
        let disk = std::cell::RefCell::new(&mut *subject.disk);
        let outcome = runner.run(&steps(), |steps| {
            let mut disk = disk.borrow_mut();
            let done = run(&mut **disk, write(Zone::Data(0), 0, filled(zone_blocks, 0), 0));
            assert_eq!(done.result, Ok(()));
            let mut play = Play {
                disk: &mut **disk,
                model: vec![0; zone_blocks],
                busy: HashSet::new(),
                expected: Vec::new(),
                reads: Vec::new(),
                done: Vec::new(),
            };
            for (tag, step) in steps.iter().enumerate() {
                play.step(tag as u64, step);
            }
            play.finish();
            Ok(())
        });
        assert!(outcome.is_ok(), "{}: {}", subject.name, outcome.unwrap_err());
    }
}

#[test]
fn more_operations_than_any_queue_holds_all_complete_once() {
    for mut subject in subjects() {
        let blocks = 4000;
        for block in 0..blocks {
            subject.disk.submit(write(Zone::Tables, block, filled(1, block as u8), block));
        }
        assert_eq!(subject.disk.in_flight(), blocks as usize);
        let done = drain(&mut *subject.disk);
        let tags: HashSet<_> = done.iter().map(|done| done.tag).collect();
        assert_eq!((done.len(), tags.len()), (blocks as usize, blocks as usize));
        assert!(done.iter().all(|done| done.result.is_ok() && done.zone == Zone::Tables));
        for block in 0..blocks {
            subject.disk.submit(read(Zone::Tables, block, 1, block));
        }
        for done in drain(&mut *subject.disk) {
            assert!(done.buf.unwrap().iter().all(|&byte| byte == done.tag as u8));
        }
    }
}

#[test]
fn zones_are_apart_and_parts_of_one_buffer_may_be_written_at_once() {
    for mut subject in subjects() {
        let disk = &mut *subject.disk;
        let whole = SharedBuf::from({
            let mut buf = AlignedBuf::new_zeroed(2 * BLOCK_BYTES);
            buf[..BLOCK_BYTES].fill(1);
            buf[BLOCK_BYTES..].fill(2);
            buf
        });
        disk.submit(write(Zone::Data(0), 3, whole.slice(0..BLOCK_BYTES), 1));
        disk.submit(write(Zone::Data(1), 3, whole.slice(BLOCK_BYTES..2 * BLOCK_BYTES), 2));
        disk.submit(write(Zone::Superblock, 3, whole.slice(0..BLOCK_BYTES), 3));
        drop(whole);
        assert!(drain(disk).iter().all(|done| done.result.is_ok()));
        for (zone, byte) in [(Zone::Data(0), 1), (Zone::Data(1), 2), (Zone::Journal, 0)] {
            let done = run(disk, read(zone, 3, 1, 9));
            assert!(done.buf.unwrap().iter().all(|&read| read == byte), "{zone:?}");
        }
    }
}

#[test]
fn a_large_operation_is_whole() {
    for mut subject in subjects() {
        let disk = &mut *subject.disk;
        let blocks = (20 << 20) / BLOCK_BYTES;
        let mut buf = AlignedBuf::new_zeroed(blocks * BLOCK_BYTES);
        for (number, block) in buf.chunks_mut(BLOCK_BYTES).enumerate() {
            block.fill(number as u8);
        }
        let buf = SharedBuf::from(buf);
        assert!(run(disk, write(Zone::Data(1), 7, buf.clone(), 1)).result.is_ok());
        assert!(run(disk, sync(Zone::Data(1), 2)).result.is_ok());
        let done = run(disk, read(Zone::Data(1), 7, blocks, 3));
        assert!(**done.buf.as_ref().unwrap() == *buf, "{}", subject.name);
    }
}

#[test]
fn what_cannot_be_completes_with_an_error_and_gives_the_buffer_back() {
    for mut subject in subjects() {
        let disk = &mut *subject.disk;
        let done = run(disk, read(Zone::Data(0), ZONE_BLOCKS, 1, 1));
        assert!(matches!(done.result, Err(IoError::OutOfRange { .. })));
        assert!(done.buf.is_some());
        let done = run(disk, write(Zone::Data(0), ZONE_BLOCKS - 1, filled(2, 1), 2));
        assert!(matches!(done.result, Err(IoError::OutOfRange { .. })));
        let done = run(disk, read(Zone::Data(9), 0, 1, 3));
        assert!(matches!(done.result, Err(IoError::NoSuchZone { .. })));
        let done = run(disk, sync(Zone::Data(9), 4));
        assert!(matches!(done.result, Err(IoError::NoSuchZone { .. })));
        let odd = filled(1, 1).slice(0..512);
        let done = run(disk, write(Zone::Data(0), 0, odd, 5));
        assert!(matches!(done.result, Err(IoError::Misaligned { .. })));
        assert_eq!((disk.size_bytes(Zone::Data(9)), disk.in_flight()), (0, 0));
        assert_eq!(disk.size_bytes(Zone::Data(0)), ZONE_BLOCKS * BLOCK);
    }
}

#[test]
fn nothing_in_flight_means_nothing_to_wait_for() {
    for mut subject in subjects() {
        let mut done = Vec::new();
        subject.disk.wait(&mut done);
        subject.disk.poll(&mut done);
        assert!(done.is_empty());
    }
}

#[test]
fn whatever_is_to_be_polled_rings_the_doorbell() {
    for mut subject in subjects() {
        let Subject { disk, doorbell, name, .. } = &mut subject;
        for round in 0..200 {
            disk.submit(write(Zone::Data(0), round % ZONE_BLOCKS, filled(1, 1), round));
            if round % 10 == 0 {
                disk.submit(sync(Zone::Data(0), round));
                disk.submit(sync(Zone::Data(9), round));
            }
            let mut done = Vec::new();
            if round % 2 == 0 {
                disk.poll(&mut done);
            }
            while disk.in_flight() > 0 {
                assert!(doorbell.wait(Some(20_000)), "{name}: a completion did not ring");
                disk.poll(&mut done);
            }
        }
    }
}

#[test]
fn a_disk_may_move_to_another_thread_with_operations_in_flight() {
    for subject in subjects() {
        let Subject { mut disk, scratch, .. } = subject;
        let mover = thread::spawn(move || {
            for block in 0..500 {
                disk.submit(write(Zone::Tables, block, filled(1, 7), block));
            }
            disk.poll(&mut Vec::new());
            disk
        });
        let mut disk = mover.join().unwrap();
        assert!(drain(&mut *disk).iter().all(|done| done.result.is_ok()));
        let done = run(&mut *disk, read(Zone::Tables, 0, 500, 1));
        assert!(done.buf.unwrap().iter().all(|&byte| byte == 7));
        drop(scratch);
    }
}

#[test]
fn dropping_a_disk_waits_for_what_was_submitted() {
    for engine in [IoEngine::Uring, IoEngine::Psync] {
        let Subject { mut disk, scratch, .. } = on_files(engine);
        for block in 0..600 {
            disk.submit(write(Zone::Tables, block, filled(1, 9), block));
            disk.submit(read(Zone::Data(1), block, 1, block));
        }
        drop(disk);
        let dir = scratch.as_ref().unwrap().path().join("store");
        let mut disk = open_store_files(&dir, engine, &Doorbell::new().unwrap()).unwrap().disk;
        let done = run(&mut *disk, read(Zone::Tables, 0, 600, 1));
        assert!(done.buf.unwrap().iter().all(|&byte| byte == 9));
    }
}
