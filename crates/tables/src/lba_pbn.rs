//! The LBA-PBN map of a volume: which chunk each of its LBAs names.
//!
//! LBA `n` is slot `n % SLOTS` of leaf `n / SLOTS` of the volume's tree. An absent leaf maps
//! nothing, and a leaf that maps nothing is removed: a volume costs what is written to it.

use format::map_page::{self, SLOTS};
use format::page::Page;
use format::units::{Lba, Pbn, TreeId};

use crate::store::PageStore;

/// Leaf and slot of an LBA.
#[must_use]
pub fn place(lba: Lba) -> (u64, usize) {
    (lba.0 / SLOTS as u64, (lba.0 % SLOTS as u64) as usize)
}

/// The LBAs of a leaf that name chunks.
pub fn mapped(leaf: u64, page: &Page) -> impl Iterator<Item = (Lba, Pbn)> + '_ {
    let lbas = (leaf * SLOTS as u64..).map(Lba);
    let slots = lbas.zip((0..SLOTS).map(|slot| map_page::get(page, slot)));
    slots.filter(|(_, pbn)| !pbn.is_none())
}

/// What all LBAs of a leaf name, those that name nothing too. It must have been wanted.
#[must_use]
pub fn slots(store: &PageStore, tree: TreeId, leaf: u64) -> Vec<Pbn> {
    let mut slots = Vec::with_capacity(SLOTS);
    extend_run(store, tree, Lba(leaf * SLOTS as u64), SLOTS, &mut slots);
    slots
}

/// The chunk that `lba` names, [`Pbn::NONE`] when none. Its leaf must have been wanted.
#[must_use]
pub fn get(store: &PageStore, tree: TreeId, lba: Lba) -> Pbn {
    let (leaf, slot) = place(lba);
    store.page(tree, leaf).map_or(Pbn::NONE, |page| map_page::get(page, slot))
}

/// Adds what `count` LBAs from `first` on name to `run`, those that name nothing too. They must lie
/// in one leaf, which must have been wanted.
pub fn extend_run(store: &PageStore, tree: TreeId, first: Lba, count: usize, run: &mut Vec<Pbn>) {
    let (leaf, slot) = place(first);
    match store.page(tree, leaf) {
        Some(page) => run.extend((slot..slot + count).map(|slot| map_page::get(page, slot))),
        None => run.resize(run.len() + count, Pbn::NONE),
    }
}

/// Adds to `named` what these LBAs name, of maps whose leaves are resident; what names nothing is
/// left out. That prefetches all.
pub fn see_all(
    store: &mut PageStore,
    lbas: impl Iterator<Item = (TreeId, Lba)>,
    named: &mut Vec<Pbn>,
) {
    let slots = lbas.map(|(tree, lba)| {
        let (leaf, slot) = place(lba);
        (tree, leaf, slot)
    });
    store.see_slots(slots, |page, slot| named.push(map_page::get(page, slot)));
    named.retain(|pbn| !pbn.is_none());
}

/// Maps `lba`; returns what it named before. Its leaf must have been wanted.
pub fn set(store: &mut PageStore, tree: TreeId, lba: Lba, pbn: Pbn) -> Pbn {
    let old = get(store, tree, lba);
    if old != pbn {
        set_run(store, tree, lba, &[pbn], &mut Vec::new());
    }
    old
}

/// Maps the LBAs from `first` on; what they named before is added to `released`. Their leaves must
/// have been wanted.
pub fn set_run(
    store: &mut PageStore,
    tree: TreeId,
    first: Lba,
    pbns: &[Pbn],
    released: &mut Vec<Pbn>,
) {
    let mut lba = first;
    let mut rest = pbns;
    while !rest.is_empty() {
        let (leaf, slot) = place(lba);
        let (here, further) = rest.split_at(rest.len().min(SLOTS - slot));
        set_in_leaf(store, tree, leaf, slot, here.iter().copied(), released);
        lba.0 += here.len() as u64;
        rest = further;
    }
}

/// Unmaps `count` LBAs from `first` on; what they named is added to `released`. Their leaves must
/// have been wanted.
pub fn clear_run(
    store: &mut PageStore,
    tree: TreeId,
    first: Lba,
    count: usize,
    released: &mut Vec<Pbn>,
) {
    let mut lba = first;
    let mut rest = count;
    while rest > 0 {
        let (leaf, slot) = place(lba);
        let here = rest.min(SLOTS - slot);
        set_in_leaf(store, tree, leaf, slot, std::iter::repeat_n(Pbn::NONE, here), released);
        lba.0 += here as u64;
        rest -= here;
    }
}

fn set_in_leaf(
    store: &mut PageStore,
    tree: TreeId,
    leaf: u64,
    first: usize,
    pbns: impl Iterator<Item = Pbn> + Clone,
    released: &mut Vec<Pbn>,
) {
    // To unmap what is not mapped must not make a leaf.
    if store.page(tree, leaf).is_none() && pbns.clone().all(Pbn::is_none) {
        return;
    }
    store.count_accesses(tree, leaf, pbns.clone().count());
    let page = store.page_mut(tree, leaf);
    let mut unmaps = false;
    for (slot, pbn) in (first..).zip(pbns) {
        let old = map_page::get(page, slot);
        if !old.is_none() {
            released.push(old);
        }
        map_page::set(page, slot, pbn);
        unmaps |= pbn.is_none();
    }
    if unmaps && map_page::is_empty(page) {
        store.remove_page(tree, leaf);
    }
}
