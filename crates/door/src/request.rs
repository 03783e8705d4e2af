//! Requests as every block protocol has them, each with its protocol's own tag.

use engine::{Reply, RequestError};

/// How a request ended.
pub type Outcome = Result<Reply, RequestError>;

/// What a request asks for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Bytes of the volume.
    Read,
    /// Change bytes; the only operation with a payload.
    Write,
    /// Make durable what was acknowledged before.
    Flush,
    /// Unmap, as advice.
    Trim,
    /// Unmap, and read as zeros afterwards in any case.
    WriteZeroes,
    /// Runs of data and holes, so many at most.
    Extents {
        /// Runs in the answer.
        extents_max: u32,
    },
    /// Bytes will be read soon: nothing to do.
    Prefetch,
}

impl Operation {
    /// Whether it changes bytes of the volume.
    #[must_use]
    pub fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Trim | Self::WriteZeroes)
    }
}

/// One request of a client.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Request<T> {
    /// What it asks for.
    pub operation: Operation,
    /// Where in the volume; 0 for a flush.
    pub offset_bytes: u64,
    /// How much of it.
    pub length_bytes: u32,
    /// Whether it is answered only once it is durable (FUA).
    pub durable: bool,
    /// What the protocol knows it by.
    pub tag: T,
}

impl<T> Request<T> {
    /// Bytes that follow it from the client.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        if self.operation == Operation::Write { self.length_bytes as usize } else { 0 }
    }

    /// Bytes that its answer holds memory for.
    pub(crate) fn read_bytes(&self) -> usize {
        if self.operation == Operation::Read { self.length_bytes as usize } else { 0 }
    }
}
