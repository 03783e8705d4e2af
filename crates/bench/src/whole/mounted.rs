//! A file system of the kernel in an image: mounted by way of a loop device, unmounted when
//! dropped.
//!
//! The loop device is given away as soon as it is mounted, so it goes with the mount; what stays
//! after a kill -9 the next run clears away (`leftovers.rs`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::program::output;

/// After this what does not answer, or is still in use, has failed.
const TIME_LIMIT: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(50);

/// A mounted image.
pub(super) struct Mounted {
    folder: PathBuf,
    mounted: bool,
}

impl Mounted {
    /// Mounts `image` on `folder`; the loop device reads and writes it past the page cache.
    pub(super) fn new(image: &Path, folder: &Path, options: &str) -> Result<Self, Failure> {
        let mut attach = Command::new("losetup");
        let device = output(attach.args(["--find", "--show", "--direct-io=on"]).arg(image))?;
        let device = device.trim();
        let mut mount = Command::new("mount");
        let mounted = output(mount.args(["--options", options, device]).arg(folder));
        // Detached now, or with the mount.
        output(Command::new("losetup").args(["--detach", device]))?;
        mounted?;
        Ok(Self { folder: folder.to_owned(), mounted: true })
    }

    /// Unmounts it, which writes everything.
    pub(super) fn unmount(mut self) -> Result<(), Failure> {
        self.undo()
    }

    fn undo(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.mounted) {
            // The process that used it may have ended a moment ago.
            persist(|| output(Command::new("umount").arg(&self.folder)))?;
        }
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // After a failure, which is what is told.
        let _ = self.undo();
    }
}

/// Tries again until it succeeds, or [`TIME_LIMIT`] ends.
pub(super) fn persist(attempt: impl Fn() -> Result<String, Failure>) -> Result<(), Failure> {
    let begun = Instant::now();
    loop {
        match attempt() {
            Err(_) if begun.elapsed() < TIME_LIMIT => sleep(PAUSE),
            answer => return answer.map(drop),
        }
    }
}
