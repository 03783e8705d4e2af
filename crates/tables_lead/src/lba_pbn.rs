//! The LBA-PBN map of a volume: one PBN per LBA, none for zeros.

use format::map_page::{self, SLOTS};
use format::units::{Lba, Pbn, TreeId};

use crate::page_store::PageStore;

/// Leaf and slot of an LBA.
#[must_use]
pub fn place(lba: Lba) -> (u64, usize) {
    (lba.0 / SLOTS as u64, (lba.0 % SLOTS as u64) as usize)
}

/// What an LBA names. Its leaf must have been wanted.
#[must_use]
pub fn get(store: &PageStore, tree: TreeId, lba: Lba) -> Pbn {
    let (leaf, slot) = place(lba);
    store.page(tree, leaf).map_or(Pbn::NONE, |page| map_page::get(page, slot))
}

/// Maps a run of LBAs and pushes the PBNs that they named before onto `released`. Leaves in which
/// nothing is mapped any more are removed.
pub fn set_run(
    store: &mut PageStore,
    tree: TreeId,
    first: Lba,
    pbns: &[Pbn],
    released: &mut Vec<Pbn>,
) {
    let mut rest = pbns;
    let mut lba = first.0;
    while !rest.is_empty() {
        let (leaf, slot) = place(Lba(lba));
        let (run, after) = rest.split_at(rest.len().min(SLOTS - slot));
        set_in_leaf(store, tree, (leaf, slot), run, released);
        lba += run.len() as u64;
        rest = after;
    }
}

fn set_in_leaf(
    store: &mut PageStore,
    tree: TreeId,
    (leaf, slot): (u64, usize),
    run: &[Pbn],
    released: &mut Vec<Pbn>,
) {
    let clears = run.iter().any(|pbn| pbn.is_none());
    if run.iter().all(|pbn| pbn.is_none()) && store.page(tree, leaf).is_none() {
        return;
    }
    let page = store.page_mut(tree, leaf);
    for (slot, &pbn) in (slot..).zip(run) {
        let old = map_page::get(page, slot);
        if !old.is_none() {
            released.push(old);
        }
        map_page::set(page, slot, pbn);
    }
    if clears && map_page::is_empty(page) {
        store.remove_page(tree, leaf);
    }
}

/// Unmaps LBAs of one leaf and pushes the PBNs that they named onto `released`.
pub fn clear_run(
    store: &mut PageStore,
    tree: TreeId,
    first: Lba,
    count: usize,
    released: &mut Vec<Pbn>,
) {
    let (leaf, slot) = place(first);
    let run = vec![Pbn::NONE; count.min(SLOTS - slot)];
    set_in_leaf(store, tree, (leaf, slot), &run, released);
}
