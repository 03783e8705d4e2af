//! A test stand: a store on a disk in memory, and an engine that a thread steps or a test does.
//!
//! The thread of [`Stand`] does what `Engine::run` does, with shorter ticks, and lets itself be
//! stopped without a close, as by a kill. [`Hand`] leaves every step to the test, so that requests
//! meet each other in the write buffer.

mod content;
mod hand;
mod holder;
mod looker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use disk::{AlignedBuf, Disk, Doorbell, Io, IoKind, MemoryDisk};
use engine::{
    Caches, CheckReport, Client, Clock, Codec, Compression, CreateOptions, Detection, DomainSecret,
    Engine, OpenError, OpenReport, OpenVolume, Opener, Options, RequestError, Zone,
};

use proptest::test_runner::Config as ProptestConfig;

pub(crate) use content::{Dice, bch_twins, crc64_twins, fresh, md5_twins, packed, sha1_twins};
pub(crate) use hand::{Hand, Inbox};
pub(crate) use holder::{Held, Holder, giving_back};
pub(crate) use looker::{Left, Looker};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;
pub(crate) const CHUNK: u64 = 4096;

/// These bytes stand durably at the beginning of a zone from now on.
pub(crate) fn put(disk: &MemoryDisk, zone: Zone, bytes: &[u8]) {
    let mut disk = disk.clone();
    for (at, piece) in (0..).zip(bytes.chunks(MIB as usize)) {
        let kind = IoKind::Write { buf: AlignedBuf::padded(piece).into(), durable: true };
        disk.submit(Io { zone, offset_bytes: at * MIB, kind, tag: at });
    }
    let mut done = Vec::new();
    while disk.in_flight() > 0 {
        disk.wait(&mut done);
    }
    assert!(done.iter().all(|completion| completion.result.is_ok()));
}

/// Volumes, opened as by nobody in particular.
pub(crate) trait Opens {
    /// The volume or snapshot of this name.
    fn volume(&self, name: &str) -> Result<OpenVolume, RequestError>;
}

impl Opens for Client {
    fn volume(&self, name: &str) -> Result<OpenVolume, RequestError> {
        self.open_volume(name, Opener::new("a test", 0))
    }
}

/// What a test wants of its store; the rest is as small as may be.
#[derive(Clone)]
pub(crate) struct Wish {
    pub(crate) capacities: Vec<u64>,
    pub(crate) chunk_bytes: u32,
    pub(crate) compression: Compression,
    pub(crate) options: Options,
    pub(crate) seed: u64,
    pub(crate) detection: Detection,
    /// References beyond which a chunk gets a second copy.
    pub(crate) copies_above: u32,
    /// The table cache, if not what the memory gives.
    pub(crate) cache: Option<Caches>,
    /// Keeps the engine's time.
    pub(crate) clock: Option<Clock>,
}

impl Default for Wish {
    fn default() -> Self {
        Self {
            capacities: vec![128 * MIB],
            chunk_bytes: CHUNK as u32,
            compression: Compression { codec: Codec::Lz4, level: 0 },
            options: Options {
                memory_bytes: 64 * MIB,
                worker_threads: 0,
                sync: false,
                ..Default::default()
            },
            seed: 1,
            detection: Detection::default(),
            copies_above: engine::COPIES_ABOVE_DEFAULT,
            cache: None,
            clock: None,
        }
    }
}

impl Wish {
    /// A new store on a new disk.
    pub(crate) fn disk(&self) -> MemoryDisk {
        let geometry = engine::plan(&CreateOptions {
            capacity_bytes: self.capacities.clone(),
            chunk_bytes: self.chunk_bytes,
            compression: self.compression,
            detection: self.detection,
            tables_bytes: None,
            journal_bytes: None,
            uuid: [3; 16],
            bucket_seed: [5; 16],
        })
        .unwrap();
        let zones: Vec<_> = geometry.zones().collect();
        let disk = MemoryDisk::new(&zones, self.seed);
        engine::create(Box::new(disk.clone()), &geometry, self.compression).unwrap();
        disk
    }

    /// A new store, running.
    pub(crate) fn stand(&self) -> Stand {
        self.open(self.disk())
    }

    /// The store on `disk`, running.
    pub(crate) fn open(&self, disk: MemoryDisk) -> Stand {
        self.try_open(disk).unwrap()
    }

    pub(crate) fn try_open(&self, disk: MemoryDisk) -> Result<Stand, OpenError> {
        self.open_prepared(disk, |_| ())
    }

    /// The store on `disk`, running, its engine having been prepared.
    pub(crate) fn open_prepared(
        &self,
        disk: MemoryDisk,
        prepare: impl FnOnce(&mut Engine),
    ) -> Result<Stand, OpenError> {
        let (mut engine, client, report, doorbell) = self.load(&disk)?;
        prepare(&mut engine);
        let killed = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&killed);
        let bell = doorbell.clone();
        let running = std::thread::spawn(move || drive(engine, &bell, &stop));
        Ok(Stand { disk, client, report, doorbell, killed, running: Some(running) })
    }

    /// Uses a store again that holds `fresh(7, ..)` in the first sixteen chunks of volume `v`: they
    /// are there, more is written, and what is closed is sound.
    pub(crate) fn use_again(&self, disk: MemoryDisk) -> MemoryDisk {
        let stand = self.open(disk);
        let volume = stand.client.volume("v").unwrap();
        assert!(stand.read(&volume, 0, 16 * CHUNK) == fresh(7, 16 * CHUNK));
        stand.write(&volume, MIB, &fresh(8, MIB));
        let disk = stand.close();
        check_clean(&disk);
        disk
    }

    pub(crate) fn load(
        &self,
        disk: &MemoryDisk,
    ) -> Result<(Engine, Client, OpenReport, Doorbell), OpenError> {
        self.load_through(disk, Box::new(disk.clone()))
    }

    /// The store on `disk`, which `through` stands before.
    pub(crate) fn load_through(
        &self,
        disk: &MemoryDisk,
        through: Box<dyn Disk>,
    ) -> Result<(Engine, Client, OpenReport, Doorbell), OpenError> {
        let doorbell = Doorbell::new().unwrap();
        disk.set_doorbell(&doorbell);
        let bell = doorbell.clone();
        let (mut engine, client, report) = match self.cache {
            Some(cache) => engine::open_with_cache(through, bell, &self.options, cache)?,
            None => engine::open(through, bell, &self.options)?,
        };
        engine.copy_above(self.copies_above);
        self.clock.into_iter().for_each(|clock| engine.keep_time(clock));
        engine.offer_secret(DomainSecret([0xd5; 32]));
        Ok((engine, client, report, doorbell))
    }
}

fn drive(mut engine: Engine, doorbell: &Doorbell, killed: &AtomicBool) {
    loop {
        while !killed.load(Ordering::Acquire) && engine.step() {}
        if engine.is_closed() || killed.load(Ordering::Acquire) {
            return;
        }
        if !doorbell.wait(Some(2)) {
            engine.tick();
        }
    }
}

/// A running store.
pub(crate) struct Stand {
    pub(crate) disk: MemoryDisk,
    pub(crate) client: Client,
    pub(crate) report: OpenReport,
    doorbell: Doorbell,
    killed: Arc<AtomicBool>,
    running: Option<JoinHandle<()>>,
}

impl Stand {
    /// A volume of this name, made now.
    pub(crate) fn volume(&self, name: &str, size_bytes: u64) -> OpenVolume {
        self.client.create_volume(name, size_bytes, false).unwrap();
        self.client.volume(name).unwrap()
    }

    pub(crate) fn write(&self, volume: &OpenVolume, offset_bytes: u64, bytes: &[u8]) {
        self.client.write_at(volume, offset_bytes, bytes).unwrap();
    }

    pub(crate) fn read(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Vec<u8> {
        self.try_read(volume, offset_bytes, length_bytes).unwrap()
    }

    pub(crate) fn try_read(
        &self,
        volume: &OpenVolume,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<Vec<u8>, RequestError> {
        let mut bytes = vec![0xaa; length_bytes as usize];
        self.client.read_at(volume, offset_bytes, &mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn flush(&self) {
        self.client.flush_blocking().unwrap();
    }

    pub(crate) fn trim(&self, volume: &OpenVolume, offset_bytes: u64, length_bytes: u64) {
        self.client.trim_blocking(volume, offset_bytes, length_bytes).unwrap();
    }

    pub(crate) fn stats(&self) -> engine::Stats {
        self.client.stats().unwrap()
    }

    /// Waits until `done` of the store's figures.
    pub(crate) fn wait_until(&self, what: &str, done: impl Fn(&engine::Stats) -> bool) {
        for _ in 0..5000 {
            if done(&self.stats()) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        panic!("{what} never came: {:?}", self.stats());
    }

    /// Closes the store and gives its disk.
    pub(crate) fn close(mut self) -> MemoryDisk {
        self.client.close().unwrap();
        self.running.take().unwrap().join().unwrap();
        self.disk.clone()
    }

    /// The power goes: what was not durable is lost, kept or torn as `seed` says.
    pub(crate) fn cut_power(mut self, seed: u64) -> MemoryDisk {
        let after = self.disk.crash(seed);
        self.stop();
        after
    }

    /// A flush, and then the power goes.
    pub(crate) fn cut_power_flushed(self, seed: u64) -> MemoryDisk {
        self.flush();
        self.cut_power(seed)
    }

    /// The engine is gone, and what it had submitted is on the disk.
    pub(crate) fn kill(mut self, seed: u64) -> MemoryDisk {
        self.stop();
        self.disk.restart(seed)
    }

    fn stop(&mut self) {
        self.killed.store(true, Ordering::Release);
        self.doorbell.ring();
        if let Some(running) = self.running.take() {
            running.join().unwrap();
        }
    }
}

impl Drop for Stand {
    fn drop(&mut self) {
        self.killed.store(true, Ordering::Release);
        self.doorbell.ring();
        if let Some(running) = self.running.take() {
            // After a failure what it says is of no interest.
            let _ = running.join();
        }
    }
}

/// So many cases of a property, or as many as `PROPTEST_CASES` says.
pub(crate) fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: asked.unwrap_or(usual), ..ProptestConfig::default() }
}

/// The check of a store that is not running.
pub(crate) fn check(disk: &MemoryDisk) -> CheckReport {
    engine::check(Box::new(disk.clone()), &mut |_| {}).unwrap()
}

/// The check of a sound store.
pub(crate) fn check_clean(disk: &MemoryDisk) -> CheckReport {
    let report = check(disk);
    assert!(
        report.problems.is_empty(),
        "{:#?}",
        report.problems.iter().take(5).collect::<Vec<_>>()
    );
    report
}

/// Damages a byte in the middle of the first structure of this kind.
pub(crate) fn spoil(disk: &MemoryDisk, kind: &str) {
    let map = engine::structures(Box::new(disk.clone())).unwrap();
    let hit = map.iter().find(|structure| structure.kind.contains(kind)).unwrap();
    disk.corrupt(hit.zone, hit.offset_bytes + hit.length_bytes / 2, |byte| *byte ^= 0x40);
}
