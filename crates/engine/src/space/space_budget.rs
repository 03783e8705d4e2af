//! Room that is promised: what is acknowledged has the space that it takes at worst, in containers
//! and in the tables.
//!
//! The core says from time to time what is free; between two of its words doors reserve out of
//! that by themselves, under the lock of the queue ([`crate::door::intake`]).
//!
//! A *reservation* ([`crate::door::reservation`]) is counted like writes that are on their way:
//! when one of its writes comes, nothing changes here, and when that is applied it settles like
//! any other. So the limit covers at every moment what writes on their way and reservations may
//! take together.
//!
//! *Room kept for releases* is left alone by everybody but reservations for releases. It is a part
//! of what is within the limit, so the reserves of collection and tables, which are beyond it, stay
//! whole whatever is written. What reservations for releases hold counts as taken out of it.
//!
//! *Room promised to volumes* ([`crate::space::promises`]) is left alone as well, by all but writes
//! to the volume that it is promised to. So what asks for room says for which volume.

use format::BLOCK_BYTES;
use format::directory::DIRECTORY_ENTRY_BYTES;
use format::frame::FRAME_HEADER_BYTES;
use format::units::VolumeId;
use mutants::mutant;

use crate::space::promises::{Left, Promises};
use crate::space::write_room::WriteRoom;

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
    /// Room kept for releases, and what reservations for them hold.
    kept: WriteRoom,
    held_for_release: WriteRoom,
    /// What of that room nobody holds, as everybody else has to leave it.
    left_alone: Left,
    /// To volumes.
    pub(crate) promises: Promises,
}

impl SpaceBudget {
    /// Nothing may be promised yet.
    pub(crate) fn new(chunk_bytes: u32) -> Self {
        let limit = SpaceLimit::default();
        let (kept, held_for_release) = (WriteRoom::default(), WriteRoom::default());
        let (reserved_bytes, reserved_chunks, left_alone) = (0, 0, Left::default());
        Self {
            chunk_bytes,
            limit,
            reserved_bytes,
            reserved_chunks,
            kept,
            held_for_release,
            left_alone,
            promises: Promises::default(),
        }
    }

    /// What a writer to this volume leaves alone; none: somebody who writes to no volume.
    fn left_alone_by(&self, volume: Option<VolumeId>) -> Left {
        let promised = self.promises.left_alone_by(volume);
        let Left { bytes, chunks } = self.left_alone;
        Left { bytes: bytes + promised.bytes, chunks: chunks + promised.chunks }
    }

    /// Bytes of containers that one request of `chunks` takes at worst, with the padding of a flush
    /// behind it; one of none takes nothing.
    fn worst_case_bytes(&self, chunks: u64) -> u64 {
        let beside = (FRAME_HEADER_BYTES + DIRECTORY_ENTRY_BYTES) as u64;
        let padding_bytes = if chunks > 0 { BLOCK_BYTES as u64 } else { 0 };
        chunks * (u64::from(self.chunk_bytes) + beside) + padding_bytes
    }

    /// Reserves the worst case of a write of `chunks`, or says that it does not fit now.
    pub(crate) fn try_reserve(&mut self, volume: Option<VolumeId>, chunks: u64) -> bool {
        if self.lacks(volume, chunks) {
            return false;
        }
        self.reserved_bytes += self.worst_case_bytes(chunks);
        self.reserved_chunks += chunks;
        true
    }

    /// The same of several writes, all or none.
    pub(crate) fn try_reserve_all(
        &mut self,
        volume: Option<VolumeId>,
        writes: impl Iterator<Item = u64> + Clone,
    ) -> bool {
        for (number, chunks) in writes.clone().enumerate() {
            if !self.try_reserve(volume, chunks) {
                writes.take(number).for_each(|chunks| self.settle(chunks));
                return false;
            }
        }
        true
    }

    /// Promises no more bytes of containers than these; false, and nothing has changed, when more
    /// are promised already.
    pub(crate) fn lower_bytes(&mut self, to_bytes: u64) -> bool {
        if self.reserved_bytes + self.left_alone.bytes > to_bytes {
            return false;
        }
        self.limit.bytes = self.limit.bytes.min(to_bytes);
        true
    }

    /// Whether a write of `chunks` does not fit now.
    pub(crate) fn lacks(&self, volume: Option<VolumeId>, chunks: u64) -> bool {
        self.lacks_bytes(volume, chunks) || self.lacks_chunks(volume, chunks)
    }

    /// Whether it is room for frames that a write of `chunks` does not find.
    pub(crate) fn lacks_bytes(&self, volume: Option<VolumeId>, chunks: u64) -> bool {
        self.lacks_bytes_with(volume, chunks, 0)
    }

    /// The same if there were `more_bytes` of it.
    pub(crate) fn lacks_bytes_with(
        &self,
        volume: Option<VolumeId>,
        chunks: u64,
        more_bytes: u64,
    ) -> bool {
        let taken_bytes = self.reserved_bytes + self.left_alone_by(volume).bytes;
        chunks > 0 && taken_bytes + self.worst_case_bytes(chunks) > self.limit.bytes + more_bytes
    }

    /// Whether it is blocks of the tables that a write of `chunks` does not find.
    pub(crate) fn lacks_chunks(&self, volume: Option<VolumeId>, chunks: u64) -> bool {
        let taken_chunks = self.reserved_chunks + self.left_alone_by(volume).chunks;
        chunks > 0 && taken_chunks + chunks > self.limit.chunks
    }

    /// Bytes of one long write that fits into `room_bytes` beside what is promised already; none
    /// where the tables have no blocks for it.
    pub(crate) fn free_bytes(&self, room_bytes: u64) -> u64 {
        if self.lacks_chunks(None, 1) {
            return 0;
        }
        let left_bytes = self.left_alone_by(None).bytes;
        let taken_bytes = self.reserved_bytes + left_bytes + BLOCK_BYTES as u64;
        let room_bytes = room_bytes.saturating_sub(taken_bytes);
        let chunk_room_bytes = self.worst_case_bytes(1) - BLOCK_BYTES as u64;
        room_bytes / chunk_room_bytes * u64::from(self.chunk_bytes)
    }

    /// Gives a reservation back, its write having been applied or dropped.
    pub(crate) fn settle(&mut self, chunks: u64) {
        self.reserved_bytes -= self.worst_case_bytes(chunks);
        self.reserved_chunks -= chunks;
    }

    /// Bytes of containers that the writes of a room take at worst; the most that can be counted
    /// if that is more.
    fn room_bytes(&self, room: WriteRoom) -> u64 {
        let beside = (FRAME_HEADER_BYTES + DIRECTORY_ENTRY_BYTES) as u64;
        let chunk_bytes = u64::from(self.chunk_bytes) + beside;
        let padding_bytes = room.writes.saturating_mul(BLOCK_BYTES as u64);
        room.chunks.saturating_mul(chunk_bytes).saturating_add(padding_bytes)
    }

    /// Reserves room for a holder, or says that it is not there now.
    pub(crate) fn try_hold(
        &mut self,
        volume: VolumeId,
        room: WriteRoom,
        for_release: bool,
    ) -> bool {
        let left_alone = match for_release {
            true => self.promises.left_alone_by(Some(volume)),
            false => self.left_alone_by(Some(volume)),
        };
        let bytes = self.room_bytes(room).saturating_add(self.reserved_bytes + left_alone.bytes);
        let chunks = room.chunks.saturating_add(self.reserved_chunks + left_alone.chunks);
        let lacks = bytes > self.limit.bytes || chunks > self.limit.chunks;
        if lacks && !mutant!(HoldsWhatIsNotThere) {
            return false;
        }
        self.reserved_bytes += self.room_bytes(room);
        self.reserved_chunks += room.chunks;
        if for_release {
            self.held_for_release = self.held_for_release + room;
            self.leave_alone();
        }
        true
    }

    /// Room that was held becomes that of writes on their way, which settle it one by one.
    pub(crate) fn use_held(&mut self, room: WriteRoom, for_release: bool) {
        if for_release {
            self.no_longer_held_for_release(room);
        }
    }

    /// A holder gives room back.
    pub(crate) fn end_hold(&mut self, room: WriteRoom, for_release: bool) {
        self.reserved_bytes -= self.room_bytes(room);
        self.reserved_chunks -= room.chunks;
        if for_release {
            self.no_longer_held_for_release(room);
        }
    }

    fn no_longer_held_for_release(&mut self, room: WriteRoom) {
        let left = self.held_for_release.without(room);
        debug_assert!(left.is_some(), "more was held for releases than was reserved for them");
        self.held_for_release = left.unwrap_or_default();
        self.leave_alone();
    }

    /// From now on so much is kept for releases, or as much of it as there is.
    pub(crate) fn keep_for_release(&mut self, room: WriteRoom) {
        self.kept = room;
        self.leave_alone();
    }

    fn leave_alone(&mut self) {
        // Far from what sums could not count, and more than any store has.
        let most = u64::MAX / 4;
        let held_bytes = self.room_bytes(self.held_for_release);
        let bytes = self.room_bytes(self.kept).saturating_sub(held_bytes).min(most);
        let chunks = self.kept.chunks.saturating_sub(self.held_for_release.chunks).min(most);
        self.left_alone =
            if mutant!(LeavesNothingAlone) { Left::default() } else { Left { bytes, chunks } };
    }

    /// What is kept for releases and held by nobody: worst-case bytes, and chunks with pages.
    pub(crate) fn left_alone(&self) -> (u64, u64) {
        (self.left_alone.bytes, self.left_alone.chunks)
    }

    /// Worst-case bytes for which room is reserved.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes
    }

    /// Chunks for which room is reserved.
    pub(crate) fn reserved_chunks(&self) -> u64 {
        self.reserved_chunks
    }

    /// Chunks that nobody but those for whom they are reserved or kept, or to whose volume they are
    /// promised, may take the pages of.
    pub(crate) fn spoken_for_chunks(&self) -> u64 {
        self.reserved_chunks + self.left_alone_by(None).chunks
    }

    /// The same without what is kept for releases: pages that the tables' own work leaves alone.
    pub(crate) fn promised_chunks(&self) -> u64 {
        self.reserved_chunks + self.promises.left_alone_by(None).chunks
    }

    /// Worst-case bytes that volumes are promised.
    pub(crate) fn promised_bytes(&self) -> u64 {
        self.promises.left_alone_by(None).bytes
    }

    /// Promises a volume so much, instead of what it was promised, or says that there is no room
    /// for that now.
    pub(crate) fn try_promise(&mut self, volume: VolumeId, left: Left) -> bool {
        let Left { bytes, chunks } = self.left_alone_by(Some(volume));
        let bytes = bytes.saturating_add(left.bytes).saturating_add(self.reserved_bytes);
        let chunks = chunks.saturating_add(left.chunks).saturating_add(self.reserved_chunks);
        let fits = bytes <= self.limit.bytes && chunks <= self.limit.chunks;
        let may_have = fits || left == Left::default() || self.promises.covers(volume, left);
        if may_have {
            self.promises.set(volume, left);
        }
        may_have
    }

    /// Worst-case bytes that a volume could be promised now, and whether the tables have no room
    /// for the chunks of such a promise.
    pub(crate) fn free_to_promise(&self, volume: VolumeId, left: Left) -> (u64, bool) {
        let others = self.left_alone_by(Some(volume));
        let free_bytes = self.limit.bytes.saturating_sub(self.reserved_bytes + others.bytes);
        let free_chunks = self.limit.chunks.saturating_sub(self.reserved_chunks + others.chunks);
        (free_bytes, left.bytes <= free_bytes && left.chunks > free_chunks)
    }

    /// Reserves nothing more until the limit is set again; for how many chunks room is reserved.
    pub(crate) fn withhold_chunks(&mut self) -> u64 {
        self.limit.chunks = self.reserved_chunks;
        self.reserved_chunks
    }
}

#[cfg(test)]
mod tests {
    use format::units::VolumeId;

    use super::{SpaceBudget, SpaceLimit};
    use crate::space::promises::Left;
    use crate::space::write_room::WriteRoom;

    const V: VolumeId = VolumeId(1);
    const W: VolumeId = VolumeId(2);
    const NONE: WriteRoom = WriteRoom { chunks: 0, writes: 0 };

    fn budget(chunks: u64) -> SpaceBudget {
        let mut budget = SpaceBudget::new(4096);
        budget.limit = SpaceLimit { bytes: chunks * 9000, chunks, is_waited_for: false };
        budget
    }

    #[test]
    fn what_is_held_settles_as_writes_do() {
        let mut budget = budget(10);
        let room = WriteRoom::of_chunks(7, 3);
        assert!(budget.try_hold(V, room, false));
        assert!(!budget.try_reserve(None, 4) && budget.lacks_chunks(None, 4));
        for chunks in [4, 2] {
            budget.use_held(WriteRoom::of_chunks(chunks, 1), false);
            budget.settle(chunks);
        }
        budget.end_hold(WriteRoom::of_chunks(1, 1), false);
        assert_eq!((budget.reserved_bytes(), budget.reserved_chunks()), (0, 0));
    }

    #[test]
    fn only_releases_take_what_is_kept_for_them() {
        let mut budget = budget(10);
        budget.keep_for_release(WriteRoom::of_chunks(4, 2));
        assert!(
            !budget.try_reserve(None, 7) && !budget.try_hold(V, WriteRoom::of_chunks(7, 1), false)
        );
        assert!(budget.try_reserve(None, 6));
        assert!(budget.try_hold(V, WriteRoom::of_chunks(3, 2), true));
        // What is held of it is counted once.
        assert_eq!(budget.left_alone().1, 1);
        assert!(
            !budget.try_reserve(None, 1) && budget.try_hold(V, WriteRoom::of_chunks(1, 0), true)
        );
        assert!(!budget.try_hold(V, WriteRoom::of_chunks(1, 0), true));
        budget.end_hold(WriteRoom::of_chunks(4, 2), true);
        budget.settle(6);
        assert_eq!((budget.reserved_bytes(), budget.reserved_chunks()), (0, 0));
        assert!(!budget.try_reserve(None, 7) && budget.try_reserve(None, 6));
    }

    #[test]
    fn what_cannot_be_counted_is_not_there() {
        let mut budget = budget(10);
        let endless = WriteRoom { chunks: u64::MAX, writes: u64::MAX };
        assert!(!budget.try_hold(V, endless, false) && !budget.try_hold(V, endless, true));
        assert!(budget.try_hold(V, NONE, false));
        budget.keep_for_release(endless);
        assert!(
            !budget.try_reserve(None, 1) && budget.try_hold(V, WriteRoom::of_chunks(1, 1), true)
        );
    }

    #[test]
    fn writes_of_a_vector_have_room_together_or_not_at_all() {
        let mut budget = budget(10);
        assert!(!budget.try_reserve_all(None, [4, 4, 4].into_iter()));
        assert_eq!((budget.reserved_bytes(), budget.reserved_chunks()), (0, 0));
        assert!(budget.try_reserve_all(None, [4, 6].into_iter()));
    }

    #[test]
    fn only_its_volume_takes_what_was_promised_to_it() {
        let mut budget = budget(10);
        let left = |chunks| Left { bytes: chunks * 9000, chunks };
        assert!(!budget.try_promise(V, left(11)) && budget.try_promise(V, left(7)));
        assert!(!budget.try_promise(W, left(4)) && budget.try_promise(W, left(1)));
        assert!(!budget.try_reserve(None, 3) && !budget.try_reserve(Some(W), 4));
        assert!(!budget.try_hold(W, WriteRoom::of_chunks(4, 1), true));
        assert!(budget.try_reserve(None, 2) && budget.try_reserve(Some(V), 7));
        // What is on its way is not promised again; less may always be, and what was.
        assert!(!budget.try_promise(W, left(2)));
        assert!(budget.try_promise(V, left(7)) && budget.try_promise(V, left(2)));
        assert!(!budget.try_promise(V, left(3)));
        assert_eq!((budget.promised_bytes(), budget.promised_chunks()), (27_000, 12));
        assert_eq!(budget.free_to_promise(V, left(2)), (90_000 - 9000 - 9 * 4156 - 8192, true));
    }
}
