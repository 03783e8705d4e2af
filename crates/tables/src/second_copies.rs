//! The table of second copies: where a further frame is of each chunk that many LBAs name.
//!
//! It is a PBN-PBA table in a tree of its own, sparse, and its entries count no references. Where
//! nothing has a copy there is no page, and to look is to look into an empty tree.

use format::pba_page::PbaEntry;
use format::units::{Pba, Pbn, TreeId};

use crate::error::PageError;
use crate::pbn_pba::{clear_in, get_in, set_in, want_in};
use crate::store::{PageRead, PageStore, PinSet};

const TREE: TreeId = TreeId::COPIES;

/// Asks for the leaf of `pbn`.
///
/// # Errors
/// [`PageError`] when it is damaged.
pub fn want(
    store: &mut PageStore,
    pins: &mut PinSet,
    pbn: Pbn,
    reads: &mut Vec<PageRead>,
) -> Result<bool, PageError> {
    want_in(TREE, store, pins, pbn, reads)
}

/// Where the second copy of `pbn` is, if it has one. Its leaf must have been wanted.
#[must_use]
pub fn get(store: &PageStore, pbn: Pbn) -> Option<Pba> {
    get_in(TREE, store, pbn).map(|entry| entry.pba)
}

/// Enters or changes the copy of `pbn`. Its leaf must have been wanted.
pub fn set(store: &mut PageStore, pbn: Pbn, pba: Pba) {
    set_in(TREE, store, pbn, PbaEntry { pba, references: 0, aside: false });
}

/// Removes the copy of `pbn`. Its leaf must have been wanted.
pub fn clear(store: &mut PageStore, pbn: Pbn) {
    clear_in(TREE, store, pbn);
}
