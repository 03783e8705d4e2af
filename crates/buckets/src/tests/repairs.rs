//! Repairs of buckets in a store that is killed meanwhile.

use engine::Opener;
use format::BLOCK_BYTES;
use format::objects::header::INDEX_COPIES_AT_BYTES;
use objects::bucket::{Bucket, BucketError, CheckOptions, ListOptions, OpenOptions};
use objects::index::IndexError;
use store::{CreateOptions, Options, RequestError, Store, Volume, create_in_memory};

use super::{buckets, get, put};
use crate::{BucketRepairOptions, BucketsError, NewBucket, now_unix_ms, repair_bucket};

const OBJECTS: u32 = 300;

fn options() -> Options {
    let mut options = Options::default();
    options.engine.memory_bytes = 64 << 20;
    options.engine.worker_threads = 0;
    options
}

fn volume(store: &Store, name: &str) -> Volume {
    let opened = store.client().open_volume(name, Opener::new("a test", 0)).unwrap();
    Volume::new(store.client().clone(), opened)
}

fn key(number: u32) -> Vec<u8> {
    format!("objects/{number:04}").into_bytes()
}

fn capacity() -> CreateOptions {
    CreateOptions::new(64 << 20)
}

/// Makes a bucket that has lost a leaf of its index in both copies.
fn make_damaged(store: &Store) {
    let all = buckets(store);
    all.create("photos", &NewBucket::default()).unwrap();
    let photos = all.open("photos").unwrap();
    (0..OBJECTS).for_each(|number| put(&photos, &key(number), &number.to_be_bytes().repeat(700)));
    drop(photos);
    all.close().unwrap();
    let volume = volume(store, "photos");
    let is_leaf = |place: &u64| {
        let mut page = [0; BLOCK_BYTES];
        volume.read_at(INDEX_COPIES_AT_BYTES[0] + place, &mut page).unwrap();
        page[0] == 1 && page.windows(12).any(|bytes| bytes == b"objects/0150")
    };
    let places = (1..2000).map(|block| block * BLOCK_BYTES as u64);
    // Leaves of commits before the last one may have the key as well.
    for leaf in places.filter(is_leaf) {
        for copy in INDEX_COPIES_AT_BYTES {
            volume.write_at(copy + leaf, &[9; BLOCK_BYTES]).unwrap();
        }
    }
    volume.flush_blocking().unwrap();
}

fn repair(
    store: &Store,
    progress: impl FnMut(&'static str, u64) -> Result<(), BucketError>,
) -> Result<objects::bucket::BucketRepair, BucketsError> {
    let options = BucketRepairOptions {
        memory_bytes: 4 << 20,
        unreadable: Vec::new(),
        opened_by: "a test".to_owned(),
    };
    repair_bucket(store.client(), "photos", &options, progress)
}

/// Keys of the bucket, whose index is whole, and of which each object has its bytes.
fn keys(store: &Store) -> Vec<Vec<u8>> {
    let volume = std::sync::Arc::new(volume(store, "photos"));
    let read_only = OpenOptions { memory_bytes: 4 << 20, read_only: true };
    let bucket = Bucket::open(volume, &read_only).unwrap();
    let check = bucket.check(&CheckOptions::default(), |_, _| Ok(())).unwrap();
    assert!(check.is_whole(), "{check:?}");
    drop(bucket);
    let all = buckets(store);
    assert_eq!(all.list().unwrap().len(), 1, "nothing is left of a repair");
    let photos = all.open("photos").unwrap();
    let listing = ListOptions {
        prefix: Vec::new(),
        delimiter: Vec::new(),
        from: Vec::new(),
        limit: 1000,
        now_ms: now_unix_ms(),
    };
    let keys = photos.list(&listing).unwrap().objects.into_iter().map(|listed| listed.key);
    let keys: Vec<Vec<u8>> = keys.collect();
    for found in &keys {
        let number: u32 = std::str::from_utf8(&found[8..]).unwrap().parse().unwrap();
        assert!(get(&photos, found).unwrap() == number.to_be_bytes().repeat(700));
    }
    drop(photos);
    all.close().unwrap();
    keys
}

#[test]
fn a_bucket_is_repaired_and_nothing_else_is_left() {
    let disk = create_in_memory(&capacity(), 1).unwrap();
    let store = Store::open_in_memory(&disk, options()).unwrap();
    make_damaged(&store);
    let report = repair(&store, |_, _| Ok(())).unwrap();
    let keys = keys(&store);
    assert!((200..OBJECTS as usize).contains(&keys.len()), "{}", keys.len());
    assert_eq!((report.figures.objects, report.lost_count), (keys.len() as u64, 1), "{report:?}");
    assert!(!keys.contains(&key(150)));
    assert!(matches!(
        repair_bucket(
            store.client(),
            "none",
            &BucketRepairOptions {
                memory_bytes: 0,
                unreadable: Vec::new(),
                opened_by: String::new()
            },
            |_, _| Ok(())
        ),
        Err(BucketsError::NoSuchBucket { .. })
    ));
    store.close().unwrap();
}

/// Kills in every stage, and before and behind the one record that switches.
#[test]
fn a_store_killed_in_a_repair_has_the_bucket_as_it_was_or_repaired() {
    let disk = create_in_memory(&capacity(), 1).unwrap();
    let (mut left, mut calls) = (Vec::new(), 0_u64);
    let store = Store::open_in_memory(&disk, options()).unwrap();
    make_damaged(&store);
    repair(&store, |stage, done| {
        calls += 1;
        if calls % 311 == 7 || stage.starts_with("taking") {
            left.push((stage, done, disk.left_by_kill(calls)));
        }
        Ok(())
    })
    .unwrap();
    let expected = keys(&store);
    store.close().unwrap();
    assert!(left.len() > 4, "{}", left.len());
    let mut stages: Vec<&str> = left.iter().map(|(stage, ..)| *stage).collect();
    stages.dedup();
    assert!(stages.len() > 3, "{stages:?}");
    for (stage, done, disk) in left {
        let store = Store::open_in_memory(&disk, options()).unwrap();
        let report = repair(&store, |_, _| Ok(())).unwrap();
        let is_repaired = stage.starts_with("taking") && done == 1;
        assert_eq!(
            report.is_without_loss(),
            is_repaired,
            "{stage} {done}: lost things are told once"
        );
        assert_eq!(keys(&store), expected, "{stage} {done}");
        store.close().unwrap();
    }
}

/// As by Ctrl-C, or by a store that is full.
#[test]
fn a_repair_that_fails_leaves_the_bucket_as_it_was() {
    let disk = create_in_memory(&capacity(), 1).unwrap();
    let store = Store::open_in_memory(&disk, options()).unwrap();
    make_damaged(&store);
    for fails_at in [1, 400, 900] {
        let mut calls = 0;
        let failed = repair(&store, |_, _| {
            calls += 1;
            let failed = || IndexError::Volume(RequestError::NoSpace).into();
            if calls == fails_at { Err(failed()) } else { Ok(()) }
        });
        let Err(BucketsError::Bucket(error)) = failed else { panic!("{failed:?}") };
        assert!(error.is_no_space());
        assert_eq!(buckets(&store).list().unwrap().len(), 1, "nothing is left of it");
    }
    assert_eq!(repair(&store, |_, _| Ok(())).unwrap().lost_count, 1);
    store.close().unwrap();
}
