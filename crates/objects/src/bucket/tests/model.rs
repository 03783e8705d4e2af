//! Random operations, reopenings and kills against a map of what each key holds.
//!
//! A kill is made behind any chunk that the bucket wrote: what was written up to there is repeated
//! in another volume, whose bucket must hold what the map held then, or what the operation on its
//! way makes of it, and must be whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use store::Durability;

use super::rig::{
    DELETE, LITTLE, NOW_MS, Shorthand, check_whole, md5_of, noise, options, store_of,
};
use crate::bucket::{
    Bucket, BucketError, CompleteOptions, Condition, CopyOptions, CopyPartOptions, FinishOptions,
    ListOptions, OpenOptions, PartOptions, PutOptions, UploadId, UploadOptions,
};
use crate::test_volume::TestVolume;
use format::objects::record::ETag;

#[derive(Clone, Debug)]
enum Step {
    Put { key: u8, length: usize, seed: u64, expires: Option<u8>, condition: u8 },
    Delete { key: u8, condition: u8 },
    DeleteMany { keys: Vec<u8> },
    Copy { from: u8, to: u8, range: Option<(u16, u16)> },
    Begin { key: u8 },
    Part { upload: u8, number: u16, length: usize, seed: u64 },
    CopyPart { from: u8, upload: u8, number: u16, range: (u16, u16) },
    Complete { upload: u8, skips: u8 },
    Abort { upload: u8 },
    GiveUp { length: usize },
    Tick,
    Expire,
    Trim { entries: u64 },
    FreeReleased { entries: u64 },
    Merge,
    Reopen,
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![0..600_usize, 600..20_000_usize, 60_000..140_000_usize]
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..6_u8;
    let seed = || 0..3_u64;
    let range = || (any::<u16>(), any::<u16>());
    prop_oneof![
        6 => (key(), length(), seed(), proptest::option::of(1..4_u8), 0..4_u8).prop_map(
            |(key, length, seed, expires, condition)|
                Step::Put { key, length, seed, expires, condition }
        ),
        2 => (key(), 0..4_u8).prop_map(|(key, condition)| Step::Delete { key, condition }),
        1 => vec(key(), 1..4).prop_map(|keys| Step::DeleteMany { keys }),
        3 => (key(), key(), proptest::option::of(range()))
            .prop_map(|(from, to, range)| Step::Copy { from, to, range }),
        1 => key().prop_map(|key| Step::Begin { key }),
        3 => (0..3_u8, 1..5_u16, length(), seed())
            .prop_map(|(upload, number, length, seed)| Step::Part { upload, number, length, seed }),
        2 => (key(), 0..3_u8, 1..5_u16, range())
            .prop_map(|(from, upload, number, range)|
                Step::CopyPart { from, upload, number, range }),
        2 => (0..3_u8, 0..3_u8).prop_map(|(upload, skips)| Step::Complete { upload, skips }),
        1 => (0..3_u8).prop_map(|upload| Step::Abort { upload }),
        1 => length().prop_map(|length| Step::GiveUp { length }),
        1 => Just(Step::Tick),
        1 => Just(Step::Expire),
        3 => (1..60_u64).prop_map(|entries| Step::Trim { entries }),
        3 => (1..60_u64).prop_map(|entries| Step::FreeReleased { entries }),
        1 => Just(Step::Merge),
        1 => Just(Step::Reopen),
    ]
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Object {
    bytes: Vec<u8>,
    expires: Option<u64>,
    version: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    etag: ETag,
    bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    objects: BTreeMap<Vec<u8>, Object>,
    uploads: BTreeMap<(Vec<u8>, UploadId), BTreeMap<u16, Part>>,
    ticks: u64,
}

fn key_of(key: u8) -> Vec<u8> {
    [&b"key/"[..], &[b'a' + key / 2], &vec![b'/'; usize::from(key % 2)], &[key]].concat()
}

fn condition_of(number: u8, model: &Model, key: &[u8]) -> Condition {
    match (number, model.objects.get(key)) {
        (1, _) => Condition::Absent,
        (2, Some(object)) => Condition::Version(object.version),
        (3, _) => Condition::Version(1),
        _ => Condition::None,
    }
}

impl Model {
    fn now_ms(&self) -> u64 {
        NOW_MS + self.ticks
    }

    fn living(&self, key: &[u8]) -> Option<&Object> {
        self.objects.get(key).filter(|object| object.expires.is_none_or(|at| at > self.now_ms()))
    }

    fn holds(&self, condition: &Condition, key: &[u8]) -> bool {
        match (condition, self.living(key)) {
            (Condition::Absent, found) => found.is_none(),
            (Condition::Version(version), found) => {
                found.is_some_and(|object| object.version == *version)
            }
            _ => true,
        }
    }

    fn upload(&self, number: u8) -> Option<(Vec<u8>, UploadId)> {
        self.uploads.keys().nth(number.into()).cloned()
    }

    /// What a bucket should say that it holds.
    fn sums(&self) -> (u64, u64, u64, u64) {
        let lengths = self.objects.values().map(|object| object.bytes.len() as u64);
        let parts = self.uploads.values().flatten().map(|(_, part)| part.bytes.len() as u64);
        let (objects, parts): (Vec<u64>, Vec<u64>) = (lengths.collect(), parts.collect());
        let count = |lengths: &[u64]| lengths.len() as u64;
        (count(&objects), objects.iter().sum(), count(&parts), parts.iter().sum())
    }
}

/// Whether a request was refused as the model says it must be.
fn refused<T>(done: Result<T, BucketError>, must_succeed: bool) -> Option<T> {
    match done {
        Ok(done) => {
            assert!(must_succeed, "a condition that does not hold is refused");
            Some(done)
        }
        Err(BucketError::ConditionFailed { .. }) => {
            assert!(!must_succeed, "a condition that holds is met");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn range_of(range: (u16, u16), length: usize) -> std::ops::Range<u64> {
    let place = |part: u16| length as u64 * u64::from(part) / u64::from(u16::MAX);
    place(range.0.min(range.1))..place(range.0.max(range.1))
}

fn cut(bytes: &[u8], range: &std::ops::Range<u64>) -> Vec<u8> {
    bytes[range.start as usize..range.end as usize].to_vec()
}

/// Does a step in the bucket and in the model.
fn step_through(bucket: &Bucket, step: &Step, model: &mut Model) {
    let now_ms = model.now_ms();
    let part_options = PartOptions { durability: Durability::Acknowledged, now_ms };
    match step {
        Step::Put { key, length, seed, expires, condition } => {
            let (key, bytes) = (key_of(*key), noise(*length, *seed));
            let condition = condition_of(*condition, model, &key);
            let must_succeed = model.holds(&condition, &key);
            let expires_unix_ms = expires.map(|ticks| now_ms + u64::from(ticks));
            let options = PutOptions { condition, expires_unix_ms, ..PutOptions::new(now_ms) };
            if let Some(put) = refused(bucket.put_with(&key, &bytes, options), must_succeed) {
                let (expires, version) = (expires_unix_ms, put.version);
                model.objects.insert(key, Object { bytes, expires, version });
            }
        }
        Step::Delete { key, condition } => {
            let key = key_of(*key);
            let condition = condition_of(*condition, model, &key);
            let must_succeed = model.holds(&condition, &key);
            let options = crate::bucket::DeleteOptions { now_ms, ..DELETE };
            let done = bucket.delete(&key, &condition, options);
            if let Some(version) = refused(done, must_succeed) {
                assert_eq!(version, model.living(&key).map(|object| object.version));
                model.objects.remove(&key);
            }
        }
        Step::DeleteMany { keys } => {
            let keys: Vec<Vec<u8>> = keys.iter().map(|key| key_of(*key)).collect();
            let all: Vec<_> = keys.iter().map(|key| (key.as_slice(), Condition::None)).collect();
            let options = crate::bucket::DeleteOptions { now_ms, ..DELETE };
            for (key, done) in keys.iter().zip(bucket.delete_many(&all, options).unwrap()) {
                assert_eq!(done.unwrap(), model.living(key).map(|object| object.version));
                model.objects.remove(key);
            }
        }
        Step::Copy { from, to, range } => {
            let (from, to) = (key_of(*from), key_of(*to));
            let Some(source) = model.living(&from).cloned() else {
                let done = bucket.copy(&from, &to, CopyOptions::new(now_ms));
                assert!(matches!(done, Err(BucketError::NoSuchObject)));
                return;
            };
            let length = source.bytes.len();
            let range = range.map_or(0..length as u64, |range| range_of(range, length));
            let options = CopyOptions { range: Some(range.clone()), ..CopyOptions::new(now_ms) };
            let put = bucket.copy(&from, &to, options).unwrap();
            let bytes = cut(&source.bytes, &range);
            let object = Object { bytes, expires: source.expires, version: put.version };
            model.objects.insert(to, object);
        }
        Step::Begin { key } => {
            let options = UploadOptions::new(now_ms);
            let upload = bucket.begin_upload(&key_of(*key), options).unwrap();
            model.uploads.insert((key_of(*key), upload), BTreeMap::new());
        }
        Step::Part { upload, number, length, seed } => {
            let Some((key, upload)) = model.upload(*upload) else { return };
            let bytes = noise(*length, *seed);
            let mut writer = bucket.put_part(&key, upload, *number, part_options).unwrap();
            writer.write(&bytes).unwrap();
            let put = writer.finish(FinishOptions::new(md5_of(&bytes))).unwrap();
            let part = Part { etag: put.etag, bytes };
            model.uploads.get_mut(&(key, upload)).unwrap().insert(*number, part);
        }
        Step::CopyPart { from, upload, number, range } => {
            let Some((key, upload)) = model.upload(*upload) else { return };
            let Some(source) = model.living(&key_of(*from)).cloned() else { return };
            let range = range_of(*range, source.bytes.len());
            let options = CopyPartOptions {
                source_condition: Condition::None,
                range: Some(range.clone()),
                md5: None,
                part: part_options,
            };
            let put = bucket.copy_part(&key_of(*from), &key, upload, *number, options).unwrap();
            let part = Part { etag: put.etag, bytes: cut(&source.bytes, &range) };
            model.uploads.get_mut(&(key, upload)).unwrap().insert(*number, part);
        }
        Step::Complete { upload, skips } => {
            let Some((key, upload)) = model.upload(*upload) else { return };
            let parts = model.uploads[&(key.clone(), upload)].clone();
            let chosen: Vec<(u16, ETag)> = parts
                .iter()
                .filter(|(number, _)| *skips == 0 || **number != u16::from(*skips))
                .map(|(number, part)| (*number, part.etag))
                .collect();
            let options = CompleteOptions {
                condition: Condition::None,
                md5: [9; 16],
                checksums: Vec::new(),
                durability: Durability::Acknowledged,
                now_ms,
            };
            let done = bucket.complete(&key, upload, &chosen, options);
            if chosen.is_empty() {
                assert!(matches!(done, Err(BucketError::PartOrder)));
                return;
            }
            let bytes: Vec<Vec<u8>> =
                chosen.iter().map(|(number, _)| parts[number].bytes.clone()).collect();
            let (bytes, version) = (bytes.concat(), done.unwrap().version);
            model.uploads.remove(&(key.clone(), upload));
            model.objects.insert(key, Object { bytes, expires: None, version });
        }
        Step::Abort { upload } => {
            let Some((key, upload)) = model.upload(*upload) else { return };
            bucket.abort(&key, upload, Durability::Acknowledged).unwrap();
            model.uploads.remove(&(key, upload));
        }
        Step::GiveUp { length } => {
            let mut writer = bucket.put(b"given up", PutOptions::new(now_ms)).unwrap();
            writer.write(&noise(*length, 4)).unwrap();
        }
        Step::Tick => model.ticks += 1,
        Step::Expire => {
            assert_eq!(bucket.expire_some(now_ms, 100).unwrap().stale, 0);
            model.objects.retain(|_, object| object.expires.is_none_or(|at| at > now_ms));
        }
        Step::Trim { entries } => drop(bucket.trim_some(*entries).unwrap()),
        Step::FreeReleased { entries } => drop(bucket.free_released(*entries).unwrap()),
        Step::Merge => drop(bucket.core.index.merge().unwrap()),
        Step::Reopen => (), // The caller does.
    }
}

/// What a bucket holds, expired objects too: they are found by their keys at a time before.
fn observed(bucket: &Bucket, ticks: u64) -> Model {
    let mut model = Model { ticks, ..Model::default() };
    let options = ListOptions {
        prefix: Vec::new(),
        delimiter: Vec::new(),
        from: Vec::new(),
        limit: 1000,
        now_ms: 0,
    };
    for listed in bucket.list(&options).unwrap().objects {
        let bytes = bucket.bytes_at(&listed.key, 0).unwrap();
        let (expires, version) = (listed.info.expires_unix_ms, listed.info.version);
        model.objects.insert(listed.key, Object { bytes, expires, version });
    }
    for listed in bucket.list_uploads(b"", b"", None, 1000).unwrap().uploads {
        let parts = bucket.list_parts(&listed.key, listed.upload, 0, 1000).unwrap();
        let bytes = |number| {
            let part = bucket.core.part(listed.upload, number).unwrap().unwrap();
            let mut reader = bucket.core.reader_of_kept(&part.value);
            let mut bytes = vec![0; part.size_bytes() as usize];
            reader.read_at(0, &mut bytes).unwrap();
            bytes
        };
        let part = |part: &crate::bucket::PartInfo| {
            (part.number, Part { etag: part.etag, bytes: bytes(part.number) })
        };
        let parts = parts.iter().map(part).collect();
        model.uploads.insert((listed.key, listed.upload), parts);
    }
    model
}

/// Whether parts that a completion does not name may be gone while the upload is there still.
fn is_between(found: &Model, before: &Model, after: &Model) -> bool {
    let mut fuller = found.clone();
    for (upload, parts) in &mut fuller.uploads {
        if let Some(all) = before.uploads.get(upload)
            && !after.uploads.contains_key(upload)
        {
            assert!(parts.iter().all(|(number, part)| all.get(number) == Some(part)));
            parts.clone_from(all);
        }
    }
    fuller == *before
}

fn run(steps: &[Step], stride: usize) {
    let store = store_of(256 << 20);
    let volume = TestVolume::new(&store, "bucket");
    Bucket::create(volume.clone(), &options()).unwrap();
    let mut bucket = Bucket::open(volume.clone(), &LITTLE).unwrap();
    let created = volume.written_count();
    let mut model = Model::default();
    let mut history = vec![(created, model.clone())];
    for step in steps {
        if matches!(step, Step::Reopen) {
            drop(bucket);
            bucket = Bucket::open(volume.clone(), &LITTLE).unwrap();
        }
        step_through(&bucket, step, &mut model);
        history.push((volume.written_count(), model.clone()));
    }
    assert_eq!(observed(&bucket, model.ticks), model);
    check_whole(&bucket);
    let figures = bucket.figures();
    let found = (figures.objects, figures.object_bytes, figures.parts, figures.part_bytes);
    assert_eq!(found, model.sums());
    drop(bucket);

    let crashed = TestVolume::new(&store, "crashed");
    let written = volume.written();
    crashed.repeat(&written[..created]);
    let read_only = OpenOptions { read_only: true, ..LITTLE };
    let mut kept = created;
    while kept < written.len() {
        let bucket = Bucket::open(Arc::clone(&crashed) as _, &read_only).unwrap();
        let at = history.partition_point(|(count, _)| *count <= kept) - 1;
        let (before, after) = (&history[at].1, &history[at + 1].1);
        let found = observed(&bucket, before.ticks);
        let is_after = found == (Model { ticks: before.ticks, ..after.clone() });
        assert!(
            found == *before || is_after || is_between(&found, before, after),
            "behind {kept} of {}, in {:?}",
            written.len(),
            steps[at]
        );
        check_whole(&bucket);
        let next = (kept + stride).min(written.len());
        crashed.repeat(&written[kept..next]);
        kept = next;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_done_and_whenever_it_is_killed(
        steps in vec(step(), 1..40), stride in 1..12_usize,
    ) {
        run(&steps, stride);
    }
}
