//! The map against a plain one, through many writes on a device that collects all the time.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::{Ftl, Full};
use crate::flash::geometry::Geometry;

const TINY: Geometry = Geometry { channels: 2, chips: 1, dies: 1, planes: 1, blocks: 6, pages: 4 };
/// Of the 48 pages; two blocks of each plane are never full of living pages.
const ADDRESSES: u64 = 28;

/// Every living page is held by one slot, and every slot's page holds it.
fn check(ftl: &Ftl, live: usize) {
    let mut counted = 0;
    for plane in &ftl.planes {
        for block in &plane.blocks {
            let of_slots = block.slots.iter().filter(|&&slot| ftl.slot(slot).references > 0);
            assert_eq!(block.live as usize, of_slots.count());
            counted += block.live as usize;
        }
    }
    assert_eq!(counted, live, "a living page was lost, or counted twice");
    for (number, slot) in (0..).zip(&ftl.slots) {
        if let Some((plane, block, page)) = slot.at {
            let block = &ftl.planes[plane as usize].blocks[block as usize];
            assert_eq!(block.slots[page as usize], number);
        } else {
            assert_eq!(slot.references, 0, "what is referred to has no page");
        }
    }
}

proptest! {
    #[test]
    fn every_address_reads_what_was_written_last(
        writes in vec((0..ADDRESSES, 0..40_u32, any::<bool>()), 1..400),
    ) {
        let mut ftl = Ftl::new(TINY);
        let mut model: HashMap<u64, u32> = HashMap::new();
        let mut stored: HashMap<u32, u32> = HashMap::new();
        let mut collections = 0;
        for (sequence, (lba, content, shares)) in (0..).zip(writes) {
            let known = stored.get(&content).copied().filter(|_| shares);
            let slot = if let Some(slot) = known {
                ftl.refer(slot);
                slot
            } else {
                let slot = ftl.add(content, lba);
                let placed = ftl.place(slot, sequence as u32 % 2).unwrap();
                collections += u32::from(placed.moved.is_some());
                stored.retain(|_, kept| !placed.dropped.contains(kept));
                stored.insert(content, slot);
                slot
            };
            ftl.map(lba, slot, sequence);
            model.insert(lba, content);
            for (&lba, &content) in &model {
                let slot = ftl.mapped(lba).unwrap();
                prop_assert_eq!(ftl.slot(slot).content, content);
            }
            let mut live: Vec<u32> = model.keys().map(|&lba| ftl.mapped(lba).unwrap()).collect();
            live.sort_unstable();
            live.dedup();
            check(&ftl, live.len());
        }
        prop_assert!(collections > 0 || ftl.slots.len() <= 48);
    }
}

#[test]
fn an_older_write_that_ends_later_changes_nothing() {
    let mut ftl = Ftl::new(TINY);
    let (older, newer) = (ftl.add(1, 0), ftl.add(2, 0));
    for slot in [older, newer] {
        ftl.place(slot, 0).unwrap();
    }
    ftl.map(0, newer, 2);
    ftl.map(0, older, 1);
    assert_eq!(ftl.mapped(0), Some(newer));
    assert_eq!((ftl.slot(older).references, ftl.slot(newer).references), (0, 1));
    check(&ftl, 1);
}

#[test]
fn a_device_without_garbage_refuses() {
    let mut ftl = Ftl::new(TINY);
    let full = (0..=TINY.pages_all()).find_map(|lba| {
        let slot = ftl.add(lba as u32, lba);
        let placed = ftl.place(slot, 0);
        ftl.map(lba, slot, lba);
        placed.err()
    });
    assert_eq!(full, Some(Full { pages: TINY.pages_all() }));
}
