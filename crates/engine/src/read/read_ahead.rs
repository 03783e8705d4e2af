//! Reading ahead: what sequential readers and runs of comparisons will need next.
//!
//! A sequential reader ([`crate::read::streams`]) gets the chunks that follow in its volume: their
//! places are looked up as a read's are, what is not in memory is read, neighbours in one I/O, and
//! kept as it comes ([`crate::read::ahead`]). So the pages of map and PBN-PBA table come in ahead
//! as well.
//!
//! Comparisons get what follows in the container. Who writes again what is stored mostly writes it
//! in the order in which it was stored: where many candidates of a group lie in one container
//! ([`ComparingAhead`](crate::options::ComparingAhead): EaD's trigger), the frames behind them are
//! read (EaD's distance), so that the next groups find theirs here.
//!
//! Nobody waits for room, pages or answers here: what cannot be had ahead is read when it is
//! needed. Who needs what is on its way waits for it.

use std::ops::Range;
use std::sync::Arc;

use disk::AlignedBuf;
use format::BLOCK_BYTES;
use format::container_page::ContainerState;
use format::frame;
use format::units::{CONTAINER_BYTES, ContainerId, Pba, Pbn};
use reduce::{FramePlace, Image, KnownFrame, frame_bytes_max};

use crate::core::invariant::Invariant;
use crate::devices::{Place, Purpose};
use crate::door::outcome::FrameBytes;
use crate::door::volume::VolumeShared;
use crate::engine::Engine;
use crate::read::ahead::{Arrived, Found};
use crate::read::frame_cache::HeldFrame;
use crate::read::reads::{ReadFor, ReadOp, Span, SpanPart, add_to_spans};

/// Where a frame is that a read needs.
pub(crate) enum Source {
    /// It was read before.
    Held(FrameBytes),
    /// It is in a container that is not on the device yet.
    New(FrameBytes),
    /// It was read ahead.
    Ahead(FrameBytes),
    /// It is being read ahead.
    Coming,
    Disk,
}

impl Engine {
    /// A client reads this range of a volume.
    pub(crate) fn follow_reader(&mut self, volume: &Arc<VolumeShared>, range: Range<u64>) {
        let window_bytes = self.ahead.window_bytes();
        let due = self.reads.streams.follow(volume.id, range, window_bytes);
        let Some(due) = due.filter(|_| !self.core.is_closing) else { return };
        let chunk_bytes = u64::from(self.core.geometry.chunk_bytes);
        let offset_bytes = due.start / chunk_bytes * chunk_bytes;
        let end_bytes = due.end.min(volume.size_bytes());
        let length_bytes = end_bytes.saturating_sub(offset_bytes) as u32;
        if length_bytes > 0 {
            self.read_for_itself(volume.id, offset_bytes, length_bytes, ReadFor::Ahead);
        }
    }

    /// Reads these stretches, for nobody yet.
    pub(crate) fn read_spans_ahead(&mut self, spans: Vec<Span>) {
        for Span { container, first_bytes, end_bytes, .. } in spans {
            self.read_stretch((container, first_bytes), end_bytes);
        }
    }

    /// Where the frame of a chunk is, for a read.
    pub(crate) fn source(&mut self, op: &ReadOp, part: &SpanPart) -> Source {
        let SpanPart { pbn, pba, .. } = *part;
        // A long read mostly finds what was read ahead of it: among few stretches, where the many
        // frames that are held would each cost a miss of the processor's cache.
        let is_long = !op.fills_cache();
        if is_long && let Some(source) = self.source_ahead(op, part) {
            return source;
        }
        if let Some(frame) = self.core.frames.get(pbn) {
            return Source::Held(FrameBytes::Held(frame));
        }
        if let Some(frame) = self.core.placement.read(pba) {
            let kept = if op.is_for_doors() { self.core.frames.keep(pbn, &frame) } else { None };
            let held = kept.unwrap_or_else(|| HeldFrame::new(&frame));
            return Source::New(FrameBytes::Held(held));
        }
        let source = if is_long { None } else { self.source_ahead(op, part) };
        source.unwrap_or(Source::Disk)
    }

    fn source_ahead(&mut self, op: &ReadOp, part: &SpanPart) -> Option<Source> {
        let SpanPart { pbn, pba, has_copy, .. } = *part;
        // What is held from now on is verified here, and what could be read elsewhere; the rest by
        // who expands it.
        let verifies = op.fills_cache() || has_copy || pba.check.is_unknown();
        match self.found_ahead(pbn, pba, verifies) {
            Found::Absent => None,
            Found::Coming(_) => Some(Source::Coming),
            Found::Here(buf, offset_bytes) => {
                let length_bytes = pba.length_bytes;
                let bytes = FrameBytes::Read { buf, offset_bytes, length_bytes };
                if op.fills_cache()
                    && let Some(frame) = bytes.bytes()
                    && let Some(held) = self.core.frames.keep(pbn, frame)
                {
                    self.core.intake.lookaside.fill_name((pbn, pba.check), &held);
                    // A reply that waits for its client holds a frame, then, and not a stretch.
                    return Some(Source::Ahead(FrameBytes::Held(held)));
                }
                Some(Source::Ahead(bytes))
            }
        }
    }

    /// Whether nothing need be read for a chunk that may be asked for soon.
    pub(crate) fn is_near(&self, pbn: Pbn, pba: Pba) -> bool {
        let life = self.core.state.containers.get(pba.container);
        self.core.frames.contains(pbn)
            || self.core.placement.is_in_memory(pba.container)
            || !matches!(self.ahead.find(pba, life.sequence), Found::Absent)
    }

    /// Where a frame is as far as stretches go; taken from one only if it is as it is meant, its
    /// payload included if this `verifies`.
    pub(crate) fn found_ahead(&mut self, pbn: Pbn, pba: Pba, verifies: bool) -> Found {
        let life = self.core.state.containers.get(pba.container);
        let found = self.ahead.find(pba, life.sequence);
        let Found::Here(buf, start) = &found else { return found };
        let start = *start as usize;
        let frame = buf.get(start..start + pba.length_bytes as usize);
        let is_right = if verifies { frame::is_meant } else { frame::claims_to_be };
        if !frame.is_some_and(|frame| is_right(frame, pbn, pba.check)) {
            return Found::Absent;
        }
        self.ahead.used(pba);
        found
    }

    /// A group is compared with chunks in these places on the device: what follows a run of them is
    /// read.
    pub(crate) fn follow_comparisons(&mut self, places: &[Pba]) {
        if self.ahead.of_comparisons.bytes == 0 {
            return;
        }
        let mut runs: Vec<(ContainerId, usize, u32)> = Vec::new();
        for pba in places {
            let end_bytes = pba.offset_bytes + pba.length_bytes;
            match runs.iter_mut().rev().find(|(of, ..)| *of == pba.container) {
                Some((_, length, reach)) => {
                    *length += 1;
                    *reach = end_bytes.max(*reach);
                }
                None => runs.push((pba.container, 1, end_bytes)),
            }
        }
        let run_min = self.ahead.of_comparisons.run_min;
        for (container, _, reach) in runs.into_iter().filter(|run| run.1 >= run_min) {
            self.read_along(container, reach);
        }
    }

    /// Reads what follows in a container, and from the beginning of the next one.
    fn read_along(&mut self, first: ContainerId, from_bytes: u32) {
        let window_bytes =
            self.ahead.window_bytes().min(u64::from(self.ahead.of_comparisons.bytes)) as u32;
        let (mut at, mut left_bytes) = (from_bytes, window_bytes);
        for container in [first, ContainerId(first.0.saturating_add(1))] {
            let life = self.core.state.containers.get(container);
            if life.state != ContainerState::Sealed || self.core.placement.is_in_memory(container) {
                return;
            }
            let used_bytes = whole_blocks(life.used_bytes).min(CONTAINER_BYTES);
            let end_bytes = whole_blocks(at.saturating_add(left_bytes)).min(used_bytes);
            let start_bytes = self.ahead.covered_to(container, at, life.sequence);
            let lacks_bytes = end_bytes.saturating_sub(start_bytes);
            // In halves of a window, or what is left of the container.
            if lacks_bytes >= window_bytes / 2 || (lacks_bytes > 0 && end_bytes == used_bytes) {
                // The frame that lies across the end of what is here is to be had as well.
                let frame_bytes = frame_bytes_max(self.core.geometry.chunk_bytes as usize) as u32;
                let overlap_bytes = if start_bytes > at { frame_bytes } else { 0 };
                let start_bytes = start_bytes.saturating_sub(overlap_bytes);
                let first_bytes = start_bytes / BLOCK_BYTES as u32 * BLOCK_BYTES as u32;
                self.read_stretch((container, first_bytes), end_bytes);
            }
            left_bytes = left_bytes.saturating_sub(end_bytes.saturating_sub(at));
            at = 0;
            if left_bytes == 0 {
                return;
            }
        }
    }

    fn read_stretch(&mut self, place: Place, end_bytes: u32) {
        let (container, first_bytes) = place;
        let sequence = self.core.state.containers.get(container).sequence;
        let Some((zone, start_bytes)) = self.core.geometry.container_zone(container) else {
            return self.core.violated(Invariant::ContainersKeepNumbers);
        };
        if self.core.is_closing || !self.ahead.begin(place, end_bytes, sequence) {
            return;
        }
        self.core.placement.space.pin(container);
        let offset_bytes = start_bytes + u64::from(first_bytes);
        let length_bytes = (end_bytes - first_bytes) as usize;
        self.core.devices.read(zone, offset_bytes, length_bytes, Purpose::Ahead(place));
    }

    /// A stretch has come; None when the device did not give it.
    pub(crate) fn stretch_read(&mut self, place: Place, buf: Option<AlignedBuf>) {
        self.core.placement.space.unpin(place.0);
        let Arrived { buf, waiting } = self.ahead.arrive(place, buf);
        self.reads.retry_parked();
        for some in waiting.chunk_by(|one, next| one.0 == next.0) {
            let Some((group, _)) = some.first() else { continue };
            let parts = some.iter().map(|(_, part)| *part);
            match &buf {
                Some(buf) => {
                    let frames: Vec<_> = parts.map(|part| known_frame(part, place.1)).collect();
                    let image = Arc::clone(buf) as Arc<dyn Image>;
                    self.compare_frames(*group, &frames, &image, None);
                }
                None => {
                    let mut spans = Vec::new();
                    parts.for_each(|part| add_to_spans(&mut spans, part));
                    spans.into_iter().for_each(|span| self.read_known(*group, span));
                }
            }
        }
    }
}

/// The frame of a part of a stretch that begins at `first_bytes`, for a comparison.
pub(crate) fn known_frame(part: SpanPart, first_bytes: u32) -> (usize, KnownFrame, Pba) {
    let SpanPart { at, pba, pbn, .. } = part;
    let offset_bytes = pba.offset_bytes - first_bytes;
    let place = FramePlace { offset_bytes, length_bytes: pba.length_bytes, pbn };
    (at, KnownFrame { place, check: pba.check }, pba)
}

fn whole_blocks(bytes: u32) -> u32 {
    bytes.next_multiple_of(BLOCK_BYTES as u32)
}
