//! Space is short: what waits for it enters the write buffer as soon as its worst case fits, and
//! fails with no-space once nothing under way can free any. A store that is being closed frees none
//! any more, which says nothing of how full it is: what waits then is told of the close.
//!
//! Whose client has gone does not enter: unmaps that came later, and have been answered, did not
//! wait for it, and it would undo them. What is in the write buffer of it stays: that was before.
//!
//! Unmaps go first: they take little and give back more. Of one only the ends wait, which may cover
//! chunks in part; what it covers whole is in the write buffer already.

use std::ops::Range;
use std::sync::Arc;

use format::units::VolumeId;

use crate::control::{Asked, SetReservation, Verb};
use crate::door::error::RequestError;
use crate::door::requests::{CopyRequest, ReserveRequest, UnmapRequest, WriteRequest};
use crate::engine::Engine;
use crate::space::allocation::allocation_may_come;
use crate::space::waiting::Waiting;

/// What came of the one that has waited longest.
enum Turn {
    /// It is in the write buffer, or has failed.
    Left,
    /// A part of it is in the write buffer.
    Began,
    /// There is no room now.
    Waits,
}

impl Engine {
    /// Those that wait for space enter as far as there is room.
    pub(crate) fn advance_waiting(&mut self) -> bool {
        let mut moved = false;
        while let Some(waiting) = self.core.waiting.pop_front() {
            let turn = match waiting {
                Waiting::Write(write) => self.let_write_in(write),
                Waiting::Copy(copy) => self.let_copy_in(copy),
                Waiting::Ends { unmap, range, ragged } => self.let_ends_in(unmap, range, ragged),
                Waiting::Reserve(request) => self.let_reserve_in(request),
                Waiting::Change(verb) => self.let_change_in(verb),
                Waiting::Promise(promise) => self.let_promise_in(promise.asked),
            };
            match turn {
                Turn::Left => moved = true,
                Turn::Began => return true,
                Turn::Waits if self.space_may_come() => break,
                Turn::Waits => {
                    match self.core.waiting.pop_front() {
                        Some(Waiting::Ends { unmap, .. }) => self.give_up_ends(unmap),
                        Some(Waiting::Promise(promise)) => self.refuse_promise(promise.asked),
                        Some(waiting) => {
                            let error = self.refuse_for_room();
                            waiting.fail(&error);
                        }
                        None => {}
                    }
                    moved = true;
                }
            }
        }
        moved
    }

    /// What one is told that no room comes for.
    pub(crate) fn refuse_for_room(&mut self) -> RequestError {
        if self.core.is_closing {
            return RequestError::Closing;
        }
        self.note_refusal();
        RequestError::NoSpace
    }

    /// One that is larger than all the room enters piece by piece.
    fn let_write_in(&mut self, mut write: WriteRequest) -> Turn {
        let chunks = self.reserve_some(write.volume.id, write.chunks);
        if chunks == 0 {
            self.core.waiting.push_front(Waiting::Write(write));
            return Turn::Waits;
        }
        self.core.table_room.relieved();
        if write.is_given_up() {
            self.fail_reserved(&mut write, chunks, &RequestError::GivenUp);
            return Turn::Left;
        }
        if !self.buffer_part(&mut write, chunks) {
            return Turn::Left;
        }
        if write.chunks > 0 {
            self.core.waiting.push_front(Waiting::Write(write));
            return Turn::Began;
        }
        if let Some(ack) = write.answer() {
            self.acknowledge(ack, write.durable);
        }
        Turn::Left
    }

    /// The same of a copy.
    fn let_copy_in(&mut self, mut copy: CopyRequest) -> Turn {
        let room_chunks = self.reserve_some(copy.range.to.id, copy.range.room_chunks());
        if room_chunks == 0 {
            self.core.waiting.push_front(Waiting::Copy(copy));
            return Turn::Waits;
        }
        self.core.table_room.relieved();
        if copy.ack.is_gone() {
            self.core.intake.lock().space.settle(room_chunks);
            copy.ack.fail(&RequestError::GivenUp);
            return Turn::Left;
        }
        if !self.buffer_copy(&mut copy, room_chunks) {
            return Turn::Left;
        }
        if copy.range.chunks > 0 {
            self.core.waiting.push_front(Waiting::Copy(copy));
            return Turn::Began;
        }
        self.acknowledge(copy.ack, copy.durable);
        Turn::Left
    }

    fn let_ends_in(&mut self, unmap: UnmapRequest, range: Range<u64>, ragged: u64) -> Turn {
        // The volume may have shrunk meanwhile.
        if let Err(error) = unmap.volume.check_change(unmap.offset_bytes, unmap.length_bytes) {
            unmap.done.fail(error);
            return Turn::Left;
        }
        if !self.core.intake.lock().space.try_reserve(Some(unmap.volume.id), ragged) {
            self.core.waiting.push_front(Waiting::Ends { unmap, range, ragged });
            return Turn::Waits;
        }
        self.core.table_room.relieved();
        if unmap.done.is_gone() {
            self.core.intake.lock().space.settle(ragged);
            unmap.done.fail(RequestError::GivenUp);
            return Turn::Left;
        }
        self.buffer_ends(unmap, &range, ragged);
        Turn::Left
    }

    fn let_reserve_in(&mut self, request: ReserveRequest) -> Turn {
        if request.done.is_gone() {
            request.done.fail(RequestError::GivenUp);
            return Turn::Left;
        }
        match self.try_grant(request) {
            Some(request) => {
                self.core.waiting.push_front(Waiting::Reserve(request));
                Turn::Waits
            }
            None => {
                self.core.table_room.relieved();
                Turn::Left
            }
        }
    }

    fn let_change_in(&mut self, verb: Verb) -> Turn {
        let is_resize = matches!(verb, Verb::ResizeVolume(_));
        let lacks_rest = is_resize && self.core.intake.lock().space.lacks(None, 1);
        if lacks_rest || !self.has_room_for_versions(&verb) {
            self.core.waiting.push_front(Waiting::Change(verb));
            return Turn::Waits;
        }
        self.core.table_room.relieved();
        self.accept_verb(verb);
        Turn::Left
    }

    fn let_promise_in(&mut self, asked: Asked<SetReservation>) -> Turn {
        match self.try_promise(asked) {
            Some(promise) => {
                self.core.waiting.push_front(Waiting::Promise(promise));
                Turn::Waits
            }
            None => {
                self.core.table_room.relieved();
                Turn::Left
            }
        }
    }

    /// Reserves the worst case of `chunks`; if that is too much although nothing else is on its
    /// way, of fewer. 0 when there is no room now.
    fn reserve_some(&mut self, volume: VolumeId, chunks: u64) -> u64 {
        let alone = self.core.buffer.groups.is_empty();
        let intake = Arc::clone(&self.core.intake);
        let mut intake = intake.lock();
        let mut wanted = chunks;
        while wanted > 0 {
            if intake.space.try_reserve(Some(volume), wanted) {
                return wanted;
            }
            wanted = if alone { wanted / 2 } else { 0 };
        }
        0
    }

    /// Whether anything under way, or collection, can still free space.
    fn space_may_come(&mut self) -> bool {
        if self.core.buffer.has_open() && self.core.buffer.closed_groups() == 0 {
            self.core.buffer.close_open();
        }
        !self.core.buffer.groups.is_empty()
            || self.deletion_going_on().is_some()
            || self.core.can_collect()
            || self.core.containers_come_back()
            || allocation_may_come(&self.core)
            || self.core.table_room.relief_may_come()
            || self.core.merge_may_give_blocks()
            || self.core.superblock.will_grow()
    }
}
