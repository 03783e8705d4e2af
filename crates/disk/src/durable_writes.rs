//! Which files may be trusted to make a single write durable.
//!
//! Linux has a flag for it (`RWF_DSYNC`): one request of the device where it can force a unit of
//! data to the medium, else the write and a flush, one right after the other in the kernel. What a
//! file system in user space or on another machine makes of the flag is its own affair, and some
//! drop it. So it is used on devices and on file systems known to obey; everywhere else the write
//! is followed by a sync. So it is on a file that the page cache stands before: there the error of
//! such a write could be one of an earlier write that the sync in it met, which is told once and
//! then forgotten.

use std::fs::File;
use std::os::unix::fs::FileTypeExt;

use rustix::fs::{OFlags, fcntl_getfl, fstatfs};

/// File systems of Linux that obey, by the number in `statfs`: ext2 to ext4, XFS, Btrfs, F2FS.
const OBEYING: [u32; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010];

/// Whether a write to this file may be asked to be durable when it completes.
pub(crate) fn are_obeyed(file: &File) -> bool {
    let is_device = file.metadata().is_ok_and(|found| found.file_type().is_block_device());
    // The type of the number differs between architectures; all of these fit into 32 bits.
    is_device || fstatfs(file).is_ok_and(|found| OBEYING.contains(&(found.f_type as u32)))
}

/// Whether the file was opened past the page cache.
pub(crate) fn is_direct(file: &File) -> bool {
    fcntl_getfl(file).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
}

#[cfg(test)]
mod tests {
    use super::are_obeyed;
    use std::fs::File;

    #[test]
    fn a_file_system_that_is_not_known_is_not_trusted() {
        assert!(!are_obeyed(&File::open("/proc/self/status").unwrap()));
    }
}
