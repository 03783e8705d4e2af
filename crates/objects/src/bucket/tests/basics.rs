//! What each operation does, one at a time.

use std::sync::Arc;

use store::Durability;

use super::rig::{DELETE, LITTLE, NOW_MS, Shorthand, create, md5_of, noise, store_of};
use crate::bucket::{
    Bucket, BucketError, Condition, CopyOptions, FinishOptions, PutOptions, QuotaOf, SharedQuota,
};
use crate::index::{Change, Index, Table};

#[test]
fn what_is_put_is_there_until_it_is_deleted() {
    let store = store_of(64 << 20);
    let (volume, bucket) = create(&store, "bucket");
    for (number, length) in (0..).zip([0_usize, 1, 512, 513, 4096, 70_000, 3 << 20]) {
        let bytes = noise(length, number);
        let put = bucket.put_bytes(&[1, number as u8], &bytes);
        assert_eq!((put.size_bytes, put.etag.md5), (length as u64, md5_of(&bytes)));
        assert!(bucket.bytes(&[1, number as u8]) == Some(bytes));
    }
    assert_eq!(bucket.figures().objects, 7);
    bucket.clone().close().unwrap();
    drop(bucket);
    let bucket = Bucket::open(Arc::clone(&volume), &LITTLE).unwrap();
    assert_eq!(bucket.figures().objects, 7);
    for (number, length) in (0..).zip([0_usize, 1, 512, 513, 4096, 70_000, 3 << 20]) {
        let key = [1, number as u8];
        assert!(bucket.bytes(&key) == Some(noise(length, number)));
        let version = bucket.delete(&key, &Condition::None, DELETE).unwrap();
        assert!(version.is_some());
        assert_eq!(bucket.delete(&key, &Condition::None, DELETE).unwrap(), None);
        assert_eq!(bucket.bytes(&key), None);
    }
    assert_eq!(bucket.figures(), Default::default());
}

#[test]
fn a_dropped_writer_leaves_nothing() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    let mut writer = bucket.put(b"key", PutOptions::new(NOW_MS)).unwrap();
    writer.write(&noise(3 << 20, 1)).unwrap();
    drop(writer);
    assert_eq!(bucket.bytes(b"key"), None);
    while !bucket.trim_some(100).unwrap().is_done {}
}

#[test]
fn conditions_are_judged_when_the_object_takes_its_place() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    let absent = || PutOptions { condition: Condition::Absent, ..PutOptions::new(NOW_MS) };
    let mut one = bucket.put(b"key", absent()).unwrap();
    let mut other = bucket.put(b"key", absent()).unwrap();
    one.write(b"one").unwrap();
    other.write(b"other").unwrap();
    let put = one.finish(FinishOptions::new([1; 16])).unwrap();
    let refused = other.finish(FinishOptions::new([2; 16]));
    let Err(BucketError::ConditionFailed { found: Some(found) }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((found.version, found.etag.md5), (put.version, [1; 16]));
    assert!(bucket.put(b"key", absent()).is_err(), "what is known to fail is refused at once");
    assert_eq!(bucket.bytes(b"key").unwrap(), b"one");
    let refused = bucket.delete(b"key", &Condition::Version(put.version + 1), DELETE);
    assert!(matches!(refused, Err(BucketError::ConditionFailed { .. })));
    let deleted = bucket.delete(b"key", &Condition::ETagIn(vec![put.etag]), DELETE).unwrap();
    assert_eq!(deleted, Some(put.version));
    let refused = bucket.delete(b"key", &Condition::Present, DELETE);
    assert!(matches!(refused, Err(BucketError::ConditionFailed { found: None })));
}

#[test]
fn listings_are_in_order_and_pass_over_what_is_under_a_delimiter() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    for key in ["a", "a/b", "a/c", "a/c/d", "b/\u{7f}", "b/x", "c", "d/"] {
        bucket.put_bytes(key.as_bytes(), b"value");
    }
    let texts = |keys: &[Vec<u8>]| {
        keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect::<Vec<_>>()
    };
    for limit in 1..10 {
        let (keys, prefixes) = bucket.list_all(b"", b"/", limit);
        assert_eq!(
            (texts(&keys).join(" "), texts(&prefixes).join(" ")),
            ("a c".to_owned(), "a/ b/ d/".to_owned())
        );
        let (keys, prefixes) = bucket.list_all(b"a/", b"/", limit);
        assert_eq!(
            (texts(&keys).join(" "), texts(&prefixes).join(" ")),
            ("a/b a/c".to_owned(), "a/c/".to_owned())
        );
        assert_eq!(bucket.list_all(b"", b"", limit).0.len(), 8);
    }
}

#[test]
fn keys_have_1_to_1024_bytes() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    bucket.put_bytes(&[0xff; 1024], b"value");
    assert_eq!(bucket.list_all(&[0xff; 3], &[0xff; 2], 5).1, [vec![0xff; 5]]);
    for key in [&[][..], &[1; 1025]] {
        let refused = bucket.put(key, PutOptions::new(NOW_MS)).err();
        assert!(matches!(refused, Some(BucketError::KeyLength { .. })));
        assert!(bucket.get(key, &Condition::None, NOW_MS).is_err());
        assert!(bucket.delete(key, &Condition::None, DELETE).is_err());
    }
}

#[test]
fn an_expired_object_is_none() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    let expiring = || PutOptions {
        expires_unix_ms: Some(NOW_MS + 10),
        condition: Condition::Absent,
        ..PutOptions::new(NOW_MS)
    };
    bucket.put_with(b"key", b"value", expiring()).unwrap();
    assert!(bucket.put_with(b"key", b"value", expiring()).is_err());
    assert!(bucket.bytes_at(b"key", NOW_MS + 9).is_some());
    assert_eq!(bucket.bytes_at(b"key", NOW_MS + 10), None);
    let later = PutOptions { now_ms: NOW_MS + 10, ..expiring() };
    bucket.put_with(b"key", b"later", PutOptions { expires_unix_ms: None, ..later }).unwrap();
    assert_eq!(bucket.bytes_at(b"key", NOW_MS + 10).unwrap(), b"later");
    assert_eq!(bucket.figures().objects, 1);
}

#[test]
fn the_quota_holds() {
    let store = store_of(64 << 20);
    let (volume, bucket) = create(&store, "bucket");
    bucket.set_quota(Some(1000), DELETE.durability).unwrap();
    bucket.put_bytes(b"one", &[1; 600]);
    let put = |length| bucket.put_with(b"other", &noise(length, 1), PutOptions::new(NOW_MS));
    let refused = put(401);
    assert!(matches!(refused, Err(BucketError::QuotaExceeded { used_bytes: 600, .. })));
    put(400).unwrap();
    bucket.put_bytes(b"one", &[2; 600]);
    assert_eq!(bucket.figures().object_bytes, 1000);
    drop(bucket);
    let bucket = Bucket::open(volume, &LITTLE).unwrap();
    assert_eq!((bucket.quota_bytes(), bucket.figures().object_bytes), (Some(1000), 1000));
    bucket.set_quota(Some(10), DELETE.durability).unwrap();
    bucket.put_bytes(b"one", &[2; 599]);
    bucket.delete(b"other", &Condition::None, DELETE).unwrap();
    bucket.set_quota(None, DELETE.durability).unwrap();
    bucket.put_bytes(b"other", &[2; 5000]);
}

#[test]
fn a_quota_of_two_buckets_holds() {
    let store = store_of(64 << 20);
    let (one, two) = (create(&store, "one").1, create(&store, "two").1);
    let quota = Arc::new(SharedQuota::new(|| Some(1000)));
    one.put_bytes(b"before", &[1; 100]);
    one.share_quota(Arc::clone(&quota), 1);
    two.share_quota(Arc::clone(&quota), 2);
    one.put_bytes(b"key", &[1; 400]);
    let put = |length| two.put_with(b"key", &noise(length, 1), PutOptions::new(NOW_MS));
    let refused = put(501).unwrap_err();
    assert!(refused.to_string().starts_with("the buckets of the tenant hold 500 bytes"));
    put(500).unwrap();
    assert_eq!(quota.held_bytes(), 1000);
    // A put is over; so is a copy inside the other.
    let copied = one.copy(b"key", b"other", CopyOptions::new(NOW_MS));
    assert!(matches!(copied, Err(BucketError::QuotaExceeded { of: QuotaOf::Tenant, .. })));
    one.delete(b"key", &Condition::None, DELETE).unwrap();
    assert_eq!(quota.held_bytes(), 600);
    put(900).unwrap();
    quota.retain(|bucket| bucket == 1);
    assert_eq!((quota.held_bytes(), quota.knows(2)), (100, false));
}

#[test]
fn a_long_object_over_the_quota_is_refused_on_the_way() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    bucket.set_quota(Some(9 << 20), Durability::Acknowledged).unwrap();
    let zeros = vec![0; 1 << 20];
    let mut writer = bucket.put(b"long", PutOptions::new(NOW_MS)).unwrap();
    let refused = (0..100).find_map(|_| writer.write(&zeros).err());
    assert!(matches!(refused, Some(BucketError::QuotaExceeded { .. })), "{refused:?}");
    assert!(writer.length_bytes() <= 17 << 20);
    drop(writer);
    // One that replaces another as long as itself adds nothing.
    bucket.put_bytes(b"key", &vec![1; 9 << 20]);
    bucket.put_bytes(b"key", &vec![2; 9 << 20]);
}

#[test]
fn a_damaged_record_stops_no_expiry_of_others() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    let expiring = PutOptions { expires_unix_ms: Some(NOW_MS + 5), ..PutOptions::new(NOW_MS) };
    for number in 0..150_u8 {
        bucket.put_with(&[number], b"value", expiring.clone()).unwrap();
    }
    let damaged = (0..100).map(|number| Change::Set {
        table: Table::Objects,
        key: vec![number],
        value: b"no record".to_vec(),
    });
    bucket.core.index.apply(damaged.collect(), Durability::Acknowledged).unwrap();
    let expired = bucket.expire_some(NOW_MS + 5, u64::MAX).unwrap();
    assert_eq!(bucket.expired_objects(), expired.objects);
    assert_eq!((expired.objects, expired.damaged, expired.is_done), (50, 100, true));
}
