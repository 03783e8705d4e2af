//! A volume from its first byte to its last, as pieces of data and holes.

use std::collections::VecDeque;

use engine::Extent;

use crate::data::VolumeData;
use crate::error::CliError;

/// Most data in one piece.
pub(crate) const PIECE_BYTES: u64 = 1 << 20;

/// A run of a volume.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset_bytes: u64,
    /// At most [`PIECE_BYTES`] for data; a hole is told whole.
    pub(crate) length_bytes: u64,
    /// True where nothing is stored.
    pub(crate) hole: bool,
}

/// The way through a volume.
pub(crate) struct VolumeWalk<'a> {
    volume: &'a VolumeData,
    size_bytes: u64,
    pieces: Pieces,
}

impl<'a> VolumeWalk<'a> {
    /// Through all of `volume`.
    pub(crate) fn new(volume: &'a VolumeData) -> Self {
        let size_bytes = volume.size_bytes();
        Self { volume, size_bytes, pieces: Pieces::default() }
    }

    /// The next piece; `None` at the end.
    pub(crate) fn next_piece(&mut self) -> Result<Option<Piece>, CliError> {
        let at = self.pieces.offset_bytes;
        if self.pieces.extents.is_empty() && at < self.size_bytes {
            self.pieces.extents.extend(self.volume.extents(at, self.size_bytes - at)?);
        }
        Ok(self.pieces.take())
    }
}

/// Runs, cut into pieces.
#[derive(Debug, Default)]
struct Pieces {
    offset_bytes: u64,
    extents: VecDeque<Extent>,
}

impl Pieces {
    fn take(&mut self) -> Option<Piece> {
        let extent = self.extents.front_mut()?;
        let most = if extent.hole { u64::MAX } else { PIECE_BYTES };
        let length_bytes = extent.length_bytes.min(most);
        let piece = Piece { offset_bytes: self.offset_bytes, length_bytes, hole: extent.hole };
        self.offset_bytes += length_bytes;
        extent.length_bytes -= length_bytes;
        if extent.length_bytes == 0 {
            self.extents.pop_front();
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use engine::Extent;
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::{PIECE_BYTES, Pieces};

    proptest! {
        #[test]
        fn pieces_are_the_runs_cut_small(runs in vec((1..5 * PIECE_BYTES, any::<bool>()), 0..20)) {
            let extents = runs.iter().map(|&(length_bytes, hole)| Extent { length_bytes, hole });
            let mut pieces = Pieces { offset_bytes: 7, extents: extents.collect() };
            let (mut at, mut data, mut holes) = (7, 0, 0);
            while let Some(piece) = pieces.take() {
                prop_assert_eq!(piece.offset_bytes, at);
                prop_assert!(piece.length_bytes > 0);
                prop_assert!(piece.hole || piece.length_bytes <= PIECE_BYTES);
                at += piece.length_bytes;
                *(if piece.hole { &mut holes } else { &mut data }) += piece.length_bytes;
            }
            let sum = |of_hole| runs.iter().filter(|r| r.1 == of_hole).map(|r| r.0).sum::<u64>();
            prop_assert_eq!((data, holes), (sum(false), sum(true)));
        }
    }
}
