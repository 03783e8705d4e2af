//! Buckets by name, over a store in memory.

mod copies;
mod repairs;
mod tenants;
mod upkeep;

use std::thread;
use std::time::{Duration, Instant};

use engine::VolumeKind;
use engine::control::{DeleteRequest, NewVolume, SnapshotRequest};
use objects::bucket::{Condition, DeleteOptions, ListOptions, PutOptions};
use store::{CreateOptions, Durability, Options, Store};

use crate::{Buckets, BucketsError, BucketsOptions, NewBucket, OpenBucket, now_unix_ms};

fn store() -> Store {
    let disk = store::create_in_memory(&CreateOptions::new(256 << 20), 1).unwrap();
    Store::open_in_memory(&disk, Options::default()).unwrap()
}

fn buckets(store: &Store) -> Buckets {
    let options = BucketsOptions { memory_bytes: 16 << 20, ..BucketsOptions::default() };
    Buckets::start(store.client().clone(), options).unwrap()
}

fn put(bucket: &OpenBucket, key: &[u8], bytes: &[u8]) {
    let mut writer = bucket.put_hashed(key, PutOptions::new(now_unix_ms())).unwrap();
    writer.write(bytes).unwrap();
    writer.finish().unwrap();
}

fn get(bucket: &OpenBucket, key: &[u8]) -> Option<Vec<u8>> {
    let mut reader = bucket.get(key, &Condition::None, now_unix_ms()).unwrap()?;
    let mut bytes = vec![0; reader.info().size_bytes as usize];
    assert_eq!(reader.read_at(0, &mut bytes).unwrap(), bytes.len());
    Some(bytes)
}

#[test]
fn a_bucket_is_made_filled_listed_emptied_and_deleted() {
    let store = store();
    let buckets = buckets(&store);
    assert!(matches!(buckets.open("photos"), Err(BucketsError::NoSuchBucket { .. })));
    buckets.create("photos", &NewBucket::default()).unwrap();
    let again = buckets.create("photos", &NewBucket::default());
    assert!(matches!(again, Err(BucketsError::Exists { .. })));
    let photos = buckets.open("photos").unwrap();
    put(&photos, b"cat", b"meow");
    assert_eq!(get(&buckets.open("photos").unwrap(), b"cat").unwrap(), b"meow");
    let listed = buckets.list().unwrap();
    assert_eq!(listed[0].name, "photos");
    let created_unix_ms = buckets.created_unix_ms(&listed[0]).unwrap();
    assert!(created_unix_ms > 0 && created_unix_ms <= now_unix_ms());
    assert_eq!(buckets.created_unix_ms(&listed[0]), Some(created_unix_ms));
    let refused = buckets.delete("photos", false);
    assert!(matches!(refused, Err(BucketsError::NotEmpty { objects: 1, .. })), "{refused:?}");
    let options = DeleteOptions { durability: Durability::Durable, now_ms: now_unix_ms() };
    photos.delete(b"cat", &Condition::None, options).unwrap();
    drop(photos);
    buckets.delete("photos", false).unwrap();
    assert!(buckets.list().unwrap().is_empty());
    buckets.close().unwrap();
    store.close().unwrap();
}

/// A crash between the volume and its header leaves such a volume.
#[test]
fn a_bucket_whose_making_was_cut_off_is_none_and_is_made_anew() {
    let store = store();
    let buckets = buckets(&store);
    let cut_off = || {
        let made = store.client().ask(NewVolume {
            name: "photos".to_owned(),
            size_bytes: 1 << 50,
            kind: VolumeKind::Bucket,
            ..NewVolume::default()
        });
        made.unwrap();
        let opened = buckets.open("photos");
        assert!(matches!(opened, Err(BucketsError::NoSuchBucket { .. })), "{:?}", opened.err());
    };
    cut_off();
    buckets.delete("photos", false).unwrap();
    cut_off();
    buckets.create("photos", &NewBucket::default()).unwrap();
    put(&buckets.open("photos").unwrap(), b"cat", b"meow");
    let again = buckets.create("photos", &NewBucket::default());
    assert!(matches!(again, Err(BucketsError::Exists { .. })));
    assert_eq!(get(&buckets.open("photos").unwrap(), b"cat").unwrap(), b"meow");
    buckets.close().unwrap();
    store.close().unwrap();
}

#[test]
fn a_bucket_is_closed_for_a_rollback_and_opens_again() {
    let store = store();
    let buckets = buckets(&store);
    buckets.create("photos", &NewBucket::default()).unwrap();
    let photos = buckets.open("photos").unwrap();
    put(&photos, b"cat", b"meow");
    let volumes = vec!["photos".to_owned()];
    let request = SnapshotRequest { volumes, name: "a".to_owned(), taken_unix_s: 5 };
    store.client().ask(request).unwrap();
    put(&photos, b"dog", b"woof");
    let held = buckets.close_bucket("photos");
    assert!(matches!(held, Err(BucketsError::InUse { .. })), "{held:?}");
    drop(photos);
    let back = || {
        let snapshot = "photos@a".to_owned();
        store.client().ask(engine::control::Rollback { snapshot, volume: None, id: None })
    };
    assert!(back().is_err(), "it is open");
    buckets.close_bucket("photos").unwrap();
    back().unwrap();
    let photos = buckets.open("photos").unwrap();
    assert!(get(&photos, b"cat").is_some() && get(&photos, b"dog").is_none());
    buckets.close_bucket("nobody").unwrap();
    drop(photos);
    buckets.close().unwrap();
}

#[test]
fn a_bucket_that_a_request_holds_is_not_deleted() {
    let store = store();
    let buckets = buckets(&store);
    buckets.create("held", &NewBucket::default()).unwrap();
    let held = buckets.open("held").unwrap();
    let refused = buckets.delete("held", true);
    assert!(matches!(refused, Err(BucketsError::InUse { .. })), "{refused:?}");
    put(&held, b"k", b"still there");
    drop(held);
    buckets.delete("held", true).unwrap();
    buckets.close().unwrap();
}

#[test]
fn a_snapshot_is_a_bucket_that_is_only_read() {
    let store = store();
    let buckets = buckets(&store);
    buckets.create("daily", &NewBucket::default()).unwrap();
    let daily = buckets.open("daily").unwrap();
    put(&daily, b"k", b"monday");
    let (volumes, name) = (vec!["daily".to_owned()], "monday".to_owned());
    store.client().ask(SnapshotRequest { volumes, name, taken_unix_s: 1 }).unwrap();
    put(&daily, b"k", b"tuesday");
    let monday = buckets.open("daily@monday").unwrap();
    assert!(monday.is_read_only());
    assert_eq!(get(&monday, b"k").unwrap(), b"monday");
    assert_eq!(get(&daily, b"k").unwrap(), b"tuesday");
    assert!(monday.put(b"k", PutOptions::new(1)).is_err());
    let names: Vec<_> = buckets.list().unwrap().into_iter().map(|bucket| bucket.name).collect();
    assert_eq!(names, ["daily", "daily@monday"]);
    buckets.close().unwrap();
}

#[test]
fn a_full_store_is_emptied_through_its_bucket() {
    let store = store();
    let buckets = buckets(&store);
    buckets.create("full", &NewBucket::default()).unwrap();
    let full = buckets.open("full").unwrap();
    let mut state = 1_u64;
    let mut bytes = vec![0; 1 << 20];
    let mut count = 0_u64;
    loop {
        for word in bytes.chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        let mut writer = full.put_hashed(&count.to_be_bytes(), PutOptions::new(1)).unwrap();
        if writer.write(&bytes).and_then(|()| writer.finish()).is_err() {
            break;
        }
        count += 1;
    }
    assert!(count > 150, "{count}");
    let options = DeleteOptions { durability: Durability::Durable, now_ms: 1 };
    for number in 0..count {
        let deleted = full.delete(&number.to_be_bytes(), &Condition::None, options);
        assert!(deleted.unwrap().is_some());
    }
    drop(full);
    buckets.delete("full", false).unwrap();
    buckets.close().unwrap();
}

#[test]
fn a_disk_is_no_bucket() {
    let store = store();
    let buckets = buckets(&store);
    store.create_volume("disk0", 1 << 20).unwrap();
    assert!(matches!(buckets.open("disk0"), Err(BucketsError::NoSuchBucket { .. })));
    assert!(matches!(
        buckets.create("disk0", &NewBucket::default()),
        Err(BucketsError::Exists { .. })
    ));
    assert!(buckets.delete("disk0", true).is_err());
    assert!(store.volume("disk0").is_ok());
    buckets.close().unwrap();
}

#[test]
fn more_buckets_are_used_than_memory_is_for() {
    let store = store();
    let buckets = buckets(&store);
    for number in 0..20 {
        let name = format!("bucket-{number}");
        buckets.create(&name, &NewBucket::default()).unwrap();
        put(&buckets.open(&name).unwrap(), b"k", name.as_bytes());
    }
    let open = |name: &str| !store.client().opens(name).unwrap().is_empty();
    let open = (0..20).filter(|number| open(&format!("bucket-{number}"))).count();
    assert!(open <= 8, "{open} are open");
    for number in 0..20 {
        let name = format!("bucket-{number}");
        assert_eq!(get(&buckets.open(&name).unwrap(), b"k").unwrap(), name.as_bytes());
    }
    buckets.close().unwrap();
}

#[test]
fn upkeep_removes_what_has_expired() {
    let store = store();
    let buckets = buckets(&store);
    buckets.create("brief", &NewBucket::default()).unwrap();
    let brief = buckets.open("brief").unwrap();
    let now_ms = now_unix_ms();
    let options = PutOptions { expires_unix_ms: Some(now_ms + 1), ..PutOptions::new(now_ms) };
    brief.put_hashed(b"k", options).unwrap().finish().unwrap();
    let began = Instant::now();
    while brief.figures().objects > 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "nobody removed it");
        thread::sleep(Duration::from_millis(10));
    }
    let listing = ListOptions {
        prefix: Vec::new(),
        delimiter: Vec::new(),
        from: Vec::new(),
        limit: 10,
        now_ms: 0,
    };
    assert!(brief.list(&listing).unwrap().objects.is_empty());
    drop(brief);
    buckets.close().unwrap();
}

#[test]
fn what_was_closed_opens_again_and_nothing_is_asked_later() {
    let disk = store::create_in_memory(&CreateOptions::new(256 << 20), 1).unwrap();
    let store = Store::open_in_memory(&disk, Options::default()).unwrap();
    let buckets_before = buckets(&store);
    let new = NewBucket { quota_bytes: Some(10), ..NewBucket::default() };
    buckets_before.create("kept", &new).unwrap();
    put(&buckets_before.open("kept").unwrap(), b"k", b"v");
    buckets_before.close().unwrap();
    assert!(matches!(buckets_before.open("kept"), Err(BucketsError::Closing)));
    store.close().unwrap();
    let store = Store::open_in_memory(&disk, Options::default()).unwrap();
    let buckets = buckets(&store);
    let kept = buckets.open("kept").unwrap();
    assert_eq!((get(&kept, b"k").unwrap(), kept.quota_bytes()), (b"v".to_vec(), Some(10)));
    drop(kept);
    buckets.close().unwrap();
}

#[test]
fn a_volume_that_its_maker_left_empty_can_be_deleted() {
    let store = store();
    let buckets = buckets(&store);
    let new = engine::NewVolume {
        name: "half".to_owned(),
        size_bytes: 1 << 50,
        kind: engine::VolumeKind::Bucket,
        ..engine::NewVolume::default()
    };
    store.client().ask(new).unwrap();
    assert!(buckets.open("half").is_err());
    buckets.delete("half", false).unwrap();
    assert!(store.client().ask(DeleteRequest::of("half")).is_err());
    buckets.close().unwrap();
}

/// Upkeep has one bucket open at a time.
#[test]
fn upkeep_that_waits_in_one_bucket_does_not_keep_another_from_being_deleted() {
    let store = store();
    let buckets = buckets(&store);
    for name in ["busy", "empty"] {
        buckets.create(name, &NewBucket::default()).unwrap();
    }
    let (busy, now_ms) = (buckets.open("busy").unwrap(), now_unix_ms());
    drop(buckets.open("empty").unwrap());
    let options = PutOptions { expires_unix_ms: Some(now_ms + 1), ..PutOptions::new(now_ms) };
    let mut writer = busy.put_hashed(b"expired", options).unwrap();
    writer.write(b"bytes").unwrap();
    writer.finish().unwrap();
    // Upkeep waits for the keys of the transaction.
    let held = busy.transaction([&b"expired"[..]], now_ms).unwrap();
    thread::sleep(Duration::from_millis(300));
    buckets.delete("empty", false).unwrap();
    drop(held);
    drop(busy);
    buckets.close().unwrap();
    store.close().unwrap();
}

#[test]
fn a_long_object_is_mapped_into_a_bucket_of_its_domain_and_no_other() {
    let store = store();
    let buckets = buckets(&store);
    let domain = |domain: Option<&str>| NewBucket {
        domain: domain.map(str::to_owned),
        ..NewBucket::default()
    };
    for (name, of) in [("from", None), ("near", None), ("far", Some("other"))] {
        buckets.create(name, &domain(of)).unwrap();
    }
    let [from, near, far] = ["from", "near", "far"].map(|name| buckets.open(name).unwrap());
    let bytes: Vec<u8> =
        (0..3_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    put(&from, b"long", &bytes);
    put(&from, b"short", b"bytes");
    let map = |to: &OpenBucket, key: &[u8]| {
        let mut reader = from.get(key, &Condition::None, now_unix_ms()).unwrap().unwrap();
        let etag = reader.info().etag;
        let options = PutOptions::new(now_unix_ms());
        (to.map_object(&from, &mut reader, b"copy", options).unwrap(), etag)
    };
    let (mapped, etag) = map(&near, b"long");
    assert_eq!(mapped.unwrap().etag, etag);
    assert!(get(&near, b"copy").unwrap() == bytes);
    assert!(map(&near, b"short").0.is_none());
    assert!(map(&far, b"long").0.is_none());
    assert_eq!(get(&far, b"copy"), None);
    drop((from, near, far));
    buckets.close().unwrap();
    store.close().unwrap();
}
