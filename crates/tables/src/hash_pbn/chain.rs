//! A bucket and its overflow pages.

use format::bucket::{self, CAPACITY};
use format::page::Page;
use format::units::{Fingerprint, Pbn, TreeId};

use crate::error::PageError;
use crate::store::{PageRead, PageStore, PinSet, Slot, Wanted};

/// Overflow pages that a bucket has places for. With a keyed hash and the mean load that the table
/// keeps, no bucket ever needs more than a few.
const OVERFLOW_PAGES: u64 = 8;

/// Leaf of tree [`TreeId::HASH_OVERFLOW`] that is overflow page `number` of `bucket`. The places of
/// neighbouring buckets lie beside each other, so that they share inner pages.
#[must_use]
pub fn overflow_place(bucket: u64, number: u64) -> u64 {
    bucket * OVERFLOW_PAGES + number
}

/// The pages of one bucket, numbered from the bucket's own, 0, on.
#[derive(Copy, Clone)]
pub(super) struct Chain(pub(super) u64);

impl Chain {
    pub(super) fn place(self, number: u64) -> (TreeId, u64) {
        match number.checked_sub(1) {
            None => (TreeId::HASH_PBN, self.0),
            Some(number) => {
                assert!(number < OVERFLOW_PAGES, "a bucket of a keyed hash has 900 entries");
                (TreeId::HASH_OVERFLOW, overflow_place(self.0, number))
            }
        }
    }

    /// Asks for all pages.
    pub(super) fn want(
        self,
        store: &mut PageStore,
        pins: &mut PinSet,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        for number in 0.. {
            let (tree, index) = self.place(number);
            match store.want_leaf(pins, tree, index, reads)? {
                Wanted::Coming => return Ok(false),
                Wanted::Here(slot) if bucket::overflowed(store.page_at(slot)) => {}
                Wanted::Here(_) | Wanted::Absent => break,
            }
        }
        Ok(true)
    }

    /// Asks for the ways to all places of overflow pages: any number may be added. They lie so
    /// close to each other that the ways to the first and the last are all there are.
    pub(super) fn want_room(
        self,
        store: &mut PageStore,
        pins: &mut PinSet,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        let first = overflow_place(self.0, 0);
        let last = overflow_place(self.0, OVERFLOW_PAGES - 1);
        let here = store.want(pins, TreeId::HASH_OVERFLOW, first, reads)?;
        Ok(here & store.want(pins, TreeId::HASH_OVERFLOW, last, reads)?)
    }

    /// All pages, which must be resident.
    pub(super) fn pages(self, store: &PageStore) -> impl Iterator<Item = &Page> {
        let mut number = Some(0);
        std::iter::from_fn(move || {
            let (tree, index) = self.place(number?);
            let page = store.page(tree, index);
            number =
                number.filter(|_| page.is_some_and(bucket::overflowed)).map(|number| number + 1);
            page
        })
    }

    pub(super) fn find(self, store: &PageStore, fingerprint: &Fingerprint) -> Option<u64> {
        let holds = |page| bucket::find(page, fingerprint).is_some();
        self.pages(store).position(holds).map(|number| number as u64)
    }

    fn find_page(self, store: &PageStore, number: u64) -> Option<Slot> {
        let (tree, index) = self.place(number);
        store.find_leaf(tree, index)
    }

    fn page_mut(self, store: &mut PageStore, number: u64) -> &mut Page {
        let (tree, index) = self.place(number);
        store.page_mut(tree, index)
    }

    fn remove_page(self, store: &mut PageStore, number: u64) {
        let (tree, index) = self.place(number);
        store.remove_page(tree, index);
    }

    /// Enters a chunk; returns the one that had this fingerprint before. A new entry goes to the
    /// last page, or to a further one when that is full.
    pub(super) fn insert(
        self,
        store: &mut PageStore,
        fingerprint: &Fingerprint,
        pbn: Pbn,
    ) -> Option<Pbn> {
        let (mut pages, mut last) = (0, None);
        while let Some(slot) = self.find_page(store, pages) {
            let page = store.page_at(slot);
            if bucket::find(page, fingerprint).is_some() {
                let page = store.page_at_mut(slot);
                let former = bucket::remove(page, fingerprint);
                push_to(page, fingerprint, pbn);
                return former;
            }
            (pages, last) = (pages + 1, Some(slot));
            if !bucket::overflowed(page) {
                break;
            }
        }
        let page = match last {
            Some(slot) if bucket::len(store.page_at(slot)) < CAPACITY => store.page_at_mut(slot),
            Some(slot) => {
                bucket::set_overflowed(store.page_at_mut(slot), true);
                self.page_mut(store, pages)
            }
            None => self.page_mut(store, pages),
        };
        push_to(page, fingerprint, pbn);
        None
    }

    /// Removes an entry; the last of the chain takes its place, and the last page goes when it is
    /// empty.
    pub(super) fn remove(self, store: &mut PageStore, fingerprint: &Fingerprint) -> Option<Pbn> {
        let number = self.find(store, fingerprint)?;
        let last = self.pages(store).count() as u64 - 1;
        let removed = bucket::remove(self.page_mut(store, number), fingerprint)?;
        if number < last {
            let page = self.page_mut(store, last);
            let (moved, pbn) = bucket::entry(page, bucket::len(page) - 1);
            bucket::remove(page, &moved);
            push_to(self.page_mut(store, number), &moved, pbn);
        }
        if bucket::is_empty(self.page_mut(store, last)) {
            self.remove_page(store, last);
            if last > 0 {
                bucket::set_overflowed(self.page_mut(store, last - 1), false);
            }
        }
        Some(removed)
    }

    /// Makes `entries` all that the bucket holds.
    pub(super) fn fill(self, store: &mut PageStore, entries: &[(Fingerprint, Pbn)]) {
        let former = self.pages(store).count() as u64;
        let pages = entries.len().div_ceil(CAPACITY) as u64;
        for (number, part) in (0..).zip(entries.chunks(CAPACITY)) {
            let page = self.page_mut(store, number);
            bucket::clear(page);
            part.iter().for_each(|(fingerprint, pbn)| push_to(page, fingerprint, *pbn));
            bucket::set_overflowed(page, number + 1 < pages);
        }
        (pages..former).for_each(|number| self.remove_page(store, number));
    }
}

/// Adds an entry to a page that has room.
fn push_to(page: &mut Page, fingerprint: &Fingerprint, pbn: Pbn) {
    let pushed = bucket::push(page, fingerprint, pbn);
    assert!(pushed.is_ok(), "an entry is pushed to a full page");
}
