//! Young entries: events in the order in which they came, and the index that finds them.
//!
//! Event `n` since the store was made is slot `n % CAPACITY` of leaf `n / CAPACITY`; its *place* is
//! `n`. Leaves are removed when the merge has taken all of their events, so what exists is a window
//! of the last few. The index keeps the low half of a place; the end of the window gives the rest.

use format::bucket::{self, CAPACITY};
use format::page::Page;
use format::units::{Fingerprint, Pbn, TreeId};

use crate::error::PageError;
use crate::place_index::PlaceIndex;
use crate::store::{PageRead, PageStore, PinSet};

pub(super) const TREE: TreeId = TreeId::YOUNG;

/// Leaves whose ways an append finds, in whatever number its entries are.
const LEAVES_AHEAD_MIN: u64 = 16;

/// Of the millions of entries that there may be, as much less is moved when the index grows.
const INDEX_PART_BITS: u32 = 8;

/// One young entry.
#[derive(Copy, Clone, Debug)]
pub(super) struct Event {
    pub(super) hash: u64,
    pub(super) place: u64,
    pub(super) fingerprint: Fingerprint,
    /// As it stands in the page: taken back or not.
    pub(super) pbn: Pbn,
}

/// The events of a young page, in the order of their places.
pub(super) fn events_of(
    leaf: u64,
    page: &Page,
    hash: impl Fn(&Fingerprint) -> u64,
) -> impl Iterator<Item = Event> {
    (leaf * CAPACITY as u64..).zip(0..bucket::len(page)).map(move |(place, slot)| {
        let (fingerprint, pbn) = bucket::entry(page, slot);
        Event { hash: hash(&fingerprint), place, fingerprint, pbn }
    })
}

/// The window of young entries.
pub(super) struct Young {
    pub(super) index: PlaceIndex,
    /// Place of the next event.
    end: u64,
    /// Of the events in the index, those that take another entry back.
    taking_back: u64,
}

/// Adds an entry to a page that has room.
pub(super) fn push_to(page: &mut Page, fingerprint: &Fingerprint, pbn: Pbn) {
    let pushed = bucket::push(page, fingerprint, pbn);
    assert!(pushed.is_ok(), "an entry is pushed to a full page");
}

/// Whether an event takes an entry back.
fn takes_back(pbn: Pbn) -> bool {
    bucket::young_pbn(pbn).1
}

/// Leaf and slot of an event.
pub(super) fn leaf_and_slot(place: u64) -> (u64, usize) {
    (place / CAPACITY as u64, (place % CAPACITY as u64) as usize)
}

impl Young {
    pub(super) fn new(tail: u64) -> Self {
        let index = PlaceIndex::in_parts(INDEX_PART_BITS);
        Self { index, end: tail * CAPACITY as u64, taking_back: 0 }
    }

    /// The leaf that is being filled.
    pub(super) fn tail(&self) -> u64 {
        leaf_and_slot(self.end).0
    }

    /// An event that is there, at a place behind all others that are known.
    pub(super) fn know(&mut self, hash: u64, place: u64, pbn: Pbn) {
        self.index.insert(hash, place as u32);
        self.end = self.end.max(place + 1);
        self.taking_back += u64::from(takes_back(pbn));
    }

    /// An event has been merged.
    pub(super) fn forget(&mut self, event: &Event) {
        self.index.remove(event.hash, event.place as u32);
        self.taking_back = self.taking_back.saturating_sub(u64::from(takes_back(event.pbn)));
    }

    /// Events that are young, and how many of them take another entry back.
    pub(super) fn events(&self) -> (u64, u64) {
        (self.index.len() as u64, self.taking_back)
    }

    /// The newest event before `end` that has the tag of `hash`.
    pub(super) fn newest_before(&self, hash: u64, end: u64) -> Option<u64> {
        let whole = |low: u32| self.end - u64::from((self.end as u32).wrapping_sub(low));
        self.index.places(hash).map(whole).filter(|&place| place < end).max()
    }

    /// Asks for the tail, and the ways to the leaves behind it that `count` events may make: they
    /// are so close that the ways to the first and the last are all there are.
    pub(super) fn want_append(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        count: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        let tail = self.tail();
        let ahead = (count / CAPACITY as u64 + 1).max(LEAVES_AHEAD_MIN);
        let here = store.want(pins, TREE, tail, reads)?;
        Ok(here & store.want(pins, TREE, tail + ahead, reads)?)
    }

    /// Appends an event.
    pub(super) fn append(
        &mut self,
        store: &mut PageStore,
        hash: u64,
        fingerprint: &Fingerprint,
        pbn: Pbn,
    ) {
        self.append_all(store, std::iter::once((hash, fingerprint, pbn)));
    }

    /// Appends events, each to the last page.
    pub(super) fn append_all<'a>(
        &mut self,
        store: &mut PageStore,
        events: impl Iterator<Item = (u64, &'a Fingerprint, Pbn)>,
    ) {
        let mut events = events.peekable();
        while events.peek().is_some() {
            let (leaf, slot) = leaf_and_slot(self.end);
            let page = store.page_mut(TREE, leaf);
            debug_assert_eq!(bucket::len(page), slot, "young page {leaf} is not where it was");
            for (hash, fingerprint, pbn) in events.by_ref().take(CAPACITY - slot) {
                push_to(page, fingerprint, pbn);
                self.know(hash, self.end, pbn);
            }
        }
    }
}
