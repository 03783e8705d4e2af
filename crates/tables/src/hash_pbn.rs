//! The Hash-PBN table: which stored chunk has this content. Exact, and as large as the store needs.
//!
//! Linear hashing: the table has `2^level + split` buckets. Whenever the mean load exceeds
//! [`LOAD_MEAN`] the next bucket in turn is split in two, so the table grows with its content,
//! one page at a time, and never stops to be rebuilt. Splits happen inside [`HashPbn::insert`]
//! and depend on nothing but the entries, so replaying the journal splits the same buckets.
//!
//! A bucket is a page; one that is full goes on in a *chain* of overflow pages. Its pages
//! but the last are full, so a new entry goes to the last page, and a removed one is replaced
//! by the last entry of the chain. Buckets that wait for their split near the end of a doubling
//! hold up to twice the mean, so short chains are usual there, and chains of more than one overflow
//! page are not.

mod bucket_key;
mod chain;
mod in_group;
mod split;

use format::bucket::{self, CAPACITY};
use format::root::HashShape;
use format::units::{Fingerprint, Pbn, TreeId};

use crate::error::PageError;
use crate::store::{PageRead, PageStore, PinSet, Wanted};
use bucket_key::{BucketKey, bucket_of, buckets};
use chain::Chain;
pub use chain::overflow_place;
pub use in_group::Seen;

/// Entries per bucket above which the table grows.
const LOAD_MEAN: u64 = 62;

/// The table's shape and key; its buckets are in the page store.
pub struct HashPbn {
    shape: HashShape,
    key: BucketKey,
    /// Entries of a bucket that is being split.
    staying: Vec<(Fingerprint, Pbn)>,
    moving: Vec<(Fingerprint, Pbn)>,
}

impl HashPbn {
    /// The table as a root knows it, of the store with this seed.
    #[must_use]
    pub fn new(shape: HashShape, seed: [u8; 16]) -> Self {
        let key = BucketKey::new(seed);
        Self { shape, key, staying: Vec::new(), moving: Vec::new() }
    }

    /// The shape, for a root.
    #[must_use]
    pub fn shape(&self) -> HashShape {
        self.shape
    }

    /// Number of buckets.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        buckets(&self.shape)
    }

    /// The bucket in which `fingerprint` stands if it is stored.
    #[must_use]
    pub fn bucket_of(&self, fingerprint: &Fingerprint) -> u64 {
        bucket_of(&self.shape, self.key.hash(fingerprint))
    }

    fn chain_of(&self, fingerprint: &Fingerprint) -> Chain {
        Chain(self.bucket_of(fingerprint))
    }

    /// Asks for the pages to look `fingerprint` up, and, together with [`Self::want_insert`], to
    /// insert it. Before several insertions each of them must have been wanted, with the same pins.
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
        let chain = self.chain_of(fingerprint);
        let mut named = 0;
        for number in 0.. {
            let (tree, index) = chain.place(number);
            let slot = match store.want_leaf(pins, tree, index, reads)? {
                Wanted::Coming => return Ok(false),
                Wanted::Absent => break,
                Wanted::Here(slot) => slot,
            };
            if number == 0 {
                named = store.pins_at(slot) as usize;
            }
            let page = store.page_at(slot);
            let overflowed = bucket::overflowed(page);
            // Each insertion that is wanted holds the bucket once: so many may still come.
            if !overflowed && bucket::len(page) + named <= CAPACITY {
                return Ok(true);
            }
            if bucket::find(page, fingerprint).is_some() {
                return Ok(true);
            }
            if !overflowed {
                break;
            }
        }
        chain.want_room(store, pins, reads)
    }

    /// The chunk with this fingerprint; its bucket must have been wanted.
    #[must_use]
    pub fn lookup(&self, store: &PageStore, fingerprint: &Fingerprint) -> Option<Pbn> {
        self.chain_of(fingerprint).pages(store).find_map(|page| bucket::find(page, fingerprint))
    }

    /// Tree and leaf of the page that holds `fingerprint`; all pages of its bucket must have been
    /// wanted, as by [`Self::want_remove`].
    #[must_use]
    pub fn place_of(&self, store: &PageStore, fingerprint: &Fingerprint) -> Option<(TreeId, u64)> {
        let chain = self.chain_of(fingerprint);
        chain.find(store, fingerprint).map(|number| chain.place(number))
    }

    /// Asks for the pages of all buckets that the next `count` insertions split.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_insert(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        count: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        let mut shape = self.shape;
        let mut here = true;
        for _ in 0..count {
            shape.entries += 1;
            if split::is_due(&shape) {
                here &= split::want(&shape, store, pins, reads)?;
                split::advance(&mut shape);
            }
        }
        Ok(here)
    }

    /// Enters a chunk; returns the one that had this fingerprint before. The pages must have been
    /// wanted by [`Self::want_lookup`] and [`Self::want_insert`].
    pub fn insert(
        &mut self,
        store: &mut PageStore,
        fingerprint: &Fingerprint,
        pbn: Pbn,
    ) -> Option<Pbn> {
        let former = self.chain_of(fingerprint).insert(store, fingerprint, pbn);
        if former.is_none() {
            self.shape.entries += 1;
            if split::is_due(&self.shape) {
                self.split(store);
            }
        }
        former
    }

    /// Asks for the pages to remove `fingerprint`.
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
        self.chain_of(fingerprint).want(store, pins, reads)
    }

    /// Removes the entry with this fingerprint; returns its chunk. The pages must have been wanted.
    pub fn remove(&mut self, store: &mut PageStore, fingerprint: &Fingerprint) -> Option<Pbn> {
        let removed = self.chain_of(fingerprint).remove(store, fingerprint)?;
        self.shape.entries -= 1;
        Some(removed)
    }
}
