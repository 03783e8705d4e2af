//! A store without room: puts fail, deletions go on, and what they free is written again.

use store::RequestError;

use super::bucket::{Bucket, Cut};
use super::recount::recount;
use crate::values::ValueError;
use crate::values::limits::Limits;

/// Bytes that do not compress.
fn random(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn length_of(key: u8) -> usize {
    if key.is_multiple_of(2) { 3 << 20 } else { 700_000 }
}

#[test]
fn a_full_store_is_emptied_by_deletions_and_filled_again() {
    let bucket = Bucket::new(Limits::OF_BUCKETS, 1 << 30);
    let mut counts = Vec::new();
    for round in 0..3_u64 {
        let put = |key: u8| {
            let length = length_of(key);
            bucket.put(key, &random(length, round << 8 | u64::from(key)), Cut::Fixed)
        };
        let Some((key, full)) = (0..100).find_map(|key| put(key).err().map(|error| (key, error)))
        else {
            panic!("a store of 64 MiB takes more than 100 MiB");
        };
        assert!(matches!(full, ValueError::Volume(RequestError::NoSpace)), "{full:?}");
        recount(&bucket);
        let last = key - 1;
        assert!(bucket.bytes(last) == Some(random(length_of(last), round << 8 | u64::from(last))));
        bucket.delete(&(0..100).collect::<Vec<u8>>()).unwrap();
        bucket.trim_all();
        assert_eq!(recount(&bucket).named, 0);
        counts.push(key);
    }
    assert!(counts[0] > 20 && counts[2] + 3 >= counts[0], "{counts:?} values were put");
}
