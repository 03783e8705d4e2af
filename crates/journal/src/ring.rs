//! The arithmetic of the ring: offsets that only grow, and where they are in the zone.

use format::BLOCK_BYTES;

/// A journal's place in its zone.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    length_bytes: u64,
}

impl Ring {
    /// A ring of `length_bytes`.
    ///
    /// # Panics
    /// When these are not whole blocks; a `Geometry` that was checked has no such journal.
    #[must_use]
    pub fn new(length_bytes: u64) -> Self {
        let is_blocks = length_bytes != 0 && length_bytes.is_multiple_of(BLOCK_BYTES as u64);
        assert!(is_blocks, "a journal is whole blocks");
        Self { length_bytes }
    }

    /// Length of the ring.
    #[must_use]
    pub fn length_bytes(self) -> u64 {
        self.length_bytes
    }

    /// Where an offset is in the zone.
    #[must_use]
    pub fn place(self, offset_bytes: u64) -> u64 {
        offset_bytes % self.length_bytes
    }

    /// From an offset to the end of its lap.
    #[must_use]
    pub fn bytes_to_end(self, offset_bytes: u64) -> u64 {
        self.length_bytes - self.place(offset_bytes)
    }
}
