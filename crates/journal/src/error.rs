//! Why a record cannot be appended.

use format::record::BODY_BYTES_MAX;
use thiserror::Error;

/// Why a record cannot be appended; nothing has changed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
pub enum AppendError {
    /// There is no room until a checkpoint moves the tail.
    #[error("a journal record of {needed_bytes} bytes does not fit the {free_bytes} that are free")]
    Full {
        /// With the filler in front of it, if it takes one.
        needed_bytes: u64,
        /// Up to the tail.
        free_bytes: u64,
    },
    /// No record is so long.
    #[error("a journal record carries at most {BODY_BYTES_MAX} bytes of changes, not {body_bytes}")]
    TooLong {
        /// Of the changes.
        body_bytes: usize,
    },
}
