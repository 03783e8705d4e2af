//! One run: requests, steps, crashes, checks.

use std::sync::{Arc, Mutex, PoisonError};

use disk::{Doorbell, MemoryDisk};
use engine::{
    Accepted, Client, Codec, Completions, Compression, CreateOptions, Done, Engine, Options, Reply,
    RequestError, VolumeHandle, Zone,
};

use crate::dice::Dice;
use crate::failure::Failure;
use crate::oracle::{CHUNK_BYTES, Effect, Oracle};
use crate::workload::{Request, VOLUME_CHUNKS, next_request};

/// Steps without any movement after which a run is stuck.
const STILL_MAX: u32 = 2_000;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Of everything.
    pub seed: u64,
    /// Requests between two crashes.
    pub steps: u64,
    /// Crashes of the run.
    pub crashes: u64,
    /// Volumes that are written.
    pub volumes: usize,
    /// Physical room.
    pub capacity_bytes: u64,
    /// Different contents that are written.
    pub contents: u64,
}

impl Plan {
    /// What the seed makes of a run: every third has few contents and much room, the others fill
    /// their containers and collect them.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let (contents, capacity_bytes) =
            if seed.is_multiple_of(3) { (400, 128 << 20) } else { (1 << 40, 64 << 20) };
        Self { seed, steps: 200, crashes: 5, volumes: 2, capacity_bytes, contents }
    }

    /// Whether writes may have to wait for space.
    fn is_tight(&self) -> bool {
        self.contents > 400
    }
}

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Requests made.
    pub requests: u64,
    /// Crashes survived.
    pub crashes: u64,
    /// Journal records that recoveries applied.
    pub records_replayed: u64,
    /// Crashes that cost unflushed records.
    pub cuts: u64,
    /// Checkpoints, as far as runs lived to count them.
    pub checkpoints: u64,
}

/// The engine, its disk and the oracle.
pub struct Simulation {
    plan: Plan,
    dice: Dice,
    disk: MemoryDisk,
    engine: Engine,
    client: Client,
    volumes: Vec<VolumeHandle>,
    oracle: Oracle,
    inbox: Arc<Inbox>,
    /// Tags of requests without an answer, with what a flush among them covers.
    waiting: Vec<(u64, Option<usize>)>,
    next_tag: u64,
    crash: u64,
    summary: Summary,
}

/// Outcomes as they come.
#[derive(Default)]
struct Inbox(Mutex<Vec<(u64, Result<Reply, RequestError>)>>);

impl Completions for Inbox {
    fn complete(&self, tag: u64, outcome: Result<Reply, RequestError>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((tag, outcome));
    }
}

fn options() -> Options {
    Options { memory_bytes: 64 << 20, worker_threads: 0, sync: false }
}

fn volume_name(volume: usize) -> String {
    format!("v{volume}")
}

impl Simulation {
    /// A new store on a new disk, its volumes made.
    ///
    /// # Errors
    /// [`Failure`] when that alone goes wrong.
    pub fn new(plan: &Plan) -> Result<Self, Failure> {
        let still = |_| Failure::StandsStill { step: 0, waiting: 0 };
        // Every other seed has two data files: what was synced in one says nothing of the other.
        let data_zones = 1 + plan.seed % 2;
        let capacities = vec![plan.capacity_bytes / data_zones; data_zones as usize];
        let geometry = engine::plan(&CreateOptions {
            capacity_bytes: capacities.clone(),
            chunk_bytes: CHUNK_BYTES as u32,
            compression: Compression { codec: Codec::Lz4, level: 0 },
            tables_bytes: None,
            journal_bytes: None,
            uuid: [7; 16],
            bucket_seed: [9; 16],
        })
        .map_err(still)?;
        let mut zones = vec![
            (Zone::Superblock, 1 << 16),
            (Zone::Journal, geometry.journal_bytes),
            (Zone::Tables, geometry.tables_bytes),
        ];
        zones.extend((0..).map(Zone::Data).zip(capacities));
        let disk = MemoryDisk::new(&zones, plan.seed);
        let compression = Compression { codec: Codec::Lz4, level: 0 };
        engine::create(Box::new(disk.clone()), &geometry, compression)
            .map_err(|_| Failure::StandsStill { step: 0, waiting: 0 })?;
        let (engine, client) = open(&disk, 0)?.0;
        let mut simulation = Self {
            dice: Dice::new(plan.seed),
            plan: plan.clone(),
            disk,
            engine,
            client,
            volumes: Vec::new(),
            oracle: Oracle::default(),
            inbox: Arc::default(),
            waiting: Vec::new(),
            next_tag: 0,
            crash: 0,
            summary: Summary::default(),
        };
        simulation.make_volumes()?;
        Ok(simulation)
    }

    /// Runs the whole plan.
    ///
    /// # Errors
    /// The first [`Failure`].
    pub fn run(mut self) -> Result<Summary, Failure> {
        for _ in 0..self.plan.crashes {
            let writes = 1 + self.dice.below(4 * self.plan.steps);
            self.disk.crash_after_writes(writes);
            for _ in 0..self.plan.steps {
                if self.disk.crashed() {
                    break;
                }
                self.request()?;
            }
            self.crash_and_check()?;
        }
        Ok(self.summary)
    }

    fn make_volumes(&mut self) -> Result<(), Failure> {
        let size_bytes = VOLUME_CHUNKS * CHUNK_BYTES as u64;
        for volume in 0..self.plan.volumes {
            let client = self.client.clone();
            let name = volume_name(volume);
            let made = self.beside(move || client.create_volume(&name, size_bytes, false))?;
            made.map_err(|source| Failure::Request { step: 0, source })?;
        }
        self.open_volumes()
    }

    fn open_volumes(&mut self) -> Result<(), Failure> {
        self.volumes.clear();
        for volume in 0..self.plan.volumes {
            let client = self.client.clone();
            let opened = self.beside(move || client.volume(&volume_name(volume)))?;
            self.volumes.push(opened.map_err(|source| Failure::Request { step: 0, source })?);
        }
        Ok(())
    }

    /// Makes a blocking call on a thread of its own while the engine is stepped.
    fn beside<T: Send + 'static>(
        &mut self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let caller = std::thread::spawn(call);
        while !caller.is_finished() {
            self.engine.step();
            std::thread::yield_now();
        }
        caller.join().map_err(|_| Failure::StandsStill { step: 0, waiting: 1 })
    }

    fn request(&mut self) -> Result<(), Failure> {
        self.summary.requests += 1;
        match next_request(&mut self.dice, self.plan.volumes, self.plan.contents) {
            Request::Write { volume, offset_bytes, bytes, durable } => {
                self.write(volume, offset_bytes, &bytes, durable)?;
            }
            Request::Trim { volume, offset_bytes, length_bytes } => {
                self.note_effects(volume, offset_bytes, &vec![0; length_bytes as usize]);
                let done = self.done(None);
                let volume = self.volumes[volume].clone();
                self.client.trim(&volume, offset_bytes, length_bytes, false, done);
                if self.plan.is_tight() {
                    // Its ends may wait for space, as a write may.
                    self.wait_for(self.next_tag)?;
                }
            }
            Request::Read { volume, first, count } => {
                return self.read_and_compare(volume, first, count);
            }
            Request::Flush => {
                let done = self.done(Some(self.oracle.written()));
                self.client.flush(done);
            }
            Request::Tick => self.engine.tick(),
        }
        for _ in 0..self.dice.below(12) {
            self.engine.step();
        }
        self.take_answers()?;
        if self.waiting.len() > 64 {
            self.wait_for_all()?;
        }
        Ok(())
    }

    fn done(&mut self, flushes: Option<usize>) -> Done {
        self.next_tag += 1;
        self.waiting.push((self.next_tag, flushes));
        Done { sink: Arc::clone(&self.inbox) as Arc<dyn Completions>, tag: self.next_tag }
    }

    fn write(
        &mut self,
        volume: usize,
        offset_bytes: u64,
        bytes: &[u8],
        durable: bool,
    ) -> Result<(), Failure> {
        self.note_effects(volume, offset_bytes, bytes);
        let flushes = durable.then(|| self.oracle.written());
        let done = self.done(flushes);
        let mut buf = self.client.buffer(bytes.len());
        buf.bytes_mut().copy_from_slice(bytes);
        let handle = self.volumes[volume].clone();
        if self.client.write(&handle, offset_bytes, buf, durable, done) == Accepted::Now {
            self.waiting.pop();
        } else if self.plan.is_tight() {
            // It may wait for space, and until it is answered it has no place in the order.
            self.wait_for(self.next_tag)?;
        }
        Ok(())
    }

    fn note_effects(&mut self, volume: usize, offset_bytes: u64, bytes: &[u8]) {
        let chunk_bytes = CHUNK_BYTES as u64;
        let mut at = 0;
        while at < bytes.len() {
            let position = offset_bytes + at as u64;
            let skip = (position % chunk_bytes) as usize;
            let take = (CHUNK_BYTES - skip).min(bytes.len() - at);
            let place = (volume, position / chunk_bytes);
            let mut chunk = self.oracle.read(place);
            chunk[skip..skip + take].copy_from_slice(&bytes[at..at + take]);
            self.oracle.write(Effect { place, bytes: chunk });
            at += take;
        }
    }

    fn read_and_compare(&mut self, volume: usize, first: u64, count: u64) -> Result<(), Failure> {
        let tag = self.next_tag + 1;
        let done = self.done(None);
        let handle = self.volumes[volume].clone();
        let length_bytes = count as u32 * CHUNK_BYTES as u32;
        self.client.read(&handle, first * CHUNK_BYTES as u64, length_bytes, done);
        let Some(Reply::Read(pieces)) = self.wait_for(tag)? else { return Ok(()) };
        let step = self.summary.requests;
        let mut bytes = vec![0; pieces.length_bytes()];
        pieces.assemble(&mut bytes).map_err(|source| Failure::Request { step, source })?;
        for (lba, chunk) in (first..).zip(bytes.chunks_exact(CHUNK_BYTES)) {
            if self.oracle.read((volume, lba)) != chunk {
                return Err(Failure::WrongBytes { step, volume: volume_name(volume), lba });
            }
        }
        Ok(())
    }

    /// Steps until the request of `tag` is answered; None when the disk has crashed meanwhile.
    fn wait_for(&mut self, tag: u64) -> Result<Option<Reply>, Failure> {
        let mut still = 0;
        loop {
            if !self.engine.step() {
                still += 1;
                self.engine.tick();
            }
            if let Some(reply) = self.answer_of(tag)? {
                return Ok(Some(reply));
            }
            if self.disk.crashed() {
                return Ok(None);
            }
            if still > STILL_MAX {
                let waiting = self.waiting.len();
                return Err(Failure::StandsStill { step: self.summary.requests, waiting });
            }
        }
    }

    fn wait_for_all(&mut self) -> Result<(), Failure> {
        let mut still = 0;
        while !self.waiting.is_empty() && !self.disk.crashed() {
            if !self.engine.step() {
                still += 1;
                self.engine.tick();
            }
            self.take_answers()?;
            if still > STILL_MAX {
                let waiting = self.waiting.len();
                return Err(Failure::StandsStill { step: self.summary.requests, waiting });
            }
        }
        Ok(())
    }

    fn take_answers(&mut self) -> Result<(), Failure> {
        self.answer_of(u64::MAX).map(|_| ())
    }

    fn answer_of(&mut self, wanted: u64) -> Result<Option<Reply>, Failure> {
        let answers =
            std::mem::take(&mut *self.inbox.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut found = None;
        for (tag, outcome) in answers {
            let step = self.summary.requests;
            let reply = outcome.map_err(|source| Failure::Request { step, source })?;
            if let Some(at) = self.waiting.iter().position(|(of, _)| *of == tag)
                && let (_, Some(flushed)) = self.waiting.swap_remove(at)
            {
                self.oracle.flushed(flushed);
            }
            if tag == wanted {
                found = Some(reply);
            }
        }
        Ok(found)
    }

    /// Cuts the power, opens what is left and compares it with the oracle.
    fn crash_and_check(&mut self) -> Result<(), Failure> {
        self.crash += 1;
        self.disk = self.disk.crash(self.dice.roll());
        let crash = self.crash;
        if self.dice.once_in(2) {
            self.crash_while_opening()?;
        }
        self.check()?;
        let ((engine, client), report) = open(&self.disk, crash)?;
        self.engine = engine;
        self.client = client;
        self.summary.records_replayed += report.records_replayed;
        self.summary.cuts += u64::from(report.cut);
        self.waiting.clear();
        self.inbox = Arc::default();
        self.open_volumes()?;
        self.compare()?;
        self.summary.crashes += 1;
        Ok(())
    }

    /// The power goes again while the store is being opened.
    fn crash_while_opening(&mut self) -> Result<(), Failure> {
        self.disk.crash_after_writes(1);
        // The opening either survives its only write or stops at it; both leave a store.
        let _ = engine::open(Box::new(self.disk.clone()), doorbell(self.crash)?, &options());
        self.disk = self.disk.crash(self.dice.roll());
        Ok(())
    }

    fn check(&mut self) -> Result<(), Failure> {
        let crash = self.crash;
        let report = engine::check(Box::new(self.disk.clone()), &mut |_| {})
            .map_err(|source| Failure::DoesNotOpen { crash, source })?;
        match report.problems.first() {
            None => Ok(()),
            Some(first) => Err(Failure::Inconsistent {
                crash,
                count: report.problems.len(),
                first: first.to_string(),
            }),
        }
    }

    fn compare(&mut self) -> Result<(), Failure> {
        let mut oracle = std::mem::take(&mut self.oracle);
        let settled =
            oracle.settle(self.crash, volume_name, |(volume, lba)| self.read_chunk(volume, lba));
        self.oracle = oracle;
        settled
    }

    fn read_chunk(&mut self, volume: usize, lba: u64) -> Result<Vec<u8>, Failure> {
        let tag = self.next_tag + 1;
        let done = self.done(None);
        let handle = self.volumes[volume].clone();
        self.client.read(&handle, lba * CHUNK_BYTES as u64, CHUNK_BYTES as u32, done);
        let mut bytes = vec![0; CHUNK_BYTES];
        if let Some(Reply::Read(pieces)) = self.wait_for(tag)? {
            let step = self.summary.requests;
            pieces.assemble(&mut bytes).map_err(|source| Failure::Request { step, source })?;
        }
        Ok(bytes)
    }
}

fn doorbell(crash: u64) -> Result<Doorbell, Failure> {
    Doorbell::new().map_err(|_| Failure::StandsStill { step: crash, waiting: 0 })
}

type Running = (Engine, Client);

fn open(disk: &MemoryDisk, crash: u64) -> Result<(Running, engine::OpenReport), Failure> {
    let (engine, client, report) =
        engine::open(Box::new(disk.clone()), doorbell(crash)?, &options())
            .map_err(|source| Failure::DoesNotOpen { crash, source })?;
    Ok(((engine, client), report))
}
