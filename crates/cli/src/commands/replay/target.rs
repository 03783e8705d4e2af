//! The store that is driven: one that is there, or a new one that goes away with its directory.

use std::fs;
use std::path::{Path, PathBuf};

use engine::CreateOptions;
use format::units::{Codec, Compression};
use traces::{BLOCK_BYTES, Workload};

use crate::args::ReplayArgs;
use crate::commands::init;
use crate::error::CliError;

/// Room for the data of a trace, when nobody says how much: it is not known before its end.
const CAPACITY_BYTES_OF_TRACE: u64 = 8 << 30;
/// Room beyond what is stored: a store promises room for the worst that is buffered, and one that
/// is nearly full would be measured waiting.
const CAPACITY_BYTES_BEYOND: u64 = 1 << 30;
/// Pages of all tables for one new chunk, and for one that is mapped, in bytes; half as much again,
/// and as much for what two checkpoints keep.
const TABLES_BYTES_OF_UNIQUE: u64 = 300;
const TABLES_BYTES_OF_MAPPED: u64 = 24;
const COMPRESSION: Compression = Compression { codec: Codec::Lz4, level: 0 };

/// A store for one replay.
pub(super) struct Target {
    path: PathBuf,
    /// Whether it goes away with this.
    is_new: bool,
}

impl Target {
    /// The store that `args` name, or a new one of this chunk size, large enough for the workload.
    pub(super) fn make(
        args: &ReplayArgs,
        chunk_bytes: u32,
        workload: Option<&Workload>,
    ) -> Result<Self, CliError> {
        if let Some(path) = &args.store {
            return Ok(Self { path: path.clone(), is_new: false });
        }
        let path = args.dir.join(format!("tamis-replay-{}", std::process::id()));
        let (uuid, bucket_seed) = init::random_identity()?;
        let capacity_bytes =
            args.capacity.unwrap_or_else(|| capacity_bytes(args, chunk_bytes, workload));
        let mut options = CreateOptions {
            capacity_bytes: vec![capacity_bytes],
            chunk_bytes,
            compression: COMPRESSION,
            detection: Default::default(),
            tables_bytes: None,
            journal_bytes: None,
            uuid,
            bucket_seed,
        };
        let mut geometry = engine::plan(&options)?;
        let tables_bytes = workload.map_or(0, tables_bytes);
        if geometry.tables_bytes < tables_bytes {
            options.tables_bytes = Some(tables_bytes);
            geometry = engine::plan(&options)?;
        }
        let target = Self { path, is_new: true };
        init::write_new(&target.path, &geometry, COMPRESSION, &[])?;
        Ok(target)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether nothing is in it but what this replay writes.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.is_new {
            // What cannot be removed is in the directory that was named, for everybody to see.
            let _ = fs::remove_dir_all(&self.path);
        }
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
