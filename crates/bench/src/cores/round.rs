//! One stream written by several threads into a store of its own, and what it cost.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use ::store::Answers;
use engine::{Accepted, Client, Done, OpenVolume, Opener, Options, StageTimes};
use serde::Serialize;
use threads::cpu_time_between_ns;

use super::model::Costs;
use crate::failure::Failure;
use crate::processors::own_time_ns;
use crate::source::{CHUNK_BYTES, REQUEST_BYTES, REQUEST_CHUNKS, RING_REQUESTS, Source};
use crate::store::{CORE, MARK_BYTES, Store, capacity_for, data_file, settled_times_ns};

const VOLUME: &str = "bench";
const WORKERS: &str = "reduce";
/// The stage in which the core waits, asleep or looking.
const IDLE: &str = "asleep";
const SEED: u64 = 2;

/// What is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stream {
    /// What is stored already.
    Duplicates,
    /// Every other chunk repeats one of the last ones; half of each is zeros.
    Half,
    /// No chunk repeats another; half of each is zeros.
    Unique,
}

impl Stream {
    pub(crate) const ALL: [Self; 3] = [Self::Duplicates, Self::Half, Self::Unique];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Duplicates => "all duplicates",
            Self::Half => "half duplicates",
            Self::Unique => "all unique",
        }
    }
}

/// A stream's bytes.
pub(super) struct Bytes {
    stream: Stream,
    source: Source,
    /// Requests in it, before it begins anew.
    ring: u64,
}

impl Bytes {
    /// For rounds of so many requests.
    pub(super) fn new(stream: Stream, requests: u64) -> Self {
        let ring = requests.min(RING_REQUESTS as u64);
        let source = match stream {
            Stream::Unique => Source::without_duplicates(ring as usize, SEED),
            Stream::Half | Stream::Duplicates => Source::new(ring as usize, SEED),
        };
        Self { stream, source, ring }
    }

    /// Requests that are written before any clock starts.
    fn ahead(&self) -> u64 {
        if self.stream == Stream::Duplicates { self.ring } else { 0 }
    }

    /// Request `number`, those ahead included.
    fn fill(&self, number: u64, out: &mut [u8]) {
        let repeated = self.stream == Stream::Duplicates;
        self.source.copy_request(if repeated { number % self.ahead() } else { number }, out);
    }

    /// Different chunks of so many requests and those ahead of them.
    fn different(&self, requests: u64) -> u64 {
        let repeated = self.stream == Stream::Duplicates;
        self.source.unique_chunks(if repeated { self.ahead() } else { requests })
    }
}

/// How a stream is written.
#[derive(Copy, Clone, Debug)]
pub(super) struct Plan {
    pub(super) requests: u64,
    pub(super) workers: usize,
    pub(super) clients: usize,
    pub(super) memory_bytes: u64,
}

/// What a round gave.
pub(super) struct Round {
    pub(super) mib_per_second: f64,
    pub(super) costs: Costs,
}

/// Writes `bytes` into a new store at `path`.
pub(super) fn run(bytes: &Bytes, plan: &Plan, path: &Path) -> Result<Round, Failure> {
    let requests = plan.requests + bytes.ahead();
    let written_bytes = requests * REQUEST_BYTES as u64;
    Store::make(path, capacity_for(written_bytes))?;
    write_once(&data_file(path), written_bytes)?;
    let (memory_bytes, worker_threads) = (plan.memory_bytes, plan.workers);
    let options = Options { memory_bytes, worker_threads, sync: false, ..Default::default() };
    let store = Store::open(path, &options)?;
    store.client().create_volume(VOLUME, written_bytes, false)?;
    let volume = store.client().open_volume(VOLUME, Opener::new("bench", 0))?;
    write(bytes, 0..bytes.ahead(), store.client(), &volume, 1)?;
    let round = timed(bytes, plan, store.client(), &volume)?;
    let found = store.client().stats()?.unique_chunks;
    store.close()?;
    std::fs::remove_dir_all(path).map_err(Failure::file(path))?;
    let expected = bytes.different(plan.requests);
    if found == expected { Ok(round) } else { Err(Failure::Unfaithful { expected, found }) }
}

/// Makes the file's blocks, as `fio::write_once` does; where this runs there may be no fio.
fn write_once(path: &Path, size_bytes: u64) -> Result<(), Failure> {
    let file = File::options().write(true).open(path);
    file.and_then(|mut file| {
        // Its first block says whose the file is.
        file.seek(SeekFrom::Start(MARK_BYTES))?;
        io::copy(&mut io::repeat(1).take(size_bytes), &mut file)?;
        file.sync_all()
    })
    .map_err(Failure::file(path))
}

fn timed(
    bytes: &Bytes,
    plan: &Plan,
    client: &Client,
    volume: &OpenVolume,
) -> Result<Round, Failure> {
    let before = client.stats()?;
    let ahead = bytes.ahead();
    let spent = write(bytes, ahead..ahead + plan.requests, client, volume, plan.clients)?;
    let after = client.stats()?;
    let chunks = (plan.requests * REQUEST_CHUNKS as u64) as f64;
    let device_bytes = after.written.device_bytes - before.written.device_bytes;
    let frames = |stats: &engine::Stats| stats.counters.frame_bytes_stored;
    let stored = |stats: &engine::Stats| stats.counters.chunks_unique;
    let frame_bytes = (frames(&after) - frames(&before)) as f64 / chunks;
    let unique = (stored(&after) - stored(&before)) as f64 / chunks;
    // By the clock of the stages, which a thread that is put aside prolongs; by the scheduler's,
    // in which a core that looks for work without sleeping works. The truth is below both.
    let core_ns = spent.core_ns.min(busy_ns(&after.stages) - busy_ns(&before.stages));
    Ok(Round {
        mib_per_second: plan.requests as f64 / spent.seconds,
        costs: Costs {
            core_ns: core_ns as f64 / chunks,
            workers_ns: spent.workers_ns as f64 / chunks,
            clients_ns: spent.clients_ns as f64 / chunks,
            device_bytes: device_bytes as f64 / chunks,
            memory_bytes: memory_bytes(unique, frame_bytes),
        },
    })
}

/// What passes between memory and processors for a chunk: it is read and written when it is copied
/// in, and read for its fingerprint. A new one is read again for its frame; that is written,
/// read and written on its way into the container, and read by the device.
fn memory_bytes(unique: f64, frame_bytes: f64) -> f64 {
    (3.0 + unique) * CHUNK_BYTES as f64 + 4.0 * frame_bytes
}

fn busy_ns(stages: &StageTimes) -> u64 {
    let busy = stages.core.iter().filter(|time| time.stage != IDLE);
    busy.map(|time| time.ns).sum()
}

/// What writing took, and processor time of each kind of thread.
struct Spent {
    seconds: f64,
    core_ns: u64,
    workers_ns: u64,
    clients_ns: u64,
}

/// Writes requests with so many threads, and flushes.
fn write(
    bytes: &Bytes,
    requests: std::ops::Range<u64>,
    client: &Client,
    volume: &OpenVolume,
    clients: usize,
) -> Result<Spent, Failure> {
    let next = AtomicU64::new(requests.start);
    let answers = Arc::new(Answers::counted());
    let (before, begun) = (settled_times_ns(), Instant::now());
    let work = || write_requests(bytes, &next, requests.end, client, volume, &answers);
    let clients_ns = thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(work)).collect();
        let times = threads.into_iter().map(thread::ScopedJoinHandle::join);
        times.sum::<Result<u64, _>>().map_err(|_| Failure::EngineVanished)
    })?;
    // A flush covers what is acknowledged, so that is waited for.
    answers.wait()?;
    client.flush_blocking()?;
    let seconds = begun.elapsed().as_secs_f64();
    let after = settled_times_ns();
    let spent = |kind: &str| cpu_time_between_ns(&before, &after, kind);
    Ok(Spent { seconds, core_ns: spent(CORE), workers_ns: spent(WORKERS), clients_ns })
}

/// Takes requests from one counter with the others, so that none idles at the end; returns the
/// processor time that it took.
fn write_requests(
    bytes: &Bytes,
    next: &AtomicU64,
    end: u64,
    client: &Client,
    volume: &OpenVolume,
    answers: &Arc<Answers>,
) -> u64 {
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= end {
            return own_time_ns();
        }
        let offset_bytes = number * REQUEST_BYTES as u64;
        let mut buffer = client.buffer(offset_bytes, REQUEST_BYTES);
        bytes.fill(number, buffer.bytes_mut());
        let done = Done::new(Arc::clone(answers), number);
        answers.expect();
        if client.write(volume, offset_bytes, buffer, false, done) == Accepted::Now {
            answers.known();
        }
    }
}
