//! Room for files: all of it now, or as they fill.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use format::units::CONTAINER_BYTES;
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;

use crate::ahead::{Medium, is_no_space};

/// What `st_blocks` counts in.
const STAT_BLOCK_BYTES: u64 = 512;

/// What a file takes of its file system, holes left out.
#[must_use]
pub fn taken_bytes(metadata: &Metadata) -> u64 {
    metadata.blocks() * STAT_BLOCK_BYTES
}

/// Gives a stretch of a file its blocks; false when the file system cannot do that without writing
/// them.
pub(crate) fn allocate(file: &File, stretch: Range<u64>) -> io::Result<bool> {
    let length_bytes = stretch.end - stretch.start;
    if length_bytes == 0 {
        return Ok(true);
    }
    loop {
        match fallocate(file, FallocateFlags::empty(), stretch.start, length_bytes) {
            Ok(()) => return Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// How a data file has its room.
pub(crate) enum FileRoom {
    /// All of it, or it is a device.
    Whole,
    /// A prefix of this many bytes.
    Prefix(SparseFile, u64),
    /// Not all of it, and its file system has no way to ask for more.
    Unpromised,
}

/// A file whose blocks come as it fills.
pub(crate) struct SparseFile {
    file: Arc<File>,
}

impl FileRoom {
    /// Looks at an open data file of this length. A file system counts blocks and does not say
    /// where they are; so all that may be allocated is allocated again, which costs next to
    /// nothing where it was. Where that finds holes and no room to fill them, nothing of the file
    /// counts as allocated, and the owner asks anew, part by part.
    pub(crate) fn of(file: &Arc<File>, length_bytes: u64) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let taken_bytes = taken_bytes(&metadata);
        if !metadata.is_file() || taken_bytes >= length_bytes {
            return Ok(Self::Whole);
        }
        let prefix_bytes = taken_bytes - taken_bytes % u64::from(CONTAINER_BYTES);
        let sparse = SparseFile { file: Arc::clone(file) };
        // At least one container: only a file system that was asked says whether it can.
        let prefix_bytes = prefix_bytes.max(u64::from(CONTAINER_BYTES)).min(length_bytes);
        match allocate(file, 0..prefix_bytes) {
            Ok(true) => Ok(Self::Prefix(sparse, prefix_bytes)),
            Err(error) if is_no_space(&error) => Ok(Self::Prefix(sparse, 0)),
            Ok(false) | Err(_) => Ok(Self::Unpromised),
        }
    }
}

impl Medium for SparseFile {
    fn allocate(&self, stretch: Range<u64>) -> io::Result<()> {
        match allocate(&self.file, stretch)? {
            true => Ok(()),
            false => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let space = fstatvfs(&self.file)?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    }

    fn taken_bytes(&self) -> io::Result<u64> {
        Ok(taken_bytes(&self.file.metadata()?))
    }

    fn number(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.dev())
    }
}
