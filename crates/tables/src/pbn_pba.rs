//! The PBN-PBA table: where each stored chunk is, and how many LBAs name it.
//!
//! PBN `n` is slot `n % SLOTS` of leaf `n / SLOTS`. A chunk enters with no references, that is
//! dead, and is *revived* by its first; it *dies* with its last, and its entry stays until
//! collection forgets it.
//!
//! A count that has reached `u32::MAX` stays there for good: the chunk then never dies, which costs
//! its space, where a count that wrapped would cost data.

use format::pba_page::{self, PbaEntry, SLOTS};
use format::units::{Pba, Pbn, TreeId};
use mutants::mutant;

use crate::error::PageError;
use crate::store::{PageRead, PageStore, PinSet};

const TREE: TreeId = TreeId::PBN_PBA;

/// What a further reference did.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Retained {
    /// It was the first: the chunk was dead.
    pub revived: bool,
    /// Where the chunk is.
    pub pba: Pba,
}

/// What a reference less did.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Released {
    /// It was the last: the chunk is dead.
    pub died: bool,
    /// Where the chunk is.
    pub pba: Pba,
}

/// Leaf and slot of a PBN.
#[must_use]
pub fn place(pbn: Pbn) -> (u64, usize) {
    (pbn.0 / SLOTS as u64, (pbn.0 % SLOTS as u64) as usize)
}

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
    store.want(pins, TREE, place(pbn).0, reads)
}

/// The entry of `pbn`; none when it names nothing. Its leaf must have been wanted.
#[must_use]
pub fn get(store: &PageStore, pbn: Pbn) -> Option<PbaEntry> {
    let (leaf, slot) = place(pbn);
    pba_page::get(store.page(TREE, leaf)?, slot)
}

/// Enters or changes the entry of `pbn`. Its leaf must have been wanted.
pub fn set(store: &mut PageStore, pbn: Pbn, entry: PbaEntry) {
    let (leaf, slot) = place(pbn);
    pba_page::set(store.page_mut(TREE, leaf), slot, Some(entry));
}

/// Removes the entry of `pbn`. Its leaf must have been wanted.
pub fn clear(store: &mut PageStore, pbn: Pbn) {
    let (leaf, slot) = place(pbn);
    let Some(at) = store.find_leaf(TREE, leaf) else { return };
    let page = store.page_at_mut(at);
    pba_page::set(page, slot, None);
    // From the end: collection clears a page from its start, so that the rest is met at once.
    if page.payload().iter().rev().all(|&byte| byte == 0) {
        store.remove_page(TREE, leaf);
    }
}

/// One reference more to `pbn`, whose leaf must have been wanted. A PBN that names nothing is left
/// so, and counts as not revived.
pub fn retain(store: &mut PageStore, pbn: Pbn) -> Retained {
    let references_max = if mutant!(SaturatesCount) { 4 } else { u32::MAX };
    let (pba, before) =
        count(store, pbn, |references| references.saturating_add(1).min(references_max));
    Retained { revived: before == Some(0), pba }
}

/// One reference less to `pbn`, whose leaf must have been wanted. A PBN that names nothing, or has
/// no references, is left so, and counts as not died.
pub fn release(store: &mut PageStore, pbn: Pbn) -> Released {
    let (pba, before) = count(store, pbn, |references| match references {
        u32::MAX => u32::MAX,
        _ => references.saturating_sub(1),
    });
    Released { died: before == Some(1), pba }
}

/// Changes the count of `pbn`; returns what it was.
fn count(store: &mut PageStore, pbn: Pbn, change: impl Fn(u32) -> u32) -> (Pba, Option<u32>) {
    let (leaf, slot) = place(pbn);
    let vacant = (Pba::default(), None);
    let Some(at) = store.find_leaf(TREE, leaf) else { return vacant };
    let page = store.page_at_mut(at);
    let Some(PbaEntry { pba, references }) = pba_page::get(page, slot) else { return vacant };
    pba_page::set(page, slot, Some(PbaEntry { pba, references: change(references) }));
    (pba, Some(references))
}
