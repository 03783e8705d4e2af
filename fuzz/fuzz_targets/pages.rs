//! Table pages: any payload can be read as any kind of page, and what is read can be stored again.
#![no_main]

use format::page::{Page, PageId, TreeId};
use format::{bucket, container_page, map_page, pba_page, pointer_page};
use libfuzzer_sys::fuzz_target;
use tamis_fuzz::block;

fn copied(page: &Page, copy: impl FnOnce(&mut Page)) -> Page {
    let mut again = Page::empty(page.id());
    copy(&mut again);
    again
}

fn entries(page: &Page) {
    let pointers = copied(page, |again| {
        (0..pointer_page::FANOUT)
            .for_each(|slot| pointer_page::set(again, slot, pointer_page::get(page, slot)));
    });
    assert_eq!(pointers.payload(), page.payload());
    let pbns = copied(page, |again| {
        (0..map_page::SLOTS).for_each(|slot| map_page::set(again, slot, map_page::get(page, slot)));
    });
    for slot in 0..map_page::SLOTS {
        assert_eq!(map_page::get(&pbns, slot), map_page::get(page, slot));
    }
    let pbas = copied(page, |again| {
        (0..pba_page::SLOTS).for_each(|slot| pba_page::set(again, slot, pba_page::get(page, slot)));
    });
    for slot in 0..pba_page::SLOTS {
        assert_eq!(pba_page::get(&pbas, slot), pba_page::get(page, slot));
    }
    let mut containers = Page::empty(page.id());
    for slot in 0..container_page::SLOTS {
        let Ok(entry) = container_page::get(page, slot) else { continue };
        container_page::set(&mut containers, slot, &entry);
        assert_eq!(container_page::get(&containers, slot), Ok(entry));
    }
}

fn bucket(page: &Page) {
    let mut rebuilt = Page::empty(page.id());
    for slot in 0..bucket::len(page) {
        let (fingerprint, pbn) = bucket::entry(page, slot);
        let _ = bucket::find(page, &fingerprint);
        if bucket::find(&rebuilt, &fingerprint).is_none() {
            assert_eq!(bucket::push(&mut rebuilt, &fingerprint, pbn), Ok(()));
            assert_eq!(bucket::find(&rebuilt, &fingerprint), Some(pbn));
        }
    }
    for slot in 0..bucket::len(&rebuilt) {
        let (fingerprint, pbn) = bucket::entry(&rebuilt, slot);
        assert_eq!(bucket::find(&rebuilt, &fingerprint), Some(pbn));
        let _ = (bucket::young_pbn(pbn), bucket::ends_segment(page));
    }
    bucket::clear(&mut rebuilt);
    assert_eq!(rebuilt.payload(), Page::empty(page.id()).payload());
}

fuzz_target!(|input: &[u8]| {
    let Ok(mut page) = Page::from_bytes(&block(input)) else { return };
    let other = PageId { tree: TreeId::CATALOG, level: 9, index: 0 };
    let _ = page.check(other, 0).map_err(|error| error.to_string());
    entries(&page);
    bucket(&page);
    let generation = page.generation();
    let tag = page.seal(generation) & 0xff_ffff;
    let _ = page.check(page.id(), tag).map_err(|error| error.to_string());
});
