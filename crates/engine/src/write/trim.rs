//! TRIM, WRITE_ZEROES and shrinking enter the write buffer.
//!
//! Partly covered chunks at either end are zeroed like any partial write. A short run of whole
//! chunks becomes slots of zeros in the open group; a long one is a group of its own
//! (`unmap.rs`).

use std::ops::Range;
use std::sync::Arc;

use format::units::{Lba, VolumeId};
use mutants::mutant;
use reduce::ChunkBuf;

use crate::core::Core;
use crate::door::error::RequestError;
use crate::door::requests::UnmapRequest;
use crate::door::volume::VolumeShared;
use crate::space::waiting::Waiting;
use crate::write::buffer::Work;
use crate::write::partial::{Ack, ChunkPart, ragged_chunks};
use crate::write::slot::SlotData;

/// Up to this many chunks a run is zeroed slot by slot.
const SLOTS_MAX: u64 = 128;

/// Takes a TRIM or WRITE_ZEROES into the write buffer. Where there is no room for what is left
/// of the chunks at its ends, those that it covers whole go first: they need none, and give
/// some.
pub(crate) fn accept_unmap(core: &mut Core, unmap: UnmapRequest) {
    let UnmapRequest { offset_bytes, length_bytes, .. } = unmap;
    if let Err(error) = unmap.volume.check_change(offset_bytes, length_bytes) {
        return unmap.done.fail(error);
    }
    let range = to_the_end(core, &unmap.volume, offset_bytes..offset_bytes + length_bytes);
    core.intake.lookaside.stamp(unmap.volume.id, range.clone());
    let ragged = ragged_chunks(range.clone(), core.geometry.chunk_bytes);
    let volume = Some(unmap.volume.id);
    if core.intake.lock().space.try_reserve(volume, ragged) {
        let ack = Ack::new(Some(unmap.done));
        let is_paid = buffer_unmap(core, &unmap.volume, &range, &ack);
        unmap_buffered(core, ack, unmap.durable, is_paid, ragged);
    } else {
        buffer_whole_chunks(core, &unmap.volume, &range);
        core.waiting.push_front(Waiting::Ends { unmap, range, ragged });
    }
}

/// The ends of an unmap, whose `ragged` chunks are reserved, enter the write buffer. The volume
/// has the size that it had, or the unmap lies within it still.
pub(crate) fn buffer_ends(core: &mut Core, unmap: UnmapRequest, range: &Range<u64>, ragged: u64) {
    let ack = Ack::new(Some(unmap.done));
    core.intake.lookaside.stamp(unmap.volume.id, range.clone());
    let ends = [head_of(core, range), tail_of(core, range)];
    let paid = ends.map(|end| zero_part(core, unmap.volume.id, end, &ack));
    unmap_buffered(core, ack, unmap.durable, paid == [true; 2], ragged);
}

/// The ends of an unmap for which no room will come: advice has been taken as far as it can be.
pub(crate) fn give_up_ends(core: &mut Core, unmap: UnmapRequest) {
    if !unmap.is_advice {
        return unmap.done.fail(core.refuse_for_room());
    }
    core.counters.trims += 1;
    core.acknowledge(Ack::new(Some(unmap.done)), unmap.durable);
}

fn unmap_buffered(core: &mut Core, ack: Arc<Ack>, durable: bool, is_paid: bool, ragged: u64) {
    let durable = durable && !mutant!(ForgetsFuaOfTrim);
    core.counters.trims += 1;
    core.buffer.reserve_with_newest(ragged);
    match !durable && (!is_paid || core.buffer.is_crowded()) {
        true => core.buffer.answer_with_newest(ack),
        false => core.acknowledge(ack, durable),
    }
}

/// The end of a volume that shrinks is unmapped, from `offset_bytes` on.
///
/// # Errors
/// [`RequestError::NoSpace`] when the rest of a chunk at the new end finds no room now.
pub(crate) fn shrink(
    core: &mut Core,
    volume: &Arc<VolumeShared>,
    offset_bytes: u64,
) -> Result<(), RequestError> {
    let range = to_the_end(core, volume, offset_bytes..volume.size_bytes());
    let ragged = ragged_chunks(range.clone(), core.geometry.chunk_bytes);
    if !core.intake.lock().space.try_reserve(Some(volume.id), ragged) {
        return Err(RequestError::NoSpace);
    }
    core.intake.lookaside.stamp(volume.id, range.clone());
    buffer_unmap(core, volume, &range, &Ack::new(None));
    core.buffer.reserve_with_newest(ragged);
    Ok(())
}

/// Behind the end of a volume there is nothing: of a chunk there no rest is kept.
fn to_the_end(core: &Core, volume: &VolumeShared, range: Range<u64>) -> Range<u64> {
    let chunk_bytes = u64::from(core.geometry.chunk_bytes);
    match !range.is_empty() && range.end == volume.size_bytes() {
        true => range.start..range.end.next_multiple_of(chunk_bytes),
        false => range,
    }
}

/// The chunks that a range covers whole; where it lies inside one, the end is before the start.
fn whole_chunks(core: &Core, range: &Range<u64>) -> Range<u64> {
    let chunk_bytes = u64::from(core.geometry.chunk_bytes);
    range.start.div_ceil(chunk_bytes)..range.end / chunk_bytes
}

/// The bytes of a range before the first chunk that it covers whole.
fn head_of(core: &Core, range: &Range<u64>) -> Range<u64> {
    let end = whole_chunks(core, range).start * u64::from(core.geometry.chunk_bytes);
    range.start..end.min(range.end)
}

/// Those behind the last one.
fn tail_of(core: &Core, range: &Range<u64>) -> Range<u64> {
    let start = whole_chunks(core, range).end * u64::from(core.geometry.chunk_bytes);
    start.max(head_of(core, range).end)..range.end
}

/// Zeroes a range, in ascending order, in that of the write buffer; false where that is full,
/// and nothing pays for the chunks at the ends that are covered in part.
fn buffer_unmap(
    core: &mut Core,
    volume: &Arc<VolumeShared>,
    range: &Range<u64>,
    ack: &Arc<Ack>,
) -> bool {
    let head = zero_part(core, volume.id, head_of(core, range), ack);
    buffer_whole_chunks(core, volume, range);
    let tail = zero_part(core, volume.id, tail_of(core, range), ack);
    head && tail
}

fn buffer_whole_chunks(core: &mut Core, volume: &Arc<VolumeShared>, range: &Range<u64>) {
    let Range { start: first, end } = whole_chunks(core, range);
    if end.saturating_sub(first) > SLOTS_MAX {
        let volume = Arc::clone(volume);
        core.buffer.push_closed(Work::Unmap { volume, first, end });
        return;
    }
    let end = if mutant!(TrimsOneTooMany) && first < end { end + 1 } else { end };
    for lba in first..end {
        core.buffer.put(volume.id, Lba(lba), SlotData::Zeros);
    }
}

/// Zeroes a part of one chunk; false if nothing pays for the memory that this takes.
fn zero_part(core: &mut Core, id: VolumeId, range: Range<u64>, ack: &Arc<Ack>) -> bool {
    if range.is_empty() {
        return true;
    }
    let chunk_bytes = u64::from(core.geometry.chunk_bytes);
    let permit = core.intake.credits.try_permit(chunk_bytes as usize);
    let credit = permit.map(|permit| Arc::new(ChunkBuf::with_permit(0, permit)));
    let part = ChunkPart {
        offset_bytes: (range.start % chunk_bytes) as usize,
        length_bytes: (range.end - range.start) as usize,
        source: None,
        credit: credit.as_ref(),
        ack: Some(ack),
    };
    core.buffer.put_part(id, Lba(range.start / chunk_bytes), &part);
    credit.is_some()
}
