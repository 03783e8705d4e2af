//! Regions that values are carved off, and what is left of them.
//!
//! ```text
//! idle ──take──> one writer's: written ──settled──> idle, or used up
//!                    └── abandoned: of a small value its front is as before, and is overwritten;
//!                        the extent of a long one is left to the trimmer
//! ```
//!
//! What is left of a region is in `ToFree`, under a key that stays. A value shortens that entry in
//! the batch that names it; the region is one writer's until that batch has been applied, so two
//! batches never carry the length of one region in the wrong order. Values that are put side by
//! side have regions of their own. Long values take regions as extents, and what their last one has
//! left is idle again: where values follow one another nothing is trimmed in vain.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use mutants::mutant;

use super::error::ValueError;
use super::extent_tables::claim_front;
use super::limits::Limits;
use super::pending::Pending;
use super::space::{Hold, Space, lock};

/// What is left of a region.
pub(super) struct Region {
    pub(super) left: Range<u64>,
    pub(super) hold: Hold,
}

impl Region {
    fn chunks(&self) -> u64 {
        self.left.end - self.left.start
    }
}

pub(super) struct Regions {
    space: Arc<Space>,
    limits: Limits,
    /// By their lengths and first chunks.
    idle: Mutex<BTreeMap<(u64, u64), Region>>,
    idle_max: usize,
}

/// A region that one value is carved off.
pub(super) struct RegionLease {
    regions: Arc<Regions>,
    /// Taken when the lease ends.
    region: Option<Region>,
    carved_chunks: u64,
}

impl Regions {
    pub(super) fn new(space: &Arc<Space>, limits: Limits) -> Arc<Self> {
        // Of a small space they are a sixteenth at most.
        let part = space.chunks() / (16 * limits.region_chunks);
        let idle_max = limits.idle_regions.min(part as usize);
        Arc::new(Self { space: Arc::clone(space), limits, idle: Mutex::default(), idle_max })
    }

    /// Carves `chunks` off a region.
    pub(super) fn lease(self: &Arc<Self>, chunks: u64) -> Result<RegionLease, ValueError> {
        let region = self.take(self.limits.region_chunks.max(chunks), chunks, chunks)?;
        let regions = Arc::clone(self);
        Ok(RegionLease { regions, region: Some(region), carved_chunks: chunks })
    }

    /// The shortest idle region that has `idle_least` chunks, so that rests are used up first; else
    /// a new one of `want`, or of `least` where the space has no more.
    pub(super) fn take(
        &self,
        want: u64,
        idle_least: u64,
        least: u64,
    ) -> Result<Region, ValueError> {
        let mut idle = lock(&self.idle);
        let found = idle.range((idle_least, 0)..).next().map(|(key, _)| *key);
        if let Some(region) = found.and_then(|key| idle.remove(&key)) {
            return Ok(region);
        }
        drop(idle);
        let (left, hold) = self.space.allocate(want, least)?;
        Ok(Region { left, hold })
    }

    /// Makes a region idle; when there are too many, the shortest is freed.
    pub(super) fn give_back(&self, region: Region) {
        if region.chunks() < self.limits.region_rest_chunks {
            return; // Dropped, it is the trimmer's.
        }
        let mut idle = lock(&self.idle);
        idle.insert((region.chunks(), region.left.start), region);
        let freed = if idle.len() > self.idle_max { idle.pop_first() } else { None };
        drop(idle);
        drop(freed);
    }
}

impl RegionLease {
    fn left(&self) -> &Range<u64> {
        match &self.region {
            Some(region) => &region.left,
            None => panic!("a lease has its region until it ends"),
        }
    }

    /// What was carved off.
    pub(super) fn carved(&self) -> Range<u64> {
        let start = self.left().start;
        start..start + self.carved_chunks
    }

    /// Says in a batch that what was carved off is named.
    pub(super) fn claim(&self, pending: &mut Pending) {
        if mutant!(RecordsRestLate) {
            return;
        }
        claim_front(pending, self.carved().end, self.left().end);
    }

    /// The batch has been applied.
    pub(super) fn settle(mut self) {
        let start = self.carved().end;
        if let Some(mut region) = self.region.take() {
            region.left.start = start;
            region.hold.begin_at(start);
            self.regions.give_back(region);
        }
    }

    /// Nobody knows whether the batch has been applied.
    pub(super) fn retire(mut self) {
        if let Some(region) = self.region.take() {
            region.hold.retire();
        }
    }
}

impl Drop for RegionLease {
    fn drop(&mut self) {
        if let Some(region) = self.region.take() {
            self.regions.give_back(region);
        }
    }
}
