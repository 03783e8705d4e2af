//! A store's files, opened and locked; a lock that is about to be released is waited for.
//!
//! A killed process keeps its locks until the kernel has finished its I/O. So a lock is waited for,
//! for a while; a caller that knows that its holder lives ends the wait early.

use std::fmt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use disk::{Access, Doorbell, IoEngine, StoreFiles, open_store_files};

use crate::error::OpenError;

/// How often a held lock is tried again.
const LOCK_RETRY: Duration = Duration::from_millis(50);
/// How long the I/O of a killed process may take.
const LOCK_WAIT: Duration = Duration::from_secs(3);

/// How long an opening waits for a lock that somebody holds.
pub struct LockWait {
    /// The longest wait; zero does not wait.
    pub at_most: Duration,
    /// Says whether the holder of the lock lives, so that waiting is of no use; asked before each
    /// further try.
    pub holder_lives: Option<Box<dyn Fn() -> bool + Send>>,
}

impl LockWait {
    /// Does not wait.
    #[must_use]
    pub fn none() -> Self {
        Self { at_most: Duration::ZERO, holder_lives: None }
    }

    fn is_over(&self, begun: Instant) -> bool {
        begun.elapsed() >= self.at_most || self.holder_lives.as_ref().is_some_and(|lives| lives())
    }
}

impl Default for LockWait {
    /// Waits three seconds.
    fn default() -> Self {
        Self { at_most: LOCK_WAIT, holder_lives: None }
    }
}

impl fmt::Debug for LockWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockWait").field("at_most", &self.at_most).finish_non_exhaustive()
    }
}

/// Opens and locks the files of the store at `path` for `access`, without starting an engine: for
/// what looks at a store or mends it, and waits for each operation.
///
/// # Errors
/// [`OpenError::NoStore`], [`OpenError::InUse`] when `wait` is over, [`OpenError::Files`].
pub fn open_files(
    path: &Path,
    access: Access,
    io: IoEngine,
    wait: &LockWait,
) -> Result<StoreFiles, OpenError> {
    open_ringing(path, access, io, &new_doorbell()?, wait)
}

/// As [`open_files`]; completions ring `doorbell`.
pub(crate) fn open_ringing(
    path: &Path,
    access: Access,
    io: IoEngine,
    doorbell: &Doorbell,
    wait: &LockWait,
) -> Result<StoreFiles, OpenError> {
    let begun = Instant::now();
    loop {
        match open_store_files(path, access, io, doorbell) {
            Ok(files) => return Ok(files),
            Err(disk::OpenError::Locked { .. }) if !wait.is_over(begun) => {
                thread::sleep(LOCK_RETRY);
            }
            Err(disk::OpenError::Locked { .. }) => {
                return Err(OpenError::InUse { path: path.to_owned() });
            }
            Err(disk::OpenError::NoStore { .. }) => {
                return Err(OpenError::NoStore { path: path.to_owned() });
            }
            Err(error) => return Err(OpenError::Files(error)),
        }
    }
}

/// What an engine and its disk sleep on.
pub(crate) fn new_doorbell() -> Result<Doorbell, OpenError> {
    Doorbell::new().map_err(OpenError::Files)
}
