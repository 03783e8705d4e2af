//! A store that is made to be measured and goes away with its directory.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use ::store::CreateOptions;
use disk::CreateFilesError;
use engine::Detection;
use format::units::{Codec, Compression};

use crate::error::CliError;
use crate::error::place::unwritable;

/// Room beyond what is stored: a store promises room for the worst that is buffered, and one that
/// is nearly full would be measured waiting.
pub(super) const CAPACITY_BYTES_BEYOND: u64 = 1 << 30;
const COMPRESSION: Compression = Compression { codec: Codec::Lz4, level: 0 };

/// What it is made for.
pub(super) struct ScratchShape {
    pub(super) capacity_bytes: u64,
    pub(super) chunk_bytes: u32,
    pub(super) detection: Detection,
    /// Room for tables, if that is more than such a store has anyway.
    pub(super) tables_bytes_min: u64,
}

/// Its directory, removed with this.
pub(super) struct ScratchStore {
    path: PathBuf,
}

impl ScratchStore {
    /// Makes one under `dir`, called after `command` and this process.
    pub(super) fn make(dir: &Path, command: &str, shape: &ScratchShape) -> Result<Self, CliError> {
        let path = path_of(dir, command);
        let mut options = CreateOptions {
            chunk_bytes: shape.chunk_bytes,
            compression: COMPRESSION,
            detection: shape.detection,
            ..CreateOptions::new(shape.capacity_bytes)
        };
        if options.plan()?.tables_bytes < shape.tables_bytes_min {
            options.tables_bytes = Some(shape.tables_bytes_min);
        }
        let scratch = Self { path };
        ::store::create(&scratch.path, &options)?;
        Ok(scratch)
    }

    /// Whether one can be made under `dir`, before work that would be in vain: its directory is
    /// made and removed.
    pub(super) fn check_place(dir: &Path, command: &str) -> Result<(), CliError> {
        let path = path_of(dir, command);
        let made = fs::create_dir(&path).and_then(|()| fs::remove_dir(&path));
        made.map_err(|source| match source.kind() {
            ErrorKind::PermissionDenied => CreateFilesError::NotPermitted { path }.into(),
            _ => unwritable(&path, source),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn path_of(dir: &Path, command: &str) -> PathBuf {
    dir.join(format!("tamis-{command}-{}", std::process::id()))
}

impl Drop for ScratchStore {
    fn drop(&mut self) {
        // What cannot be removed is in the directory that was named, for everybody to see.
        let _ = fs::remove_dir_all(&self.path);
    }
}
