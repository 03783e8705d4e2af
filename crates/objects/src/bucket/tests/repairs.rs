//! Repairs of buckets that are damaged in every way that a check finds.

use std::collections::BTreeMap;
use std::sync::Arc;

use format::objects::header::{
    HEADER_COPIES_AT_BYTES, INDEX_COPIES_AT_BYTES, RING_AT_BYTES, VALUES_AT_BYTES,
};
use format::objects::segments::ListEntry;
use format::objects::settings::{Figures, figures_setting, stripe_of};
use store::{Durability, Store};

use super::rig::{DELETE, LITTLE, NOW_MS, Shorthand, check_whole, noise, options, store_of};
use crate::bucket::{
    Bucket, BucketError, BucketOptions, BucketRepair, CopyOptions, LostPart, Owner, PartOptions,
    PutOptions, RepairOptions, UploadOptions, repair,
};
use crate::index::{Change, Index, Table};
use crate::test_volume::{CHUNK, TestVolume, Written};
use segments::SegmentPolicy;

const COPY: u64 = INDEX_COPIES_AT_BYTES[0];
const MIRROR: u64 = INDEX_COPIES_AT_BYTES[1];
const QUOTA_BYTES: u64 = 1 << 40;

/// What a bucket has: bytes of objects, and how many parts its upload has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Held {
    objects: BTreeMap<Vec<u8>, Vec<u8>>,
    parts: usize,
}

/// A bucket with all that buckets have, half of it merged.
struct Rig {
    store: Store,
    volume: Arc<TestVolume>,
    held: Held,
    targets: usize,
    last_target: Arc<TestVolume>,
}

fn key_of(number: u32) -> Vec<u8> {
    format!("objects/{number:05}").into_bytes()
}

impl Rig {
    fn new() -> Self {
        let store = store_of(256 << 20);
        let volume = TestVolume::new(&store, "bucket");
        let last_target = volume.clone();
        let segments = SegmentPolicy::Cdc;
        let options = BucketOptions { ring_bytes: 256 << 20, segments, ..options() };
        Bucket::create(volume.clone(), &options).unwrap();
        let mut rig = Self { store, volume, held: Held::default(), targets: 0, last_target };
        let bucket = rig.open();
        rig.fill(&bucket);
        bucket.core.index.merge().unwrap();
        for number in 0..40 {
            rig.put(&bucket, number * 7, 6000);
        }
        check_whole(&bucket);
        rig
    }

    fn open(&self) -> Bucket {
        Bucket::open(self.volume.clone(), &LITTLE).unwrap()
    }

    fn put(&mut self, bucket: &Bucket, number: u32, length: usize) {
        let (key, bytes) = (key_of(number), noise(length, u64::from(number) + length as u64));
        let expires_unix_ms = number.is_multiple_of(5).then_some(NOW_MS + 1000 + u64::from(number));
        let options = PutOptions { expires_unix_ms, ..PutOptions::new(NOW_MS) };
        bucket.put_with(&key, &bytes, options).unwrap();
        self.held.objects.insert(key, bytes);
    }

    fn fill(&mut self, bucket: &Bucket) {
        bucket.set_quota(Some(QUOTA_BYTES), Durability::Acknowledged).unwrap();
        bucket.set_document("cors", Some(b"<cors/>"), Durability::Acknowledged).unwrap();
        for number in 0..400 {
            self.put(bucket, number, if number % 3 == 0 { 300 } else { 5000 });
        }
        // Long enough for a list with blocks; its copy shares them.
        let bytes = noise(3 << 20, 77);
        bucket.put_bytes(b"long", &bytes);
        self.held.objects.insert(b"long".to_vec(), bytes);
        for number in 0..20 {
            let (from, to) = (key_of(number * 11 + 1), format!("copies/{number:03}").into_bytes());
            bucket.copy(&from, &to, CopyOptions::new(NOW_MS)).unwrap();
            self.held.objects.insert(to, self.held.objects[&from].clone());
        }
        let options = UploadOptions::new(NOW_MS);
        let upload = bucket.begin_upload(b"upload", options).unwrap();
        for number in 1..=3 {
            let options = PartOptions { durability: Durability::Acknowledged, now_ms: NOW_MS };
            let mut part = bucket.put_part(b"upload", upload, number, options).unwrap();
            part.write(&noise(7000, 900 + u64::from(number))).unwrap();
            part.finish(crate::bucket::FinishOptions::new([number as u8; 16])).unwrap();
        }
        self.held.parts = 3;
        for number in (5..400).step_by(13) {
            bucket.delete(&key_of(number), &Default::default(), DELETE).unwrap();
            self.held.objects.remove(&key_of(number));
        }
        bucket.trim_some(10).unwrap();
    }

    /// A volume with the same values, of which the same chunks cannot be read.
    fn target(&mut self, damaged: &[u64]) -> Arc<TestVolume> {
        self.targets += 1;
        let target = TestVolume::new(&self.store, &format!("target {}", self.targets));
        target.repeat(&self.volume.written());
        damaged.iter().for_each(|at| target.damage(*at));
        target
    }

    /// Repairs the bucket, of which these places cannot be read, and holds the new one to be whole.
    fn repaired(&mut self, damaged: &[u64]) -> (BucketRepair, Held, Bucket) {
        let target = self.target(damaged);
        self.last_target = target.clone();
        let (report, bucket) = self.repair_into(&target, damaged).unwrap();
        let held = held_by(&bucket);
        (report, held, bucket)
    }

    fn repair_into(
        &self,
        target: &Arc<TestVolume>,
        damaged: &[u64],
    ) -> Result<(BucketRepair, Bucket), BucketError> {
        self.volume.heal();
        damaged.iter().for_each(|at| self.volume.damage(*at));
        let chunks = damaged.iter().map(|at| at / CHUNK as u64);
        let mut unreadable: Vec<_> = chunks.map(|chunk| chunk..chunk + 1).collect();
        unreadable.sort_by_key(|range| range.start);
        let options = RepairOptions { unreadable, memory_bytes: 1 << 20, ..Default::default() };
        let written = self.volume.written_count();
        let report = repair(self.volume.clone(), target.clone(), &options, &mut |_, _| Ok(()))?;
        let is_healed = |one: &Written| match one {
            Written::Chunk(at, _) => damaged.contains(at),
            Written::Trim(..) => false,
        };
        let healed = self.volume.written();
        assert!(healed[written..].iter().all(is_healed), "the damaged bucket is only read");
        let bucket = Bucket::open(target.clone(), &LITTLE).unwrap();
        check_whole(&bucket);
        assert_eq!(bucket.figures(), report.figures);
        // What no object names becomes free, and the bucket goes on.
        while !bucket.trim_some(1000).unwrap().is_done {}
        bucket.put_bytes(b"afterwards", &noise(50_000, 5));
        assert_eq!(bucket.bytes(b"afterwards").unwrap(), noise(50_000, 5));
        bucket.delete(b"afterwards", &Default::default(), DELETE).unwrap();
        check_whole(&bucket);
        Ok((report, bucket))
    }

    /// Both copies of a place of the index.
    fn both(place: u64) -> [u64; 2] {
        [place, place - COPY + MIRROR]
    }

    fn pages(&self) -> Vec<u64> {
        self.volume.places(COPY + CHUNK as u64, MIRROR).into_iter().collect()
    }
}

/// What a bucket holds; objects of which bytes cannot be read have none.
fn held_by(bucket: &Bucket) -> Held {
    let mut held = Held::default();
    for key in bucket.list_all(b"", b"", 1000).0 {
        let bytes = bucket.get(&key, &crate::bucket::Condition::None, NOW_MS).unwrap();
        let mut reader = bytes.unwrap();
        let mut bytes = vec![0; reader.info().size_bytes as usize];
        let bytes = reader.read_at(0, &mut bytes).map(|_| bytes);
        held.objects.insert(key, bytes.unwrap_or_default());
    }
    for listed in bucket.list_uploads(b"", b"", None, 10).unwrap().uploads {
        held.parts += bucket.list_parts(&listed.key, listed.upload, 0, 10).unwrap().len();
    }
    held
}

/// The block of the list of `long` that has the most of it.
fn block_of_long(bucket: &Bucket) -> u64 {
    let record = bucket.core.record(b"long").unwrap().unwrap();
    let block = record.value.entries().iter().find_map(|entry| match entry {
        ListEntry::Subtree(subtree) => Some(subtree.block_chunk * CHUNK as u64),
        ListEntry::Run(_) => None,
    });
    block.unwrap()
}

#[test]
fn a_whole_bucket_comes_out_as_it_went_in() {
    let mut rig = Rig::new();
    let (report, held, bucket) = rig.repaired(&[]);
    assert!(report.is_without_loss(), "{report:?}");
    assert!(held == rig.held);
    assert_eq!(bucket.quota_bytes(), Some(QUOTA_BYTES));
    assert_eq!(bucket.document("cors").unwrap().unwrap(), b"<cors/>");
    assert_eq!(bucket.uuid(), rig.open().uuid());
    let later = bucket.expire_some(NOW_MS + 10_000, u64::MAX).unwrap();
    assert!(later.is_done && !bucket.list_all(b"", b"", 1000).0.is_empty());
    check_whole(&bucket);
}

#[test]
fn what_rots_in_one_copy_is_no_loss() {
    let mut rig = Rig::new();
    let mut damaged = rig.pages();
    damaged.push(HEADER_COPIES_AT_BYTES[0]);
    damaged.push(COPY);
    let (report, held, _) = rig.repaired(&damaged);
    assert!(report.is_without_loss(), "{report:?}");
    assert!(held == rig.held);
}

/// Each page in turn: leaves, branches, the first page, and pages that hold nothing of this moment.
#[test]
fn whatever_page_rots_all_that_it_does_not_hold_is_kept_and_the_rest_is_named() {
    let mut rig = Rig::new();
    let (mut of_leaves, mut of_branches, mut whole) = (0, 0, 0);
    for place in rig.pages().into_iter().step_by(3) {
        let (report, held, bucket) = rig.repaired(&Rig::both(place));
        let mut missing = 0;
        for (key, bytes) in &rig.held.objects {
            match held.objects.get(key) {
                Some(found) => assert!(found == bytes),
                None => {
                    missing += 1;
                    let is_named = report.lost.iter().any(|part| match part {
                        LostPart::Keys { behind, last, .. } => {
                            behind.as_ref().is_none_or(|behind| behind < key)
                                && last.as_ref().is_none_or(|last| key <= last)
                        }
                        _ => false,
                    });
                    assert!(is_named, "{} in {report:?}", key.escape_ascii());
                }
            }
        }
        assert_eq!(held.objects.len(), rig.held.objects.len() - missing, "none comes back");
        assert!(bucket.put_bytes(b"new", b"x").version > 460, "versions are given once");
        of_leaves += u32::from((1..60).contains(&missing));
        of_branches += u32::from(missing >= 60);
        whole += u32::from(report.is_without_loss());
        assert!(missing == 0 || !report.is_without_loss());
    }
    assert!(of_leaves > 3 && whole > 5, "{of_leaves} {of_branches} {whole}");
}

#[test]
fn a_branch_that_rots_takes_what_is_below_it_and_the_log_brings_back_what_it_has() {
    let mut rig = Rig::new();
    let mut found = None;
    for place in rig.pages() {
        rig.volume.heal();
        let mut bytes = [0; CHUNK];
        rig.volume.inner.read_at(place, &mut bytes).unwrap();
        if bytes[0] == 2 {
            let (report, held, _) = rig.repaired(&Rig::both(place));
            let missing = rig.held.objects.len() - held.objects.len();
            if missing > 100 {
                found = Some((report, held));
                break;
            }
        }
    }
    let (report, held) = found.unwrap();
    assert!(report.lost.iter().any(|part| matches!(part, LostPart::Keys { .. })), "{report:?}");
    // Forty were put behind the merge.
    assert!((0..40).all(|number| held.objects.contains_key(&key_of(number * 7))));
}

#[test]
fn the_first_page_and_the_header_are_no_loss() {
    let mut rig = Rig::new();
    let first = Rig::both(COPY + CHUNK as u64);
    for damaged in [first.to_vec(), HEADER_COPIES_AT_BYTES.to_vec(), [COPY, MIRROR].to_vec()] {
        let (report, held, _) = rig.repaired(&damaged);
        assert!(report.is_without_loss(), "{report:?}");
        assert!(held == rig.held);
    }
}

#[test]
fn a_group_that_rots_is_said_and_what_follows_it_is_kept() {
    let mut rig = Rig::new();
    let log: Vec<u64> = rig.volume.places(RING_AT_BYTES, COPY).into_iter().collect();
    let mut chunk = [0; CHUNK];
    let in_use: Vec<u64> = log
        .into_iter()
        .filter(|at| {
            rig.volume.inner.read_at(*at, &mut chunk).unwrap();
            chunk != [0; CHUNK]
        })
        .collect();
    assert!(in_use.len() > 2, "{in_use:?}");
    let middle = in_use[in_use.len() / 2];
    let (report, held, bucket) = rig.repaired(&[middle]);
    let of_log = report.lost.iter().filter(|part| matches!(part, LostPart::Log { .. })).count();
    assert_eq!((of_log, report.lost_count), (1, 1), "{report:?}");
    let newer =
        |number: &u32| bucket.bytes(&key_of(*number)).is_some_and(|bytes| bytes.len() == 6000);
    let kept: Vec<u32> = (0..40).map(|number| number * 7).filter(newer).collect();
    assert!(kept.contains(&0) && kept.contains(&(39 * 7)) && kept.len() < 40, "{kept:?}");
    for (key, bytes) in &held.objects {
        assert!(bytes == &rig.held.objects[key] || bytes.len() != 6000);
    }
}

/// The groups that delete an object and free its chunks: the first is lost, the second is not.
#[test]
fn an_object_that_a_lost_group_deleted_does_not_come_back_as_zeros() {
    let mut rig = Rig::new();
    let bucket = rig.open();
    bucket.core.index.merge().unwrap();
    let key = key_of(7);
    let before = rig.volume.written_count();
    bucket.delete(&key, &Default::default(), DELETE).unwrap();
    let deleting = rig.volume.written()[before..].iter().find_map(|one| match one {
        Written::Chunk(at, _) => Some(*at),
        Written::Trim(..) => None,
    });
    // The next groups begin in chunks of their own.
    for number in 0..8 {
        rig.put(&bucket, number * 7 + 1, 300);
    }
    while !bucket.trim_some(1000).unwrap().is_done {}
    drop(bucket);
    let (report, held, _) = rig.repaired(&[deleting.unwrap()]);
    assert!(!held.objects.contains_key(&key), "{report:?}");
    let lost = Owner::Object { key: key.clone() };
    let is_named = |part: &LostPart| matches!(part, LostPart::One { owner, .. } if *owner == lost);
    assert!(report.lost.iter().any(is_named), "{report:?}");
}

#[test]
fn an_object_with_an_unreadable_chunk_is_kept_and_named() {
    let mut rig = Rig::new();
    let record = rig.open().core.record(&key_of(1)).unwrap().unwrap();
    let ListEntry::Run(run) = record.value.entries()[0] else { panic!("{record:?}") };
    let damaged = run.first_chunk * CHUNK as u64;
    let (report, held, bucket) = rig.repaired(&[damaged]);
    assert_eq!((report.lost_count, report.damaged_count), (0, 2), "with its copy: {report:?}");
    let found = report.damaged.iter().find(|one| one.owner == Owner::Object { key: key_of(1) });
    let found = found.unwrap();
    assert_eq!((found.first_bytes.clone(), found.unreadable_bytes), (0..4096, 4096));
    let chunk = damaged / CHUNK as u64;
    let unreadable = bucket.find_unreadable(&[1..2, chunk..chunk + 1], 9, |_| Ok(())).unwrap();
    assert_eq!((unreadable.count, &unreadable.told), (2, &report.damaged));
    assert_eq!(held.objects.len(), rig.held.objects.len());
    let mut reader = bucket.get(&key_of(1), &crate::bucket::Condition::None, NOW_MS).unwrap();
    let mut bytes = [0; 904];
    reader.as_mut().unwrap().read_at(4096, &mut bytes).unwrap();
    assert!(bytes[..] == rig.held.objects[&key_of(1)][4096..]);
}

#[test]
fn an_object_whose_list_cannot_be_read_is_named_and_others_are_kept() {
    let mut rig = Rig::new();
    let damaged = block_of_long(&rig.open());
    let (report, held, _) = rig.repaired(&[damaged]);
    assert_eq!((report.lost_count, report.damaged_count), (1, 0), "{report:?}");
    let owner = Owner::Object { key: b"long".to_vec() };
    assert!(matches!(&report.lost[0], LostPart::One { owner: of, .. } if *of == owner));
    assert_eq!(rig.last_target.damaged_count(), 0, "what nobody names is not told of again");
    let mut expected = rig.held.clone();
    expected.objects.remove(&b"long"[..]);
    assert!(held == expected);
}

#[test]
fn what_is_counted_wrong_or_leaked_is_counted_anew() {
    let first = |bucket: &Bucket, table| bucket.core.index.scan(table, &[], 1).unwrap().remove(0);
    let figures = figures_setting(stripe_of(&key_of(1)));
    type Spoil<'a> = Box<dyn Fn(&Bucket) -> Change + 'a>;
    let remove = |table| -> Spoil<'_> {
        Box::new(move |bucket| Change::Remove { table, key: first(bucket, table).0 })
    };
    let spoils: Vec<Spoil<'_>> = vec![
        remove(Table::Shared),
        remove(Table::Free),
        remove(Table::ToFree),
        remove(Table::Expiry),
        Box::new(|_| Change::Set {
            table: Table::Settings,
            key: figures.clone(),
            value: Figures::default().encode(),
        }),
        Box::new(|_| Change::Set { table: Table::Expiry, key: vec![1; 30], value: Vec::new() }),
    ];
    for spoil in spoils {
        let mut rig = Rig::new();
        let bucket = rig.open();
        bucket.core.index.apply(vec![spoil(&bucket)], Durability::Acknowledged).unwrap();
        let found = bucket.check(&Default::default(), |_, _| Ok(())).unwrap();
        assert!(!found.is_whole());
        drop(bucket);
        let (report, held, _) = rig.repaired(&[]);
        assert!(report.is_without_loss(), "{report:?}");
        assert!(held == rig.held);
    }
}

#[test]
fn an_entry_that_is_none_goes_and_is_named() {
    let mut rig = Rig::new();
    let bucket = rig.open();
    let set = |table, key: &[u8], value: &[u8]| Change::Set {
        table,
        key: key.to_vec(),
        value: value.to_vec(),
    };
    let changes = vec![
        set(Table::Objects, b"nonsense", b"\x01nothing"),
        set(Table::Uploads, b"nonsense", b""),
        set(Table::Settings, b"bucket.quota_bytes", b"much"),
    ];
    bucket.core.index.apply(changes, Durability::Acknowledged).unwrap();
    drop(bucket);
    let (report, held, bucket) = rig.repaired(&[]);
    assert_eq!(report.lost_count, 3, "{report:?}");
    assert!(report.lost[0].to_string().starts_with("object nonsense is lost: "), "{report:?}");
    assert!(held == rig.held);
    assert_eq!(bucket.quota_bytes(), None);
}

#[test]
fn what_a_newer_program_has_put_is_left_alone() {
    let mut rig = Rig::new();
    let bucket = rig.open();
    let mut value = bucket.core.index.get(Table::Objects, &key_of(1)).unwrap().unwrap();
    value[0] = 2;
    let change = Change::Set { table: Table::Objects, key: key_of(1), value };
    bucket.core.index.apply(vec![change], Durability::Acknowledged).unwrap();
    drop(bucket);
    let target = rig.target(&[]);
    let error = rig.repair_into(&target, &[]).err().unwrap();
    assert!(error.to_string().contains("newer program"), "{error}");
}

/// A kill behind any write of a repair leaves the damaged bucket as it was, and the next repair
/// makes of what was left what it makes of a fresh target.
#[test]
fn a_repair_that_was_killed_behind_any_write_is_begun_again() {
    let mut rig = Rig::new();
    let leaf = rig.pages()[rig.pages().len() / 2];
    let damaged = Rig::both(leaf);
    let target = rig.target(&[]);
    let before = target.written_count();
    let (expected, bucket) = rig.repair_into(&target, &damaged).unwrap();
    let held = held_by(&bucket);
    drop(bucket);
    let written = target.written();
    let repaired = &written[before..];
    let front = repaired.iter().position(|one| match one {
        Written::Chunk(at, _) => *at >= VALUES_AT_BYTES,
        Written::Trim(at, _) => *at >= VALUES_AT_BYTES,
    });
    let front = front.unwrap_or(repaired.len());
    for kept in (0..front).step_by(front / 12 + 1) {
        let target = rig.target(&[]);
        target.repeat(&repaired[..kept]);
        let (report, bucket) = rig.repair_into(&target, &damaged).unwrap();
        assert_eq!(report, expected, "behind {kept} of {front}");
        assert!(held_by(&bucket) == held);
    }
}
