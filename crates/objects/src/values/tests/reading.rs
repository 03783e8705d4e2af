//! Readers: any range, few reads, pins, and what is lost.

use format::objects::record::Value;
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};

use super::bucket::{Bucket, Cut, SMALL, noise};
use super::recount::recount;
use crate::values::ValueError;
use crate::values::limits::Limits;

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn any_range_is_read(
        length in 1..150_000_usize,
        is_fixed: bool,
        ranges in vec((any::<proptest::sample::Index>(), 0..20_000_usize), 1..30),
    ) {
        let bucket = Bucket::new(SMALL, 16 << 20);
        let bytes = noise(length, 1);
        bucket.put(1, &bytes, if is_fixed { Cut::Fixed } else { Cut::Content }).unwrap();
        let mut reader = bucket.reader(1).unwrap();
        for (start, wanted) in ranges {
            let start = start.index(length + 1);
            let mut out = vec![0xee; wanted];
            let read = reader.read_at(start as u64, &mut out).unwrap();
            let end = (start + wanted).min(length);
            prop_assert!(out[..read] == bytes[start..end]);
            // And on, as one who reads all.
            let read = reader.read_at(end as u64, &mut out).unwrap();
            prop_assert!(out[..read] == bytes[end..(end + wanted).min(length)]);
        }
    }
}

#[test]
fn a_byte_is_found_in_as_many_reads_as_the_list_has_levels() {
    let bucket = Bucket::new(SMALL, 16 << 20);
    let bytes = noise(150_000, 1);
    bucket.put(1, &bytes, Cut::Content).unwrap();
    let depth = u64::from(bucket.value(1).unwrap().entries()[0].level());
    for at in [0, 77_777, 149_999] {
        let mut reader = bucket.reader(1).unwrap();
        bucket.volume.take_reads();
        // Not from the start: that would read ahead.
        let at = if at == 0 { 1 } else { at };
        reader.read_at(at as u64, &mut [0]).unwrap();
        assert!(bucket.volume.take_reads() <= depth + 1);
    }
}

#[test]
fn who_reads_on_reads_few_times() {
    let bucket = Bucket::new(Limits::OF_BUCKETS, 32 << 20);
    let bytes = noise(100_000, 1);
    bucket.put(1, &bytes, Cut::Content).unwrap();
    let mut reader = bucket.reader(1).unwrap();
    bucket.volume.take_reads();
    for (at, part) in (0..).step_by(1000).zip(bytes.chunks(1000)) {
        let mut out = [0; 1000];
        assert_eq!(reader.read_at(at, &mut out).unwrap(), part.len());
        assert!(out[..part.len()] == *part);
    }
    let reads = bucket.volume.take_reads();
    assert!(reads <= 5, "{reads} reads");
}

#[test]
fn what_a_reader_pins_is_not_trimmed() {
    let bucket = Bucket::new(SMALL, 16 << 20);
    for length in [3000, 60_000] {
        let bytes = noise(length, 1);
        bucket.put(1, &bytes, Cut::Content).unwrap();
        bucket.put(2, &noise(60_000, 2), Cut::Content).unwrap();
        let mut reader = bucket.reader(1).unwrap();
        bucket.delete(&[1, 2]).unwrap();
        bucket.trim_all();
        let held = recount(&bucket).named + recount(&bucket).to_free;
        // The other object's chunks are free: a slow reader holds its own only.
        assert!(held < bytes.len() as u64 / 64 + 60, "{held} chunks are held");
        let mut out = vec![0; length];
        reader.read_at(0, &mut out).unwrap();
        assert!(out == bytes);
        drop(reader);
        bucket.trim_all();
        assert_eq!(recount(&bucket).named, 0);
    }
}

/// The record was found before the deletion, the pin comes after the trim.
#[test]
fn a_pin_that_comes_too_late_is_refused() {
    let bucket = Bucket::new(SMALL, 16 << 20);
    bucket.put(1, &noise(9000, 1), Cut::Fixed).unwrap();
    let lookup = bucket.values.lookup();
    let value = bucket.value(1).unwrap();
    bucket.delete(&[1]).unwrap();
    assert!(bucket.values.pin(lookup, &value).is_some(), "nothing was trimmed yet");
    bucket.trim_all();
    assert!(bucket.values.pin(lookup, &value).is_none());
    let in_record = Value::Inline(vec![7]);
    assert!(bucket.values.pin(lookup, &in_record).is_some(), "there is nothing to trim");
}

#[test]
fn a_lost_chunk_is_named_by_its_bytes_and_others_are_read() {
    let bucket = Bucket::new(SMALL, 16 << 20);
    let bytes = noise(50_000, 1);
    bucket.put(1, &bytes, Cut::Fixed).unwrap();
    let mut reader = bucket.reader(1).unwrap();
    // The chunk that holds the byte at 20,000.
    let whole = &bytes[16_384..20_480];
    let space = bucket.values.high_water_bytes() / 4096;
    let lost = (256..space).find(|chunk| {
        let mut there = vec![0; 4096];
        bucket.volume.inner.read_at(chunk * 4096, &mut there).unwrap();
        there == whole
    });
    bucket.volume.damage(lost.unwrap() * 4096);
    let mut out = vec![0; 50_000];
    assert_eq!(reader.read_at(0, &mut out[..16_384]).unwrap(), 16_384);
    assert_eq!(reader.read_at(20_480, &mut out[20_480..]).unwrap(), 50_000 - 20_480);
    assert!(out[..16_384] == bytes[..16_384] && out[20_480..] == bytes[20_480..]);
    for start in [0, 17_000] {
        match reader.read_at(start, &mut out) {
            Err(ValueError::Damaged { bytes, .. }) => {
                assert_eq!(bytes, start.max(16_384)..20_480);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_lost_block_is_named_and_its_tree_stays() {
    let bucket = Bucket::new(SMALL, 16 << 20);
    bucket.put(1, &noise(60_000, 1), Cut::Content).unwrap();
    let value = bucket.value(1).unwrap();
    let root = value.entries()[0].chunks().start;
    bucket.volume.damage(root * 4096);
    let mut reader = bucket.reader(1).unwrap();
    let below = value.entries()[0].length_bytes();
    match reader.read_at(5, &mut [0; 9]) {
        Err(ValueError::Damaged { bytes, .. }) => assert_eq!(bytes, 0..below),
        other => panic!("{other:?}"),
    }
    let behind = reader.read_at(below, &mut [0; 9]);
    assert!(behind.is_ok(), "{behind:?}");
    drop(reader);
    bucket.delete(&[1]).unwrap();
    bucket.trim_all();
    assert_eq!(bucket.values.trim_some(100).unwrap().damaged_trees, 1);
    assert!(recount(&bucket).named > 0, "what it names is for a repair");
}

#[test]
fn a_changed_block_is_noticed() {
    let bucket = Bucket::new(SMALL, 16 << 20);
    bucket.put(1, &noise(60_000, 1), Cut::Content).unwrap();
    let root = bucket.value(1).unwrap().entries()[0].chunks().start;
    bucket.volume.inner.write_at(root * 4096 + 40, &[0xff]).unwrap();
    let read = bucket.reader(1).unwrap().read_at(5, &mut [0; 9]);
    assert!(matches!(read, Err(ValueError::DamagedList { .. })), "{read:?}");
}
