//! A header that is read whole, though it may be longer than what is shown at once.

use super::next::Next;

/// Longest piece that is taken at a time.
const PIECE_BYTES: usize = 32 << 10;

/// Bytes that are kept while they pass.
pub(super) struct Collected {
    bytes: Vec<u8>,
    left_bytes: usize,
}

impl Collected {
    /// The next `length_bytes`.
    pub(super) fn new(length_bytes: usize) -> Self {
        Self { bytes: Vec::new(), left_bytes: length_bytes }
    }

    /// Takes a piece, which is loose; none when all is there.
    pub(super) fn take(&mut self, ahead: &[u8]) -> Option<Next> {
        if self.left_bytes == 0 {
            return None;
        }
        let length = ahead.len().min(self.left_bytes).min(PIECE_BYTES);
        self.bytes.extend_from_slice(&ahead[..length]);
        self.left_bytes -= length;
        Some(Next::Loose(length as u64))
    }

    /// What was collected.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
