//! Pins: pages that an operation holds until it has run.
//!
//! A pin names a frame by place and by serial number, so that it is void, not misplaced, when its
//! page was removed by the very operation that held it.

use format::units::PageId;

use super::slot::Slot;

/// What the wants of one operation hold; to be given back with
/// [`super::PageStore::release_pins`], or the pages stay in the cache for good.
#[derive(Debug, Default)]
#[must_use]
pub struct PinSet {
    pub(super) held: Vec<(Slot, u32)>,
    /// The page on its way that a want met last: until it has come, wanting all again is vain.
    pub(super) awaited: Option<PageId>,
}

impl PinSet {
    /// Number of pins.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}
