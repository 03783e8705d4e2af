//! The life of a page: held, written, changed while it is written, dropped, removed.

use std::sync::Arc;

use format::map_page;
use format::pointer_page::FANOUT;
use format::units::{Pbn, TreeId, TreeRoot, VolumeId};
use tables::{NextLeaf, PageStore, PageStoreOptions, PageWrite, PinSet};

use crate::device::{Checkpoint, Device, freeze};

const TREE: TreeId = TreeId::volume(VolumeId(7));
const OPTIONS: PageStoreOptions = PageStoreOptions { cache_pages: 1, tables_blocks: 500 };

fn put(store: &mut PageStore, index: u64, value: u64) {
    map_page::set(store.page_mut(TREE, index), 0, Pbn(value));
}

fn pin(store: &mut PageStore, index: u64) -> PinSet {
    let (mut pins, mut reads) = (PinSet::default(), Vec::new());
    assert!(store.want(&mut pins, TREE, index, &mut reads).unwrap());
    pins
}

fn freeze_all(store: &mut PageStore, generation: u64) -> Vec<PageWrite> {
    let writes = store.freeze_trees(generation).unwrap();
    assert!(store.freeze_catalog(generation).unwrap().is_empty());
    writes
}

fn done(store: &mut PageStore, writes: &[PageWrite]) {
    store.write_done(&writes.iter().map(|write| write.block).collect::<Vec<_>>());
}

fn shrink_hard(store: &mut PageStore) {
    (0..4).for_each(|_| store.shrink());
}

/// Pinned leaves stay however small the cache, and writes in flight keep their bytes.
#[test]
fn frozen_bytes_do_not_change_and_pinned_pages_stay() {
    let mut store = PageStore::new(OPTIONS);
    put(&mut store, 3, 1);
    let pins = pin(&mut store, 3);
    let writes = freeze_all(&mut store, 1);
    let bytes: Vec<Vec<u8>> = writes.iter().map(|w| w.page.as_bytes().to_vec()).collect();
    put(&mut store, 3, 2);
    assert!(writes.iter().zip(&bytes).all(|(write, bytes)| write.page.as_bytes()[..] == bytes[..]));
    // The write's own, and one for other versions of the volume that want it before it is there.
    assert_eq!(writes.iter().map(|write| Arc::strong_count(&write.page)).min(), Some(2));
    done(&mut store, &writes);
    let again = freeze_all(&mut store, 2);
    assert_eq!(store.traffic().maps.writes, (writes.len() + again.len()) as u64);
    done(&mut store, &again);
    shrink_hard(&mut store);
    assert!(store.page(TREE, 3).is_some(), "it is pinned");
    store.release_pins(pins);
    shrink_hard(&mut store);
    assert!(store.page(TREE, 3).is_none() && !store.over_budget());
}

/// A page that moved on while it was written stays until the write of its last block has ended.
#[test]
fn a_page_waits_for_the_write_of_its_newest_block() {
    let mut store = PageStore::new(OPTIONS);
    put(&mut store, 3, 1);
    let older = freeze_all(&mut store, 1);
    put(&mut store, 3, 2);
    let newer = freeze_all(&mut store, 2);
    done(&mut store, &older);
    shrink_hard(&mut store);
    assert!(store.page(TREE, 3).is_some(), "its newest block is still being written");
    done(&mut store, &newer);
    shrink_hard(&mut store);
    assert!(store.page(TREE, 3).is_none());
}

/// Pins of a page that its operation removed do not become pins of the page that takes its place.
#[test]
fn pins_of_a_removed_page_are_void() {
    let mut store = PageStore::new(OPTIONS);
    put(&mut store, 3, 1);
    put(&mut store, 4, 1);
    let void = pin(&mut store, 3);
    store.remove_page(TREE, 3);
    put(&mut store, 5, 1);
    let pins = pin(&mut store, 5);
    store.release_pins(void);
    let writes = freeze_all(&mut store, 1);
    done(&mut store, &writes);
    shrink_hard(&mut store);
    assert!(store.page(TREE, 5).is_some() && store.page(TREE, 4).is_none());
    store.release_pins(pins);
    shrink_hard(&mut store);
    assert!(store.page(TREE, 5).is_none());
}

/// However much is cleaned ahead, and however late its writes end, a freeze finds its blocks.
#[test]
fn cleaning_leaves_blocks_for_the_freeze() {
    let mut device = Device::new(());
    let mut store = PageStore::new(OPTIONS);
    let mut cleaned = 0;
    for generation in 1..20 {
        for round in 0..8 {
            (0..60).for_each(|index| {
                let pins = device.wait_for(&mut store, |store, pins, reads| {
                    store.want(pins, TREE, index * 40, reads)
                });
                put(&mut store, index * 40, generation * 10 + round);
                store.release_pins(pins);
            });
            for _ in 0..4 {
                let writes = store.clean_batch(100);
                cleaned += writes.len();
                device.submit(writes);
            }
        }
        let trees = freeze(&mut store, &mut device, generation, &[TREE]).unwrap();
        device.checkpoint(&mut store, Checkpoint { trees, model: () }, |_, ()| ());
        store.shrink();
    }
    assert!(cleaned > 1000, "only {cleaned} pages were cleaned");
}

/// A freeze without blocks says so and changes nothing; with blocks again it succeeds.
#[test]
fn a_freeze_without_blocks_changes_nothing() {
    let mut store = PageStore::new(PageStoreOptions { tables_blocks: 10, ..OPTIONS });
    (0..9).for_each(|index| put(&mut store, index, 1));
    let error = store.freeze_trees(1).unwrap_err();
    assert_eq!((error.pages, error.free_blocks), (10, 9));
    assert_eq!((store.dirty_pages(), store.free_blocks()), (10, 9));
    store.remove_page(TREE, 8);
    assert_eq!(freeze_all(&mut store, 1).len(), 9);
    assert_eq!((store.free_blocks(), store.used_blocks()), (0, 9));
}

/// A volume of any size that holds nothing costs no page, no read and one look.
#[test]
fn an_empty_volume_costs_nothing() {
    let mut store = PageStore::new(OPTIONS);
    store.add_tree(TREE, TreeRoot::default());
    let (mut pins, mut reads) = (PinSet::default(), Vec::new());
    for index in [0, 1 << 20, u64::MAX / 677] {
        assert!(store.want(&mut pins, TREE, index, &mut reads).unwrap());
        assert_eq!(store.next_leaf(TREE, index, &mut reads), Ok(NextLeaf::End));
        assert!(store.page(TREE, index).is_none());
    }
    assert!(pins.is_empty() && reads.is_empty() && store.resident_pages() == 0);
}

/// Counting leaves below inner pages of which the cache has room for one ends.
#[test]
fn a_walk_that_begins_anew_holds_what_it_has_had() {
    let mut device = Device::new(());
    let mut store = PageStore::new(OPTIONS);
    let leaves = [0, 1, 2, 3].map(|number| number * FANOUT as u64);
    leaves.iter().for_each(|&leaf| put(&mut store, leaf, 1));
    let trees = freeze(&mut store, &mut device, 1, &[TREE]).unwrap();
    device.checkpoint(&mut store, Checkpoint { trees, model: () }, |_, ()| ());
    shrink_hard(&mut store);
    let mut held = PinSet::default();
    let rounds = (1..100).find(|_| {
        let (mut pins, mut reads, mut from) = (PinSet::default(), Vec::new(), 0);
        let mut last = NextLeaf::Missing;
        for leaf in leaves {
            last = store.next_leaf_held(&mut pins, TREE, from, &mut reads).unwrap();
            if last == NextLeaf::Missing {
                break;
            }
            assert_eq!(last, NextLeaf::Found(leaf));
            from = leaf + 1;
        }
        store.release_pins(std::mem::replace(&mut held, pins));
        shrink_hard(&mut store);
        device.serve(&mut store, &mut reads).unwrap();
        last != NextLeaf::Missing
    });
    assert!(rounds.is_some_and(|rounds| rounds >= leaves.len()), "{rounds:?}");
    store.release_pins(held);
}
