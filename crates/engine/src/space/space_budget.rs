//! Room that is promised: what is acknowledged has the space that it takes at worst, in containers
//! and in the tables.
//!
//! The core says from time to time what is free; between two of its words doors reserve out of
//! that by themselves, under the lock of the queue ([`crate::door::intake`]).

use format::BLOCK_BYTES;
use format::directory::DIRECTORY_ENTRY_BYTES;
use format::frame::FRAME_HEADER_BYTES;

/// Table pages that one chunk may make new: a leaf of the map with an inner page above, a bucket
/// and the pages of its PBN.
pub(crate) const PAGES_PER_CHUNK_MAX: u64 = 4;

/// What the core sees as free, worst cases of applied writes already taken off.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpaceLimit {
    /// Worst cases of requests that containers take.
    pub(crate) bytes: u64,
    /// Chunks whose pages find blocks in the tables.
    pub(crate) chunks: u64,
    /// Writes wait for space: later ones may not overtake them.
    pub(crate) is_waited_for: bool,
}

/// Space that may still be promised, and what is promised already.
#[derive(Debug)]
pub(crate) struct SpaceBudget {
    chunk_bytes: u32,
    pub(crate) limit: SpaceLimit,
    reserved_bytes: u64,
    reserved_chunks: u64,
}

impl SpaceBudget {
    /// Nothing may be promised yet.
    pub(crate) fn new(chunk_bytes: u32) -> Self {
        let limit = SpaceLimit::default();
        Self { chunk_bytes, limit, reserved_bytes: 0, reserved_chunks: 0 }
    }

    /// Bytes of containers that one request of `chunks` takes at worst, with the padding of a flush
    /// behind it; one of none takes nothing.
    fn worst_case_bytes(&self, chunks: u64) -> u64 {
        let beside = (FRAME_HEADER_BYTES + DIRECTORY_ENTRY_BYTES) as u64;
        let padding_bytes = if chunks > 0 { BLOCK_BYTES as u64 } else { 0 };
        chunks * (u64::from(self.chunk_bytes) + beside) + padding_bytes
    }

    /// Reserves the worst case of a write of `chunks`, or says that it does not fit now.
    pub(crate) fn try_reserve(&mut self, chunks: u64) -> bool {
        if self.lacks(chunks) {
            return false;
        }
        self.reserved_bytes += self.worst_case_bytes(chunks);
        self.reserved_chunks += chunks;
        true
    }

    /// Whether a write of `chunks` does not fit now.
    pub(crate) fn lacks(&self, chunks: u64) -> bool {
        self.lacks_bytes(chunks) || self.lacks_chunks(chunks)
    }

    /// Whether it is room for frames that a write of `chunks` does not find.
    pub(crate) fn lacks_bytes(&self, chunks: u64) -> bool {
        chunks > 0 && self.reserved_bytes + self.worst_case_bytes(chunks) > self.limit.bytes
    }

    /// Whether it is blocks of the tables that a write of `chunks` does not find.
    pub(crate) fn lacks_chunks(&self, chunks: u64) -> bool {
        chunks > 0 && self.reserved_chunks + chunks > self.limit.chunks
    }

    /// Gives a reservation back, its write having been applied or dropped.
    pub(crate) fn settle(&mut self, chunks: u64) {
        self.reserved_bytes -= self.worst_case_bytes(chunks);
        self.reserved_chunks -= chunks;
    }

    /// Worst-case bytes for which room is reserved.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes
    }

    /// Chunks for which room is reserved.
    pub(crate) fn reserved_chunks(&self) -> u64 {
        self.reserved_chunks
    }

    /// Reserves nothing more until the limit is set again; for how many chunks room is reserved.
    pub(crate) fn withhold_chunks(&mut self) -> u64 {
        self.limit.chunks = self.reserved_chunks;
        self.reserved_chunks
    }
}
