//! The work that is counted: requests of one chunk to an engine in this process, on a disk in
//! memory, with everything done by the calling thread.
//!
//! Nothing but public interfaces of `engine` and `disk` is used, so that these files count an
//! earlier commit as well.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clap::ValueEnum;
use disk::{Doorbell, MemoryDisk};
use engine::{
    Accepted, Client, Codec, Completions, Compression, CreateOptions, Done, Engine, OpenVolume,
    Opener, Options, Reply, RequestError,
};

use crate::failure::Failure;
use crate::source::{CHUNK_BYTES, Chance, fill};

const VOLUME: &str = "counted";
const COMPRESSION: Compression = Compression { codec: Codec::Lz4, level: 0 };
/// Requests that the core finds waiting.
const DEPTH: u64 = 32;
/// Contents that are made before; a number stamped on each makes it another one.
const TEMPLATES: usize = 64;
const SEED: u64 = 11;

/// A kind of work.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Work {
    /// New contents at random places of a volume that is written; a flush at the end.
    Write,
    /// Contents that are stored already; a flush at the end.
    Duplicate,
    /// Chunks at random.
    Read,
    /// A new content and a flush of its own.
    Flush,
}

impl Work {
    pub(crate) const ALL: [Self; 4] = [Self::Write, Self::Duplicate, Self::Read, Self::Flush];

    /// As `--counted` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Duplicate => "duplicate",
            Self::Read => "read",
            Self::Flush => "flush",
        }
    }
}

/// Fills a volume, and then does `work` on `chunks` chunks of it.
pub(crate) fn run(work: Work, chunks: u64) -> Result<(), Failure> {
    // The volume is as large for N chunks as for 2N: what differs is the work alone.
    let volume_chunks = (2 * chunks).next_power_of_two();
    let mut bench = Bench::new(volume_chunks)?;
    for lba in 0..volume_chunks {
        bench.write(lba, lba);
        if (lba + 1) % DEPTH == 0 {
            bench.settle()?;
        }
    }
    bench.flush()?;
    counted(&mut bench, work, chunks)
}

/// What callgrind counts (`--toggle-collect`).
#[inline(never)]
fn counted(bench: &mut Bench, work: Work, chunks: u64) -> Result<(), Failure> {
    for number in 0..chunks {
        let lba = bench.chance.roll() % bench.volume_chunks;
        match work {
            Work::Write | Work::Flush => bench.write(lba, bench.volume_chunks + number),
            Work::Duplicate => {
                let content = bench.chance_of_old();
                bench.write(lba, content);
            }
            Work::Read => bench.read(lba),
        }
        match work {
            Work::Flush => bench.flush()?,
            _ if (number + 1) % DEPTH == 0 => bench.settle()?,
            _ => {}
        }
    }
    bench.settle()?;
    if work == Work::Read { Ok(()) } else { bench.flush() }
}

/// Counts answers that are to come, puts the bytes of reads together as a client would, and keeps
/// the first error.
struct Pending {
    requests: AtomicU64,
    read: Mutex<Vec<u8>>,
    error: Mutex<Option<RequestError>>,
}

impl Completions for Pending {
    fn complete(&self, _: u64, outcome: Result<Reply, RequestError>) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
        let ended = match outcome {
            Ok(Reply::Read(pieces)) => {
                pieces.assemble(&mut self.read.lock().unwrap_or_else(PoisonError::into_inner))
            }
            Ok(_) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = ended {
            let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(error);
        }
    }
}

/// An engine with a volume, stepped by its only client.
struct Bench {
    engine: Engine,
    client: Client,
    volume: OpenVolume,
    volume_chunks: u64,
    pending: Arc<Pending>,
    chance: Chance,
    templates: Vec<u8>,
}

impl Bench {
    fn new(volume_chunks: u64) -> Result<Self, Failure> {
        let volume_bytes = volume_chunks * CHUNK_BYTES as u64;
        let geometry = engine::plan(&CreateOptions {
            capacity_bytes: vec![(8 * volume_bytes).max(256 << 20)],
            chunk_bytes: CHUNK_BYTES as u32,
            compression: COMPRESSION,
            detection: Default::default(),
            tables_bytes: None,
            journal_bytes: None,
            uuid: [7; 16],
            bucket_seed: [9; 16],
        })
        .map_err(of_engine)?;
        let zones: Vec<_> = geometry.zones().collect();
        let disk = MemoryDisk::new(&zones, SEED);
        engine::create(Box::new(disk.clone()), &geometry, COMPRESSION).map_err(of_engine)?;
        let options = Options {
            memory_bytes: 64 << 20,
            worker_threads: 0,
            sync: false,
            ..Default::default()
        };
        let doorbell = Doorbell::new().map_err(of_engine)?;
        let opened = engine::open(Box::new(disk), doorbell, &options);
        let (mut engine, client, _) = opened.map_err(of_engine)?;
        let volume = beside(&mut engine, &client, |client| {
            client.create_volume(VOLUME, volume_bytes, false)?;
            client.open_volume(VOLUME, Opener::new("bench", 0))
        })?;
        let mut templates = vec![0; TEMPLATES * CHUNK_BYTES];
        (0..).zip(templates.chunks_exact_mut(CHUNK_BYTES)).for_each(|(n, chunk)| fill(n, chunk));
        let pending = Arc::new(Pending {
            requests: AtomicU64::new(0),
            read: Mutex::new(vec![0; CHUNK_BYTES]),
            error: Mutex::new(None),
        });
        let chance = Chance::new(SEED);
        Ok(Self { engine, client, volume, volume_chunks, pending, chance, templates })
    }

    /// The number of a content that filled the volume.
    fn chance_of_old(&mut self) -> u64 {
        self.chance.roll() % self.volume_chunks
    }

    fn done<A: Into<Reply>>(&self) -> Done<A> {
        self.pending.requests.fetch_add(1, Ordering::Relaxed);
        Done::new(Arc::clone(&self.pending), 0)
    }

    fn write(&mut self, lba: u64, content: u64) {
        let offset_bytes = lba * CHUNK_BYTES as u64;
        let mut buffer = self.client.buffer(offset_bytes, CHUNK_BYTES);
        let template = content as usize % TEMPLATES * CHUNK_BYTES;
        let bytes = buffer.bytes_mut();
        bytes.copy_from_slice(&self.templates[template..template + CHUNK_BYTES]);
        bytes[..8].copy_from_slice(&content.to_le_bytes());
        let done = self.done();
        if self.client.write(&self.volume, offset_bytes, buffer, false, done) == Accepted::Now {
            self.pending.complete(0, Ok(Reply::Done));
        }
    }

    fn read(&mut self, lba: u64) {
        let (offset_bytes, done) = (lba * CHUNK_BYTES as u64, self.done());
        self.client.read(&self.volume, offset_bytes, CHUNK_BYTES as u32, done);
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.client.flush(self.done());
        self.settle()
    }

    /// Steps the engine until everything is answered and nothing moves.
    fn settle(&mut self) -> Result<(), Failure> {
        while self.pending.requests.load(Ordering::Relaxed) > 0 {
            if !self.engine.step() {
                self.engine.tick();
            }
        }
        while self.engine.step() {}
        let mut error = self.pending.error.lock().unwrap_or_else(PoisonError::into_inner);
        error.take().map_or(Ok(()), |error| Err(error.into()))
    }
}

fn of_engine(error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::Engine(Box::new(error))
}

/// Makes a blocking call on a thread of its own while the engine is stepped.
fn beside<T: Send>(
    engine: &mut Engine,
    client: &Client,
    call: impl FnOnce(&Client) -> Result<T, RequestError> + Send,
) -> Result<T, Failure> {
    std::thread::scope(|scope| {
        let caller = scope.spawn(|| call(client));
        while !caller.is_finished() {
            if !engine.step() {
                engine.tick();
                std::thread::yield_now();
            }
        }
        Ok(caller.join().map_err(|_| Failure::EngineVanished)??)
    })
}

#[cfg(test)]
mod tests {
    use super::{Work, run};

    /// Without callgrind, so that it never rots.
    #[test]
    fn every_kind_of_work_comes_to_its_end() {
        for work in Work::ALL {
            run(work, 64).unwrap();
        }
    }
}
