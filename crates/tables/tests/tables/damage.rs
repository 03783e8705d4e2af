//! Damaged and unreadable pages: an error that names the page, again and again, and nothing worse.

use format::map_page;
use format::units::{PageId, Pbn, TreeId, TreeRoot, VolumeId};
use tables::{NextLeaf, PageError, PageStore, PageStoreOptions, PinSet, ReachWalker};

use crate::device::{Checkpoint, Device, freeze};

const TREE: TreeId = TreeId::volume(VolumeId(7));
const OPTIONS: PageStoreOptions = PageStoreOptions { cache_pages: 100, tables_blocks: 500 };

/// Leaves 0, 1 and 600 of a tree of two inner levels, durable.
fn written() -> (Device<()>, TreeRoot) {
    let mut device = Device::new(());
    let mut store = device.open(OPTIONS);
    for index in [0, 1, 600] {
        map_page::set(store.page_mut(TREE, index), 0, Pbn(index + 1));
    }
    let trees = freeze(&mut store, &mut device, 1, &[TREE]).unwrap();
    let root = trees[&TREE];
    device.checkpoint(&mut store, Checkpoint { trees, model: () }, |_, ()| ());
    (device, root)
}

/// Wants a leaf until it is here or fails; every page that is `bad` comes back changed.
fn want(
    device: &mut Device<()>,
    store: &mut PageStore,
    index: u64,
    bad: PageId,
    spoil: fn(&mut Vec<u8>) -> bool,
) -> Result<(), PageError> {
    for _ in 0..10 {
        let (mut pins, mut reads) = (PinSet::default(), Vec::new());
        let here = store.want(&mut pins, TREE, index, &mut reads);
        store.release_pins(pins);
        if here? {
            return Ok(());
        }
        for read in reads {
            let mut bytes = device.read(&read);
            let readable = read.id != bad || spoil(&mut bytes);
            let arrived = store.page_arrived(read, readable.then_some(&bytes[..]).ok_or(()));
            assert_eq!(arrived.is_err(), read.id == bad);
        }
    }
    panic!("a want of leaf {index} neither succeeds nor fails");
}

#[expect(clippy::ptr_arg, reason = "it is one of several ways to spoil a page")]
fn flip(bytes: &mut Vec<u8>) -> bool {
    bytes[2000] ^= 1;
    true
}

#[test]
fn a_damaged_page_spoils_itself_and_what_is_below_it() {
    let id = |level, index| PageId { tree: TREE, level, index };
    let spoils: [fn(&mut Vec<u8>) -> bool; 4] = [
        flip,
        |_| false,
        |bytes| {
            bytes.truncate(100);
            true
        },
        |bytes| {
            bytes.fill(0);
            true
        },
    ];
    for spoil in spoils {
        for (bad, lost) in [
            (id(0, 1), &[1][..]),
            (id(1, 0), &[0, 1, 5]),
            (id(1, 1), &[600, 601]),
            (id(2, 0), &[0, 1, 600]),
        ] {
            let (mut device, _) = written();
            let mut store = device.open(OPTIONS);
            for _ in 0..3 {
                for index in [0, 1, 5, 600, 601] {
                    let found = want(&mut device, &mut store, index, bad, spoil);
                    let is_lost = lost.contains(&index) || bad.level == 2;
                    assert_eq!(found.err().map(|error| error.page()), is_lost.then_some(bad));
                }
            }
        }
    }
}

#[test]
fn what_the_device_fails_to_give_is_asked_for_again_once_nothing_is_on_its_way() {
    let (mut device, _) = written();
    let mut store = device.open(OPTIONS);
    let bad = PageId { tree: TREE, level: 0, index: 1 };
    want(&mut device, &mut store, 0, bad, flip).unwrap();
    let want_both = |store: &mut PageStore| {
        let (mut pins, mut reads) = (PinSet::default(), Vec::new());
        let wanted = [1, 600].map(|index| store.want(&mut pins, TREE, index, &mut reads).ok());
        store.release_pins(pins);
        (wanted, reads)
    };
    let (_, reads) = want_both(&mut store);
    let [first, second] = &reads[..] else { panic!("{reads:?}") };
    assert!(store.page_arrived(*first, Err(())).is_err());
    store.retry_unreadable();
    let (wanted, again) = want_both(&mut store);
    assert_eq!((wanted, again.len()), ([None, Some(false)], 0), "the other is on its way");
    assert!(store.page_arrived(*second, Err(())).is_err());
    store.retry_unreadable();
    let (wanted, again) = want_both(&mut store);
    assert_eq!((wanted, again.len()), ([Some(false), Some(false)], 2));
}

#[test]
fn walking_over_leaves_stops_at_a_damaged_page() {
    let (mut device, _) = written();
    let mut store = device.open(OPTIONS);
    let bad = PageId { tree: TREE, level: 1, index: 1 };
    assert!(want(&mut device, &mut store, 600, bad, flip).is_err());
    want(&mut device, &mut store, 0, bad, flip).unwrap();
    let mut reads = Vec::new();
    assert_eq!(store.next_leaf(TREE, 1, &mut reads), Ok(NextLeaf::Found(1)));
    let error = store.next_leaf(TREE, 2, &mut reads).unwrap_err();
    assert_eq!((error.page(), reads.len()), (bad, 0));
    let sentence = error.to_string();
    assert!(sentence.starts_with("page 1 of level 1 of the map of volume 7 is damaged in block "));
}

#[test]
fn a_page_that_nobody_asked_for_is_ignored() {
    let (mut device, root) = written();
    let mut store = device.open(OPTIONS);
    let id = PageId { tree: TREE, level: 2, index: 0 };
    let read = tables::PageRead { id, pointer: root.pointer };
    assert_eq!(store.page_arrived(read, Err(())), Ok(()));
    assert_eq!(store.resident_pages(), 0);
}

#[test]
fn the_walker_reports_a_damaged_page_and_a_pointer_out_of_the_zone() {
    let (mut device, root) = written();
    let mut walker = ReachWalker::new(OPTIONS.tables_blocks);
    walker.add_tree(TREE, root).unwrap();
    let reads = walker.next_reads(10);
    let mut bytes = device.read(&reads[0]);
    flip(&mut bytes);
    assert!(matches!(walker.feed(&reads[0], &bytes), Err(PageError::Damaged { .. })));
    let mut small = ReachWalker::new(2);
    assert!(matches!(small.add_tree(TREE, root), Err(PageError::OutOfRange { .. })));
}
