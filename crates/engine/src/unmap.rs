//! TRIM, WRITE_ZEROES and shrinking: chunks let go by range.
//!
//! Partly covered chunks at either end are zeroed like any partial write. A short run of whole
//! chunks becomes slots of zeros in the open group; a long one is a group of its own. If many
//! leaves of the map lie in it they are *cut off* at once, as a version of the volume that nobody
//! sees and that is given back in the background (`versions.rs`). The rest is applied in pieces,
//! leaf by leaf, each piece a record, all in ascending order. So a step's work is bounded, however large the range, and
//! what was never mapped costs nothing.

use std::ops::Range;
use std::sync::Arc;

use format::BLOCK_BYTES;
use format::map_page::SLOTS;
use format::record::Change;
use format::units::{Lba, TreeId, VolumeId};
use mutants::mutant;
use reduce::ChunkBuf;
use tables::{NextLeaf, PageError};

use crate::buffer::Work;
use crate::engine::Engine;
use crate::error::RequestError;
use crate::intake::UnmapRequest;
use crate::mapping::{leaf_range, leaf_start};
use crate::partial::{Ack, Sectors, ragged_chunks};
use crate::record::CHANGE_BYTES_MAX;
use crate::slot::SlotData;
use crate::volume::VolumeShared;
use crate::waiting::Waiting;
use crate::wanted::Wanted;

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
    /// Takes a TRIM or WRITE_ZEROES into the write buffer.
    pub(crate) fn accept_unmap(&mut self, unmap: UnmapRequest) {
        let UnmapRequest { offset_bytes, length_bytes, .. } = unmap;
        if let Err(error) = unmap.volume.check_change(offset_bytes, length_bytes) {
            return unmap.done.fail(error);
        }
        let ragged = self.ragged_chunks(offset_bytes, length_bytes);
        if self.intake.lock().space.try_reserve(ragged) {
            self.buffer_reserved_unmap(unmap, ragged);
        } else {
            self.waiting.push_front(Waiting::Unmap(unmap, ragged));
        }
    }

    /// An unmap whose `ragged` chunks are reserved enters the write buffer.
    pub(crate) fn buffer_reserved_unmap(&mut self, unmap: UnmapRequest, ragged: u64) {
        let UnmapRequest { volume, offset_bytes, length_bytes, durable, done } = unmap;
        if let Err(error) = volume.check_change(offset_bytes, length_bytes) {
            // The volume may have shrunk while the unmap waited.
            self.intake.lock().space.settle(ragged);
            return done.fail(error);
        }
        self.counters.trims += 1;
        let ack = Ack::new(Some(done));
        let is_paid = self.buffer_unmap(&volume, offset_bytes, length_bytes, &ack);
        self.buffer.reserve_with_newest(ragged);
        match !durable && (!is_paid || self.buffer.is_crowded()) {
            true => self.buffer.answer_with_newest(ack),
            false => self.acknowledge(ack, durable),
        }
    }

    /// The end of a volume that shrinks is unmapped, from `offset_bytes` on. Behind its old end
    /// there is nothing: of a chunk there no rest is kept.
    ///
    /// # Errors
    /// [`RequestError::NoSpace`] when the rest of a chunk at the new end finds no room now.
    pub(crate) fn shrink(
        &mut self,
        volume: &Arc<VolumeShared>,
        offset_bytes: u64,
    ) -> Result<(), RequestError> {
        let chunk_bytes = u64::from(self.geometry.chunk_bytes);
        let end_bytes = volume.size_bytes().next_multiple_of(chunk_bytes);
        let length_bytes = end_bytes - offset_bytes;
        let ragged = self.ragged_chunks(offset_bytes, length_bytes);
        if !self.intake.lock().space.try_reserve(ragged) {
            return Err(RequestError::NoSpace);
        }
        self.buffer_unmap(volume, offset_bytes, length_bytes, &Ack::new(None));
        self.buffer.reserve_with_newest(ragged);
        Ok(())
    }

    /// Chunks that a range covers in part: their rest is written again.
    fn ragged_chunks(&self, offset_bytes: u64, length_bytes: u64) -> u64 {
        ragged_chunks(offset_bytes..offset_bytes + length_bytes, self.geometry.chunk_bytes)
    }

    /// Zeroes a range in the order of the write buffer; false where that is full, and nothing pays
    /// for the chunks at the ends that are covered in part.
    fn buffer_unmap(
        &mut self,
        volume: &Arc<VolumeShared>,
        offset_bytes: u64,
        length_bytes: u64,
        ack: &Arc<Ack>,
    ) -> bool {
        let chunk_bytes = u64::from(self.geometry.chunk_bytes);
        let end_bytes = offset_bytes + length_bytes;
        self.intake.lookaside.stamp(volume.id, offset_bytes..end_bytes);
        let first = offset_bytes.div_ceil(chunk_bytes);
        let end = end_bytes / chunk_bytes;
        if first > end {
            return self.zero_sectors(volume.id, offset_bytes, length_bytes, ack);
        }
        let head_bytes = first * chunk_bytes - offset_bytes;
        let head = self.zero_sectors(volume.id, offset_bytes, head_bytes.min(length_bytes), ack);
        if end - first > SLOTS_MAX {
            let volume = Arc::clone(volume);
            self.buffer.push_closed(Work::Unmap { volume, first, end });
        } else {
            let end = if mutant!(TrimsOneTooMany) && first < end { end + 1 } else { end };
            for lba in first..end {
                self.buffer.put(volume.id, Lba(lba), SlotData::Zeros);
            }
        }
        let tail_bytes = end_bytes - end * chunk_bytes;
        let tail = self.zero_sectors(volume.id, end * chunk_bytes, tail_bytes, ack);
        head && tail
    }

    /// Zeroes sectors of one chunk; false if nothing pays for the memory that this takes.
    fn zero_sectors(
        &mut self,
        id: VolumeId,
        offset_bytes: u64,
        length_bytes: u64,
        ack: &Arc<Ack>,
    ) -> bool {
        if length_bytes == 0 {
            return true;
        }
        let chunk_bytes = u64::from(self.geometry.chunk_bytes);
        let permit = self.intake.credits.try_permit(chunk_bytes as usize);
        let credit = permit.map(|permit| Arc::new(ChunkBuf::with_permit(0, permit)));
        let sectors = Sectors {
            offset_bytes: (offset_bytes % chunk_bytes) as usize,
            length_bytes: length_bytes as usize,
            source: None,
            credit: credit.as_ref(),
            ack: Some(ack),
        };
        self.buffer.put_sectors(id, Lba(offset_bytes / chunk_bytes), &sectors);
        credit.is_some()
    }

    /// Applies the next piece of the unmap at the front of the write buffer.
    pub(crate) fn commit_unmap(
        &mut self,
        volume: VolumeId,
        first: u64,
        end: u64,
    ) -> Result<bool, PageError> {
        if !self.state.is_live(volume) {
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
    /// a crash must leave pieces in ascending order. There is nothing to do where they are few.
    fn cut_off(
        &mut self,
        volume: VolumeId,
        first: u64,
        leaves: &Range<u64>,
    ) -> Result<Piece, PageError> {
        let mut wanted = Wanted::default();
        let many = self.has_many_leaves(volume, leaves, &mut wanted);
        let here = match many {
            Ok(Some(true)) => self.state.want_cut_off(volume, leaves, &mut wanted),
            Ok(_) => Ok(false),
            Err(ref error) => Err(error.clone()),
        };
        self.hold_pages(wanted, |lookups| &mut lookups.apply_pins);
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
                let into = self.volumes.take_id();
                self.record(&[Change::CutOff { volume, into, leaves: leaves.clone() }]);
                self.volumes.deletions.push_back(into);
                Ok(Piece::Applied(leaf_start(leaves.end)))
            }
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
        let mut at = leaves.start;
        for _ in 0..CUT_LEAVES_MIN {
            match self.state.store.next_leaf(TreeId::volume(volume), at, &mut wanted.reads)? {
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
        let most = COPIED_PAGES_MAX.min(self.checkpoints.dirty_pages_due(&self.state) / 2);
        let few = self.state.store.dirty_pages() <= most;
        if !few || self.checkpoints.tables_are_behind(&self.state) {
            self.checkpoints.ask();
            return false;
        }
        self.journal_has_room(CHANGE_BYTES_MAX + BLOCK_BYTES)
    }

    /// Gives back the next piece of a version that is being deleted, and drops it with the last.
    pub(crate) fn give_back_piece(&mut self, id: VolumeId) -> Result<Piece, PageError> {
        if self.checkpoints.tables_are_behind(&self.state) || self.devices.journal_is_behind() {
            return Ok(Piece::Waits);
        }
        let mut wanted = Wanted::default();
        let most = Some(self.checkpoints.most_of_piece());
        let reached = self.state.want_give_back(id, u64::MAX, most, &mut wanted);
        self.hold_pages(wanted, |lookups| &mut lookups.background_pins);
        let Some(leaves) = reached? else { return Ok(Piece::Waits) };
        if !self.journal_has_room(2 * CHANGE_BYTES_MAX) {
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

    fn move_unmap_on(&mut self, next: u64) {
        if let Some(group) = self.buffer.groups.front_mut()
            && let Work::Unmap { first, .. } = &mut group.work
        {
            *first = next;
        }
    }

    /// Unmaps the next leaves from `first` on, a piece of them, as one record.
    fn unmap_piece(&mut self, volume: VolumeId, first: u64, end: u64) -> Result<Piece, PageError> {
        if self.checkpoints.tables_are_behind(&self.state) {
            return Ok(Piece::Waits);
        }
        let mut wanted = Wanted::default();
        let ranges = self.want_leaves(volume, first, end, &mut wanted);
        self.hold_pages(wanted, |lookups| &mut lookups.apply_pins);
        let Some(ranges) = ranges? else { return Ok(Piece::Waits) };
        let Some(last) = ranges.last() else { return Ok(Piece::Finished) };
        let next = last.end;
        if !self.journal_has_room(CHANGE_BYTES_MAX * ranges.len()) {
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
        let most = self.checkpoints.most_of_piece();
        while !most.is_reached(ranges.len(), wanted) && first < end {
            match self.state.store.next_leaf(tree, from, &mut wanted.reads)? {
                NextLeaf::Missing => return Ok(None),
                NextLeaf::Found(leaf) if leaf_start(leaf) < end => {
                    let range = leaf_range(leaf, first, end);
                    let (start, count) = (Lba(range.start), range.end - range.start);
                    if !self.state.want_unmap(volume, start, count, wanted)? {
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
