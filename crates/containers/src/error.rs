//! What can be wrong here: a container is full, or its directory cannot be believed.

use format::FormatError;
use format::units::ContainerId;
use thiserror::Error;

/// The open container has no room for a frame: seal it and open the next one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "a frame of {frame_bytes} bytes does not fit after {fill_bytes} bytes of container {container}"
)]
pub struct DoesNotFit {
    /// The full container.
    pub container: ContainerId,
    /// Bytes of the frame.
    pub frame_bytes: usize,
    /// Bytes that the container's frames take.
    pub fill_bytes: u32,
}

/// Why the directory at the end of a container cannot be used: the container was not sealed, or is
/// damaged.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// The bytes are no footer or no directory.
    #[error("the container's directory is damaged: {0}")]
    Format(#[from] FormatError),
    /// A sound footer, of another store: a device is in the wrong place.
    #[error("container {container} ends with the directory of another store")]
    OtherStore {
        /// The container that was read.
        container: ContainerId,
    },
    /// A sound footer, of another container: the device put a write in the wrong place.
    #[error("container {expected} ends with the directory of container {actual}")]
    Misplaced {
        /// The container that was read.
        expected: ContainerId,
        /// The container that the footer names.
        actual: ContainerId,
    },
    /// A sound footer, from an earlier life of the container: its last sealing never reached the
    /// disk.
    #[error("container {container} ends with a directory of sequence {actual}, not {expected}")]
    Stale {
        /// The container.
        container: ContainerId,
        /// The sequence that it was opened with last.
        expected: u32,
        /// The sequence in the footer.
        actual: u32,
    },
}
