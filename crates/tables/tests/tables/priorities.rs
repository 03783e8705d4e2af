//! What the three tables are granted in one cache: `store/eviction.rs`, decisions/025.

use std::ops::Range;

use format::map_page;
use format::units::{Pbn, TreeId, VolumeId};
use tables::{PageStore, PageStoreOptions, TableKind};

use crate::device::{Checkpoint, Device, freeze};

const MAP: TreeId = TreeId::volume(VolumeId(7));
const TREES: [TreeId; 3] = [TreeId::HASH_PBN, TreeId::PBN_PBA, MAP];
const LEAVES: u64 = 1500;
const CACHE_PAGES: usize = 160;
/// A sixteenth.
const FLOOR_PAGES: usize = 10;

struct Rig {
    store: PageStore,
    device: Device<()>,
}

impl Rig {
    fn new() -> Self {
        let options = PageStoreOptions { cache_pages: CACHE_PAGES, tables_blocks: 20_000 };
        let mut device = Device::new(());
        let mut store = PageStore::new(options);
        for tree in TREES {
            (0..LEAVES).for_each(|index| {
                map_page::set(store.page_mut(tree, index), 0, Pbn(1));
            });
        }
        let trees = freeze(&mut store, &mut device, 1, &TREES).unwrap();
        device.checkpoint(&mut store, Checkpoint { trees, model: () }, |_, ()| ());
        Self { store: device.open(options), device }
    }

    /// Wants each leaf twice, so that it goes to the main queue, and keeps the cache to its size.
    fn want_twice(&mut self, tree: TreeId, leaves: Range<u64>) {
        for index in leaves.flat_map(|index| [index, index]) {
            let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
                store.want(pins, tree, index, reads)
            });
            self.store.release_pins(pins);
            self.store.shrink();
            assert!(!self.store.over_budget());
        }
    }

    fn resident(&self, tree: TreeId, leaves: Range<u64>) -> usize {
        leaves.filter(|&index| self.store.page(tree, index).is_some()).count()
    }
}

#[test]
fn no_table_is_pushed_out_altogether() {
    for quiet in TREES {
        let mut rig = Rig::new();
        rig.want_twice(quiet, 0..40);
        for tree in TREES.into_iter().filter(|&tree| tree != quiet) {
            for round in 0..3 {
                rig.want_twice(tree, 400 * round..400 * round + 400);
            }
        }
        let table = TableKind::of(quiet);
        assert_eq!(rig.store.held_of(table), (FLOOR_PAGES, 0), "{quiet}");
        // The other pages lead to them.
        assert!(rig.resident(quiet, 0..40) >= FLOOR_PAGES - 3, "{quiet}");
    }
}

#[test]
fn a_page_of_the_hash_pbn_table_goes_round_once_more() {
    let mut rig = Rig::new();
    let trees = [TreeId::HASH_PBN, TreeId::PBN_PBA];
    trees.into_iter().for_each(|tree| rig.want_twice(tree, 0..60));
    rig.want_twice(MAP, 0..100);
    let [hash, pba] = trees.map(|tree| rig.resident(tree, 0..60));
    assert!(hash > 50 && pba < 20, "{hash} of one, {pba} of the other");
    // It is not for good.
    rig.want_twice(MAP, 200..900);
    assert!(rig.resident(TreeId::HASH_PBN, 0..60) <= FLOOR_PAGES);
}

#[test]
fn what_is_held_is_counted_by_table() {
    let mut rig = Rig::new();
    rig.want_twice(MAP, 0..30);
    rig.want_twice(TreeId::PBN_PBA, 0..20);
    (0..7).for_each(|index| map_page::set(rig.store.page_mut(MAP, index), 0, Pbn(2)));
    let held = |table| rig.store.held_of(table);
    // A tree of so many leaves has two levels above them, which are dirty when a leaf is.
    assert_eq!(held(TableKind::Maps), (30 + 2, 7 + 2));
    assert_eq!(held(TableKind::PbnPba), (20 + 2, 0));
    assert_eq!(held(TableKind::HashPbn), (0, 0));
    assert_eq!(rig.store.resident_pages(), 54);
    assert_eq!(rig.store.dirty_pages(), 9);
}
