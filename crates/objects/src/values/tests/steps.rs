//! One thing at a time: what each verb does to the tables, and what it must not.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use format::objects::extents::{encode_range, extent_key};
use format::objects::record::Value;
use format::objects::segments::ListEntry;

use super::bucket::{Bucket, Cut, SMALL, noise};
use super::recount::{Usage, recount};
use crate::index::Table;
use crate::values::ValueError;
use crate::values::limits::Limits;

fn bucket() -> Bucket {
    Bucket::new(SMALL, 16 << 20)
}

#[test]
fn a_short_value_lies_in_its_record() {
    let bucket = bucket();
    for length in [0, 1, 512] {
        bucket.put(1, &noise(length, 1), Cut::Content).unwrap();
        assert_eq!(bucket.bytes(1), Some(noise(length, 1)));
        assert!(matches!(bucket.value(1), Some(Value::Inline(_))));
    }
    assert_eq!(recount(&bucket), Usage::default());
    bucket.put(1, &noise(513, 1), Cut::Content).unwrap();
    assert!(matches!(bucket.value(1), Some(Value::List(_))));
    assert_eq!(bucket.bytes(1), Some(noise(513, 1)));
}

/// The intent of a small put is one change of one key.
#[test]
fn small_puts_shorten_one_entry() {
    let bucket = bucket();
    for key in 0..4 {
        bucket.put(key, &noise(5000, key.into()), Cut::Fixed).unwrap();
        assert_eq!(bucket.index.entries(Table::ToFree).len(), 1);
        assert_eq!(recount(&bucket).named, 2 * (u64::from(key) + 1));
    }
    assert_eq!(bucket.index.longest_batch.load(Ordering::SeqCst), 2);
}

/// What the last extent of one has left is the first of the next: short rests only are trimmed in
/// vain.
#[test]
fn long_values_one_after_another_leave_little_to_trim() {
    let bucket = bucket();
    for key in 0..20 {
        bucket.put(key, &noise(50_000, key.into()), Cut::Fixed).unwrap();
    }
    let freed = bucket.values.trim_some(100).unwrap().freed_bytes;
    assert!(freed < 20 * SMALL.region_rest_chunks * 4096, "{freed} bytes");
    let usage = recount(&bucket);
    assert!(usage.to_free <= 2 * SMALL.data_chunks.1, "{usage:?}");
}

#[test]
fn fixed_segments_of_an_extent_are_one_entry() {
    let bucket = Bucket::new(Limits::OF_BUCKETS, 32 << 20);
    let bytes = noise(3 << 20, 1);
    bucket.put(1, &bytes, Cut::Fixed).unwrap();
    assert_eq!(bucket.value(1).unwrap().entries().len(), 1);
    assert!(bucket.bytes(1) == Some(bytes));
    recount(&bucket);
}

/// Whatever the length of the value, no batch is longer than a block has entries, and a few.
#[test]
fn a_long_value_is_written_and_deleted_in_small_batches() {
    let bucket = bucket();
    let bytes = noise(120_000, 1);
    bucket.put(1, &bytes, Cut::Content).unwrap();
    let levels: Vec<u8> = bucket.value(1).unwrap().entries().iter().map(ListEntry::level).collect();
    assert!(levels[0] >= 4, "{levels:?}");
    assert!(bucket.bytes(1) == Some(bytes));
    let chunks = recount(&bucket).named;
    bucket.delete(&[1]).unwrap();
    recount(&bucket);
    let longest = bucket.index.longest_batch.load(Ordering::SeqCst);
    assert!(longest <= 16, "a batch of {longest} changes");
    while !bucket.values.trim_some(1).unwrap().is_done {
        let usage = recount(&bucket);
        assert_eq!(usage.named + usage.free + usage.to_free, recount_total(&bucket));
        // Depth first: a tree a level, and blocks that are trimmed together.
        assert!(bucket.index.entries(Table::ToFree).len() < 64 + 20);
    }
    let longest = bucket.index.longest_batch.load(Ordering::SeqCst);
    assert!(longest <= 3 * 64, "a batch of {longest} changes");
    // What its last extent had left was idle.
    let bucket = bucket.reopened();
    bucket.trim_all();
    let usage = recount(&bucket);
    assert_eq!((usage.named, usage.to_free), (0, 0));
    assert!(usage.free >= chunks);
    assert_eq!(bucket.index.entries(Table::Free).len(), 1, "neighbours are one");
    assert!(bucket.values.backing.space.holds_nothing());
}

fn recount_total(bucket: &Bucket) -> u64 {
    (bucket.values.high_water_bytes() - super::bucket::START_BYTES) / 4096
}

#[test]
fn what_was_trimmed_is_zeros_and_is_given_out_again() {
    let bucket = bucket();
    for round in 0..40 {
        bucket.put(1, &noise(60_000, round), Cut::Content).unwrap();
        assert!(bucket.bytes(1) == Some(noise(60_000, round)));
        bucket.trim_all();
        recount(&bucket);
    }
    bucket.delete(&[1]).unwrap();
    bucket.trim_all();
    let total = recount_total(&bucket);
    assert!(total < 1200, "{total} chunks were given out");
    let mut bytes = vec![1; (total * 4096) as usize];
    bucket.volume.inner.read_at(super::bucket::START_BYTES, &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0));
}

#[test]
fn a_writer_that_is_dropped_leaks_nothing() {
    let bucket = bucket();
    for length in [100, 6000, 40_000, 120_000] {
        let mut writer = bucket.values.writer_with(Cut::Content.cutter());
        writer.write(&noise(length, 9)).unwrap();
        bucket.trim_all();
        recount(&bucket);
        drop(writer);
        drop(bucket.write(&noise(length, 10), Cut::Content).unwrap());
        bucket.trim_all();
        assert_eq!(recount(&bucket).named, 0);
    }
    let bucket = bucket.reopened();
    bucket.trim_all();
    let usage = recount(&bucket);
    assert_eq!((usage.named, usage.to_free), (0, 0));
}

#[test]
fn copies_share_until_the_last_is_deleted() {
    let bucket = bucket();
    let bytes = noise(60_000, 1);
    bucket.put(1, &bytes, Cut::Content).unwrap();
    let chunks = recount(&bucket).named;
    for to in 2..6 {
        bucket.copy(1, to).unwrap();
    }
    assert_eq!(recount(&bucket).named, chunks, "no bytes move");
    bucket.delete(&[1, 3, 5]).unwrap();
    bucket.trim_all();
    assert_eq!(recount(&bucket).named, chunks);
    assert!(bucket.bytes(2) == Some(bytes.clone()));
    bucket.delete(&[2]).unwrap();
    assert_eq!(recount(&bucket).shared_ranges, 0);
    bucket.trim_all();
    assert!(bucket.bytes(4) == Some(bytes));
    bucket.delete(&[4]).unwrap();
    bucket.trim_all();
    assert_eq!(recount(&bucket).named, 0);
}

/// Two objects of one batch that share are the last two.
#[test]
fn deletions_in_one_batch_see_each_other() {
    let bucket = bucket();
    bucket.put(1, &noise(30_000, 1), Cut::Content).unwrap();
    bucket.copy(1, 2).unwrap();
    bucket.copy(1, 3).unwrap();
    bucket.delete(&[1, 2, 3]).unwrap();
    bucket.trim_all();
    assert_eq!(recount(&bucket).named, 0);
}

/// A copy that comes and goes leaves no ranges behind that are split for nothing.
#[test]
fn counts_that_are_equal_again_are_one_range() {
    let bucket = bucket();
    bucket.put(1, &noise(90_000, 1), Cut::Fixed).unwrap();
    bucket.copy(1, 2).unwrap();
    let before = recount(&bucket);
    for start in [10_000, 30_000, 50_000] {
        bucket.copy_range(1, 3, b"", start..start + 20_000).unwrap();
        assert!(recount(&bucket).shared_ranges > before.shared_ranges);
        bucket.delete(&[3]).unwrap();
    }
    assert_eq!(recount(&bucket).shared_ranges, before.shared_ranges);
}

/// The index says that a batch failed, and it was made.
#[test]
fn what_nobody_knows_to_be_named_is_not_given_out() {
    let bucket = bucket();
    for (round, length) in (0..).zip([3000, 60_000, 3000, 60_000]) {
        let written = bucket.write(&noise(length, round), Cut::Fixed).unwrap();
        bucket.index.stop.fails_once.store(true, Ordering::SeqCst);
        let key = round as u8;
        assert!(bucket.put_written(Table::Objects, key, written).is_err());
        assert!(bucket.bytes(key) == Some(noise(length, round)));
        bucket.put(100 + key, &noise(3000, 99), Cut::Fixed).unwrap();
        bucket.put(200 + key, &noise(60_000, 98), Cut::Fixed).unwrap();
        bucket.trim_all();
        recount(&bucket);
    }
    for (round, length) in (0..).zip([3000, 60_000, 3000, 60_000]) {
        assert!(bucket.bytes(round as u8) == Some(noise(length, round)));
    }
    let bucket = bucket.reopened();
    bucket.trim_all();
    assert_eq!(recount(&bucket).to_free, 0, "it is held until the bucket is opened again");
}

/// The trimmer has found a region's rest in `ToFree`; then a put names most of it and gives the
/// region up.
#[test]
fn what_was_named_since_the_scan_is_not_trimmed() {
    let bucket = Arc::new(bucket());
    for key in 1..3 {
        bucket.put(key, &noise(6 << 12, key.into()), Cut::Fixed).unwrap();
    }
    let written = bucket.write(&noise(6 << 12, 3), Cut::Fixed).unwrap();
    let other = Arc::clone(&bucket);
    let put = move || other.put_written(Table::Objects, 3, written).unwrap();
    *bucket.index.after_scan.lock().unwrap() = Some(Box::new(put));
    bucket.trim_all();
    assert!(bucket.index.after_scan.lock().unwrap().is_none(), "it was put after a scan");
    for key in 1..4 {
        assert!(bucket.bytes(key) == Some(noise(6 << 12, key.into())));
    }
    recount(&bucket);
}

/// Whatever the index says is free, nothing before the value space is written or trimmed.
#[test]
fn what_is_outside_the_space_is_never_freed() {
    for table in [Table::Free, Table::ToFree] {
        let bucket = bucket();
        bucket.put(1, &noise(60_000, 1), Cut::Content).unwrap();
        let entry = (extent_key(9).to_vec(), encode_range(&(1..9)));
        bucket.index.map.lock().unwrap().insert((table, entry.0), entry.1);
        let done = match table {
            Table::Free => bucket.put(2, &noise(60_000, 2), Cut::Content).err(),
            _ => bucket.values.trim_some(100).err(),
        };
        assert!(matches!(done, Some(ValueError::OutsideSpace(_))), "{done:?}");
    }
}

/// A run that the range lies in is not an entry without bytes, which no record can hold.
#[test]
fn a_range_without_bytes_has_no_entries() {
    let bucket = bucket();
    bucket.put(1, &noise(60_000, 5), Cut::Fixed).unwrap();
    let value = bucket.value(1).unwrap();
    for at in [0, 9, 4096, 59_999, 60_000] {
        assert_eq!(bucket.values.slice(&value, &(at..at)).unwrap(), [], "{at}");
    }
}

#[test]
fn a_copied_range_holds_what_it_has_and_no_more() {
    let bucket = bucket();
    let bytes = noise(60_000, 1);
    bucket.put(1, &bytes, Cut::Content).unwrap();
    bucket.copy_range(1, 2, b"head", 20_001..20_900).unwrap();
    bucket.copy_range(1, 3, b"", 0..60_000).unwrap();
    bucket.copy_range(1, 4, b"", 1..59_999).unwrap();
    recount(&bucket);
    bucket.delete(&[1, 3]).unwrap();
    bucket.trim_all();
    recount(&bucket);
    assert!(bucket.bytes(4).unwrap() == bytes[1..59_999]);
    bucket.delete(&[4]).unwrap();
    bucket.trim_all();
    assert_eq!(bucket.bytes(2).unwrap(), [b"head", &bytes[20_001..20_900]].concat());
    assert!(recount(&bucket).named < 30);
}

#[test]
fn a_completed_upload_moves_nothing() {
    let bucket = bucket();
    let parts: Vec<Vec<u8>> = [50_000, 400, 7000, 90_000]
        .into_iter()
        .map(|length| noise(length, length as u64))
        .collect();
    for (number, part) in (0..).zip(&parts) {
        bucket.put_part(number, part, Cut::Content).unwrap();
    }
    let chunks = recount(&bucket).named;
    bucket.complete(1).unwrap();
    let usage = recount(&bucket);
    assert!(usage.named < chunks + 20, "blocks of the list");
    assert_eq!(usage.shared_ranges, 0);
    assert!(bucket.bytes(1) == Some(parts.concat()));
    bucket.delete(&[1]).unwrap();
    bucket.trim_all();
    assert_eq!(recount(&bucket).named, 0);
}

/// Copies that are appended to, again and again, grow deeper; then their bytes are to be written.
#[test]
fn a_list_that_is_too_deep_is_refused() {
    let bucket = bucket();
    bucket.put(1, &noise(3000, 1), Cut::Content).unwrap();
    let mut length = 3000;
    let refused = (0..200).find_map(|round| {
        let (from, to) = (1 + round % 2, 2 - round % 2);
        let head = noise(600, 7 + u64::from(round));
        let error = bucket.copy_range(from, to, &head, 0..length).err();
        length += 600;
        error
    });
    assert!(matches!(refused, Some(ValueError::TooDeep)), "{refused:?}");
    bucket.trim_all();
    recount(&bucket);
}

#[test]
fn a_space_without_addresses_is_an_error_that_ends_with_a_deletion() {
    let bucket = Bucket::new(SMALL, 400 << 12);
    let full = (0..200).find_map(|key| bucket.put(key, &noise(9000, key.into()), Cut::Fixed).err());
    assert!(matches!(full, Some(ValueError::NoAddresses { .. })), "{full:?}");
    recount(&bucket);
    // Every second one: what is free is in pieces, and all of it can be used.
    let keys: Vec<u8> = (0..200).filter(|key| key % 2 == 0).collect();
    bucket.delete(&keys).unwrap();
    bucket.trim_all();
    let free = recount(&bucket).free;
    assert!(free > 100);
    let bytes = noise((free - 20) as usize * 4096, 3);
    bucket.put(0, &bytes, Cut::Fixed).unwrap();
    assert!(bucket.bytes(0) == Some(bytes));
    recount(&bucket);
}
