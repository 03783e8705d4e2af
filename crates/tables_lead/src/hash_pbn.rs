//! The Hash-PBN table (FIDR section 2.3): fingerprint to PBN, in buckets of one page.
//!
//! Linear hashing: bucket numbers are the low bits of a keyed hash of the fingerprint; the table
//! grows by splitting one bucket at a time, in order, whenever the mean load passes
//! [`MEAN_ENTRIES`]. A bucket that is full before its turn goes on in overflow pages, which lie in
//! a tree of their own at `bucket << 8 | k`. Everything follows from the order of insertions and
//! removals, so replaying them gives the same table.
//!
//! The hash is keyed with the store's own seed: without it nobody can aim chunks at one bucket.

use format::bucket::{self, CAPACITY};
use format::page::Page;
use format::root::HashShape;
use format::units::{Fingerprint, Pbn, TreeId};

use crate::error::PageError;
use crate::page_store::{PageRead, PageStore, PinSet};

/// Entries a bucket holds on average at most: FIDR's fill of 60 to 65%.
const MEAN_ENTRIES: u64 = 62;
/// Overflow pages of one bucket.
const OVERFLOW_BITS: u32 = 8;
/// A bucket with less room than this may overflow by one group of insertions.
const ROOM_MIN: usize = 48;
/// Tables of fewer buckets fill so unevenly that any bucket may overflow at once.
const SMALL_BUCKETS: u64 = 64;

/// Shape and key of the table; its pages are in the page store.
pub struct HashPbn {
    shape: HashShape,
    seed: [u64; 2],
}

/// A page of a bucket: the bucket's own, or one of its overflow pages.
#[derive(Copy, Clone)]
struct Link {
    bucket: u64,
    overflow: Option<u64>,
}

impl Link {
    fn first(bucket: u64) -> Self {
        Self { bucket, overflow: None }
    }

    fn next(self) -> Self {
        Self { overflow: Some(self.overflow.map_or(0, |number| number + 1)), ..self }
    }

    fn place(self) -> (TreeId, u64) {
        match self.overflow {
            None => (TreeId::HASH_PBN, self.bucket),
            Some(number) => (TreeId::HASH_OVERFLOW, self.bucket << OVERFLOW_BITS | number),
        }
    }

    fn page(self, store: &PageStore) -> Option<&Page> {
        let (tree, index) = self.place();
        store.page(tree, index)
    }

    fn page_mut(self, store: &mut PageStore) -> &mut Page {
        let (tree, index) = self.place();
        store.page_mut(tree, index)
    }
}

impl HashPbn {
    /// The table as a root names it.
    #[must_use]
    pub fn new(shape: HashShape, seed: [u8; 16]) -> Self {
        let (low, high) = (u128::from_le_bytes(seed) as u64, (u128::from_le_bytes(seed) >> 64) as u64);
        Self { shape, seed: [low | 1, high | 1] }
    }

    /// For the next root.
    #[must_use]
    pub fn shape(&self) -> HashShape {
        self.shape
    }

    /// Buckets of the table now.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        (1 << self.shape.level) + self.shape.split
    }

    fn hash(&self, fingerprint: &Fingerprint) -> u64 {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&fingerprint.0[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let first = fold(word(0) ^ self.seed[0], word(8) ^ self.seed[1]);
        let second = fold(word(16) ^ self.seed[1], word(24) ^ first);
        fold(first ^ self.seed[0], second ^ self.seed[1])
    }

    fn bucket_in(shape: &HashShape, hash: u64) -> u64 {
        let bucket = hash & ((1 << shape.level) - 1);
        if bucket < shape.split { hash & ((2 << shape.level) - 1) } else { bucket }
    }

    fn bucket(&self, fingerprint: &Fingerprint) -> u64 {
        Self::bucket_in(&self.shape, self.hash(fingerprint))
    }

    /// Names every page of a bucket; with `to_fill` also the overflow page it may come to need.
    fn want_bucket(
        store: &mut PageStore,
        pins: &mut PinSet,
        bucket: u64,
        to_fill: Option<bool>,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        let mut link = Link::first(bucket);
        loop {
            let (tree, index) = link.place();
            if !store.want(pins, tree, index, reads)? {
                return Ok(false);
            }
            let page = store.page(tree, index);
            let overflowed = page.is_some_and(bucket::overflowed);
            let full_soon = page.map_or(0, bucket::len) + ROOM_MIN > CAPACITY;
            if !overflowed {
                let fill_next = to_fill.is_some_and(|always| always || full_soon);
                let (tree, index) = link.next().place();
                return if fill_next { store.want(pins, tree, index, reads) } else { Ok(true) };
            }
            link = link.next();
        }
    }

    /// Names the pages to look a fingerprint up, and to insert it.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_lookup(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        fingerprint: &Fingerprint,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        let always = self.buckets() < SMALL_BUCKETS;
        Self::want_bucket(store, pins, self.bucket(fingerprint), Some(always), reads)
    }

    /// Names the pages to remove a fingerprint.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_remove(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        fingerprint: &Fingerprint,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        Self::want_bucket(store, pins, self.bucket(fingerprint), None, reads)
    }

    /// Names the pages of the buckets that the next `inserts` insertions split.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_insert(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        inserts: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        let mut shape = self.shape;
        shape.entries += inserts;
        let mut here = true;
        while is_crowded(&shape) {
            let target = shape.split + (1 << shape.level);
            here &= Self::want_bucket(store, pins, shape.split, Some(true), reads)?;
            here &= Self::want_bucket(store, pins, target, Some(true), reads)?;
            grow(&mut shape);
        }
        Ok(here)
    }

    /// The PBN of a fingerprint. Its pages must have been wanted.
    #[must_use]
    pub fn lookup(&self, store: &PageStore, fingerprint: &Fingerprint) -> Option<Pbn> {
        let mut link = Link::first(self.bucket(fingerprint));
        loop {
            let page = link.page(store)?;
            if let Some(pbn) = bucket::find(page, fingerprint) {
                return Some(pbn);
            }
            if !bucket::overflowed(page) {
                return None;
            }
            link = link.next();
        }
    }

    /// Enters a fingerprint that is not in the table, and splits buckets that are due.
    pub fn insert(&mut self, store: &mut PageStore, fingerprint: &Fingerprint, pbn: Pbn) {
        push(store, self.bucket(fingerprint), fingerprint, pbn);
        self.shape.entries += 1;
        while is_crowded(&self.shape) {
            self.split_next(store);
        }
    }

    fn split_next(&mut self, store: &mut PageStore) {
        let bucket = self.shape.split;
        let entries = take_all(store, bucket);
        grow(&mut self.shape);
        for (fingerprint, pbn) in entries {
            push(store, self.bucket(&fingerprint), &fingerprint, pbn);
        }
    }

    /// Removes a fingerprint; the PBN it named.
    pub fn remove(&mut self, store: &mut PageStore, fingerprint: &Fingerprint) -> Option<Pbn> {
        let mut link = Link::first(self.bucket(fingerprint));
        loop {
            let page = link.page(store)?;
            if bucket::find(page, fingerprint).is_some() {
                self.shape.entries -= 1;
                return bucket::remove(link.page_mut(store), fingerprint);
            }
            if !bucket::overflowed(page) {
                return None;
            }
            link = link.next();
        }
    }
}

/// Half of a 128-bit product folded onto the other half.
fn fold(left: u64, right: u64) -> u64 {
    let wide = u128::from(left) * u128::from(right);
    (wide as u64) ^ ((wide >> 64) as u64) ^ left.rotate_left(32)
}

fn is_crowded(shape: &HashShape) -> bool {
    shape.entries > MEAN_ENTRIES * ((1 << shape.level) + shape.split)
}

fn grow(shape: &mut HashShape) {
    shape.split += 1;
    if shape.split == 1 << shape.level {
        (shape.level, shape.split) = (shape.level + 1, 0);
    }
}

fn push(store: &mut PageStore, bucket: u64, fingerprint: &Fingerprint, pbn: Pbn) {
    let mut link = Link::first(bucket);
    loop {
        let page = link.page_mut(store);
        if bucket::push(page, fingerprint, pbn).is_ok() {
            return;
        }
        bucket::set_overflowed(page, true);
        link = link.next();
    }
}

/// Empties a bucket; its overflow pages go.
fn take_all(store: &mut PageStore, bucket: u64) -> Vec<(Fingerprint, Pbn)> {
    let mut entries = Vec::with_capacity(2 * CAPACITY);
    let mut link = Link::first(bucket);
    loop {
        let Some(page) = link.page(store) else { return entries };
        entries.extend((0..bucket::len(page)).map(|slot| bucket::entry(page, slot)));
        let overflowed = bucket::overflowed(page);
        let (tree, index) = link.place();
        match link.overflow {
            None => {
                let page = link.page_mut(store);
                bucket::clear(page);
                bucket::set_overflowed(page, false);
            }
            Some(_) => store.remove_page(tree, index),
        }
        if !overflowed {
            return entries;
        }
        link = link.next();
    }
}
