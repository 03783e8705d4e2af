//! Pages hold what was put in them, slot by slot, and pass only for themselves.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{Just, any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::Index;

use super::values::{catalog_entry, container_entry, page_id, pba_entry, pbn, pointer};
use crate::page::Page;
use crate::units::{BlockPtr, PageId, Pbn, TreeId, VolumeId};
use crate::{BLOCK_BYTES, FormatError, catalog, container_page, map_page, pba_page, pointer_page};

fn leaf(tree: TreeId) -> Page {
    Page::empty(PageId { tree, level: 0, index: 3 })
}

proptest! {
    #[test]
    fn a_sealed_page_passes_for_itself_alone(
        id in page_id(),
        other in page_id(),
        generation: u64,
        payload in vec(any::<u8>(), 100),
    ) {
        let mut page = Page::empty(id);
        page.payload_mut()[50..150].copy_from_slice(&payload);
        let crc = page.seal(generation);
        let tag = BlockPtr::new(1, crc).tag();
        let read = Page::from_bytes(page.as_bytes()).unwrap();
        prop_assert_eq!(read.check(id, tag), Ok(()));
        prop_assert_eq!((read.id(), read.generation()), (id, generation));
        let stale = FormatError::PageTag { id, expected: tag ^ 1, found: tag };
        prop_assert_eq!(read.check(id, tag ^ 1), Err(stale));
        if other != id {
            let wrong = FormatError::WrongPage { expected: other, found: id };
            prop_assert_eq!(read.check(other, tag), Err(wrong));
        }
    }

    #[test]
    fn what_is_left_of_a_page_is_told_from_another_one(
        id in page_id(),
        generation in 1..u64::MAX,
        at in 0..BLOCK_BYTES - 32,
        length in 1..32_usize,
    ) {
        let mut page = Page::empty(id);
        let earlier = BlockPtr::tag_of(page.seal(generation));
        page.payload_mut()[100] = 1;
        let tag = BlockPtr::tag_of(page.seal(generation));
        // Whole, it is no remains of a version that it is not.
        prop_assert!(page.is_left_of(tag) && !page.is_left_of(earlier));
        page.as_bytes_mut()[at..at + length].iter_mut().for_each(|byte| *byte ^= 0xa5);
        prop_assert!(page.is_left_of(tag));
    }

    #[test]
    fn pointers_keep_block_and_tag(block in 1..BlockPtr::BLOCKS_MAX, crc: u32) {
        let pointer = BlockPtr::new(block, crc);
        prop_assert_eq!((pointer.block(), pointer.tag()), (block, crc & 0xff_ffff));
        prop_assert!(!pointer.is_none());
    }

    #[test]
    fn pointer_pages_hold_pointers(pointers in vec(pointer(), pointer_page::FANOUT)) {
        let mut page = Page::empty(PageId { tree: TreeId::PBN_PBA, level: 1, index: 0 });
        for (slot, &pointer) in pointers.iter().enumerate() {
            pointer_page::set(&mut page, slot, pointer);
        }
        for (slot, &pointer) in pointers.iter().enumerate() {
            prop_assert_eq!(pointer_page::get(&page, slot), pointer);
        }
        let used = pointers.iter().filter(|pointer| !pointer.is_none()).count();
        prop_assert_eq!(pointer_page::used(&page), used);
    }

    #[test]
    fn map_pages_hold_pbns(pbns in vec(pbn(), map_page::SLOTS), again: Index) {
        let mut page = leaf(TreeId::volume(VolumeId(1)));
        prop_assert!(map_page::is_empty(&page));
        for (slot, &pbn) in pbns.iter().enumerate() {
            map_page::set(&mut page, slot, pbn);
        }
        let again = again.index(map_page::SLOTS);
        map_page::set(&mut page, again, Pbn::MAX);
        for (slot, &pbn) in pbns.iter().enumerate() {
            let expected = if slot == again { Pbn::MAX } else { pbn };
            prop_assert_eq!(map_page::get(&page, slot), expected);
        }
        prop_assert!(!map_page::is_empty(&page));
        (0..map_page::SLOTS).for_each(|slot| map_page::set(&mut page, slot, Pbn::NONE));
        prop_assert!(map_page::is_empty(&page));
    }

    #[test]
    fn pba_pages_hold_entries(entries in vec(option::of(pba_entry()), pba_page::SLOTS)) {
        let mut page = leaf(TreeId::PBN_PBA);
        for (slot, &entry) in entries.iter().enumerate() {
            pba_page::set(&mut page, slot, entry);
        }
        for (slot, &entry) in entries.iter().enumerate() {
            prop_assert_eq!(pba_page::get(&page, slot), entry);
        }
    }

    #[test]
    fn container_pages_hold_entries(
        entries in vec(container_entry(), container_page::SLOTS),
    ) {
        let mut page = leaf(TreeId::CONTAINERS);
        prop_assert_eq!(container_page::get(&page, 0), Ok(Default::default()));
        for (slot, entry) in entries.iter().enumerate() {
            container_page::set(&mut page, slot, entry);
        }
        for (slot, &entry) in entries.iter().enumerate() {
            prop_assert_eq!(container_page::get(&page, slot), Ok(entry));
        }
    }

    #[test]
    fn catalog_pages_hold_volumes(
        first in vec(option::of(catalog_entry()), catalog::SLOTS),
        then in vec(option::of(catalog_entry()), catalog::SLOTS),
    ) {
        let mut page = leaf(TreeId::CATALOG);
        for entries in [first, then] {
            for (slot, entry) in entries.iter().enumerate() {
                catalog::set(&mut page, slot, entry.as_ref());
            }
            for (slot, entry) in entries.into_iter().enumerate() {
                prop_assert_eq!(catalog::get(&page, slot), Ok(entry));
            }
        }
    }

    #[test]
    fn slots_of_hostile_pages_are_values_or_errors(
        payload in vec(any::<u8>(), BLOCK_BYTES),
        id in Just(PageId { tree: TreeId::CATALOG, level: 0, index: 0 }),
    ) {
        let mut page = Page::empty(id);
        page.as_bytes_mut().copy_from_slice(&payload);
        let _ = page.check(id, 0);
        (0..catalog::SLOTS).for_each(|slot| drop(catalog::get(&page, slot)));
        (0..container_page::SLOTS).for_each(|slot| {
            let _ = container_page::get(&page, slot);
        });
        (0..pba_page::SLOTS).for_each(|slot| {
            let _ = pba_page::get(&page, slot);
        });
        (0..map_page::SLOTS).for_each(|slot| {
            let _ = map_page::get(&page, slot);
        });
        let _ = pointer_page::used(&page);
    }
}

#[test]
fn trees_of_volumes_are_told_from_those_of_the_store() {
    assert_eq!(TreeId::volume(VolumeId(7)).volume_id(), Some(VolumeId(7)));
    assert_eq!(TreeId::CONTAINERS.volume_id(), None);
}

#[test]
fn a_page_is_a_whole_block() {
    let short = Page::from_bytes(&[0; BLOCK_BYTES - 1]);
    assert!(matches!(short, Err(FormatError::Length { found_bytes: 4095, .. })));
}

#[test]
#[should_panic(expected = "48 bits")]
fn a_pbn_that_does_not_fit_is_a_bug() {
    map_page::set(&mut leaf(TreeId::FREE_PBNS), 0, Pbn(1 << 48));
}
