//! Room for writes to come, in the worst case: what a reservation is asked for and counted in.

/// Table pages that one chunk may make new: a leaf of the map with an inner page above, a bucket
/// and the pages of its PBN.
pub(crate) const PAGES_PER_CHUNK_MAX: u64 = 4;

/// Room for some writes, however their chunks turn out: all new, and none compressible.
///
/// It is counted in chunks and in writes, because both cost: a chunk its frame, its entry in a
/// directory and its pages in the tables, a write the rest of a block that a flush behind it
/// leaves empty.
///
/// ```
/// use engine::WriteRoom;
///
/// // A log record of 10,000 bytes and a header of 512, anywhere in chunks of 4 KiB.
/// let record = WriteRoom::of_write(10_000, 4096);
/// let header = WriteRoom::of_write(512, 4096);
/// assert_eq!(record, WriteRoom { chunks: 4, writes: 1 });
/// assert_eq!(record + header, WriteRoom { chunks: 6, writes: 2 });
/// ```
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteRoom {
    /// Chunks that the writes touch, in whole or in part, each as often as it is written.
    pub chunks: u64,
    /// The writes.
    pub writes: u64,
}

impl WriteRoom {
    /// What one write of `length_bytes` takes at most, wherever it begins.
    #[must_use]
    pub fn of_write(length_bytes: u64, chunk_bytes: u32) -> Self {
        if length_bytes == 0 {
            return Self::default();
        }
        // Of a range of n bytes the worst place is behind the first byte of a chunk.
        let chunks = (length_bytes - 1).div_ceil(u64::from(chunk_bytes).max(1)) + 1;
        Self { chunks, writes: 1 }
    }

    /// What writes of whole chunks take, so many in all.
    #[must_use]
    pub fn of_chunks(chunks: u64, writes: u64) -> Self {
        Self { chunks, writes }
    }

    /// What is left when `taken` is taken; none if there is less.
    pub(crate) fn without(self, taken: Self) -> Option<Self> {
        let chunks = self.chunks.checked_sub(taken.chunks)?;
        Some(Self { chunks, writes: self.writes.checked_sub(taken.writes)? })
    }
}

impl std::ops::Add for WriteRoom {
    type Output = Self;

    /// Room for the writes of both; no more than can be counted.
    fn add(self, other: Self) -> Self {
        let chunks = self.chunks.saturating_add(other.chunks);
        Self { chunks, writes: self.writes.saturating_add(other.writes) }
    }
}

/// What room is reserved for.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum ReservedFor {
    /// Writes like any others.
    #[default]
    Writes,
    /// Writes that end with more room than they began with, such as the index changes of a
    /// deletion. They may take what [`crate::Client::keep_for_release`] has kept for them.
    Releases,
}

#[cfg(test)]
mod tests {
    use super::WriteRoom;

    #[test]
    fn a_write_touches_no_more_chunks_than_it_is_said_to_wherever_it_begins() {
        for length in [1_u64, 512, 4095, 4096, 4097, 8192, 8193, 70_000] {
            let most = (0..4096).map(|at| (at + length).div_ceil(4096) - at / 4096).max();
            assert_eq!(Some(WriteRoom::of_write(length, 4096).chunks), most, "{length}");
        }
        assert_eq!(WriteRoom::of_write(0, 4096), WriteRoom::default());
        assert!(WriteRoom::of_write(u64::MAX, 4096).chunks > u64::MAX / 4097);
    }

    #[test]
    fn what_is_left_is_never_less_than_nothing() {
        let room = WriteRoom::of_chunks(5, 2);
        assert_eq!(room.without(WriteRoom::of_chunks(5, 1)), Some(WriteRoom::of_chunks(0, 1)));
        assert_eq!(room.without(WriteRoom::of_chunks(6, 1)), None);
        assert_eq!(room.without(WriteRoom::of_chunks(1, 3)), None);
    }
}
