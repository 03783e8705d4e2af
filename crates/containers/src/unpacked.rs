//! Frames that lie where they were made, in the order in which a segment is to hold them.
//!
//! Copying frames together is most of what packing costs, and the thread that appends them is the
//! one that all clients wait for. So what comes in large batches is only *laid* into a segment:
//! noted, and kept by those who made it. When the segment is full, an idle worker packs it.

use disk::{AlignedBuf, SharedBuf};
use std::fmt::{self, Debug, Formatter};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Bytes that never change and outlive who appends them.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A range of such bytes, and where in the segment it belongs.
struct Piece {
    start: usize,
    bytes: SharedBytes,
    range: Range<usize>,
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        &(*self.bytes).as_ref()[self.range.clone()]
    }

    fn end(&self) -> usize {
        self.start + self.range.len()
    }
}

/// What was laid into a segment, from its start on and without holes.
#[derive(Default)]
pub(crate) struct Pieces(Vec<Piece>);

impl Pieces {
    /// # Panics
    /// When `bytes` does not have the range.
    pub(crate) fn push(&mut self, bytes: &SharedBytes, range: Range<usize>) {
        assert!(range.end <= (**bytes).as_ref().len(), "frames reach beyond their bytes");
        self.0.push(Piece { start: self.end(), bytes: Arc::clone(bytes), range });
    }

    fn end(&self) -> usize {
        self.0.last().map_or(0, Piece::end)
    }

    /// Bytes of the segment, if they are of one piece; every frame's are.
    pub(crate) fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        let behind = self.0.partition_point(|piece| piece.start <= range.start);
        let piece = self.0.get(behind.checked_sub(1)?)?;
        piece.bytes().get(range.start - piece.start..range.end - piece.start)
    }

    /// Memory of so many bytes with all of them at its start.
    pub(crate) fn pack(&self, length_bytes: usize) -> AlignedBuf {
        let mut buf = AlignedBuf::new_stale(length_bytes);
        for piece in &self.0 {
            buf[piece.start..piece.end()].copy_from_slice(piece.bytes());
        }
        buf
    }
}

/// A full segment of a container, not packed yet.
pub struct Unpacked {
    pieces: Pieces,
    packed: OnceLock<SharedBuf>,
}

impl Unpacked {
    pub(crate) fn new(pieces: Pieces) -> Self {
        Self { pieces, packed: OnceLock::new() }
    }

    /// Packs it, on whatever thread; once it is packed this takes no time.
    pub fn packed(&self) -> SharedBuf {
        self.packed.get_or_init(|| self.pieces.pack(self.pieces.end()).into()).clone()
    }

    pub(crate) fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        self.pieces.get(range)
    }
}

impl Debug for Unpacked {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpacked").field("pieces", &self.pieces.0.len()).finish_non_exhaustive()
    }
}
