//! Loading: filters from their leaves, the index from the young pages.
//!
//! Young pages are gone through in order. Of a sealed segment the first page that exists may hold
//! events that the merge has taken: they come first, their distances ahead of the cursor are those
//! of a whole round, and the first that is left has a smaller one than its neighbour before.

use format::bucket;
use format::page::Page;
use format::root::HashShape;
use format::units::{Fingerprint, Pbn, TreeId};

use super::HashPbn;
use super::segment::Segment;
use super::young::{Event, events_of};
use crate::store::PageStore;

impl HashPbn {
    /// The leaves of all filters, to be loaded one by one.
    #[must_use]
    pub fn filter_leaves(&self) -> Vec<u64> {
        let HashShape { turn, before, merged, .. } = self.shape;
        let leaves = |turn, buckets: std::ops::Range<u64>| {
            let last = buckets.end.max(1) - 1;
            let leaf = |bucket| self.filters.leaf_of(turn, bucket);
            let leaves = leaf(buckets.start)..=leaf(last);
            leaves.step_by(2).filter(move |_| !buckets.is_empty())
        };
        leaves(!turn, self.cursor_in(before)..before).chain(leaves(turn, 0..merged)).collect()
    }

    /// Takes a leaf of the filters that has been wanted; one that is lost, or should be there and
    /// is not, says maybe of everything.
    pub fn load_filter(&mut self, store: &PageStore, leaf: u64) {
        let page = store.page(TreeId::HASH_FILTER, leaf);
        self.filters.load(leaf, page.map(|page| &page.payload()[..]));
    }

    /// So many young pages will come.
    pub fn expect_young(&mut self, pages: usize) {
        self.young.index.make_room(pages * bucket::CAPACITY);
    }

    /// Takes a young page; they come in ascending order. The entries of it that count are given
    /// back.
    pub fn load_young(&mut self, leaf: u64, page: &Page) -> Vec<YoungEntry> {
        let mut events: Vec<Event> = events_of(leaf, page, |of| self.key.hash(of)).collect();
        if leaf < self.shape.sealed {
            if self.segments.last().is_none_or(|last| last.end != END_UNKNOWN) {
                events.drain(..taken(&events, self.cursor().unwrap_or(0)));
                let mut segment = Segment::new(leaf, END_UNKNOWN);
                segment.next = leaf + 1;
                segment.events.extend(events.iter().copied());
                self.segments.push(segment);
            }
            if let Some(segment) = self.segments.last_mut().filter(|_| bucket::ends_segment(page)) {
                segment.end = leaf + 1;
            }
        } else {
            self.end_load();
        }
        events.iter().for_each(|event| self.young.know(event.hash, event.place, event.pbn));
        let entry = |event: Event| {
            let (pbn, taken_back) = bucket::young_pbn(event.pbn);
            YoungEntry { fingerprint: event.fingerprint, pbn, taken_back }
        };
        events.into_iter().map(entry).collect()
    }

    /// All young pages have been taken.
    pub fn end_load(&mut self) {
        let sealed = self.shape.sealed;
        if let Some(last) = self.segments.last_mut().filter(|last| last.end == END_UNKNOWN) {
            last.end = sealed;
        }
    }
}

/// A young entry that counts.
#[derive(Copy, Clone, Debug)]
pub struct YoungEntry {
    /// Of the chunk.
    pub fingerprint: Fingerprint,
    /// The chunk.
    pub pbn: Pbn,
    /// From here on the fingerprint does not lead to it.
    pub taken_back: bool,
}

/// Of a segment whose last page has not come yet.
const END_UNKNOWN: u64 = u64::MAX;

/// How many events of a segment's first page the merge has taken.
fn taken(events: &[Event], cursor: u64) -> usize {
    let ahead = |event: &Event| event.hash.wrapping_sub(cursor);
    let drop = events.windows(2).position(|pair| ahead(&pair[1]) < ahead(&pair[0]));
    drop.map_or(0, |at| at + 1)
}
