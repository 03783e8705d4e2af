//! What the cache keeps: pages that are wanted again, whatever passes by beside them.

use std::ops::Range;

use format::map_page;
use format::units::{Pbn, TreeId, VolumeId};
use tables::{PageStore, PageStoreOptions};

use crate::device::{Checkpoint, Device, freeze};

const TREE: TreeId = TreeId::volume(VolumeId(7));
const LEAVES: u64 = 3000;
const CACHE_PAGES: usize = 100;
const SMALL_PAGES: u64 = CACHE_PAGES as u64 / 10;

struct Rig {
    store: PageStore,
    device: Device<()>,
}

impl Rig {
    /// A store with `LEAVES` leaves on disk and nothing in memory.
    fn new() -> Self {
        let options = PageStoreOptions { cache_pages: CACHE_PAGES, tables_blocks: 10_000 };
        let mut device = Device::new(());
        let mut store = PageStore::new(options);
        (0..LEAVES).for_each(|index| {
            map_page::set(store.page_mut(TREE, index), 0, Pbn(1));
        });
        let trees = freeze(&mut store, &mut device, 1, &[TREE]).unwrap();
        device.checkpoint(&mut store, Checkpoint { trees, model: () }, |_, ()| ());
        Self { store: device.open(options), device }
    }

    /// Wants each leaf once, and has the cache as large as it should be after each.
    fn want(&mut self, leaves: Range<u64>) {
        for index in leaves {
            let pins = self.device.wait_for(&mut self.store, |store, pins, reads| {
                store.want(pins, TREE, index, reads)
            });
            self.store.release_pins(pins);
            self.store.shrink();
            assert!(!self.store.over_budget());
        }
    }

    fn change(&mut self, leaves: Range<u64>) {
        leaves.for_each(|index| map_page::set(self.store.page_mut(TREE, index), 0, Pbn(2)));
    }

    fn resident(&self, leaves: Range<u64>) -> usize {
        leaves.filter(|&index| self.store.page(TREE, index).is_some()).count()
    }
}

#[test]
fn a_scan_leaves_what_was_wanted_twice() {
    let mut rig = Rig::new();
    rig.want(0..60);
    rig.want(0..60);
    rig.want(1000..2000);
    assert_eq!(rig.resident(0..60), 60);
    assert!(rig.resident(1000..2000) <= CACHE_PAGES - 60);
}

#[test]
fn what_is_wanted_once_passes_by() {
    let mut rig = Rig::new();
    rig.want(0..90);
    rig.want(1000..1100);
    assert_eq!(rig.resident(0..90), 0);
}

/// The small queue is too short for it, and its ghost remembers it.
#[test]
fn what_comes_back_soon_stays() {
    let mut rig = Rig::new();
    rig.want(0..20);
    rig.want(100..220);
    assert_eq!(rig.resident(0..20), 0);
    rig.want(160..170);
    let back = 110..120;
    rig.want(back.clone());
    rig.want(1000..2000);
    assert_eq!((rig.resident(back), rig.resident(0..20)), (10, 0));
    // Long ago: it is as new as what was never here.
    rig.want(0..20);
    rig.want(2000..2500);
    assert_eq!(rig.resident(0..20), 0);
}

/// A working set that is wanted no more goes when another one comes.
#[test]
fn main_forgets() {
    let mut rig = Rig::new();
    (0..5).for_each(|_| rig.want(0..80));
    (0..8).for_each(|_| rig.want(500..580));
    assert!(rig.resident(500..580) > 70, "{}", rig.resident(500..580));
    assert!(rig.resident(0..80) < 20, "{}", rig.resident(0..80));
}

/// What cannot leave takes no room of the small queue: what is read still has its time there.
#[test]
fn dirty_pages_do_not_push_out_newcomers() {
    let mut rig = Rig::new();
    rig.want(0..60);
    rig.want(0..60);
    rig.want(100..130);
    rig.change(100..130);
    rig.want(1000..2000);
    assert_eq!(rig.resident(100..130), 30);
    let newest = 2000 - (SMALL_PAGES - 2)..2000;
    assert_eq!(rig.resident(newest.clone()), newest.count());
}

/// Cleaning looks at marks of its own.
#[test]
fn cleaning_does_not_take_the_marks_of_eviction() {
    let mut rig = Rig::new();
    rig.want(0..60);
    rig.want(0..60);
    rig.change(0..60);
    for _ in 0..4 {
        let writes = rig.store.clean_batch(100);
        rig.device.submit(writes);
    }
    rig.device.land_all(&mut rig.store);
    assert!(rig.store.dirty_pages() < 30, "{} are dirty", rig.store.dirty_pages());
    rig.want(1000..2000);
    assert_eq!(rig.resident(0..60), 60);
}

/// Frames that are gone do not stay in the queues for good.
#[test]
fn pages_made_and_removed_leave_nothing() {
    let mut rig = Rig::new();
    let resident_bytes = |rig: &mut Rig, generation| {
        for number in 0..2000 {
            let index = 10_000 + number % 5;
            rig.want(index..index + 1);
            rig.change(index..index + 1);
            rig.store.remove_page(TREE, index);
        }
        let trees = freeze(&mut rig.store, &mut rig.device, generation, &[TREE]).unwrap();
        rig.device.checkpoint(&mut rig.store, Checkpoint { trees, model: () }, |_, ()| ());
        rig.store.resident_bytes()
    };
    let before = resident_bytes(&mut rig, 2);
    let after = (3..12).map(|generation| resident_bytes(&mut rig, generation)).max();
    assert!(after.unwrap() < before + 10_000, "{before} bytes, then {after:?}");
}
