//! Reads: the write buffer first, then the map, then frames from memory or disk.
//!
//! A read is resolved in one go, once every page it needs is here and no chunk of it waits for
//! the rest of its bytes: each chunk becomes a piece (zeros, a buffered chunk, a frame in memory,
//! or a place on disk). Frames that lie next to each other in a container are fetched by one I/O;
//! those of short reads are held in case they are read again ([`crate::read::frame_cache`]).
//! The container is pinned while it is read, so that nobody reuses it meanwhile. Decompression is
//! left to the caller ([`crate::ReadPieces::assemble`]).
//!
//! A read that must wait is parked and tried again when pages arrive or chunks are filled. The one
//! that has waited longest keeps the pages that are here already: were they to leave the cache
//! while others come, a read of more pages than the cache has room for would never end.
//!
//! The frame of a chunk that has a second copy is checked here already. Where it is damaged, or the
//! device does not give it, the read is resolved again and takes the copy ([`crate::copies`]).

pub(crate) mod ahead;
pub(crate) mod extents;
pub(crate) mod for_doors;
pub(crate) mod frame_cache;
pub(crate) mod read_ahead;
pub(crate) mod reads;
pub(crate) mod streams;
pub(crate) mod stretches;

use std::collections::btree_map::Entry;
use std::sync::Arc;

use disk::AlignedBuf;
use format::catalog::VolumeKind;
use format::pba_page::PbaEntry;
use format::units::{Lba, Pba, Pbn, TreeId, VolumeId};
use tables::{PageError, lba_pbn, pbn_pba, second_copies};

use crate::core::invariant::Invariant;
use crate::devices::Purpose;
use crate::door::error::RequestError;
use crate::door::outcome::{Piece, PiecePart, ReadPieces};
use crate::door::requests::ReadRequest;
use crate::door::volume::VolumeShared;
use crate::engine::Engine;
use crate::pages::absence::lacking_page;
use crate::pages::wanted::Wanted;
use crate::read::frame_cache::Ticket;
use crate::read::read_ahead::Source;
use crate::read::reads::{Fetching, ReadFor, ReadOp, Span, SpanPart, add_to_spans};
use crate::state::mapping::runs_by_leaf;
use crate::write::newest::Newest;
use crate::write::slot::SlotData;
use crate::zone_name;

/// What resolving a read came to.
enum Resolved {
    Waits,
    Parts(Vec<PiecePart>, Vec<Span>),
}

/// Chunks of a read by where their frames are.
#[derive(Default)]
struct Tally {
    held: u64,
    new: u64,
    ahead: u64,
    coming: u64,
    missed: u64,
}

impl Tally {
    fn count(&mut self, source: &Source) {
        match source {
            Source::Held(_) => self.held += 1,
            Source::New(_) => self.new += 1,
            Source::Ahead(_) => self.ahead += 1,
            Source::Coming => self.coming += 1,
            Source::Disk => self.missed += 1,
        }
    }
}

impl Engine {
    pub(crate) fn accept_read(&mut self, read: ReadRequest) {
        let ReadRequest { volume, offset_bytes, length_bytes, as_of, permit, done } = read;
        if let Err(error) = volume.check_range(offset_bytes, u64::from(length_bytes)) {
            return done.fail(error);
        }
        self.core.counters.reads += 1;
        self.core.counters.bytes_read += u64::from(length_bytes);
        let (whom, permit) = (ReadFor::Client(done), Some(permit));
        let (avoided, of) = (Vec::new(), Arc::clone(&volume));
        self.try_read(ReadOp { volume, offset_bytes, length_bytes, as_of, whom, permit, avoided });
        self.follow_reader(&of, offset_bytes..offset_bytes + u64::from(length_bytes));
    }

    /// Reads what is stored around a partly written chunk.
    pub(crate) fn read_base(&mut self, volume: VolumeId, lba: Lba, group: u64, slot: usize) {
        let chunk_bytes = self.core.geometry.chunk_bytes;
        let offset_bytes = lba.0 * u64::from(chunk_bytes);
        self.read_for_itself(volume, offset_bytes, chunk_bytes, ReadFor::Base { group, slot });
    }

    /// Reads what no client waits for.
    pub(crate) fn read_for_itself(
        &mut self,
        id: VolumeId,
        offset_bytes: u64,
        length_bytes: u32,
        whom: ReadFor,
    ) {
        let chunk_bytes = self.core.geometry.chunk_bytes;
        let volume =
            VolumeShared::new(id, "", u64::MAX, true, chunk_bytes, None, VolumeKind::default());
        let (as_of, permit, avoided) = (0, None, Vec::new());
        self.try_read(ReadOp { volume, offset_bytes, length_bytes, as_of, whom, permit, avoided });
    }

    /// Tries parked reads again, in the order in which they came.
    pub(crate) fn advance_reads(&mut self) -> bool {
        let waits = !self.reads.parked.is_empty() || !self.reads.extents.is_empty();
        if !std::mem::take(&mut self.reads.retry) || !waits {
            return false;
        }
        self.advance_extents();
        for op in std::mem::take(&mut self.reads.parked) {
            self.try_read(op);
        }
        true
    }

    pub(crate) fn try_read(&mut self, op: ReadOp) {
        // With a deleted volume its map goes, while this waited: there it would be all zeros.
        if let Err(error) = op.volume.check_there() {
            return self.end_read(op, Err(error));
        }
        match self.resolve(&op) {
            Ok(Resolved::Waits) => self.reads.parked.push_back(op),
            Ok(Resolved::Parts(parts, spans)) => self.fetch(op, parts, spans),
            Err(error) => self.end_read(op, Err(lacking_page(&error))),
        }
    }

    fn resolve(&mut self, op: &ReadOp) -> Result<Resolved, PageError> {
        let Some(parts) = self.buffered_parts(op) else { return Ok(Resolved::Waits) };
        let stored = stored_parts(&parts);
        if stored.is_empty() {
            return Ok(Resolved::Parts(parts, Vec::new()));
        }
        let mut wanted = Wanted::default();
        let mut named = std::mem::take(&mut self.reads.named);
        let here = self.want_stored(op.volume.id, &stored, &parts, &mut wanted, &mut named);
        let resolved = here.map(|here| match here {
            true => self.locate(op, parts, &stored, &named),
            false => Resolved::Waits,
        });
        named.clear();
        self.reads.named = named;
        if self.reads.parked.is_empty() {
            // Nobody waits longer.
            let waits = matches!(resolved, Ok(Resolved::Waits));
            let done = if waits { None } else { Some(std::mem::take(&mut wanted.pins)) };
            self.core.hold_in(&mut self.reads.pins, wanted);
            done.into_iter().for_each(|pins| self.core.state.store.release_pins(pins));
        } else {
            self.core.submit_page_reads(wanted.reads);
            self.core.state.store.release_pins(wanted.pins);
        }
        resolved
    }

    /// The parts of a read with what the write buffer holds of them; what it does not hold is
    /// [`Piece::Pending`]. None while a chunk is not whole yet, or not copied.
    fn buffered_parts(&self, op: &ReadOp) -> Option<Vec<PiecePart>> {
        let chunk_bytes = u64::from(self.core.geometry.chunk_bytes);
        let end_bytes = op.offset_bytes + u64::from(op.length_bytes);
        let mut parts = Vec::with_capacity(op.length_bytes as usize / chunk_bytes as usize + 2);
        let mut at_bytes = op.offset_bytes;
        while at_bytes < end_bytes {
            let lba = at_bytes / chunk_bytes;
            let skip_bytes = at_bytes % chunk_bytes;
            let take_bytes = (chunk_bytes - skip_bytes).min(end_bytes - at_bytes);
            let piece = match &op.whom {
                ReadFor::Base { .. } => Piece::Pending,
                ReadFor::Client(_) | ReadFor::Ahead => {
                    self.buffered_piece(op.volume.id, Lba(lba))?
                }
            };
            let (skip_bytes, take_bytes_32) = (skip_bytes as u32, take_bytes as u32);
            parts.push(PiecePart { piece, lba, skip_bytes, take_bytes: take_bytes_32 });
            at_bytes += take_bytes;
        }
        Some(parts)
    }

    fn buffered_piece(&self, volume: VolumeId, lba: Lba) -> Option<Piece> {
        match self.core.buffer.newest(volume, lba) {
            Newest::Nothing => Some(Piece::Pending),
            Newest::Unmapped => Some(Piece::Zeros),
            Newest::Copied { .. } => None,
            Newest::Slot { group, slot } => match &self.core.buffer.slot(group, slot)?.data {
                SlotData::Zeros => Some(Piece::Zeros),
                SlotData::Whole(chunk) => Some(Piece::Plain(chunk.clone())),
                SlotData::Partial(_) => None,
            },
        }
    }

    /// Asks for all pages of the stored parts, and adds to `named` which chunks those are: all of
    /// them if every page is here. A page is looked for once for all that lies side by side in it.
    fn want_stored(
        &mut self,
        volume: VolumeId,
        stored: &[usize],
        parts: &[PiecePart],
        wanted: &mut Wanted,
        named: &mut Vec<Pbn>,
    ) -> Result<bool, PageError> {
        let tree = TreeId::volume(volume);
        let mut here = true;
        for (first, count) in runs_in_leaves(stored, parts) {
            let leaf = lba_pbn::place(first).0;
            if self.core.state.store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads)? {
                lba_pbn::extend_run(&self.core.state.store, tree, first, count, named);
            } else {
                here = false;
            }
        }
        for &pbn in named.iter().filter(|pbn| !pbn.is_none()) {
            here &= self.core.state.want_pba(pbn, wanted)?;
            if self.core.may_have_copy(pbn) {
                // Without its page there is just no copy.
                here &= self.core.state.want_copy(pbn, wanted).unwrap_or(true);
            }
        }
        Ok(here)
    }

    /// Finds where the stored parts are, which name these chunks; all pages are here.
    fn locate(
        &mut self,
        op: &ReadOp,
        mut parts: Vec<PiecePart>,
        stored: &[usize],
        named: &[Pbn],
    ) -> Resolved {
        let tree = TreeId::volume(op.volume.id);
        for (first, count) in runs_in_leaves(stored, &parts) {
            self.core.state.store.count_accesses(tree, lba_pbn::place(first).0, count);
        }
        let mut entries = std::mem::take(&mut self.reads.entries);
        pbn_pba::get_all(&mut self.core.state.store, named, &mut entries);
        self.core.state.entries_seen.maps += stored.len() as u64;
        let mut spans: Vec<Span> = Vec::new();
        let mut tally = Tally::default();
        for ((&at, &pbn), entry) in stored.iter().zip(named).zip(entries.drain(..)) {
            if pbn.is_none() {
                parts[at].piece = Piece::Zeros;
                if op.is_for_doors() {
                    let address = (op.volume.id, Lba(parts[at].lba));
                    self.core.intake.lookaside.fill_zeros(address, op.as_of);
                }
                continue;
            }
            self.core.state.entries_seen.pbn_pba += 1;
            // Without a place, or with one that cannot be, it stays pending: it is damaged.
            let Some(entry) = entry.filter(|entry| self.core.geometry.has_place(entry.pba)) else {
                continue;
            };
            let part = self.place_of(op, at, pbn, entry);
            if matches!(op.whom, ReadFor::Ahead) {
                if !self.ahead.is_near(&self.core, pbn, part.pba) {
                    add_to_spans(&mut spans, part);
                }
                continue;
            }
            let source = self.source(op, &part);
            tally.count(&source);
            self.let_doors_know(op, Lba(parts[at].lba), &part, &source);
            match source {
                Source::Held(bytes) | Source::New(bytes) | Source::Ahead(bytes) => {
                    parts[at].piece = Piece::Frame { bytes, pbn, check: part.pba.check };
                }
                Source::Coming => {}
                Source::Disk => add_to_spans(&mut spans, part),
            }
        }
        self.reads.entries = entries;
        if tally.coming > 0 {
            return Resolved::Waits;
        }
        if tally.held + tally.new > 0 {
            self.show_leaf(op, Lba(parts[stored[0]].lba));
        }
        self.core.counters.frames_hit += tally.held;
        self.core.counters.frames_ahead += tally.ahead;
        self.core.counters.frames_missed += tally.missed;
        Resolved::Parts(parts, spans)
    }

    /// Which of its places a chunk is read from.
    fn place_of(&self, op: &ReadOp, at: usize, pbn: Pbn, entry: PbaEntry) -> SpanPart {
        let copy = self.copy_of(pbn, entry.references);
        let (pba, has_copy) = match copy.filter(|_| op.avoided.contains(&pbn)) {
            Some(copy) => (copy, false),
            None => (entry.pba, copy.is_some() && !op.avoided.contains(&pbn)),
        };
        SpanPart { at, pba, pbn, has_copy }
    }

    fn copy_of(&self, pbn: Pbn, references: u32) -> Option<Pba> {
        let may = self.core.state.may_have_copy(references);
        let copy = if may { second_copies::get(&self.core.state.store, pbn) } else { None };
        copy.filter(|copy| self.core.geometry.has_place(*copy))
    }

    fn fetch(&mut self, op: ReadOp, parts: Vec<PiecePart>, spans: Vec<Span>) {
        if spans.is_empty() {
            return self.finish_read(op, parts);
        }
        if matches!(op.whom, ReadFor::Ahead) {
            return self.ahead.read_spans_ahead(&mut self.core, spans);
        }
        let read = self.reads.next_read;
        self.reads.next_read += 1;
        for (number, span) in spans.iter().enumerate() {
            let container = span.container;
            let Some((zone, start_bytes)) = self.core.geometry.container_zone(container) else {
                // Its stretches that are under way end in nothing.
                self.core.violated(Invariant::ContainersKeepNumbers);
                let stopped = self.core.stopped.clone().unwrap_or(RequestError::Closing);
                return self.end_read(op, Err(stopped));
            };
            self.core.placement.space.pin(container);
            let offset_bytes = start_bytes + u64::from(span.first_bytes);
            let length_bytes = (span.end_bytes - span.first_bytes) as usize;
            let purpose = Purpose::Frames { read, span: number, container };
            self.core.devices.read(zone, offset_bytes, length_bytes, purpose);
        }
        let ticket = self.expect_frames(&op, &spans);
        let spans_left = spans.len();
        let suspects = Vec::new();
        let fetching = Fetching { op, parts, spans, spans_left, failed: None, suspects, ticket };
        self.reads.fetching.insert(read, fetching);
    }

    /// Prepares the cache for the frames of a read.
    fn expect_frames(&mut self, op: &ReadOp, spans: &[Span]) -> Option<Ticket> {
        if !op.fills_cache() {
            return None;
        }
        let ticket = self.core.frames.ticket();
        let parts = spans.iter().flat_map(|span| &span.parts);
        parts.for_each(|part| self.core.frames.expect(part.pbn, ticket));
        Some(ticket)
    }

    /// One stretch of a read has come; None when the device did not give it.
    pub(crate) fn frames_ended(&mut self, read: u64, span: usize, buf: Option<AlignedBuf>) {
        // The engine has ended the read before its device did, or never began all of it.
        let Entry::Occupied(mut entry) = self.reads.fetching.entry(read) else { return };
        let fetching = entry.get_mut();
        fetching.spans_left -= 1;
        let suspects = fetching.spans[span].suspects(buf.as_ref());
        fetching.suspects.extend(suspects);
        if let Some(ticket) = fetching.ticket {
            let span = &fetching.spans[span];
            for part in &span.parts {
                if self.core.frames.is_expected(part.pbn, ticket)
                    && let frame = span.meant(part, buf.as_ref())
                    && let Some(held) = self.core.frames.arrive(part.pbn, ticket, frame)
                {
                    self.core.intake.lookaside.fill_name((part.pbn, part.pba.check), &held);
                }
            }
        }
        match buf {
            Some(buf) => fetching.spans[span].hand_out(buf, &mut fetching.parts),
            None => {
                let container = fetching.spans[span].container;
                let place = self.core.geometry.container_zone(container);
                fetching.failed = place.map(|(zone, start_bytes)| RequestError::ReadFailed {
                    zone: zone_name(zone),
                    offset_bytes: start_bytes + u64::from(fetching.spans[span].first_bytes),
                });
            }
        }
        if fetching.spans_left > 0 {
            return;
        }
        let fetching = entry.remove();
        if !fetching.suspects.is_empty() {
            return self.read_copies(fetching.op, fetching.suspects);
        }
        match fetching.failed {
            Some(error) => self.end_read(fetching.op, Err(error)),
            None => self.finish_read(fetching.op, fetching.parts),
        }
    }

    /// Reads again, these chunks from their second copies.
    fn read_copies(&mut self, mut op: ReadOp, suspects: Vec<Pbn>) {
        self.core.counters.chunks_read_from_copies += suspects.len() as u64;
        suspects.iter().for_each(|&pbn| self.core.copy_lists.suspect(pbn));
        op.avoided.extend(suspects);
        self.try_read(op);
    }

    fn finish_read(&mut self, mut op: ReadOp, parts: Vec<PiecePart>) {
        let pieces = ReadPieces {
            parts,
            chunk_bytes: self.core.geometry.chunk_bytes,
            volume: Arc::clone(&op.volume),
            expanding: Arc::clone(&self.core.intake.expanding),
            permit: op.permit.take(),
        };
        self.end_read(op, Ok(pieces));
    }

    fn end_read(&mut self, op: ReadOp, outcome: Result<ReadPieces, RequestError>) {
        match (op.whom, outcome) {
            (ReadFor::Client(done), Ok(pieces)) => done.reply(pieces),
            (ReadFor::Client(done), Err(error)) => done.fail(error),
            (ReadFor::Base { group, slot }, Ok(pieces)) => {
                let is_stored = |part: &PiecePart| !matches!(part.piece, Piece::Zeros);
                self.core.counters.chunks_read_back +=
                    u64::from(pieces.parts.iter().any(is_stored));
                let mut base = vec![0; self.core.geometry.chunk_bytes as usize];
                let read = pieces.assemble(&mut base);
                self.base_read(group, slot, read.map(|()| &base[..]));
            }
            (ReadFor::Base { group, slot }, Err(error)) => {
                self.base_read(group, slot, Err(error));
            }
            // Who reads it is told.
            (ReadFor::Ahead, _) => {}
        }
    }
}

/// Parts that the write buffer does not hold.
fn stored_parts(parts: &[PiecePart]) -> Vec<usize> {
    let pending = |part: &PiecePart| matches!(part.piece, Piece::Pending);
    (0..parts.len()).filter(|&at| pending(&parts[at])).collect()
}

/// Stored parts that lie side by side in one leaf of the map: the first address, and how many.
fn runs_in_leaves(stored: &[usize], parts: &[PiecePart]) -> impl Iterator<Item = (Lba, usize)> {
    let rows = stored.chunk_by(|one, next| one + 1 == *next);
    rows.flat_map(|row| runs_by_leaf(Lba(parts[row[0]].lba), row.len()))
}
