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
use reduce::Image;

use crate::devices::Place;
use crate::door::outcome::FrameBytes;
use crate::door::volume::VolumeShared;
use crate::duplicates::known::known_frame;
use crate::engine::Engine;
use crate::read::ahead::{Arrived, Found};
use crate::read::frame_cache::HeldFrame;
use crate::read::reads::{ReadFor, ReadOp, SpanPart, add_to_spans};

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
        match self.ahead.found_ahead(&mut self.core, pbn, pba, verifies) {
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
                    self.duplicates.compare_frames(&mut self.core, *group, &frames, &image, None);
                }
                None => {
                    let mut spans = Vec::new();
                    parts.for_each(|part| add_to_spans(&mut spans, part));
                    spans
                        .into_iter()
                        .for_each(|span| self.duplicates.read_known(&mut self.core, *group, span));
                }
            }
        }
    }
}
