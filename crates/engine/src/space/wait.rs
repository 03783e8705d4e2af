//! Space is short: what waits for it enters the write buffer as soon as its worst case fits, and
//! fails with no-space once nothing under way can free any. A store that is being closed frees none
//! any more, which says nothing of how full it is: what waits then fails, and the error names the
//! close.
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
use crate::copy_range::buffer_copy;
use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::door::error::RequestError;
use crate::door::requests::{CopyRequest, ReserveRequest, UnmapRequest, WriteRequest};
use crate::space::allocation::allocation_may_come;
use crate::space::reserve::try_grant;
use crate::space::waiting::Waiting;
use crate::volumes::administer::accept_change;
use crate::volumes::reservations::{refuse_promise, try_promise};
use crate::write::entering::{buffer_part, fail_reserved};
use crate::write::trim::{buffer_ends, give_up_ends};

/// What came of the one that has waited longest.
enum Turn {
    /// It is in the write buffer, or has failed.
    Left,
    /// A part of it is in the write buffer.
    Began,
    /// There is no room now.
    Waits,
}

/// Those that wait for space enter as far as there is room.
pub(crate) fn advance_waiting(core: &mut Core) -> bool {
    let mut moved = false;
    while let Some(waiting) = core.waiting.pop_front() {
        let turn = match waiting {
            Waiting::Write(write) => let_write_in(core, write),
            Waiting::Copy(copy) => let_copy_in(core, copy),
            Waiting::Ends { unmap, range, ragged } => let_ends_in(core, unmap, range, ragged),
            Waiting::Reserve(request) => let_reserve_in(core, request),
            Waiting::Change(verb) => let_change_in(core, verb),
            Waiting::Promise(promise) => let_promise_in(core, promise.asked),
        };
        match turn {
            Turn::Left => moved = true,
            Turn::Began => return true,
            Turn::Waits if space_may_come(core) => break,
            Turn::Waits => {
                match core.waiting.pop_front() {
                    Some(Waiting::Ends { unmap, .. }) => give_up_ends(core, unmap),
                    Some(Waiting::Promise(promise)) => refuse_promise(core, promise.asked),
                    Some(waiting) => {
                        let error = core.refuse_for_room();
                        waiting.fail(&error);
                    }
                    None => core.violated(Invariant::LineKeepsOrder),
                }
                moved = true;
            }
        }
    }
    moved
}

/// One that is larger than all the room enters piece by piece.
fn let_write_in(core: &mut Core, mut write: WriteRequest) -> Turn {
    let chunks = reserve_some(core, write.volume.id, write.chunks);
    if chunks == 0 {
        core.waiting.push_front(Waiting::Write(write));
        return Turn::Waits;
    }
    core.table_room.relieved();
    if write.is_given_up() {
        fail_reserved(core, &mut write, chunks, &RequestError::GivenUp);
        return Turn::Left;
    }
    if !buffer_part(core, &mut write, chunks) {
        return Turn::Left;
    }
    if write.chunks > 0 {
        core.waiting.push_front(Waiting::Write(write));
        return Turn::Began;
    }
    if let Some(ack) = write.answer() {
        core.acknowledge(ack, write.durable);
    }
    Turn::Left
}

/// The same of a copy.
fn let_copy_in(core: &mut Core, mut copy: CopyRequest) -> Turn {
    let room_chunks = reserve_some(core, copy.range.to.id, copy.range.room_chunks());
    if room_chunks == 0 {
        core.waiting.push_front(Waiting::Copy(copy));
        return Turn::Waits;
    }
    core.table_room.relieved();
    if copy.ack.is_gone() {
        core.intake.lock().space.settle(room_chunks);
        copy.ack.fail(&RequestError::GivenUp);
        return Turn::Left;
    }
    if !buffer_copy(core, &mut copy, room_chunks) {
        return Turn::Left;
    }
    if copy.range.chunks > 0 {
        core.waiting.push_front(Waiting::Copy(copy));
        return Turn::Began;
    }
    core.acknowledge(copy.ack, copy.durable);
    Turn::Left
}

fn let_ends_in(core: &mut Core, unmap: UnmapRequest, range: Range<u64>, ragged: u64) -> Turn {
    // The volume may have shrunk meanwhile.
    if let Err(error) = unmap.volume.check_change(unmap.offset_bytes, unmap.length_bytes) {
        unmap.done.fail(error);
        return Turn::Left;
    }
    if !core.intake.lock().space.try_reserve(Some(unmap.volume.id), ragged) {
        core.waiting.push_front(Waiting::Ends { unmap, range, ragged });
        return Turn::Waits;
    }
    core.table_room.relieved();
    if unmap.done.is_gone() {
        core.intake.lock().space.settle(ragged);
        unmap.done.fail(RequestError::GivenUp);
        return Turn::Left;
    }
    buffer_ends(core, unmap, &range, ragged);
    Turn::Left
}

fn let_reserve_in(core: &mut Core, request: ReserveRequest) -> Turn {
    if request.done.is_gone() {
        request.done.fail(RequestError::GivenUp);
        return Turn::Left;
    }
    match try_grant(core, request) {
        Some(request) => {
            core.waiting.push_front(Waiting::Reserve(request));
            Turn::Waits
        }
        None => {
            core.table_room.relieved();
            Turn::Left
        }
    }
}

fn let_change_in(core: &mut Core, verb: Verb) -> Turn {
    let is_resize = matches!(verb, Verb::ResizeVolume(_));
    let lacks_rest = is_resize && core.intake.lock().space.lacks(None, 1);
    if lacks_rest || !core.has_room_for_versions(verb.versions_made()) {
        core.waiting.push_front(Waiting::Change(verb));
        return Turn::Waits;
    }
    core.table_room.relieved();
    accept_change(core, verb);
    Turn::Left
}

fn let_promise_in(core: &mut Core, asked: Asked<SetReservation>) -> Turn {
    match try_promise(core, asked) {
        Some(promise) => {
            core.waiting.push_front(Waiting::Promise(promise));
            Turn::Waits
        }
        None => {
            core.table_room.relieved();
            Turn::Left
        }
    }
}

/// Reserves the worst case of `chunks`; if that is too much although nothing else is on its
/// way, of fewer. 0 when there is no room now.
fn reserve_some(core: &mut Core, volume: VolumeId, chunks: u64) -> u64 {
    let alone = core.buffer.groups.is_empty();
    let intake = Arc::clone(&core.intake);
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
fn space_may_come(core: &mut Core) -> bool {
    if core.buffer.has_open() && core.buffer.closed_groups() == 0 {
        core.buffer.close_open();
    }
    !core.buffer.groups.is_empty()
        || core.deletion_going_on().is_some()
        || core.can_collect()
        || core.containers_come_back()
        || allocation_may_come(core)
        || core.table_room.relief_may_come()
        || core.merge_may_give_blocks()
        || core.superblock.will_grow()
}
