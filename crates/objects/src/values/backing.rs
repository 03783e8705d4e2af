//! What the values of a bucket stand on: its volume, its index, its space.

use std::sync::{Arc, Mutex, MutexGuard};

use super::limits::Limits;
use super::regions::Regions;
use super::space::{Space, lock};
use crate::buffers::Buffers;
use crate::index::Index;
use crate::volume::BucketVolume;

/// Buffers of writers that have ended, at most: for four of them.
const BUFFERS_KEPT: usize = 8;
/// A shorter buffer is not worth keeping.
const BUFFER_BYTES_MIN: usize = 128 << 10;

pub(super) struct Backing {
    pub(super) volume: Arc<dyn BucketVolume>,
    pub(super) index: Arc<dyn Index>,
    pub(super) space: Arc<Space>,
    pub(super) limits: Limits,
    pub(super) regions: Arc<Regions>,
    /// Held by who changes counts, until they are applied.
    sharing: Mutex<()>,
    /// What writers of long values gather bytes in.
    pub(super) buffers: Buffers,
}

impl Backing {
    pub(super) fn new(
        volume: Arc<dyn BucketVolume>,
        index: Arc<dyn Index>,
        space: Arc<Space>,
        limits: Limits,
    ) -> Arc<Self> {
        let regions = Regions::new(&space, limits);
        let sharing = Mutex::default();
        let buffers = Buffers::new(BUFFERS_KEPT, BUFFER_BYTES_MIN);
        Arc::new(Self { volume, index, space, limits, regions, sharing, buffers })
    }

    pub(super) fn lock_sharing(&self) -> MutexGuard<'_, ()> {
        lock(&self.sharing)
    }
}
