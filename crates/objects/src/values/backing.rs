//! What the values of a bucket stand on: its volume, its index, its space.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::limits::Limits;
use super::regions::Regions;
use super::released::Released;
use super::space::{Space, lock};
use crate::buffers::Buffers;
use crate::index::{Index, Table};
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
    pub(super) released: Released,
    /// Held by who changes counts, until they are applied.
    sharing: Mutex<()>,
    /// Whether several entries may name a chunk. As long as none has done so since the opening,
    /// what an entry names is its own, and nobody looks for it in the index.
    may_be_shared: AtomicBool,
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
        // What cannot be read is told to who needs it.
        let has_shared = index.scan(Table::Shared, &[], 1).map_or(true, |found| !found.is_empty());
        let may_be_shared = AtomicBool::new(has_shared);
        let buffers = Buffers::new(BUFFERS_KEPT, BUFFER_BYTES_MIN);
        let released = Released::default();
        Arc::new(Self {
            volume,
            index,
            space,
            limits,
            regions,
            released,
            sharing,
            may_be_shared,
            buffers,
        })
    }

    pub(super) fn may_be_shared(&self) -> bool {
        self.may_be_shared.load(Ordering::Acquire)
    }

    /// From now on a chunk may be named more than once. Said before the batch that does it, by who
    /// keeps the objects that name it from others.
    pub(super) fn begin_sharing(&self) {
        self.may_be_shared.store(true, Ordering::Release);
    }

    pub(super) fn lock_sharing(&self) -> MutexGuard<'_, ()> {
        lock(&self.sharing)
    }
}
