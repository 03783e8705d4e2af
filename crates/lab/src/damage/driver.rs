//! An engine stepped in place, for stores that may be damaged: every call comes to an end.

use std::ops::Range;
use std::time::{Duration, Instant};

use disk::{Disk, Doorbell};
use engine::{
    Address, Caches, Client, DomainSecret, Done, Engine, Explanation, OpenVolume, Options, Pending,
    RequestError, control,
};

use crate::oracle::CHUNK_BYTES;

/// Steps without any movement after which nothing will come.
const STILL_MAX: u32 = 2_000;
/// Steps after which a request that is not answered never will be.
const STEPS_MAX: u32 = 10_000_000;
/// After so many steps without any movement, and this long, a blocking call will not come back.
const CALL_STILL_MAX: u64 = 1_000_000;
/// So long nothing moves before a blocking call that waits for time to pass gets some.
const TICK: Duration = Duration::from_millis(10);
const CALL_MAX: Duration = Duration::from_secs(60);
/// So that some chunks of a small store are stored twice.
pub(crate) const COPIES_ABOVE: u32 = 4;

/// So few young entries that there are buckets and filters to be hit.
const CACHE: Caches = Caches {
    pages: 4096,
    dirty_pages_max: 3072,
    young_max: 120,
    directory_entries: 2000,
    frame_bytes: 1 << 20,
    lends: false,
};

/// What a read came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChunkRead {
    Bytes(Vec<u8>),
    Failed(String),
    /// The engine stood still.
    Hangs,
}

/// How a request ended that changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    Failed(RequestError),
    /// It is never answered.
    Hangs,
}

impl Ended {
    pub(crate) fn is_well(&self) -> bool {
        *self == Self::Well
    }

    fn of<A>(outcome: Option<Result<A, RequestError>>) -> Self {
        match outcome {
            None => Self::Hangs,
            Some(Ok(_)) => Self::Well,
            Some(Err(error)) => Self::Failed(error),
        }
    }
}

/// A store that runs when it is asked something.
pub(crate) struct Driver {
    engine: Engine,
    client: Client,
}

impl Driver {
    /// Opens a store.
    ///
    /// # Errors
    /// The engine's sentence.
    pub(crate) fn open(disk: Box<dyn Disk>) -> Result<Self, String> {
        let doorbell = Doorbell::new().map_err(|error| error.to_string())?;
        let options = Options {
            memory_bytes: 64 << 20,
            worker_threads: 0,
            sync: false,
            ..Default::default()
        };
        let (mut engine, client, _) = engine::open_with_cache(disk, doorbell, &options, CACHE)
            .map_err(|error| error.to_string())?;
        engine.copy_above(COPIES_ABOVE);
        engine.offer_secret(DomainSecret([0xda; 32]));
        Ok(Self { engine, client })
    }

    /// Makes a blocking call on a thread of its own while the engine is stepped.
    #[track_caller]
    pub(crate) fn call<T: Send + 'static>(
        &mut self,
        call: impl FnOnce(Client) -> T + Send + 'static,
    ) -> T {
        let client = self.client.clone();
        let caller = std::thread::spawn(move || call(client));
        let (mut still, mut moved, mut ticked) = (0, Instant::now(), Instant::now());
        while !caller.is_finished() {
            if still > CALL_STILL_MAX && moved.elapsed() > CALL_MAX {
                let at = std::panic::Location::caller();
                let sentence = format!("a panic: the call at {at} never comes back");
                std::panic::resume_unwind(Box::new(sentence));
            }
            if self.engine.step() {
                (still, moved, ticked) = (0, Instant::now(), Instant::now());
            } else {
                still += 1;
                // What the store does is not to hang on how soon the caller's thread runs.
                if ticked.elapsed() > TICK {
                    ticked = Instant::now();
                    self.engine.tick();
                }
                std::thread::yield_now();
            }
        }
        match caller.join() {
            Ok(value) => value,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// A volume, if it is there.
    #[track_caller]
    pub(crate) fn volume(&mut self, name: &str) -> Option<OpenVolume> {
        let name = name.to_owned();
        self.call(move |client| client.open_volume(&name, crate::opener())).ok()
    }

    /// What the tables say of a chunk.
    pub(crate) fn explain(&mut self, volume: &str, lba: u64) -> Option<Explanation> {
        let (volume, address) = (volume.to_owned(), Address::Lba(lba));
        let request = control::Explain { volume, address };
        self.ask(|client, done| client.administer(request, done))?.ok()
    }

    /// Ends the store cleanly.
    #[track_caller]
    pub(crate) fn close(mut self) -> Result<(), RequestError> {
        self.call(|client| client.close())
    }

    fn ask<A>(&mut self, send: impl FnOnce(&Client, Done<A>)) -> Option<Result<A, RequestError>> {
        let (done, pending) = Done::pending();
        send(&self.client, done);
        self.wait_for(&pending)
    }

    fn wait_for<A>(&mut self, pending: &Pending<A>) -> Option<Result<A, RequestError>> {
        let mut still = 0;
        for _ in 0..STEPS_MAX {
            let moved = self.engine.step();
            if let Some(outcome) = pending.try_take() {
                return Some(outcome);
            }
            if !moved {
                still += 1;
                self.engine.tick();
            }
            if still > STILL_MAX {
                return None;
            }
        }
        None
    }

    /// Lets background work go on for a while.
    pub(crate) fn idle(&mut self, ticks: u32) {
        for _ in 0..ticks {
            self.engine.tick();
            for _ in 0..10_000 {
                if !self.engine.step() {
                    break;
                }
            }
        }
    }

    /// Writes a chunk.
    pub(crate) fn write(&mut self, volume: &OpenVolume, lba: u64, bytes: &[u8]) -> Ended {
        let offset_bytes = lba * CHUNK_BYTES as u64;
        let mut buf = self.client.buffer(offset_bytes, bytes.len());
        buf.bytes_mut().copy_from_slice(bytes);
        let (done, pending) = Done::pending();
        let accepted = self.client.write(volume, offset_bytes, buf, false, done);
        while self.engine.step() {}
        match accepted {
            engine::Accepted::Now => Ended::Well,
            _ => Ended::of(self.wait_for(&pending)),
        }
    }

    /// Writes chunks one after the other, each as its address says.
    ///
    /// # Errors
    /// A sentence about the first that failed.
    pub(crate) fn write_each(
        &mut self,
        volume: &OpenVolume,
        lbas: Range<u64>,
        chunk_of: impl Fn(u64) -> Vec<u8>,
    ) -> Result<(), String> {
        let failed =
            lbas.into_iter().find(|&lba| !self.write(volume, lba, &chunk_of(lba)).is_well());
        failed.map_or(Ok(()), |lba| Err(format!("chunk {lba} could not be written")))
    }

    /// Makes a volume.
    ///
    /// # Errors
    /// The engine's sentence.
    pub(crate) fn new_volume(
        &mut self,
        name: &'static str,
        size_bytes: u64,
    ) -> Result<OpenVolume, String> {
        let make = move |client: Client| {
            client.create_volume(name, size_bytes, false)?;
            client.open_volume(name, crate::opener())
        };
        self.call(make).map_err(|error| error.to_string())
    }

    /// Trims chunks.
    pub(crate) fn trim(&mut self, volume: &OpenVolume, lba: u64, count: u64) -> Ended {
        let (offset_bytes, length_bytes) = (lba * CHUNK_BYTES as u64, count * CHUNK_BYTES as u64);
        let outcome =
            self.ask(|client, done| client.trim(volume, offset_bytes, length_bytes, false, done));
        Ended::of(outcome)
    }

    /// Makes everything durable.
    pub(crate) fn flush(&mut self) -> Ended {
        Ended::of(self.ask(|client, done| client.flush(done)))
    }

    /// Reads one chunk.
    pub(crate) fn read(&mut self, volume: &OpenVolume, lba: u64) -> ChunkRead {
        self.read_chunks(volume, lba, 1)
    }

    /// Reads chunks that follow each other; an error if one of them fails.
    pub(crate) fn read_chunks(&mut self, volume: &OpenVolume, lba: u64, count: u64) -> ChunkRead {
        let offset_bytes = lba * CHUNK_BYTES as u64;
        let length_bytes = count as u32 * CHUNK_BYTES as u32;
        let outcome = self.ask(|client, done| {
            client.read(volume, offset_bytes, length_bytes, done);
        });
        match outcome {
            None => ChunkRead::Hangs,
            Some(Err(error)) => ChunkRead::Failed(error.to_string()),
            Some(Ok(pieces)) => {
                let mut bytes = vec![0; pieces.length_bytes()];
                match pieces.assemble(&mut bytes) {
                    Ok(()) => ChunkRead::Bytes(bytes),
                    Err(error) => ChunkRead::Failed(error.to_string()),
                }
            }
        }
    }
}
