//! Regions that small values are carved off.
//!
//! ```text
//! idle ──lease──> leased: carved, written ──settled──> idle, or used up
//!                    └── given up: its front is as before, the next value overwrites it
//! ```
//!
//! What is left of a region is in `ToFree`, under a key that stays. A value shortens that entry in
//! the batch that names it; the region is leased until that batch has been applied, so two batches
//! never carry the length of one region in the wrong order. Values that are put side by side have
//! regions of their own.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::error::ValueError;
use super::extent_tables::claim_front;
use super::limits::Limits;
use super::pending::Pending;
use super::space::{Hold, Space, lock};

/// What is left of a region.
struct Region {
    left: Range<u64>,
    hold: Hold,
}

pub(super) struct Regions {
    space: Arc<Space>,
    limits: Limits,
    idle: Mutex<Vec<Region>>,
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
        Arc::new(Self { space: Arc::clone(space), limits, idle: Mutex::default() })
    }

    /// Carves `chunks` off a region.
    pub(super) fn lease(self: &Arc<Self>, chunks: u64) -> Result<RegionLease, ValueError> {
        let fits = |region: &Region| region.left.end - region.left.start >= chunks;
        let mut idle = lock(&self.idle);
        let found = idle.iter().rposition(fits).map(|at| idle.remove(at));
        drop(idle);
        let region = match found {
            Some(region) => region,
            None => {
                let want = self.limits.region_chunks.max(chunks);
                let (left, hold) = self.space.allocate(want, chunks)?;
                Region { left, hold }
            }
        };
        let regions = Arc::clone(self);
        Ok(RegionLease { regions, region: Some(region), carved_chunks: chunks })
    }

    fn give_back(&self, region: Region) {
        let mut idle = lock(&self.idle);
        let is_worth_it = region.left.end - region.left.start >= self.limits.region_rest_chunks;
        if is_worth_it && idle.len() < self.limits.idle_regions {
            idle.push(region);
        }
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
