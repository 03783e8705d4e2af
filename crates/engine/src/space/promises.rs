//! Room that is promised to volumes: of each that has a reservation, what it does not map yet of
//! it, at its worst case.
//!
//! Everybody else leaves that alone, as they do room that is kept for releases. The volume itself
//! sees through its own promise and finds what is behind it. Nothing is drawn from a promise: it is
//! counted anew from the catalog whenever a group has been applied, so it falls by what the volume
//! has mapped at the moment at which the limit falls by what that took. While a write of the volume
//! is on its way its worst case is counted twice for the others, who wait for it then.
//!
//! A promise is a floor inside the limit. What brings the limit below it (what the volume writes
//! over and does not give back yet, or gives back and others share) leaves it uncovered until room
//! comes; and what comes goes to it before anybody else.

use std::collections::BTreeMap;

use format::BLOCK_BYTES;
use format::directory::DIRECTORY_ENTRY_BYTES;
use format::frame::FRAME_HEADER_BYTES;
use format::units::VolumeId;
use format::{map_page, pointer_page};

use crate::space::write_room::PAGES_PER_CHUNK_MAX;

/// New chunks for which the tables take a page at most, beside pages of maps: of a chunk 16 bytes
/// are in the PBN-PBA table, and up to 100 in the Hash-PBN table, a merge of it included.
const CHUNKS_PER_TABLE_PAGE: u64 = 32;
/// Chunks of which every one may make as many pages as a chunk can: those that are written at once.
const CHUNKS_AT_ONCE: u64 = 512;

/// Room that is left alone.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// Worst-case bytes in containers.
    pub(crate) bytes: u64,
    /// Chunks whose pages find blocks in the tables.
    pub(crate) chunks: u64,
}

impl Left {
    /// What new chunks take at worst, in a volume that has `volume_chunks` by its size: every one
    /// is new, nothing compresses it, and each is followed by a flush.
    pub(crate) fn of_new_chunks(new_chunks: u64, volume_chunks: u64, chunk_bytes: u32) -> Self {
        let beside_bytes = (FRAME_HEADER_BYTES + DIRECTORY_ENTRY_BYTES + BLOCK_BYTES) as u64;
        let bytes = new_chunks.saturating_mul(u64::from(chunk_bytes) + beside_bytes);
        let leaves = volume_chunks.div_ceil(map_page::SLOTS as u64);
        // A level above another is at most a page more than its part of it.
        let above = leaves.div_ceil(pointer_page::FANOUT as u64) * 2;
        let map_pages = (leaves + above).min(2 * new_chunks);
        let pages = map_pages + new_chunks.div_ceil(CHUNKS_PER_TABLE_PAGE);
        let chunks = pages.div_ceil(PAGES_PER_CHUNK_MAX) + new_chunks.min(CHUNKS_AT_ONCE);
        Self { bytes, chunks: chunks.min(new_chunks) }
    }

    fn is_within(self, other: Self) -> bool {
        self.bytes <= other.bytes && self.chunks <= other.chunks
    }
}

/// The promises of all volumes.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    of: BTreeMap<VolumeId, Left>,
    all: Left,
}

impl Promises {
    /// A volume is promised so much from now on.
    pub(crate) fn set(&mut self, volume: VolumeId, left: Left) {
        self.of.insert(volume, left);
        self.count();
    }

    /// A volume is promised nothing any more.
    pub(crate) fn end(&mut self, volume: VolumeId) {
        self.of.remove(&volume);
        self.count();
    }

    /// What a writer to this volume leaves alone; none: somebody who writes to no volume.
    pub(crate) fn left_alone_by(&self, volume: Option<VolumeId>) -> Left {
        let own = volume.and_then(|volume| self.of.get(&volume)).copied().unwrap_or_default();
        Left { bytes: self.all.bytes - own.bytes, chunks: self.all.chunks - own.chunks }
    }

    /// Whether a promise of `left` is no more than the volume has been made.
    pub(crate) fn covers(&self, volume: VolumeId, left: Left) -> bool {
        self.of.get(&volume).is_some_and(|own| left.is_within(*own))
    }

    fn count(&mut self) {
        let sum = |of: fn(&Left) -> u64| self.of.values().map(of).sum();
        self.all = Left { bytes: sum(|left| left.bytes), chunks: sum(|left| left.chunks) };
    }
}

#[cfg(test)]
mod tests {
    use format::units::VolumeId;

    use super::{Left, Promises};

    const A: VolumeId = VolumeId(1);
    const B: VolumeId = VolumeId(2);

    #[test]
    fn everybody_leaves_alone_what_others_were_promised() {
        let mut promises = Promises::default();
        assert_eq!(promises.left_alone_by(None), Left::default());
        promises.set(A, Left { bytes: 100, chunks: 10 });
        promises.set(B, Left { bytes: 7, chunks: 3 });
        promises.set(B, Left { bytes: 5, chunks: 2 });
        assert_eq!(promises.left_alone_by(None), Left { bytes: 105, chunks: 12 });
        assert_eq!(promises.left_alone_by(Some(A)), Left { bytes: 5, chunks: 2 });
        assert_eq!(promises.left_alone_by(Some(VolumeId(3))), promises.left_alone_by(None));
        assert!(promises.covers(A, Left { bytes: 100, chunks: 9 }));
        assert!(!promises.covers(A, Left { bytes: 1, chunks: 11 }));
        promises.end(A);
        promises.end(A);
        assert_eq!(promises.left_alone_by(None), Left { bytes: 5, chunks: 2 });
    }

    #[test]
    fn a_chunk_takes_no_more_than_a_chunk_can_and_many_take_less_each() {
        let of = |new| Left::of_new_chunks(new, 1 << 20, 4096);
        assert_eq!(of(0), Left::default());
        assert_eq!(of(3).chunks, 3);
        assert!(of(1 << 20).chunks < 1 << 15);
        // What is written of it takes no more off it than it is promised for.
        for new in [1, 511, 512, 513, 5000, 1 << 20] {
            assert!(of(new - 1).is_within(of(new)), "{new}");
        }
        assert_eq!(Left::of_new_chunks(u64::MAX / 4, u64::MAX / 4, 65_536).bytes, u64::MAX);
    }
}
