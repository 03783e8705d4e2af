//! Where a resident page is.

/// Place of a frame in the slab.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(super) u32);
