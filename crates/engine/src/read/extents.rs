//! Which parts of a volume hold data: what `base:allocation` and exports ask.
//!
//! The map's leaves are walked with what the write buffer holds laid over them. Where no leaf
//! exists, a hole of any size is one step. A reply may cover less than was asked, so the work per
//! request is bounded. While a leaf is read, so are those behind it ([`crate::pages::map_ahead`]).

use format::map_page;
use format::units::{Lba, TreeId, VolumeId};
use tables::{NextLeaf, PageError, lba_pbn};

use crate::door::outcome::Extent;
use crate::door::requests::ExtentsRequest;
use crate::engine::Engine;
use crate::pages::absence::lacking_page;
use crate::pages::wanted::Wanted;
use crate::state::State;
use crate::state::mapping::leaf_start;

/// Leaves that one request looks at.
const LEAVES_MAX: usize = 64;

/// What the write buffer holds of a range, laid over the map.
struct Overlay {
    slots: Vec<(u64, bool)>,
    unmaps: Vec<(u64, u64)>,
}

/// Runs in the making.
struct Runs {
    chunks: Vec<(u64, bool)>,
    runs_max: usize,
}

impl Runs {
    /// Adds chunks of one kind; false when no more runs are wanted.
    fn push(&mut self, count: u64, data: bool) -> bool {
        if count == 0 {
            return true;
        }
        let full = self.chunks.len() == self.runs_max;
        match self.chunks.last_mut() {
            Some(last) if last.1 == data => last.0 += count,
            _ if full => return false,
            _ => self.chunks.push((count, data)),
        }
        true
    }
}

impl Overlay {
    /// Lays the overlay over `first..first + count` chunks of the map that are all of one kind.
    fn push(&self, runs: &mut Runs, first: u64, count: u64, data: bool) -> bool {
        let end = first + count;
        let mut at = first;
        let mut slots = self.slots.iter().skip(self.slots.partition_point(|&(lba, _)| lba < first));
        while at < end {
            let slot = slots.next().filter(|&&(lba, _)| lba < end);
            let until = slot.map_or(end, |&(lba, _)| lba);
            if !self.push_unmapped(runs, at, until, data) {
                return false;
            }
            at = until;
            if let Some(&(_, data)) = slot {
                if !runs.push(1, data) {
                    return false;
                }
                at += 1;
            }
        }
        true
    }

    fn push_unmapped(&self, runs: &mut Runs, first: u64, end: u64, data: bool) -> bool {
        let mut at = first;
        while at < end {
            let inside = self.unmaps.iter().find(|&&(start, stop)| (start..stop).contains(&at));
            let until = match inside {
                Some(&(_, stop)) => stop.min(end),
                None => {
                    let starts = self.unmaps.iter().map(|&(start, _)| start);
                    starts.filter(|&start| start > at).min().map_or(end, |start| start.min(end))
                }
            };
            if !runs.push(until - at, data && inside.is_none()) {
                return false;
            }
            at = until;
        }
        true
    }
}

impl Engine {
    pub(crate) fn accept_extents(&mut self, request: ExtentsRequest) {
        let ExtentsRequest { volume, offset_bytes, length_bytes, .. } = &request;
        if let Err(error) = volume.check_range(*offset_bytes, *length_bytes) {
            return request.done.fail(error);
        }
        self.try_extents(request);
    }

    /// Tries requests again that waited for pages.
    pub(crate) fn advance_extents(&mut self) {
        for request in std::mem::take(&mut self.reads.extents) {
            self.try_extents(request);
        }
    }

    fn try_extents(&mut self, request: ExtentsRequest) {
        // As of a read: the map of a deleted volume would be one hole.
        if let Err(error) = request.volume.check_there() {
            return request.done.fail(error);
        }
        let mut wanted = Wanted::default();
        let walked = self.walk_extents(&request, &mut wanted);
        self.core.submit_page_reads(wanted.reads);
        self.core.state.store.release_pins(wanted.pins);
        match walked {
            Err(error) => request.done.fail(lacking_page(&error)),
            Ok(chunks) if chunks.is_empty() => self.reads.extents.push_back(request),
            Ok(chunks) => {
                let extents = self.in_bytes(&request, &chunks);
                request.done.reply(extents);
            }
        }
    }

    /// Runs of chunks from the first asked for on; empty while the first page is missing, or a copy
    /// to this range is under way.
    fn walk_extents(
        &mut self,
        request: &ExtentsRequest,
        wanted: &mut Wanted,
    ) -> Result<Vec<(u64, bool)>, PageError> {
        let chunk_bytes = u64::from(self.core.geometry.chunk_bytes);
        let first = request.offset_bytes / chunk_bytes;
        let end = (request.offset_bytes + request.length_bytes).div_ceil(chunk_bytes);
        let mut copied = self.core.buffer.copies_to(request.volume.id);
        if copied.any(|lbas| lbas.start < end && first < lbas.end) {
            // What it maps is known when it has been applied.
            return Ok(Vec::new());
        }
        let overlay = self.overlay(request.volume.id, first, end);
        let runs_max = request.extents_max.max(1) as usize;
        let mut runs = Runs { chunks: Vec::new(), runs_max };
        let tree = TreeId::volume(request.volume.id);
        let mut at = first;
        for _ in 0..LEAVES_MAX {
            if at >= end {
                break;
            }
            let leaf = at / map_page::SLOTS as u64;
            let found = match self.core.state.store.next_leaf(tree, leaf, &mut wanted.reads)? {
                NextLeaf::Missing => break,
                NextLeaf::End => end,
                NextLeaf::Found(found) => leaf_start(found).clamp(at, end),
            };
            if !overlay.push(&mut runs, at, found - at, false) || found == end {
                break;
            }
            let leaf = found / map_page::SLOTS as u64;
            if !self.core.state.store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads)? {
                let leaves = (leaf + 1, end.div_ceil(map_page::SLOTS as u64));
                let next = |state: &mut State, from, reads: &mut _| {
                    state.store.next_leaf(tree, from, reads)
                };
                self.core.state.want_ahead(&[tree], leaves, LEAVES_MAX, &mut wanted.reads, next);
                break;
            }
            at = leaf_start(leaf + 1).min(end);
            if !self.walk_leaf(tree, found, at, &overlay, &mut runs) {
                break;
            }
        }
        Ok(runs.chunks)
    }

    fn walk_leaf(
        &self,
        tree: TreeId,
        first: u64,
        end: u64,
        overlay: &Overlay,
        runs: &mut Runs,
    ) -> bool {
        let holds = |lba| !lba_pbn::get(&self.core.state.store, tree, Lba(lba)).is_none();
        let mut at = first;
        while at < end {
            let data = holds(at);
            let until = (at + 1..end).find(|&lba| holds(lba) != data).unwrap_or(end);
            if !overlay.push(runs, at, until - at, data) {
                return false;
            }
            at = until;
        }
        true
    }

    fn overlay(&self, volume: VolumeId, first: u64, end: u64) -> Overlay {
        let mut unmaps: Vec<(u64, u64)> =
            self.core.buffer.unmaps(volume).map(|(_, start, stop)| (start, stop)).collect();
        unmaps.sort_unstable();
        Overlay { slots: self.core.buffer.slots_in(volume, first, end), unmaps }
    }

    /// Runs of chunks as runs of bytes, cut to what was asked.
    fn in_bytes(&self, request: &ExtentsRequest, chunks: &[(u64, bool)]) -> Vec<Extent> {
        let chunk_bytes = u64::from(self.core.geometry.chunk_bytes);
        let end_bytes = request.offset_bytes + request.length_bytes;
        let mut run_end_bytes = request.offset_bytes / chunk_bytes * chunk_bytes;
        let mut at_bytes = request.offset_bytes;
        let mut extents = Vec::with_capacity(chunks.len());
        for &(count, data) in chunks {
            run_end_bytes += count * chunk_bytes;
            let until_bytes = run_end_bytes.min(end_bytes);
            if until_bytes > at_bytes {
                extents.push(Extent { length_bytes: until_bytes - at_bytes, hole: !data });
                at_bytes = until_bytes;
            }
        }
        extents
    }
}
