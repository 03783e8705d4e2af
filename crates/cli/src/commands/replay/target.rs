//! The store that is driven: one that is there, or a new one that goes away with its directory.

use std::path::{Path, PathBuf};

use traces::{BLOCK_BYTES, Workload};

use crate::args::ReplayArgs;
use crate::commands::scratch::{CAPACITY_BYTES_BEYOND, ScratchShape, ScratchStore};
use crate::error::CliError;

/// Room for the data of a trace, when nobody says how much: it is not known before its end.
const CAPACITY_BYTES_OF_TRACE: u64 = 8 << 30;
/// Pages of all tables for one new chunk, and for one that is mapped, in bytes; half as much again,
/// and as much for what two checkpoints keep.
const TABLES_BYTES_OF_UNIQUE: u64 = 300;
const TABLES_BYTES_OF_MAPPED: u64 = 24;

/// A store for one replay.
pub(super) enum Target {
    /// It stays.
    There(PathBuf),
    New(ScratchStore),
}

impl Target {
    /// The store that `args` name, or a new one of this chunk size, large enough for the workload.
    pub(super) fn make(
        args: &ReplayArgs,
        chunk_bytes: u32,
        workload: Option<&Workload>,
    ) -> Result<Self, CliError> {
        if let Some(path) = &args.store {
            return Ok(Self::There(path.clone()));
        }
        let capacity_bytes =
            args.capacity.unwrap_or_else(|| capacity_bytes(args, chunk_bytes, workload));
        let shape = ScratchShape {
            capacity_bytes,
            chunk_bytes,
            detection: Default::default(),
            tables_bytes_min: workload.map_or(0, tables_bytes),
        };
        Ok(Self::New(ScratchStore::make(&args.dir, "replay", &shape)?))
    }

    pub(super) fn path(&self) -> &Path {
        match self {
            Self::There(path) => path,
            Self::New(scratch) => scratch.path(),
        }
    }

    /// Whether nothing is in it but what this replay writes.
    pub(super) fn is_new(&self) -> bool {
        matches!(self, Self::New(_))
    }
}

fn capacity_bytes(args: &ReplayArgs, chunk_bytes: u32, workload: Option<&Workload>) -> u64 {
    let Some(workload) = workload else { return CAPACITY_BYTES_OF_TRACE };
    // Larger chunks find fewer duplicates; how few is what the replay is for.
    let chunks = match u64::from(chunk_bytes) {
        BLOCK_BYTES => workload.unique_chunks(),
        _ => workload.writes(),
    };
    // A frame, its header and its entry in the directory; and what does not fit exactly.
    let left_percent = 102 - u64::from(args.compressible).min(100);
    let frame_bytes = BLOCK_BYTES * left_percent / 100 + 128;
    chunks * frame_bytes / 8 * 9 + CAPACITY_BYTES_BEYOND
}

fn tables_bytes(workload: &Workload) -> u64 {
    workload.unique_chunks() * TABLES_BYTES_OF_UNIQUE + workload.writes() * TABLES_BYTES_OF_MAPPED
}
