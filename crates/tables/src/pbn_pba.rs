//! The PBN-PBA table: where each stored chunk is, and how many LBAs name it.
//!
//! PBN `n` is slot `n % SLOTS` of leaf `n / SLOTS`. A chunk enters with no references, that is
//! dead, and is *revived* by its first; it *dies* with its last, and its entry stays until
//! collection forgets it.
//!
//! A count that has reached `u32::MAX` stays there for good: the chunk then never dies, which costs
//! its space, where a count that wrapped would cost data.
//!
//! The table of second copies is of the same pages; see [`crate::second_copies`].

use std::hint::black_box;

use format::page::Page;
use format::pba_page::{self, PbaEntry, SLOTS};
use format::units::{Pba, Pbn, TreeId};
use mutants::mutant;

use crate::error::PageError;
use crate::store::{PageRead, PageStore, PinSet};

const TREE: TreeId = TreeId::PBN_PBA;

/// What [`retain`] met.
#[derive(Default)]
pub struct Retained {
    /// Where the chunks are that were dead.
    pub revived: Vec<Pba>,
    /// References beyond which a chunk counts as popular; 0: none does.
    pub popular_above: u32,
    /// The chunks that have just become so.
    pub popular: Vec<Pbn>,
}

/// Leaf and slot of a PBN.
#[must_use]
pub fn place(pbn: Pbn) -> (u64, usize) {
    (pbn.0 / SLOTS as u64, (pbn.0 % SLOTS as u64) as usize)
}

/// The PBNs that name something in a leaf of the table, or of that of second copies.
pub fn entries(leaf: u64, page: &Page) -> impl Iterator<Item = (Pbn, PbaEntry)> + '_ {
    let pbns = (leaf * SLOTS as u64..).map(Pbn);
    pbns.zip(0..SLOTS).filter_map(|(pbn, slot)| Some((pbn, pba_page::get(page, slot)?)))
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
    want_in(TREE, store, pins, pbn, reads)
}

pub(crate) fn want_in(
    tree: TreeId,
    store: &mut PageStore,
    pins: &mut PinSet,
    pbn: Pbn,
    reads: &mut Vec<PageRead>,
) -> Result<bool, PageError> {
    store.want(pins, tree, place(pbn).0, reads)
}

/// The entry of `pbn`; none when it names nothing. Its leaf must have been wanted.
#[must_use]
pub fn get(store: &PageStore, pbn: Pbn) -> Option<PbaEntry> {
    get_in(TREE, store, pbn)
}

pub(crate) fn get_in(tree: TreeId, store: &PageStore, pbn: Pbn) -> Option<PbaEntry> {
    let (leaf, slot) = place(pbn);
    pba_page::get(store.page(tree, leaf)?, slot)
}

/// Adds the entries of `pbns` to `entries`, none for what names nothing, and counts that they were
/// asked for. Their leaves must have been wanted. Neighbours share the finding of their leaf.
pub fn get_all(store: &mut PageStore, pbns: &[Pbn], entries: &mut Vec<Option<PbaEntry>>) {
    for (leaf, run) in runs(pbns) {
        let page = leaf.and_then(|leaf| store.page(TREE, leaf));
        entries.extend(run.iter().map(|&pbn| pba_page::get(page?, place(pbn).1)));
        if let Some(leaf) = leaf {
            store.count_accesses(TREE, leaf, run.len());
        }
    }
}

/// Runs of neighbours in one leaf, with that; in none where they name nothing.
fn runs(pbns: &[Pbn]) -> impl Iterator<Item = (Option<u64>, &[Pbn])> {
    let leaf_of = |pbn: &Pbn| (!pbn.is_none()).then(|| place(*pbn).0);
    let runs = pbns.chunk_by(move |one, next| leaf_of(one) == leaf_of(next));
    runs.map(move |run| (run.first().and_then(leaf_of), run))
}

/// Brings the entries of these chunks near, as far as their leaves are resident.
pub fn touch(store: &mut PageStore, pbns: &[Pbn]) {
    let slots = pbns.iter().map(|&pbn| {
        let (leaf, slot) = place(pbn);
        (TREE, leaf, slot)
    });
    let mut near = 0;
    store.see_slots(slots, |page, slot| {
        near ^= pba_page::get(page, slot).map_or(0, |entry| entry.references);
    });
    black_box(near);
}

/// Enters or changes the entry of `pbn`. Its leaf must have been wanted.
pub fn set(store: &mut PageStore, pbn: Pbn, entry: PbaEntry) {
    set_in(TREE, store, pbn, entry);
}

pub(crate) fn set_in(tree: TreeId, store: &mut PageStore, pbn: Pbn, entry: PbaEntry) {
    let (leaf, slot) = place(pbn);
    pba_page::set(store.page_mut(tree, leaf), slot, Some(entry));
}

/// The same for each of these. Neighbours share the finding of their leaf.
pub fn set_all(store: &mut PageStore, entries: impl Iterator<Item = (Pbn, PbaEntry)>) {
    let mut entries = entries.peekable();
    while let Some((first, _)) = entries.peek() {
        let leaf = place(*first).0;
        let page = store.page_mut(TREE, leaf);
        while let Some((pbn, entry)) = entries.next_if(|(pbn, _)| place(*pbn).0 == leaf) {
            pba_page::set(page, place(pbn).1, Some(entry));
        }
    }
}

/// Removes the entry of `pbn`. Its leaf must have been wanted.
pub fn clear(store: &mut PageStore, pbn: Pbn) {
    clear_in(TREE, store, pbn);
}

pub(crate) fn clear_in(tree: TreeId, store: &mut PageStore, pbn: Pbn) {
    let (leaf, slot) = place(pbn);
    let Some(at) = store.find_leaf(tree, leaf) else { return };
    let page = store.page_at_mut(at);
    pba_page::set(page, slot, None);
    // From the end: collection clears a page from its start, so that the rest is met at once.
    if page.payload().iter().rev().all(|&byte| byte == 0) {
        store.remove_page(tree, leaf);
    }
}

/// Whether a chunk that is mapped so often may have this count. The largest stands for all that are
/// more, and stays when some of them go.
#[must_use]
pub fn is_count_of(references: u32, mapped: u32) -> bool {
    references == mapped || references == u32::MAX
}

/// One reference more to each of `pbns`, those that are none left out; their leaves must have been
/// wanted. A PBN that names nothing is left so. Neighbours share the finding of their leaf.
pub fn retain(store: &mut PageStore, pbns: &[Pbn], retained: &mut Retained) {
    let references_max = if mutant!(SaturatesCount) { 4 } else { u32::MAX };
    let one_more = |references: u32| references.saturating_add(1).min(references_max);
    count(store, pbns, one_more, |pbn, pba, before| {
        if before == 0 {
            retained.revived.push(pba);
        } else if before == retained.popular_above {
            retained.popular.push(pbn);
        }
    });
}

/// One reference less to each, as for [`retain`]. Where the chunks are that had no other is added
/// to `died`.
pub fn release(store: &mut PageStore, pbns: &[Pbn], died: &mut Vec<Pba>) {
    let one_less = |references: u32| match references {
        u32::MAX => u32::MAX,
        _ => references.saturating_sub(1),
    };
    count(store, pbns, one_less, |_, pba, before| {
        if before == 1 {
            died.push(pba);
        }
    });
}

/// Changes the count of each; `counted` gets what it was.
fn count(
    store: &mut PageStore,
    pbns: &[Pbn],
    change: impl Fn(u32) -> u32,
    mut counted: impl FnMut(Pbn, Pba, u32),
) {
    for (leaf, run) in runs(pbns) {
        let Some(leaf) = leaf else { continue };
        let Some(at) = store.find_leaf(TREE, leaf) else { continue };
        store.count_accesses(TREE, leaf, run.len());
        let page = store.page_at_mut(at);
        for &pbn in run {
            let slot = place(pbn).1;
            let Some(entry) = pba_page::get(page, slot) else { continue };
            let PbaEntry { pba, references, .. } = entry;
            let counted_anew = PbaEntry { references: change(references), ..entry };
            pba_page::set(page, slot, Some(counted_anew));
            counted(pbn, pba, references);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_count_of;

    #[test]
    fn the_largest_count_is_right_for_any_number_of_references() {
        assert!(is_count_of(7, 7) && !is_count_of(7, 8) && !is_count_of(u32::MAX - 1, u32::MAX));
        assert!(is_count_of(u32::MAX, u32::MAX) && is_count_of(u32::MAX, 5));
    }
}
