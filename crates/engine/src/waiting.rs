//! What waits for space: writes, and unmaps that must write the rest of a chunk again.
//!
//! Not acknowledged, so without a place in the order yet.

use crate::error::RequestError;
use crate::intake::{UnmapRequest, WriteRequest};

/// A request without a reservation.
pub(crate) enum Waiting {
    Write(WriteRequest),
    /// With the number of chunks that it covers in part.
    Unmap(UnmapRequest, u64),
}

impl Waiting {
    /// Chunks whose worst case it waits for.
    pub(crate) fn chunks(&self) -> u64 {
        match self {
            Self::Write(write) => write.chunks,
            Self::Unmap(_, ragged) => *ragged,
        }
    }

    pub(crate) fn fail(self, error: &RequestError) {
        match self {
            Self::Write(mut write) => write.answer().fail(error),
            Self::Unmap(unmap, _) => unmap.done.fail(error.clone()),
        }
    }
}
