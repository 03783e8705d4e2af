//! Eviction: CLOCK over the frames.
//!
//! A hand goes round the slab. A page that was wanted since the hand last passed is spared once;
//! one that is dirty, being written, pinned, or has children in the cache stays. Inner pages thus
//! leave after their last leaf. How far the hand goes in one call is bounded, so that a cache full
//! of pages that must stay does not stop the core.

use format::units::TreeId;

use super::page_store::PageStore;

/// Steps of the hand for each page that is too many.
const STEPS_PER_PAGE: usize = 64;

/// Steps of the hand at least.
const STEPS_MIN: usize = 512;

impl PageStore {
    /// Whether the cache holds more pages than it should.
    #[must_use]
    pub fn over_budget(&self) -> bool {
        self.resident_pages() > self.options.cache_pages
    }

    /// A leaf that has just been made and will not be wanted soon: it may go as soon as it is
    /// written.
    pub(crate) fn cool(&mut self, tree: TreeId, index: u64) {
        if let Some(slot) = self.find_leaf(tree, index) {
            self.frames.get(slot).referenced.set(false);
        }
    }

    /// Drops cold pages until the cache is as large as it should be, as far as pages can be
    /// dropped.
    pub fn shrink(&mut self) {
        let excess = self.resident_pages().saturating_sub(self.options.cache_pages);
        if excess == 0 {
            return;
        }
        let places = self.frames.places();
        let steps = excess.saturating_mul(STEPS_PER_PAGE).max(STEPS_MIN).min(2 * places);
        for _ in 0..steps {
            if !self.over_budget() {
                return;
            }
            self.hand = if self.hand + 1 < places { self.hand + 1 } else { 0 };
            self.frames.drop_if_cold(self.hand);
        }
    }
}
