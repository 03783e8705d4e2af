//! Every disk of this room under one suite, and one that knows the room from outside only.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod objects;
mod scratch;

use disk::conformance::{Subject, run};
use disk::{
    Access, AlignedBuf, DelayingDisk, Disk, Doorbell, ErrorClass, Fault, FileGrowth, Io, IoEngine,
    IoKind, MemoryDisk, RetryPolicy, RetryingDisk, ZoneGrowth, create_store_files,
    grow_store_files, open_further_files, open_store_files,
};
use format::units::Zone;
use objects::Objects;
use scratch::Scratch;

/// A store's files in a directory of their own.
struct Files {
    engine: IoEngine,
    scratch: Scratch,
    data_zones: usize,
}

impl Files {
    fn of(engine: IoEngine) -> Self {
        Self { engine, scratch: Scratch::new(), data_zones: 0 }
    }

    fn dir(&self) -> std::path::PathBuf {
        self.scratch.path().join("store")
    }

    fn open(&self, doorbell: &Doorbell) -> Box<dyn Disk> {
        open_store_files(&self.dir(), Access::ReadWrite, self.engine, doorbell).unwrap().disk
    }
}

impl Subject for Files {
    fn make(&mut self, zones: &[(Zone, u64)], doorbell: &Doorbell) -> Box<dyn Disk> {
        self.scratch = Scratch::new();
        let zones: Vec<_> = zones.iter().copied().filter(|z| z.0 != Zone::Superblock).collect();
        self.data_zones = zones.iter().filter(|z| matches!(z.0, Zone::Data(_))).count();
        create_store_files(&self.dir(), &zones, &[], [1; 16]).unwrap();
        self.open(doorbell)
    }

    fn prepare_growth(&mut self, zones: &[(Zone, u64)]) -> Option<ZoneGrowth> {
        let before = self.data_zones;
        let is_new = |zone| matches!(zone, Zone::Data(number) if usize::from(number) >= before);
        let place = |&(zone, bytes): &(Zone, u64)| {
            (zone, bytes, self.scratch.path().join(format!("{zone:?}")))
        };
        let growth = FileGrowth {
            uuid: [1; 16],
            data_zones: before,
            longer: zones.iter().copied().filter(|z| !is_new(z.0)).collect(),
            added: zones.iter().filter(|z| is_new(z.0)).map(place).collect(),
        };
        grow_store_files(&self.dir(), &growth).unwrap();
        let after = before + growth.added.len();
        self.data_zones = after;
        Some(open_further_files(&self.dir(), before as u16..after as u16).unwrap())
    }

    fn reopen(&mut self, doorbell: &Doorbell) -> Option<Box<dyn Disk>> {
        Some(self.open(doorbell))
    }
}

/// What stands over a disk in memory.
enum Over {
    Nothing,
    Delay,
    Retries,
}

struct Memory {
    over: Over,
    disk: MemoryDisk,
}

impl Memory {
    fn under(over: Over) -> Self {
        Self { over, disk: MemoryDisk::new(&[], 0) }
    }

    fn wrapped(&self, doorbell: &Doorbell) -> Box<dyn Disk> {
        self.disk.set_doorbell(doorbell);
        let disk = Box::new(self.disk.clone());
        let policy = RetryPolicy { attempts_max: 3, first_delay_ms: 1, delay_ms_max: 2 };
        match self.over {
            Over::Nothing => disk,
            Over::Delay => Box::new(DelayingDisk::new(disk, 1, doorbell)),
            Over::Retries => Box::new(RetryingDisk::new(disk, policy, doorbell)),
        }
    }
}

impl Subject for Memory {
    fn make(&mut self, zones: &[(Zone, u64)], doorbell: &Doorbell) -> Box<dyn Disk> {
        self.disk = MemoryDisk::new(zones, 42);
        self.wrapped(doorbell)
    }

    fn prepare_growth(&mut self, zones: &[(Zone, u64)]) -> Option<ZoneGrowth> {
        Some(MemoryDisk::prepare_growth(zones))
    }

    fn reopen(&mut self, doorbell: &Doorbell) -> Option<Box<dyn Disk>> {
        self.disk = self.disk.crash(7);
        Some(self.wrapped(doorbell))
    }

    fn refuse_with(&mut self, class: ErrorClass) -> bool {
        self.disk.inject(Fault::Refusal { zone: Zone::Data(0), class });
        true
    }

    fn heal(&mut self) {
        self.disk.heal();
    }

    fn shows(&self, class: ErrorClass) -> bool {
        !matches!((&self.over, class), (Over::Retries, ErrorClass::Transient))
    }
}

#[test]
fn io_uring_conforms() {
    run(&mut Files::of(IoEngine::Uring));
}

#[test]
fn threads_conform() {
    run(&mut Files::of(IoEngine::Psync));
}

#[test]
fn memory_conforms() {
    run(&mut Memory::under(Over::Nothing));
}

#[test]
fn a_delayed_disk_conforms() {
    run(&mut Memory::under(Over::Delay));
}

#[test]
fn a_disk_that_tries_again_conforms() {
    run(&mut Memory::under(Over::Retries));
}

#[test]
fn a_disk_over_objects_conforms() {
    run(&mut Objects::default());
}

#[test]
fn dropping_a_disk_waits_for_what_was_submitted() {
    for engine in [IoEngine::Uring, IoEngine::Psync] {
        let zones = [(Zone::Journal, 1 << 18), (Zone::Tables, 16 << 20), (Zone::Data(0), 4 << 20)];
        let mut files = Files::of(engine);
        let mut disk = files.make(&zones, &Doorbell::new().unwrap());
        for block in 0..600 {
            let mut buf = AlignedBuf::new_zeroed(4096);
            buf.fill(9);
            let write = IoKind::Write { buf: buf.into(), durable: false };
            let offset_bytes = block * 4096;
            disk.submit(Io { zone: Zone::Tables, offset_bytes, kind: write, tag: block });
            let read = IoKind::Read { buf: AlignedBuf::new_zeroed(4096) };
            disk.submit(Io { zone: Zone::Data(0), offset_bytes, kind: read, tag: block });
        }
        drop(disk);
        let mut disk = files.open(&Doorbell::new().unwrap());
        let read = IoKind::Read { buf: AlignedBuf::new_zeroed(600 * 4096) };
        disk.submit(Io { zone: Zone::Tables, offset_bytes: 0, kind: read, tag: 1 });
        let mut done = Vec::new();
        disk.wait(&mut done);
        assert!(done.pop().unwrap().buf.unwrap().iter().all(|&byte| byte == 9));
    }
}
