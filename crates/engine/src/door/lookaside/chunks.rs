//! Frames by the name of their chunk, for doors.
//!
//! Invariant: **a frame that is found under a name is one of the chunk that has the name now**, or
//! had it when the last change of any address that a door looks at was taken. A thread that gives a
//! name away forgets it here before anybody else gets it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use format::units::{FrameCheck, Pbn};

use crate::read::frame_cache::HeldFrame;

/// What an entry takes.
const ENTRY_BYTES: usize = size_of::<Mutex<Option<Named>>>();

struct Named {
    pbn: Pbn,
    check: FrameCheck,
    frame: Weak<HeldFrame>,
}

/// Frames by name; a name has one place, which it shares.
pub(super) struct Chunks {
    entries: Box<[Mutex<Option<Named>>]>,
}

impl Chunks {
    /// With as many entries as `memory_bytes` hold, down to a power of two.
    pub(super) fn new(memory_bytes: u64) -> Self {
        let entries = 1 << (memory_bytes / ENTRY_BYTES as u64).max(1).ilog2();
        Self { entries: (0..entries).map(|_| Mutex::default()).collect() }
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        (self.entries.len() * ENTRY_BYTES) as u64
    }

    pub(super) fn fill(&self, pbn: Pbn, check: FrameCheck, frame: &Arc<HeldFrame>) {
        *self.lock(pbn) = Some(Named { pbn, check, frame: Arc::downgrade(frame) });
    }

    pub(super) fn forget(&self, pbn: Pbn) {
        self.lock(pbn).take_if(|named| named.pbn == pbn);
    }

    pub(super) fn get(&self, pbn: Pbn) -> Option<(Arc<HeldFrame>, FrameCheck)> {
        let entry = self.lock(pbn);
        let named = entry.as_ref().filter(|named| named.pbn == pbn)?;
        Some((named.frame.upgrade()?, named.check))
    }

    /// Names are given in order, so those that were given together have different places.
    fn lock(&self, pbn: Pbn) -> MutexGuard<'_, Option<Named>> {
        let place = pbn.0 as usize & (self.entries.len() - 1);
        self.entries[place].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
