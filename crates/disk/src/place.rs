//! Where a zone can live: a file or a block device, opened past the page cache if possible.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use format::units::BLOCK_BYTES;
use rustix::fs::{OFlags, statvfs};

use crate::buffer::AlignedBuf;
use crate::error::FileError;

/// Zeros are written in parts of this size.
const ZEROS_BYTES: usize = 1 << 20;

/// What a store's files are opened for.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing, by this process alone.
    #[default]
    ReadWrite,
    /// Reading only: beside other readers, and where this process may not write. Every write fails.
    ReadOnly,
}

/// A file opened for a zone.
pub(crate) struct Opened {
    pub(crate) file: File,
    /// Whole blocks in it.
    pub(crate) size_bytes: u64,
    /// Past the page cache.
    pub(crate) direct: bool,
}

/// Opens an existing file or device. A device that is to be written is claimed exclusively, so that
/// one that is mounted or part of something else fails with `ResourceBusy`.
pub(crate) fn open(path: &Path, access: Access) -> io::Result<Opened> {
    let claims = access == Access::ReadWrite && is_device(path)?;
    let exclusive = if claims { OFlags::EXCL } else { OFlags::empty() };
    let direct = open_with(path, access, exclusive | OFlags::DIRECT).and_then(|file| {
        takes_blocks(file.read_at(&mut AlignedBuf::new_stale(BLOCK_BYTES), 0))?;
        Ok(file)
    });
    let (mut file, direct) = match direct {
        Ok(file) => (file, true),
        // What a file system says that has no direct I/O, or not in blocks as small as ours.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            (open_with(path, access, exclusive)?, false)
        }
        Err(error) => return Err(error),
    };
    let end = file.seek(SeekFrom::End(0))?;
    let size_bytes = end - end % BLOCK_BYTES as u64;
    Ok(Opened { file, size_bytes, direct })
}

/// Whether the path leads to a block device.
pub(crate) fn is_device(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.file_type().is_block_device())
}

/// Opens the block device at this path for writing, for us alone: one that is mounted or part of
/// something else fails with `ResourceBusy`.
///
/// # Errors
/// The system refuses.
pub fn claim_device(path: &Path) -> io::Result<File> {
    let exclusive = i32::try_from(OFlags::EXCL.bits()).unwrap_or(0);
    OpenOptions::new().write(true).custom_flags(exclusive).open(path)
}

/// Room for a store at this path: what is free for us in its file system, or in the one where the
/// path would be made; the size of the device if it is a block device.
///
/// # Errors
/// The path's file system or device could not be asked.
pub fn free_bytes(path: &Path) -> Result<u64, FileError> {
    let named = std::path::absolute(path)
        .map_err(|source| FileError::new("find the place of", path, source))?;
    let exists = named.ancestors().find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    let asked = is_device(exists).and_then(|device| {
        if device {
            return File::open(exists)?.seek(SeekFrom::End(0));
        }
        let space = statvfs(exists)?;
        Ok(space.f_bavail.saturating_mul(space.f_frsize))
    });
    asked.map_err(|source| FileError::new("ask for the free space of", exists, source))
}

/// Writes zeros to a stretch of a file or device, durably.
pub(crate) fn write_zeros_to(file: &File, stretch: Range<u64>) -> io::Result<()> {
    let zeros = AlignedBuf::new_zeroed(ZEROS_BYTES);
    let mut offset_bytes = stretch.start;
    while offset_bytes < stretch.end {
        let left = usize::try_from(stretch.end - offset_bytes).unwrap_or(usize::MAX);
        let part = zeros.get(..left).unwrap_or(&zeros);
        file.write_all_at(part, offset_bytes)?;
        offset_bytes += part.len() as u64;
    }
    file.sync_all()
}

fn open_with(path: &Path, access: Access, flags: OFlags) -> io::Result<File> {
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let writes = access == Access::ReadWrite;
    OpenOptions::new().read(true).write(writes).custom_flags(flags).open(path)
}

/// What a first read says of the size of blocks. That its sectors are bad is none of its business:
/// the part that needs those bytes finds that out, and most of a store can do without it.
fn takes_blocks(read: io::Result<usize>) -> io::Result<()> {
    match read {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_sector_at_the_start_keeps_no_zone_from_being_opened() {
        let bad_sector = io::Error::from_raw_os_error(rustix::io::Errno::IO.raw_os_error());
        assert!(takes_blocks(Err(bad_sector)).is_ok() && takes_blocks(Ok(0)).is_ok());
        let misaligned = takes_blocks(Err(io::ErrorKind::InvalidInput.into())).unwrap_err();
        assert_eq!(misaligned.kind(), io::ErrorKind::InvalidInput, "direct I/O would never do");
    }

    #[test]
    fn free_space_is_asked_of_the_nearest_place_that_exists() {
        let here = free_bytes(&std::env::temp_dir()).unwrap();
        let there = free_bytes(&std::env::temp_dir().join("no/such/store")).unwrap();
        assert!(here > 0 && there > 0);
    }
}
