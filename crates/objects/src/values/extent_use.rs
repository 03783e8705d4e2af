//! Extents that a writer fills, in their order.
//!
//! Of an extent the front is written, of that the front is claimed (named by somebody); what is
//! behind the claimed part is in `ToFree`. So `claimed <= written <= end`, and the key in `ToFree`
//! is the end.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::error::ValueError;
use super::extent_tables::claim_front;
use super::pending::Pending;
use super::regions::{Region, Regions};
use super::space::Hold;

/// What is left of a region is taken as an extent if it is this part of what one would have.
const IDLE_PART: u64 = 4;

struct ExtentUse {
    claimed: u64,
    written: u64,
    end: u64,
    hold: Hold,
}

pub(super) struct ExtentQueue {
    regions: Arc<Regions>,
    /// The last is being written; those before it are full.
    extents: VecDeque<ExtentUse>,
    /// Chunks of the next extent, and of the longest.
    next_chunks: u64,
    chunks_max: u64,
}

impl ExtentQueue {
    /// Extents of as many chunks as `lengths` says first, each next one twice as long up to what it
    /// says then.
    pub(super) fn new(regions: &Arc<Regions>, lengths: (u64, u64)) -> Self {
        let regions = Arc::clone(regions);
        let (next_chunks, chunks_max) = lengths;
        Self { regions, extents: VecDeque::new(), next_chunks, chunks_max }
    }

    /// Up to `want` chunks to write next.
    pub(super) fn next(&mut self, want: u64) -> Result<Range<u64>, ValueError> {
        if self.extents.back().is_none_or(|last| last.written == last.end) {
            let idle_least = self.next_chunks.div_ceil(IDLE_PART);
            let Region { left, hold } = self.regions.take(self.next_chunks, idle_least, 1)?;
            self.next_chunks = (self.next_chunks * 2).min(self.chunks_max);
            let (claimed, written) = (left.start, left.start);
            self.extents.push_back(ExtentUse { claimed, written, end: left.end, hold });
        }
        let Some(last) = self.extents.back_mut() else {
            panic!("an extent was just pushed");
        };
        let start = last.written;
        last.written = last.end.min(start + want);
        Ok(start..last.written)
    }

    /// One chunk to write next.
    pub(super) fn next_chunk(&mut self) -> Result<u64, ValueError> {
        Ok(self.next(1)?.start)
    }

    /// Claims the first chunks that are written and not claimed; they may lie in extents that are
    /// neighbours.
    ///
    /// # Panics
    /// When `chunks` are not those.
    pub(super) fn claim(&mut self, pending: &mut Pending, chunks: Range<u64>) {
        let mut at = chunks.start;
        for extent in &mut self.extents {
            if extent.claimed == extent.end {
                continue; // Others were there before.
            }
            assert!(extent.claimed == at, "{chunks:?} are claimed as they were written");
            extent.claimed = chunks.end.min(extent.end);
            assert!(extent.claimed <= extent.written, "{chunks:?} are written");
            claim_front(pending, extent.claimed, extent.end);
            at = extent.claimed;
            if at == chunks.end {
                return;
            }
        }
        panic!("{chunks:?} are in the extents of this value");
    }

    /// Claims all that is written.
    pub(super) fn claim_written(&mut self, pending: &mut Pending) {
        for extent in &mut self.extents {
            if extent.claimed < extent.written {
                extent.claimed = extent.written;
                claim_front(pending, extent.claimed, extent.end);
            }
        }
    }

    /// Stops holding extents of which all is claimed: the batch that says so is applied.
    pub(super) fn forget_claimed(&mut self) {
        while self.extents.front().is_some_and(|first| first.claimed == first.end) {
            self.extents.pop_front();
        }
    }

    /// The batch that claims all that is written has been applied: what is left is idle.
    pub(super) fn settle(self) {
        for mut extent in self.extents {
            assert!(extent.claimed == extent.written, "all that is written is named");
            if extent.written < extent.end {
                extent.hold.begin_at(extent.written);
                let left = extent.written..extent.end;
                self.regions.give_back(Region { left, hold: extent.hold });
            }
        }
    }

    /// Keeps all of them until the bucket is opened again.
    pub(super) fn retire(self) {
        self.extents.into_iter().for_each(|extent| extent.hold.retire());
    }
}
