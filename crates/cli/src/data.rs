//! The bytes of a volume, for commands that move them. They do not know whether the store is open
//! in this process or served by another, as they do not when they ask for something
//! ([`crate::control`]).
//!
//! ```text
//! Store::open ── Here ──> engine::Client, in this process
//!            └── Served ─> served.rs: NBD over the control socket, several connections
//! ```
//!
//! An open volume is listed among those who have it open until it is dropped, here and there.

mod served;
mod sink;

use std::sync::Arc;

use engine::{
    Accepted, ChunkBuf, Client, Completions, Done, Extent, OpenVolume, Reply, RequestError,
};

pub(crate) use self::served::ServedVolume;
pub(crate) use self::sink::{WriteFailure, WriteSink};
use crate::control::Store;
use crate::error::CliError;
use crate::opener::opener;
use crate::store::processors;

/// Threads beyond this number wait for the device and not for a processor.
const READERS_MAX: usize = 8;
/// Runs asked for at once.
const EXTENTS_MAX: u32 = 1024;

/// A volume or snapshot that is open.
pub(crate) enum VolumeData {
    /// In a store that this process opened.
    Here(Client, OpenVolume),
    /// In one that another process serves.
    Served(ServedVolume),
}

/// Takes the engine's outcomes to a sink.
struct EngineSink<S>(Arc<S>);

impl<S: WriteSink> Completions for EngineSink<S> {
    fn complete(&self, _tag: u64, outcome: Result<Reply, RequestError>) {
        self.0.end(outcome.map(drop).map_err(WriteFailure::Request));
    }
}

impl Store {
    /// Opens a volume or snapshot for `command`.
    pub(crate) fn open(&self, name: &str, command: &str) -> Result<VolumeData, CliError> {
        Ok(match self {
            Self::Here(store, _) => {
                let client = store.client().clone();
                let volume = client.open_volume(name, opener(command))?;
                VolumeData::Here(client, volume)
            }
            Self::Served(served) => {
                VolumeData::Served(ServedVolume::open(&served.path, name, command)?)
            }
        })
    }
}

impl VolumeData {
    /// Its size, when it was opened if it is served.
    pub(crate) fn size_bytes(&self) -> u64 {
        match self {
            Self::Here(_, volume) => volume.size_bytes(),
            Self::Served(volume) => volume.size_bytes(),
        }
    }

    /// How many threads that read at the same time are worth it.
    pub(crate) fn readers(&self) -> usize {
        let readers = processors().min(READERS_MAX);
        match self {
            // Who reads also expands what it reads.
            Self::Here(..) => readers,
            // Who reads waits for the server.
            Self::Served(volume) => volume.readers().max(readers),
        }
    }

    /// Fills `bytes` with what is at `offset_bytes`.
    pub(crate) fn read(&self, offset_bytes: u64, bytes: &mut Vec<u8>) -> Result<(), CliError> {
        match self {
            Self::Here(client, volume) => Ok(client.read_at(volume, offset_bytes, bytes)?),
            Self::Served(volume) => volume.read(offset_bytes, bytes),
        }
    }

    /// Runs of data and holes from `offset_bytes` on, which cover `length_bytes` or less.
    pub(crate) fn extents(
        &self,
        offset_bytes: u64,
        length_bytes: u64,
    ) -> Result<Vec<Extent>, CliError> {
        match self {
            Self::Here(client, volume) => {
                Ok(client.extents_blocking(volume, offset_bytes, length_bytes, EXTENTS_MAX)?)
            }
            Self::Served(volume) => volume.extents(offset_bytes, length_bytes),
        }
    }

    /// Room for `length_bytes` that are to be written at `offset_bytes`; waits while the write
    /// buffer of an engine in this process is full.
    pub(crate) fn buffer(&self, offset_bytes: u64, length_bytes: usize) -> ChunkBuf {
        match self {
            Self::Here(client, _) => client.buffer(offset_bytes, length_bytes),
            Self::Served(_) => ChunkBuf::pooled(length_bytes),
        }
    }

    /// Begins to write `buf`.
    pub(crate) fn write<S: WriteSink>(&self, offset_bytes: u64, buf: ChunkBuf, sink: &Arc<S>) {
        match self {
            Self::Here(client, volume) => {
                let done = Done::new(Arc::new(EngineSink(Arc::clone(sink))), 0);
                match client.write(volume, offset_bytes, buf, false, done) {
                    Accepted::Now => sink.end(Ok(())),
                    Accepted::Later => {}
                }
            }
            Self::Served(volume) => volume.write(offset_bytes, buf.bytes(), sink),
        }
    }

    /// Begins to make a range read as zeros. The sink is told as often as this returns.
    pub(crate) fn zero<S: WriteSink>(&self, offset_bytes: u64, length_bytes: u64, sink: &Arc<S>) {
        match self {
            Self::Here(client, volume) => {
                let done = Done::new(Arc::new(EngineSink(Arc::clone(sink))), 0);
                client.write_zeroes(volume, offset_bytes, length_bytes, false, done);
            }
            Self::Served(volume) => volume.zero(offset_bytes, length_bytes, sink),
        }
    }

    /// The longest range that is zeroed at once.
    pub(crate) fn zero_bytes_max(&self) -> u64 {
        match self {
            Self::Here(..) => u64::MAX,
            Self::Served(_) => served::ZERO_BYTES_MAX,
        }
    }

    /// Makes durable what was written.
    pub(crate) fn flush(&self) -> Result<(), CliError> {
        match self {
            Self::Here(client, _) => Ok(client.flush_blocking()?),
            Self::Served(volume) => volume.flush(),
        }
    }
}
