//! Segments of one length.

use crate::Cutter;

/// Length of fixed segments.
pub const FIXED_BYTES: usize = 64 << 10;

/// Ends segments at multiples of a length.
#[derive(Debug)]
pub struct FixedCutter {
    segment_bytes: usize,
}

impl FixedCutter {
    /// Segments of `segment_bytes`.
    ///
    /// # Panics
    /// When they have no bytes.
    #[must_use]
    pub fn new(segment_bytes: usize) -> Self {
        assert!(segment_bytes > 0, "a segment has a byte");
        Self { segment_bytes }
    }
}

impl Cutter for FixedCutter {
    fn cut(&mut self, bytes: &[u8], is_end: bool) -> Option<usize> {
        let is_whole = bytes.len() >= self.segment_bytes;
        (is_whole || is_end).then(|| bytes.len().min(self.segment_bytes))
    }

    fn segment_bytes_max(&self) -> usize {
        self.segment_bytes
    }
}
