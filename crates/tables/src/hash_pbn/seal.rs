//! Sealing: the oldest young pages that are not sorted yet become a segment.
//!
//! A segment has as many pages as the options say, or fewer if the merge under way makes so few
//! buckets that what is not sealed could fill one: an entry of which an unsealed event says more
//! cannot leave a bucket that is full.

use format::bucket::{self, CAPACITY};

use super::HashPbn;
use super::segment::Segment;
use super::young::{TREE, events_of, push_to};
use crate::error::PageError;
use crate::store::{PageRead, PageStore, PinSet};

/// Entries of a bucket in the mean of which unsealed events may say more: that one of them has
/// twice as many, and is full with them, happens once in 10^10 buckets.
const HELD_MEAN: u64 = CAPACITY as u64 / 2;

impl HashPbn {
    /// Whether so many young pages are full that a segment of them is to be sealed.
    pub(super) fn seal_is_due(&self) -> bool {
        let full_pages = self.young.tail().saturating_sub(self.shape.sealed);
        full_pages >= self.options.segment_pages || full_pages > 0 && self.holds_too_many()
    }

    /// Whether a bucket of the round under way might be full of entries that cannot leave it. With
    /// no page that is full, what is not sealed fills none.
    fn holds_too_many(&self) -> bool {
        let (after, merged) = (self.shape.after, self.shape.merged);
        let unsealed_pages = (self.young.tail() + 1).saturating_sub(self.shape.sealed);
        merged < after && unsealed_pages * CAPACITY as u64 > after * HELD_MEAN
    }

    pub(super) fn want_seal(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        let mut here = true;
        for leaf in self.segment_due() {
            here &= store.want(pins, TREE, leaf, reads)?;
        }
        Ok(here)
    }

    fn segment_due(&self) -> std::ops::Range<u64> {
        let sealed = self.shape.sealed;
        sealed..self.young.tail().min(sealed + self.options.segment_pages)
    }

    /// Sorts the oldest young pages that are not sealed; all of them have been wanted.
    pub(super) fn seal(&mut self, store: &mut PageStore) {
        let leaves = self.segment_due();
        let cursor = self.cursor().unwrap_or(0);
        let mut events = std::mem::take(&mut self.sealing);
        events.clear();
        events.reserve(self.options.segment_pages as usize * CAPACITY);
        for leaf in leaves.clone() {
            let Some(page) = store.page(TREE, leaf) else { continue };
            events.extend(events_of(leaf, page, |of| self.key.hash(of)));
        }
        // By place as well: events of one fingerprint stay in their order.
        events.sort_unstable_by_key(|event| (event.hash.wrapping_sub(cursor), event.place));
        for (leaf, events) in leaves.clone().zip(events.chunks(CAPACITY)) {
            let page = store.page_mut(TREE, leaf);
            bucket::clear(page);
            self.young.index.touch_all(events.iter().map(|event| event.hash));
            for (event, place) in events.iter().zip(leaf * CAPACITY as u64..) {
                push_to(page, &event.fingerprint, event.pbn);
                self.young.index.replace(event.hash, event.place as u32, place as u32);
            }
            if leaf + 1 == leaves.end {
                bucket::set_ends_segment(page);
            }
        }
        self.sealing = events;
        self.shape.sealed = leaves.end;
        self.segments.push(Segment::new(leaves.start, leaves.end));
    }
}
