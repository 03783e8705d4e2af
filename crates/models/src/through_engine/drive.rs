//! One engine store on a disk in memory.
//!
//! Fingerprints and frames are made on the engine's own thread, and each chunk is written by
//! itself. When a group closes depends on the threads' timing, so counts of pages differ a little
//! from run to run; what is duplicate does not.

use engine::{Caches, Stats};
use store::{CreateError, CreateOptions, OpenError, Options, RequestError, Store, Volume};
use thiserror::Error;

/// Bytes of a chunk.
pub(super) const CHUNK_BYTES: u64 = 4096;
const VOLUME: &str = "driven";
/// What a store has beside its chunks: containers that are open or being collected.
const SPARE_BYTES: u64 = 256 << 20;
const MEMORY_BYTES: u64 = 64 << 20;

/// Why an engine could not be driven.
#[derive(Debug, Error)]
pub enum DriveError {
    /// The store cannot be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It refuses a request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The folder of real data cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// What was read.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
}

/// A store that runs.
pub(super) struct Driven {
    store: Store,
    volume: Volume,
}

impl Driven {
    /// A store with room for this number of new chunks, and these caches or the engine's own.
    pub(super) fn start(chunks: u64, caches: Option<Caches>) -> Result<Self, DriveError> {
        let create = CreateOptions {
            uuid: Some([4; 16]),
            bucket_seed: Some([7; 16]),
            ..CreateOptions::new(2 * chunks * CHUNK_BYTES + SPARE_BYTES)
        };
        let disk = store::create_in_memory(&create, 1)?;
        let engine =
            engine::Options { memory_bytes: MEMORY_BYTES, worker_threads: 0, ..Default::default() };
        let store = Store::open_in_memory(&disk, Options { engine, caches, ..Options::default() })?;
        let volume = store.create_volume(VOLUME, chunks.max(1) * CHUNK_BYTES)?;
        Ok(Self { store, volume })
    }

    pub(super) fn write(&self, chunk: u64, bytes: &[u8]) -> Result<(), DriveError> {
        Ok(self.volume.write_at(chunk * CHUNK_BYTES, bytes)?)
    }

    pub(super) fn read(&self, chunk: u64, bytes: &mut [u8]) -> Result<(), DriveError> {
        Ok(self.volume.read_at(chunk * CHUNK_BYTES, bytes)?)
    }

    /// Its counters, when all that was written has been looked up and stored.
    pub(super) fn stats(&self) -> Result<Stats, DriveError> {
        self.volume.flush_blocking()?;
        Ok(self.store.client().stats()?)
    }
}
