//! The Hash-PBN table grows with what it holds and loses nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod device;

use device::{Checkpoint, Device, freeze};
use format::bucket;
use format::root::HashShape;
use format::units::{Fingerprint, Pbn, TreeId};
use tables::{HashPbn, NextLeaf, PageStore, PageStoreOptions, PinSet};

fn fingerprint(number: u64) -> Fingerprint {
    let mut bytes = [0; 32];
    let mut state = number;
    for part in bytes.chunks_exact_mut(8) {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        part.copy_from_slice(&(mixed ^ mixed >> 27).to_le_bytes());
    }
    Fingerprint(bytes)
}

fn options(cache_pages: usize) -> PageStoreOptions {
    PageStoreOptions { cache_pages, tables_blocks: 1 << 20 }
}

/// Wants and inserts as the engine does, without a disk: everything is resident.
fn insert(hash: &mut HashPbn, store: &mut PageStore, number: u64) {
    let (mut pins, mut reads) = (PinSet::default(), Vec::new());
    let key = fingerprint(number);
    assert!(hash.want_insert(store, &mut pins, 1, &mut reads).unwrap());
    assert!(hash.want_lookup(store, &mut pins, &key, &mut reads).unwrap());
    assert_eq!(hash.insert(store, &key, Pbn(number)), None);
    store.release_pins(pins);
}

#[test]
fn a_million_entries_keep_the_mean_load_and_none_is_lost() {
    const ENTRIES: u64 = 1_000_000;
    let mut store = PageStore::new(options(usize::MAX));
    let mut hash = HashPbn::new(HashShape::default(), *b"some store's own");
    (1..=ENTRIES).for_each(|number| insert(&mut hash, &mut store, number));
    assert_eq!(hash.shape().entries, ENTRIES);
    assert_eq!(hash.buckets(), ENTRIES.div_ceil(62));
    for number in 1..=ENTRIES {
        assert_eq!(hash.lookup(&store, &fingerprint(number)), Some(Pbn(number)));
    }
    assert_eq!(hash.lookup(&store, &fingerprint(ENTRIES + 1)), None);
    let pages = |tree| {
        let (mut count, mut from, mut reads) = (0_u64, 0, Vec::new());
        while let NextLeaf::Found(leaf) = store_next(&mut store, tree, from, &mut reads) {
            (count, from) = (count + 1, leaf + 1);
        }
        count
    };
    let [buckets, overflow] = [TreeId::HASH_PBN, TreeId::HASH_OVERFLOW].map(pages);
    assert_eq!(buckets, hash.buckets());
    assert!(overflow * 4 < buckets, "{overflow} overflow pages for {buckets} buckets");
}

fn store_next(
    store: &mut PageStore,
    tree: TreeId,
    from: u64,
    reads: &mut Vec<tables::PageRead>,
) -> NextLeaf {
    store.next_leaf(tree, from, reads).unwrap()
}

/// Entries that were removed make room; a refilled table is the same as before.
#[test]
fn entries_come_and_go() {
    let mut store = PageStore::new(options(usize::MAX));
    let mut hash = HashPbn::new(HashShape::default(), [3; 16]);
    (1..=50_000).for_each(|number| insert(&mut hash, &mut store, number));
    let buckets = hash.buckets();
    for number in 1..=50_000 {
        let (mut pins, mut reads) = (PinSet::default(), Vec::new());
        assert!(hash.want_remove(&mut store, &mut pins, &fingerprint(number), &mut reads).unwrap());
        assert_eq!(hash.remove(&mut store, &fingerprint(number)), Some(Pbn(number)));
        assert_eq!(hash.remove(&mut store, &fingerprint(number)), None);
        store.release_pins(pins);
    }
    assert_eq!((store.resident_pages(), hash.shape().entries), (0, 0));
    (1..=50_000).for_each(|number| insert(&mut hash, &mut store, number));
    assert_eq!(hash.buckets(), buckets);
    assert!((1..=50_000).all(|n| hash.lookup(&store, &fingerprint(n)) == Some(Pbn(n))));
}

/// An entry that is inserted again names the new chunk only.
#[test]
fn a_fingerprint_has_one_entry() {
    let mut store = PageStore::new(options(usize::MAX));
    let mut hash = HashPbn::new(HashShape::default(), [4; 16]);
    (1..=500).for_each(|number| insert(&mut hash, &mut store, number));
    for number in 1..=500 {
        let key = fingerprint(number);
        assert_eq!(hash.insert(&mut store, &key, Pbn(number + 1000)), Some(Pbn(number)));
    }
    assert_eq!(hash.shape().entries, 500);
    assert!((1..=500).all(|n| hash.lookup(&store, &fingerprint(n)) == Some(Pbn(n + 1000))));
}

/// A table many times the cache: groups of inserts, cleaning and checkpoints, from disk and back.
#[test]
fn a_table_larger_than_its_cache_loses_nothing() {
    const GROUPS: u64 = 150;
    const GROUP: u64 = 256;
    let mut device = Device::new(());
    let mut store = device.open(options(40));
    let mut hash = HashPbn::new(HashShape::default(), [5; 16]);
    for group in 0..GROUPS {
        let numbers = group * GROUP + 1..=(group + 1) * GROUP;
        let pins = device.wait_for(&mut store, |store, pins, reads| {
            let mut here = hash.want_insert(store, pins, GROUP, reads)?;
            for number in numbers.clone() {
                here &= hash.want_lookup(store, pins, &fingerprint(number), reads)?;
            }
            Ok(here)
        });
        for number in numbers {
            assert_eq!(hash.insert(&mut store, &fingerprint(number), Pbn(number)), None);
        }
        store.release_pins(pins);
        device.submit(store.clean_batch(200));
        device.land_all(&mut store);
        store.shrink();
        if group % 20 == 19 {
            let trees = [TreeId::HASH_PBN, TreeId::HASH_OVERFLOW];
            let trees = freeze(&mut store, &mut device, group, &trees).unwrap();
            device.checkpoint(&mut store, Checkpoint { trees, model: () }, |leaves, ()| {
                let buckets = leaves.values();
                let entries: usize = buckets.map(bucket::len).sum();
                assert!(entries as u64 <= (group + 1) * GROUP);
            });
        }
    }
    for number in 1..=GROUPS * GROUP {
        let key = fingerprint(number);
        let pins = device
            .wait_for(&mut store, |store, pins, reads| hash.want_lookup(store, pins, &key, reads));
        assert_eq!(hash.lookup(&store, &key), Some(Pbn(number)));
        store.release_pins(pins);
    }
    assert!(device.pages_read > 10_000, "the cache was far too small: {}", device.pages_read);
}

/// Insertions find the way to overflow pages that do not exist yet, also when nothing but what was
/// wanted is resident, the buckets are full, and several entries of a group meet in one of them.
#[test]
fn full_buckets_take_whole_groups_with_only_wanted_pages_resident() {
    const ENTRIES: u64 = 15_000;
    let mut device = Device::new(());
    let mut store = device.open(options(1000));
    let mut hash = HashPbn::new(HashShape::default(), [6; 16]);
    (1..=ENTRIES).for_each(|number| insert(&mut hash, &mut store, number));
    let trees = [TreeId::HASH_PBN, TreeId::HASH_OVERFLOW];
    let trees = freeze(&mut store, &mut device, 1, &trees).unwrap();
    device.checkpoint(&mut store, Checkpoint { trees, model: () }, |_, ()| ());
    let shape = hash.shape();
    let unsplit = (1 << shape.level) - shape.split;
    assert!(unsplit > 5, "buckets are as full as they get: {shape:?}");
    for group in 0..300 {
        let mut store = device.open(options(1));
        let mut hash = HashPbn::new(shape, [6; 16]);
        // Keys of one unsplit bucket, or of any.
        let bucket = shape.split + group % unsplit;
        let is_due = |key: &Fingerprint| group % 3 == 0 || hash.bucket_of(key) == bucket;
        let keys = (ENTRIES + 1..).map(fingerprint).filter(is_due);
        let keys: Vec<Fingerprint> =
            keys.skip(group as usize).take(1 + group as usize % 9).collect();
        let count = keys.len() as u64;
        let pins = device.wait_for(&mut store, |store, pins, reads| {
            let mut here = hash.want_insert(store, pins, count, reads)?;
            for key in &keys {
                here &= hash.want_lookup(store, pins, key, reads)?;
            }
            Ok(here)
        });
        (0..10).for_each(|_| store.shrink());
        for key in &keys {
            assert_eq!(hash.insert(&mut store, key, Pbn(1)), None);
        }
        assert!(keys.iter().all(|key| hash.lookup(&store, key) == Some(Pbn(1))));
        store.release_pins(pins);
    }
}

/// A split whose entries all move, to a bucket that needs an overflow page at once, below inner
/// pages that nothing else wants.
#[test]
fn a_split_finds_the_way_to_its_new_bucket() {
    // One entry more splits bucket 4 into 4 and 516, which is not below the same inner page.
    const ENTRIES: u64 = 62 * 516;
    let split = &HashPbn::new(HashShape { level: 10, ..HashShape::default() }, [6; 16]);
    let keys_of = |bucket| {
        let is_there = move |key: &Fingerprint| split.bucket_of(key) == bucket;
        (1 << 40..).map(fingerprint).filter(is_there).take(120)
    };
    // The neighbour has an overflow page already, so the inner page above both exists.
    let crowd: Vec<Fingerprint> = keys_of(515).chain(keys_of(516)).collect();
    let mut device = Device::new(());
    let mut store = device.open(options(10_000));
    let mut hash = HashPbn::new(HashShape::default(), [6; 16]);
    for &key in &crowd {
        assert_eq!(hash.insert(&mut store, &key, Pbn(1)), None);
    }
    (241..=ENTRIES).for_each(|number| insert(&mut hash, &mut store, number));
    assert_eq!((hash.buckets(), hash.shape().split), (516, 4));
    let trees = [TreeId::HASH_PBN, TreeId::HASH_OVERFLOW];
    let trees = freeze(&mut store, &mut device, 1, &trees).unwrap();
    device.checkpoint(&mut store, Checkpoint { trees, model: () }, |_, ()| ());
    let mut store = device.open(options(1));
    let elsewhere = |key: &Fingerprint| hash.bucket_of(key) == 100;
    let key = (1 << 41..).map(fingerprint).find(elsewhere).unwrap();
    let pins = device.wait_for(&mut store, |store, pins, reads| {
        let here = hash.want_insert(store, pins, 1, reads)?;
        Ok(here & hash.want_lookup(store, pins, &key, reads)?)
    });
    (0..10).for_each(|_| store.shrink());
    hash.insert(&mut store, &key, Pbn(2));
    assert!(hash.buckets() == 517 && crowd.iter().all(|key| hash.bucket_of(key) >= 515));
    assert!(crowd[120..].iter().all(|key| hash.lookup(&store, key) == Some(Pbn(1))));
    store.release_pins(pins);
}
