//! Where the bytes of candidates are: on their way themselves, in memory, or on the device.
//!
//! In memory are chunks of the write buffer, frames that were read before, containers that are not
//! on the device yet, and what was read ahead. All of a group that is in memory is laid one after
//! the other, for workers to compare with; the rest is read.

use format::units::{Fingerprint, Pba, Pbn};
use reduce::{ChunkRef, FramePlace, KnownFrame};
use tables::pbn_pba;

use crate::core::Core;
use crate::duplicates::Duplicates;
use crate::duplicates::candidates::{Candidate, Outcome};
use crate::read::ahead::{Ahead, Found};
use crate::read::reads::SpanPart;
use crate::write::slot::{Plan, Slot, SlotData};

/// A chunk with so many references gets no more: what groups on their way add to it is far less
/// than what is left up to the largest count.
pub(crate) const REFERENCES_FULL: u32 = u32::MAX - (1 << 24);

/// Slots to be compared, by where the bytes of their candidates are.
#[derive(Default)]
pub(crate) struct Due {
    /// On their way themselves.
    pub(crate) chunks: Vec<(usize, ChunkRef)>,
    /// In containers that are in memory: their frames, one after the other.
    pub(crate) image: Vec<u8>,
    pub(crate) frames: Vec<(usize, KnownFrame, Pba)>,
    /// To be read.
    pub(crate) parts: Vec<SpanPart>,
    /// Those that wait for a stretch that is being read ahead.
    pub(crate) waiting: usize,
    /// Where candidates are on the device that were not in memory by name.
    pub(crate) places: Vec<Pba>,
}

impl Due {
    fn frame_in_memory(&mut self, at: usize, pbn: Pbn, pba: Pba, frame: &[u8]) {
        let offset_bytes = self.image.len() as u32;
        let place = FramePlace { offset_bytes, length_bytes: pba.length_bytes, pbn };
        self.frames.push((at, KnownFrame { place, check: pba.check }, pba));
        self.image.extend_from_slice(frame);
    }
}

impl Duplicates {
    /// Where the bytes of a candidate are, or why there are none.
    pub(crate) fn find_known(
        &mut self,
        core: &mut Core,
        ahead: &mut Ahead,
        id: u64,
        at: usize,
        with: Candidate,
        due: &mut Due,
    ) -> Outcome {
        let pbn = match with {
            Candidate::Chunk(pbn) => pbn,
            Candidate::Slot(slot) => {
                return find_buffered(core.buffer.slot(id, slot), at, due);
            }
        };
        if let Some(slot) = self.pending_of(core, id, at, pbn) {
            return find_buffered(Some(slot), at, due);
        }
        let entry = pbn_pba::get(&core.state.store, pbn);
        let Some(entry) = entry.filter(|entry| core.geometry.has_place(entry.pba)) else {
            return Outcome::Unreadable;
        };
        if entry.references >= REFERENCES_FULL {
            return Outcome::Full;
        }
        let pba = entry.pba;
        if let Some(frame) = core.frames.get(pbn) {
            core.counters.frames_hit_to_compare += 1;
            due.frame_in_memory(at, pbn, pba, &frame);
            return Outcome::UnderWay;
        }
        match core.placement.read(pba) {
            Some(frame) => due.frame_in_memory(at, pbn, pba, &frame),
            None => {
                find_on_device(core, ahead, id, SpanPart { at, pba, pbn, has_copy: false }, due)
            }
        }
        Outcome::UnderWay
    }

    /// The pending chunk of a fingerprint, of a group that has been planned, and its slot.
    pub(crate) fn pending_chunk<'a>(
        &self,
        core: &'a Core,
        fingerprint: &Fingerprint,
    ) -> Option<(Pbn, &'a Slot)> {
        let hash = core.state.hash.hash_of(fingerprint);
        let place = self.lookups.pending.find(hash, fingerprint, &core.buffer)?;
        let slot = core.buffer.slot(place.group(), place.slot())?;
        match slot.plan {
            Plan::New { pbn, .. } => Some((pbn, slot)),
            _ => None,
        }
    }

    /// The chunk on its way that is this slot's candidate, unless it is stored by now.
    fn pending_of<'a>(&self, core: &'a Core, id: u64, at: usize, pbn: Pbn) -> Option<&'a Slot> {
        let fingerprint = core.buffer.slot(id, at)?.fingerprint.as_ref()?;
        let (pending, slot) = self.pending_chunk(core, fingerprint)?;
        (pending == pbn).then_some(slot)
    }
}

fn find_on_device(core: &mut Core, ahead: &mut Ahead, id: u64, part: SpanPart, due: &mut Due) {
    let SpanPart { at, pba, pbn, .. } = part;
    due.places.push(pba);
    match ahead.found_ahead(core, pbn, pba, true) {
        Found::Here(buf, start) => {
            let start = start as usize;
            let frame = buf.get(start..start + pba.length_bytes as usize).unwrap_or_default();
            core.counters.frames_ahead_to_compare += 1;
            due.frame_in_memory(at, pbn, pba, frame);
        }
        Found::Coming(place) => {
            core.counters.frames_ahead_to_compare += 1;
            ahead.wait(place, id, part);
            ahead.used(pba);
            due.waiting += 1;
        }
        Found::Absent => due.parts.push(part),
    }
}

/// The frame of a part of a stretch that begins at `first_bytes`, for a comparison.
pub(crate) fn known_frame(part: SpanPart, first_bytes: u32) -> (usize, KnownFrame, Pba) {
    let SpanPart { at, pba, pbn, .. } = part;
    let offset_bytes = pba.offset_bytes - first_bytes;
    let place = FramePlace { offset_bytes, length_bytes: pba.length_bytes, pbn };
    (at, KnownFrame { place, check: pba.check }, pba)
}

fn find_buffered(slot: Option<&Slot>, at: usize, due: &mut Due) -> Outcome {
    match slot.map(|slot| &slot.data) {
        Some(SlotData::Whole(chunk)) => {
            due.chunks.push((at, chunk.clone()));
            Outcome::UnderWay
        }
        _ => Outcome::Unreadable,
    }
}
