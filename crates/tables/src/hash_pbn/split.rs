//! Splitting: the next bucket in turn gives about half of its entries to a new bucket at the end.

use format::bucket;
use format::root::HashShape;
use format::units::TreeId;

use super::bucket_key::{bucket_of, buckets};
use super::chain::Chain;
use super::{HashPbn, LOAD_MEAN};
use crate::error::PageError;
use crate::store::{PageRead, PageStore, PinSet};

/// Whether a table of this shape has too few buckets.
pub(super) fn is_due(shape: &HashShape) -> bool {
    shape.entries > LOAD_MEAN * buckets(shape)
}

/// The shape after a split.
pub(super) fn advance(shape: &mut HashShape) {
    shape.split += 1;
    if shape.split == 1 << shape.level {
        shape.level += 1;
        shape.split = 0;
    }
}

/// Asks for the pages of the split that is next. Insertions before it may add to either bucket, so
/// both get room for overflow pages.
pub(super) fn want(
    shape: &HashShape,
    store: &mut PageStore,
    pins: &mut PinSet,
    reads: &mut Vec<PageRead>,
) -> Result<bool, PageError> {
    let (from, to) = (shape.split, buckets(shape));
    let mut here = Chain(from).want(store, pins, reads)?;
    here &= Chain(from).want_room(store, pins, reads)?;
    here &= store.want(pins, TreeId::HASH_PBN, to, reads)?;
    here &= Chain(to).want_room(store, pins, reads)?;
    Ok(here)
}

impl HashPbn {
    /// The shape that a table has when it holds `entries`, if it had at least `shape` before.
    #[must_use]
    pub fn grown(shape: &HashShape, entries: u64) -> HashShape {
        let mut shape = HashShape { entries, ..*shape };
        while is_due(&shape) {
            advance(&mut shape);
        }
        shape
    }

    /// Splits the next bucket, all pages of which are resident.
    pub(super) fn split(&mut self, store: &mut PageStore) {
        let (from, to) = (self.shape.split, self.buckets());
        advance(&mut self.shape);
        self.staying.clear();
        self.moving.clear();
        for page in Chain(from).pages(store) {
            for slot in 0..bucket::len(page) {
                let entry = bucket::entry(page, slot);
                let moves = bucket_of(&self.shape, self.key.hash(&entry.0)) == to;
                if moves { &mut self.moving } else { &mut self.staying }.push(entry);
            }
        }
        Chain(from).fill(store, &self.staying);
        Chain(to).fill(store, &self.moving);
    }
}
