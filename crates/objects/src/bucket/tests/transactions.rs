//! Transactions against a plain map: what they read, what they leave, and that all of it is whole.

use std::collections::BTreeMap;

use format::objects::record::metadata::UserMetadata;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use store::Durability;

use super::rig::{
    DELETE, LITTLE, NOW_MS, Shorthand, check_whole, create, noise, read_all, store_of,
};
use crate::bucket::{Bucket, BucketError, Condition, Description, Metadata, Transaction};
use crate::values::TOGETHER_BYTES_MAX;

const ACKNOWLEDGED: Durability = Durability::Acknowledged;

#[derive(Clone, Debug)]
enum Step {
    Put { key: u8, length: usize, seed: u64 },
    Remove { key: u8 },
    Describe { key: u8, expires: bool },
    Append { key: u8, seed: u64 },
}

impl Step {
    fn key(&self) -> [u8; 1] {
        let (Self::Put { key, .. }
        | Self::Remove { key }
        | Self::Describe { key, .. }
        | Self::Append { key, .. }) = self;
        [*key]
    }
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![0..513_usize, Just(4096), 1..20_000_usize, Just(TOGETHER_BYTES_MAX)];
    prop_oneof![
        4 => (0..6_u8, length, any::<u64>())
            .prop_map(|(key, length, seed)| Step::Put { key, length, seed }),
        1 => (0..6_u8).prop_map(|key| Step::Remove { key }),
        1 => (0..6_u8, any::<bool>()).prop_map(|(key, expires)| Step::Describe { key, expires }),
        2 => (0..6_u8, any::<u64>()).prop_map(|(key, seed)| Step::Append { key, seed }),
    ]
}

fn put(transaction: &mut Transaction<'_>, key: &[u8], bytes: Vec<u8>, description: Description) {
    let version = transaction.new_version().unwrap();
    transaction.put(key, bytes, description, version, None).unwrap();
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

fn run(bucket: &Bucket, steps: &[Step], model: &mut Model, commits: bool) {
    let keys: Vec<[u8; 1]> = steps.iter().map(Step::key).collect();
    let mut transaction = bucket.transaction(keys.iter().map(|key| &key[..]), NOW_MS).unwrap();
    let mut staged = model.clone();
    for step in steps {
        let key = step.key().to_vec();
        assert_eq!(
            transaction.read(&key).unwrap(),
            staged.get(&key).map(|(bytes, _)| bytes.clone())
        );
        let description = |expires: bool| Description {
            expires_unix_ms: expires.then_some(NOW_MS + 1),
            ..Description::default()
        };
        match step {
            Step::Put { length, seed, .. } => {
                let bytes = noise(*length, *seed);
                put(&mut transaction, &key, bytes.clone(), description(false));
                staged.insert(key, (bytes, None));
            }
            Step::Remove { .. } => {
                assert_eq!(transaction.remove(&key).unwrap(), staged.remove(&key).is_some());
            }
            Step::Describe { expires, .. } => {
                let described = transaction.describe(&key, description(*expires), None);
                match staged.get_mut(&key) {
                    Some((_, ends)) => {
                        described.unwrap();
                        *ends = expires.then_some(NOW_MS + 1);
                    }
                    None => assert!(matches!(described, Err(BucketError::NoSuchObject))),
                }
            }
            Step::Append { seed, .. } => {
                let mut bytes = transaction.read(&key).unwrap().unwrap_or_default();
                bytes.extend(noise(100, *seed));
                bytes.truncate(TOGETHER_BYTES_MAX);
                put(&mut transaction, &key, bytes.clone(), description(false));
                staged.insert(key, (bytes, None));
            }
        }
    }
    if commits {
        transaction.commit(ACKNOWLEDGED).unwrap();
        *model = staged;
    }
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(24))]
    #[test]
    fn transactions_do_what_a_map_does(
        all in vec((vec(step(), 1..8), any::<bool>()), 1..8),
    ) {
        let store = store_of(64 << 20);
        let (volume, bucket) = create(&store, "bucket");
        let mut model = Model::new();
        bucket.put_bytes(&[0], &noise(30_000, 7));
        model.insert(vec![0], (noise(30_000, 7), None));
        for (steps, commits) in &all {
            run(&bucket, steps, &mut model, *commits);
            for key in 0..6_u8 {
                let expected = model.get(&vec![key]);
                assert_eq!(bucket.bytes(&[key]), expected.map(|(bytes, _)| bytes.clone()));
                let later = expected.filter(|(_, ends)| ends.is_none());
                let found = bucket.bytes_at(&[key], NOW_MS + 1);
                assert_eq!(found, later.map(|(bytes, _)| bytes.clone()));
            }
        }
        check_whole(&bucket);
        drop(bucket);
        let bucket = Bucket::open(volume, &LITTLE).unwrap();
        for key in 0..6_u8 {
            let expected = model.get(&vec![key]).map(|(bytes, _)| bytes.clone());
            assert_eq!(bucket.bytes(&[key]), expected);
        }
        check_whole(&bucket);
        for key in 0..6_u8 {
            bucket.delete(&[key], &Condition::None, DELETE).unwrap();
        }
        while !bucket.trim_some(100).unwrap().is_done {}
        let check = check_whole(&bucket);
        assert_eq!(check.figures.objects, 0);
    }
}

#[test]
fn what_was_written_over_is_freed_without_a_scan() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    bucket.put_bytes(b"a", &noise(9000, 1));
    bucket.put_bytes(b"a", &noise(9000, 2));
    bucket.put_bytes(b"b", &noise(5000, 3));
    let read = bucket.get(b"b", &Condition::None, NOW_MS).unwrap().unwrap();
    bucket.delete(b"b", &Condition::None, DELETE).unwrap();
    let freed = bucket.free_released(100).unwrap();
    assert_eq!((freed.freed_bytes, freed.held, freed.is_done), (3 * 4096, 1, true));
    assert_eq!(read_all(read), noise(5000, 3));
    assert_eq!(bucket.free_released(100).unwrap().entries, 0);
    while !bucket.trim_some(100).unwrap().is_done {}
    assert_eq!(bucket.bytes(b"a"), Some(noise(9000, 2)));
    check_whole(&bucket);
}

#[test]
fn what_is_over_the_quota_changes_nothing() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    bucket.put_bytes(b"a", &noise(5000, 1));
    bucket.set_quota(Some(10_000), ACKNOWLEDGED).unwrap();
    let keys: [&[u8]; 3] = [b"a", b"b", b"c"];
    let mut transaction = bucket.transaction(keys, NOW_MS).unwrap();
    assert!(transaction.remove(b"a").unwrap());
    for key in [b"b", b"c"] {
        put(&mut transaction, key, noise(6000, 2), Description::default());
    }
    let refused = transaction.commit(ACKNOWLEDGED);
    assert!(matches!(refused, Err(BucketError::QuotaExceeded { .. })), "{refused:?}");
    assert_eq!(bucket.bytes(b"a"), Some(noise(5000, 1)));
    assert_eq!(bucket.bytes(b"b"), None);
    check_whole(&bucket);
}

#[test]
fn a_description_keeps_the_value_and_a_version_if_it_is_told_to() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    let put = bucket.put_bytes(b"a", b"value");
    let metadata = Metadata {
        user_metadata: UserMetadata::new(vec![("x".to_owned(), "y".to_owned())]).unwrap(),
        ..Metadata::default()
    };
    let description = Description { metadata: metadata.clone(), expires_unix_ms: None };
    let mut transaction = bucket.transaction([&b"a"[..]], NOW_MS).unwrap();
    transaction.describe(b"a", description.clone(), None).unwrap();
    transaction.commit(ACKNOWLEDGED).unwrap();
    let info = bucket.head(b"a", &Condition::None, NOW_MS).unwrap().unwrap();
    assert_eq!((info.metadata, info.version, info.etag), (metadata, put.version, put.etag));
    let mut transaction = bucket.transaction([&b"a"[..]], NOW_MS).unwrap();
    let new = transaction.new_version().unwrap();
    transaction.describe(b"a", description, Some(new)).unwrap();
    transaction.commit(ACKNOWLEDGED).unwrap();
    let info = bucket.head(b"a", &Condition::None, NOW_MS).unwrap().unwrap();
    assert!(info.version == new && new > put.version);
    assert_eq!(bucket.bytes(b"a"), Some(b"value".to_vec()));
}

#[test]
fn a_moment_ends_with_a_change_of_its_key_and_of_no_other_stripe() {
    let store = store_of(64 << 20);
    let (_, bucket) = create(&store, "bucket");
    let [a, b] = [b"a", b"b"].map(|key| bucket.moment(key).unwrap());
    let mut transaction = bucket.transaction([&b"a"[..]], NOW_MS).unwrap();
    put(&mut transaction, b"a", vec![1], Description::default());
    assert!(bucket.is_unchanged(b"a", a), "nothing is changed before the commit");
    let mut after = None;
    transaction.commit_then(ACKNOWLEDGED, || after = bucket.moment(b"a")).unwrap();
    assert!(!bucket.is_unchanged(b"a", a) && bucket.is_unchanged(b"b", b));
    assert!(bucket.is_unchanged(b"a", after.unwrap()), "what was committed is of that moment");
    bucket.delete(b"a", &Condition::None, DELETE).unwrap();
    assert!(!bucket.is_unchanged(b"a", after.unwrap()));
    let moment = bucket.moment(b"a").unwrap();
    bucket.set_quota(Some(10), ACKNOWLEDGED).unwrap();
    let mut transaction = bucket.transaction([&b"a"[..]], NOW_MS).unwrap();
    put(&mut transaction, b"a", vec![1; 100], Description::default());
    assert!(transaction.commit(ACKNOWLEDGED).is_err());
    let later = bucket.moment(b"a");
    assert!(later.is_some() && bucket.is_unchanged(b"a", moment), "it was refused before");
}
