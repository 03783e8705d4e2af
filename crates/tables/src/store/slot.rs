//! Where a resident page is.

use std::num::NonZeroU32;

/// Place of a frame in the slab. One more than it is, so that none takes no room of its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot(NonZeroU32);

impl Slot {
    pub(super) fn new(at: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(at as u32))
    }

    pub(super) fn at(self) -> usize {
        self.0.get() as usize - 1
    }
}
