//! TRIM, WRITE_ZEROES and shrinking: chunks let go by range.
//!
//! Partly covered chunks at either end are zeroed like any partial write. A short run of whole
//! chunks becomes slots of zeros in the open group; a long one is a group of its own. If many
//! leaves of the map lie in it they are *cut off* at once, as a version of the volume that nobody
//! sees and that is given back in the background (`versions.rs`). The rest is applied in pieces,
//! leaf by leaf, each piece a record, all in ascending order. So a step's work is bounded, however
//! large the range, and what was never mapped costs nothing.

use std::ops::Range;
use std::sync::Arc;

use format::BLOCK_BYTES;
use format::map_page::SLOTS;
use format::record::Change;
use format::units::{Lba, TreeId, VolumeId};
use mutants::mutant;
use reduce::ChunkBuf;
use tables::{NextLeaf, PageError};

use crate::core::record::CHANGE_BYTES_MAX;
use crate::door::error::RequestError;
use crate::door::requests::UnmapRequest;
use crate::door::volume::VolumeShared;
use crate::engine::Engine;
use crate::pages::wanted::Wanted;
use crate::space::waiting::Waiting;
use crate::state::mapping::{leaf_range, leaf_start};
use crate::volumes::versions::PieceMax;
use crate::write::buffer::Work;
use crate::write::partial::{Ack, ChunkPart, ragged_chunks};
use crate::write::slot::SlotData;

/// Up to this many chunks a run is zeroed slot by slot.
const SLOTS_MAX: u64 = 128;
/// As many leaves are worth a version of their own.
const CUT_LEAVES_MIN: usize = 32;
/// Dirty pages beside which a version is copied.
const COPIED_PAGES_MAX: usize = 512;

/// What one piece of an unmap did.
pub(crate) enum Piece {
    /// Its pages are not here yet, or the journal is full.
    Waits,
    /// It is recorded; the unmap goes on at this chunk.
    Applied(u64),
    /// Nothing mapped is left in the range.
    Finished,
}

impl Engine {
    /// Takes a TRIM or WRITE_ZEROES into the write buffer. Where there is no room for what is left
    /// of the chunks at its ends, those that it covers whole go first: they need none, and give
    /// some.
    pub(crate) fn accept_unmap(&mut self, unmap: UnmapRequest) {
        let UnmapRequest { offset_bytes, length_bytes, .. } = unmap;
        if let Err(error) = unmap.volume.check_change(offset_bytes, length_bytes) {
            return unmap.done.fail(error);
        }
        let range = self.to_the_end(&unmap.volume, offset_bytes..offset_bytes + length_bytes);
        self.core.intake.lookaside.stamp(unmap.volume.id, range.clone());
        let ragged = ragged_chunks(range.clone(), self.core.geometry.chunk_bytes);
        let volume = Some(unmap.volume.id);
        if self.core.intake.lock().space.try_reserve(volume, ragged) {
            let ack = Ack::new(Some(unmap.done));
            let is_paid = self.buffer_unmap(&unmap.volume, &range, &ack);
            self.unmap_buffered(ack, unmap.durable, is_paid, ragged);
        } else {
            self.buffer_whole_chunks(&unmap.volume, &range);
            self.core.waiting.push_front(Waiting::Ends { unmap, range, ragged });
        }
    }

    /// The ends of an unmap, whose `ragged` chunks are reserved, enter the write buffer. The volume
    /// has the size that it had, or the unmap lies within it still.
    pub(crate) fn buffer_ends(&mut self, unmap: UnmapRequest, range: &Range<u64>, ragged: u64) {
        let ack = Ack::new(Some(unmap.done));
        self.core.intake.lookaside.stamp(unmap.volume.id, range.clone());
        let ends = [self.head_of(range), self.tail_of(range)];
        let paid = ends.map(|end| self.zero_part(unmap.volume.id, end, &ack));
        self.unmap_buffered(ack, unmap.durable, paid == [true; 2], ragged);
    }

    /// The ends of an unmap for which no room will come: advice has been taken as far as it can be.
    pub(crate) fn give_up_ends(&mut self, unmap: UnmapRequest) {
        if !unmap.is_advice {
            return unmap.done.fail(self.refuse_for_room());
        }
        self.core.counters.trims += 1;
        self.acknowledge(Ack::new(Some(unmap.done)), unmap.durable);
    }

    fn unmap_buffered(&mut self, ack: Arc<Ack>, durable: bool, is_paid: bool, ragged: u64) {
        let durable = durable && !mutant!(ForgetsFuaOfTrim);
        self.core.counters.trims += 1;
        self.core.buffer.reserve_with_newest(ragged);
        match !durable && (!is_paid || self.core.buffer.is_crowded()) {
            true => self.core.buffer.answer_with_newest(ack),
            false => self.acknowledge(ack, durable),
        }
    }

    /// The end of a volume that shrinks is unmapped, from `offset_bytes` on.
    ///
    /// # Errors
    /// [`RequestError::NoSpace`] when the rest of a chunk at the new end finds no room now.
    pub(crate) fn shrink(
        &mut self,
        volume: &Arc<VolumeShared>,
        offset_bytes: u64,
    ) -> Result<(), RequestError> {
        let range = self.to_the_end(volume, offset_bytes..volume.size_bytes());
        let ragged = ragged_chunks(range.clone(), self.core.geometry.chunk_bytes);
        if !self.core.intake.lock().space.try_reserve(Some(volume.id), ragged) {
            return Err(RequestError::NoSpace);
        }
        self.core.intake.lookaside.stamp(volume.id, range.clone());
        self.buffer_unmap(volume, &range, &Ack::new(None));
        self.core.buffer.reserve_with_newest(ragged);
        Ok(())
    }

    /// Behind the end of a volume there is nothing: of a chunk there no rest is kept.
    fn to_the_end(&self, volume: &VolumeShared, range: Range<u64>) -> Range<u64> {
        let chunk_bytes = u64::from(self.core.geometry.chunk_bytes);
        match !range.is_empty() && range.end == volume.size_bytes() {
            true => range.start..range.end.next_multiple_of(chunk_bytes),
            false => range,
        }
    }

    /// The chunks that a range covers whole; where it lies inside one, the end is before the start.
    fn whole_chunks(&self, range: &Range<u64>) -> Range<u64> {
        let chunk_bytes = u64::from(self.core.geometry.chunk_bytes);
        range.start.div_ceil(chunk_bytes)..range.end / chunk_bytes
    }

    /// The bytes of a range before the first chunk that it covers whole.
    fn head_of(&self, range: &Range<u64>) -> Range<u64> {
        let end = self.whole_chunks(range).start * u64::from(self.core.geometry.chunk_bytes);
        range.start..end.min(range.end)
    }

    /// Those behind the last one.
    fn tail_of(&self, range: &Range<u64>) -> Range<u64> {
        let start = self.whole_chunks(range).end * u64::from(self.core.geometry.chunk_bytes);
        start.max(self.head_of(range).end)..range.end
    }

    /// Zeroes a range, in ascending order, in that of the write buffer; false where that is full,
    /// and nothing pays for the chunks at the ends that are covered in part.
    fn buffer_unmap(
        &mut self,
        volume: &Arc<VolumeShared>,
        range: &Range<u64>,
        ack: &Arc<Ack>,
    ) -> bool {
        let head = self.zero_part(volume.id, self.head_of(range), ack);
        self.buffer_whole_chunks(volume, range);
        let tail = self.zero_part(volume.id, self.tail_of(range), ack);
        head && tail
    }

    fn buffer_whole_chunks(&mut self, volume: &Arc<VolumeShared>, range: &Range<u64>) {
        let Range { start: first, end } = self.whole_chunks(range);
        if end.saturating_sub(first) > SLOTS_MAX {
            let volume = Arc::clone(volume);
            self.core.buffer.push_closed(Work::Unmap { volume, first, end });
            return;
        }
        let end = if mutant!(TrimsOneTooMany) && first < end { end + 1 } else { end };
        for lba in first..end {
            self.core.buffer.put(volume.id, Lba(lba), SlotData::Zeros);
        }
    }

    /// Zeroes a part of one chunk; false if nothing pays for the memory that this takes.
    fn zero_part(&mut self, id: VolumeId, range: Range<u64>, ack: &Arc<Ack>) -> bool {
        if range.is_empty() {
            return true;
        }
        let chunk_bytes = u64::from(self.core.geometry.chunk_bytes);
        let permit = self.core.intake.credits.try_permit(chunk_bytes as usize);
        let credit = permit.map(|permit| Arc::new(ChunkBuf::with_permit(0, permit)));
        let part = ChunkPart {
            offset_bytes: (range.start % chunk_bytes) as usize,
            length_bytes: (range.end - range.start) as usize,
            source: None,
            credit: credit.as_ref(),
            ack: Some(ack),
        };
        self.core.buffer.put_part(id, Lba(range.start / chunk_bytes), &part);
        credit.is_some()
    }

    /// Applies the next piece of the unmap at the front of the write buffer.
    pub(crate) fn commit_unmap(
        &mut self,
        volume: VolumeId,
        first: u64,
        end: u64,
    ) -> Result<bool, PageError> {
        if !self.core.state.is_live(volume) {
            self.finish_group();
            return Ok(true);
        }
        let leaves = first.div_ceil(SLOTS as u64)..end / SLOTS as u64;
        let piece = match self.cut_off(volume, first, &leaves)? {
            Piece::Finished => self.unmap_piece(volume, first, end)?,
            piece => piece,
        };
        match piece {
            Piece::Waits => return Ok(false),
            Piece::Applied(next) => self.move_unmap_on(next),
            Piece::Finished => self.finish_group(),
        }
        Ok(true)
    }

    /// Cuts whole leaves off a volume if there are many, behind the rest of a leaf from `first` on:
    /// a crash must leave pieces in ascending order. There is nothing to do where they are few, or
    /// where that would have to wait for a checkpoint to end, and everybody behind it: then what
    /// is left may be cut off when that has ended.
    fn cut_off(
        &mut self,
        volume: VolumeId,
        first: u64,
        leaves: &Range<u64>,
    ) -> Result<Piece, PageError> {
        let mut wanted = Wanted::default();
        let many = self.has_many_leaves(volume, leaves, &mut wanted);
        let here = match many {
            Ok(Some(true)) => self.core.state.want_cut_off(volume, leaves, &mut wanted),
            Ok(_) => Ok(false),
            Err(ref error) => Err(error.clone()),
        };
        self.core.hold_pages(wanted, |held| &mut held.apply);
        let start = leaf_start(leaves.start);
        match (many?, here?) {
            (Some(false), _) => Ok(Piece::Finished),
            (Some(true), _) if first < start && !mutant!(CutsBeforeTheHead) => {
                match self.unmap_piece(volume, first, start)? {
                    Piece::Finished => Ok(Piece::Applied(start)),
                    piece => Ok(piece),
                }
            }
            (Some(true), true) if self.copies_have_room() => {
                let into = self.core.volumes.take_id();
                self.record(&[Change::CutOff { volume, into, leaves: leaves.clone() }]);
                self.core.volumes.deletions.add(into);
                Ok(Piece::Applied(leaf_start(leaves.end)))
            }
            // Room for a copy comes with the next checkpoint, which is not soon.
            (Some(true), true) if self.core.table_room.is_under_way => Ok(Piece::Finished),
            _ => Ok(Piece::Waits),
        }
    }

    /// Whether enough leaves exist in a range; none while pages that say so are read.
    fn has_many_leaves(
        &mut self,
        volume: VolumeId,
        leaves: &Range<u64>,
        wanted: &mut Wanted,
    ) -> Result<Option<bool>, PageError> {
        let (tree, mut at) = (TreeId::volume(volume), leaves.start);
        let Wanted { pins, reads, .. } = wanted;
        for _ in 0..CUT_LEAVES_MIN {
            match self.core.state.store.next_leaf_held(pins, tree, at, reads)? {
                NextLeaf::Found(leaf) if leaf < leaves.end => at = leaf + 1,
                NextLeaf::Missing => return Ok(None),
                NextLeaf::Found(_) | NextLeaf::End => return Ok(Some(false)),
            }
        }
        Ok(Some(true))
    }

    /// Whether a copy of a version, and the record that says so, has room now. A copy doubles the
    /// pages that are dirty, and shares those that are not: there must be few.
    pub(crate) fn copies_have_room(&mut self) -> bool {
        let most = COPIED_PAGES_MAX.min(self.core.table_room.dirty_pages_due(&self.core.state) / 2);
        let few = self.core.state.store.dirty_pages() <= most;
        if !few || self.core.table_room.tables_are_behind(&self.core.state) {
            self.core.table_room.ask();
            return false;
        }
        self.core.journal_has_room(CHANGE_BYTES_MAX + BLOCK_BYTES)
    }

    /// Gives back the next piece of a version that is being deleted, and drops it with the last.
    pub(crate) fn give_back_piece(&mut self, id: VolumeId) -> Result<Piece, PageError> {
        if self.core.table_room.tables_are_behind(&self.core.state)
            || self.core.devices.journal_is_behind()
        {
            return Ok(Piece::Waits);
        }
        let clients_read = self.reads.any() || !self.reads.extents.is_empty();
        let room_is_wanted = self.room_is_wanted();
        let pace = &mut self.core.volumes.deletions.pace;
        let Some(reads) = pace.may_ask(&self.core.state.store, clients_read, room_is_wanted) else {
            return Ok(Piece::Waits);
        };
        let mut wanted = Wanted::default();
        let most = PieceMax { reads, ..self.core.table_room.most_of_piece() };
        let reached = self.core.state.want_give_back(id, u64::MAX, Some(most), &mut wanted);
        self.core.volumes.deletions.pace.note(&wanted.reads);
        self.core.hold_pages(wanted, |held| &mut held.deletion);
        let Some(leaves) = reached? else { return Ok(Piece::Waits) };
        if !self.core.journal_has_room(2 * CHANGE_BYTES_MAX) {
            return Ok(Piece::Waits);
        }
        let piece = Change::GiveBack { id, leaves };
        if leaves < u64::MAX {
            self.record(&[piece]);
            return Ok(Piece::Applied(leaves));
        }
        self.record(&[piece, Change::DropVolume { id }]);
        Ok(Piece::Finished)
    }

    /// Whether somebody waits for what is given back, or soon will.
    fn room_is_wanted(&self) -> bool {
        !self.core.waiting.is_empty()
            || !self.core.quota_line.is_empty()
            || self.core.must_collect()
    }

    fn move_unmap_on(&mut self, next: u64) {
        if let Some(group) = self.core.buffer.groups.front_mut()
            && let Work::Unmap { first, .. } = &mut group.work
        {
            *first = next;
        }
    }

    /// Unmaps the next leaves from `first` on, a piece of them, as one record.
    fn unmap_piece(&mut self, volume: VolumeId, first: u64, end: u64) -> Result<Piece, PageError> {
        if self.core.table_room.tables_are_behind(&self.core.state) {
            return Ok(Piece::Waits);
        }
        let mut wanted = Wanted::default();
        let ranges = self.want_leaves(volume, first, end, &mut wanted);
        self.core.hold_pages(wanted, |held| &mut held.apply);
        let Some(ranges) = ranges? else { return Ok(Piece::Waits) };
        let Some(last) = ranges.last() else { return Ok(Piece::Finished) };
        let next = last.end;
        if !self.core.journal_has_room(CHANGE_BYTES_MAX * ranges.len()) {
            return Ok(Piece::Waits);
        }
        let change = |range: &Range<u64>| Change::Unmap {
            volume,
            first: Lba(range.start),
            count: range.end - range.start,
        };
        let changes: Vec<Change> = ranges.iter().map(change).collect();
        self.record(&changes);
        Ok(Piece::Applied(next))
    }

    /// The parts of the next leaves that lie in `first..end`; None while pages are missing.
    fn want_leaves(
        &mut self,
        volume: VolumeId,
        first: u64,
        end: u64,
        wanted: &mut Wanted,
    ) -> Result<Option<Vec<Range<u64>>>, PageError> {
        let tree = TreeId::volume(volume);
        let mut ranges = Vec::new();
        let mut from = first / SLOTS as u64;
        let most = self.core.table_room.most_of_piece();
        while !most.is_reached(ranges.len(), wanted) && first < end {
            match self.core.state.store.next_leaf(tree, from, &mut wanted.reads)? {
                NextLeaf::Missing => return Ok(None),
                NextLeaf::Found(leaf) if leaf_start(leaf) < end => {
                    let range = leaf_range(leaf, first, end);
                    let (start, count) = (Lba(range.start), range.end - range.start);
                    if !self.core.state.want_unmap(volume, start, count, wanted)? {
                        // What is here already goes first: a piece need not be a full one.
                        return Ok((!ranges.is_empty()).then_some(ranges));
                    }
                    ranges.push(range);
                    from = leaf + 1;
                }
                NextLeaf::End | NextLeaf::Found(_) => break,
            }
        }
        Ok(Some(ranges))
    }
}
