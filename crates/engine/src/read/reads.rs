//! Reads that wait for pages, and reads that wait for frames.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use disk::AlignedBuf;
use format::frame;
use format::pba_page::PbaEntry;
use format::units::{ContainerId, Pba, Pbn, VolumeId};
use reduce::Permit;
use tables::PinSet;

use crate::core::frame::blocks_of;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::lookaside;
use crate::door::outcome::{FrameBytes, Piece, PiecePart, ReadPieces};
use crate::door::requests::ExtentsRequest;
use crate::door::volume::VolumeShared;
use crate::read::frame_cache::Ticket;
use crate::read::streams::Streams;

/// Longest stretch of a container that one I/O fetches.
const SPAN_BYTES_MAX: u32 = 1 << 20;

/// Frames of longer reads are not held.
const HELD_READ_BYTES_MAX: u32 = 256 << 10;

/// For whom a read is.
pub(crate) enum ReadFor {
    Client(Done<ReadPieces>),
    /// The stored bytes around a partly written chunk: slot of a group.
    Base {
        group: u64,
        slot: usize,
    },
    /// Nobody yet: the stretches that it comes to are read ahead.
    Ahead,
}

/// A read under way.
pub(crate) struct ReadOp {
    pub(crate) volume: Arc<VolumeShared>,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u32,
    /// The count of changes when it was queued ([`crate::door::lookaside`]).
    pub(crate) as_of: u64,
    pub(crate) whom: ReadFor,
    pub(crate) permit: Option<Permit>,
    /// Chunks whose frames turned out to be damaged: their second copies are read.
    pub(crate) avoided: Vec<Pbn>,
}

impl ReadOp {
    /// Whether what it reads is held in case it is read again. A long read reads at the speed of
    /// the device anyway; and of a chunk's second copy the table of places knows no check.
    pub(crate) fn fills_cache(&self) -> bool {
        let is_clients = matches!(self.whom, ReadFor::Client(_));
        is_clients && self.length_bytes <= HELD_READ_BYTES_MAX && self.avoided.is_empty()
    }

    /// Whether doors may be asked for the same again.
    pub(crate) fn is_for_doors(&self) -> bool {
        self.fills_cache() && u64::from(self.length_bytes) <= lookaside::READ_BYTES_MAX
    }
}

/// A stretch of a container on its way.
pub(crate) struct Span {
    pub(crate) container: ContainerId,
    pub(crate) first_bytes: u32,
    pub(crate) end_bytes: u32,
    /// Parts whose frames lie in it.
    pub(crate) parts: Vec<SpanPart>,
}

/// A frame in a stretch.
#[derive(Copy, Clone)]
pub(crate) struct SpanPart {
    /// Which part of the read it is.
    pub(crate) at: usize,
    pub(crate) pba: Pba,
    pub(crate) pbn: Pbn,
    /// Whether there is a second copy that has not been tried.
    pub(crate) has_copy: bool,
}

/// A read whose frames are on their way.
pub(crate) struct Fetching {
    pub(crate) op: ReadOp,
    pub(crate) parts: Vec<PiecePart>,
    pub(crate) spans: Vec<Span>,
    pub(crate) spans_left: usize,
    pub(crate) failed: Option<RequestError>,
    /// Chunks whose frames did not come, or are damaged, and that have second copies.
    pub(crate) suspects: Vec<Pbn>,
    /// Lets its frames into the cache, if any may go there.
    pub(crate) ticket: Option<Ticket>,
}

/// Reads that wait for pages, and reads that wait for frames.
#[derive(Default)]
pub(crate) struct Reads {
    pub(crate) parked: VecDeque<ReadOp>,
    pub(crate) retry: bool,
    pub(crate) fetching: BTreeMap<u64, Fetching>,
    pub(crate) next_read: u64,
    /// Sequential readers.
    pub(crate) streams: Streams,
    /// Questions for extents that wait for pages.
    pub(crate) extents: VecDeque<ExtentsRequest>,
    /// Pages for the read that has waited longest.
    pub(crate) pins: PinSet,
    /// Lists that a read is resolved with; empty in between.
    pub(crate) named: Vec<Pbn>,
    pub(crate) entries: Vec<Option<PbaEntry>>,
}

impl Reads {
    /// Something that parked reads may have waited for has come.
    pub(crate) fn retry_parked(&mut self) {
        self.retry = true;
    }

    pub(crate) fn any(&self) -> bool {
        !self.parked.is_empty() || !self.fetching.is_empty()
    }

    /// Whether a client waits for bytes or extents of this volume.
    pub(crate) fn have_clients_of(&self, volume: VolumeId) -> bool {
        let fetching = self.fetching.values().map(|fetching| &fetching.op);
        let mut reads = self.parked.iter().chain(fetching);
        reads.any(|op| op.volume.id == volume && matches!(op.whom, ReadFor::Client(_)))
            || self.extents.iter().any(|extents| extents.volume.id == volume)
    }

    /// Clients that wait are told `error`.
    pub(crate) fn fail(&mut self, error: &RequestError) {
        let fetching = std::mem::take(&mut self.fetching).into_values();
        for op in self.parked.drain(..).chain(fetching.map(|fetching| fetching.op)) {
            if let ReadFor::Client(done) = op.whom {
                done.fail(error.clone());
            }
        }
        self.extents.drain(..).for_each(|request| request.done.fail(error.clone()));
    }
}

impl Span {
    /// The chunks with a second copy whose frames are not in `buf` as they are meant, or did not
    /// come.
    pub(crate) fn suspects<'a>(
        &'a self,
        buf: Option<&'a AlignedBuf>,
    ) -> impl Iterator<Item = Pbn> + 'a {
        let copied = self.parts.iter().filter(|part| part.has_copy);
        copied.filter(move |part| self.meant(part, buf).is_none()).map(|part| part.pbn)
    }

    /// The frame of a part in `buf`, if it is there as it is meant.
    pub(crate) fn meant<'a>(
        &self,
        part: &SpanPart,
        buf: Option<&'a AlignedBuf>,
    ) -> Option<&'a [u8]> {
        let start = (part.pba.offset_bytes - self.first_bytes) as usize;
        let frame = buf?.get(start..start + part.pba.length_bytes as usize)?;
        frame::is_meant(frame, part.pbn, part.pba.check).then_some(frame)
    }

    /// Gives every part its frame.
    pub(crate) fn hand_out(&self, buf: AlignedBuf, parts: &mut [PiecePart]) {
        let buf = Arc::new(buf);
        for &SpanPart { at, pba, pbn, .. } in &self.parts {
            let (buf, length_bytes) = (Arc::clone(&buf), pba.length_bytes);
            let offset_bytes = pba.offset_bytes - self.first_bytes;
            let bytes = FrameBytes::Read { buf, offset_bytes, length_bytes };
            parts[at].piece = Piece::Frame { bytes, pbn, check: pba.check };
        }
    }
}

/// Adds a frame to the stretches to be read.
pub(crate) fn add_to_spans(spans: &mut Vec<Span>, part: SpanPart) {
    let pba = part.pba;
    let Range { start: first_bytes, end: end_bytes } = blocks_of(pba);
    if let Some(last) = spans.last_mut()
        && last.container == pba.container
        && (last.first_bytes..=last.end_bytes).contains(&first_bytes)
        && end_bytes.max(last.end_bytes) - last.first_bytes <= SPAN_BYTES_MAX
    {
        last.end_bytes = last.end_bytes.max(end_bytes);
        last.parts.push(part);
        return;
    }
    let container = pba.container;
    spans.push(Span { container, first_bytes, end_bytes, parts: vec![part] });
}
