//! A store without room: puts are refused, deletions go on, and what they free is written again.

use store::WriteRoom;

use super::rig::{DELETE, LITTLE, NOW_MS, Shorthand, check_whole, create, store_of};
use crate::bucket::{Bucket, Condition, PutOptions};

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

#[test]
fn a_full_store_is_emptied_by_deletions_and_filled_again_ten_times() {
    let store = store_of(64 << 20);
    // What deletions need: log, and the steps of a merge.
    store.client().keep_for_release(WriteRoom::of_chunks(1500, 1500));
    let (volume, mut bucket) = create(&store, "bucket");
    let mut counts = Vec::new();
    for round in 0..10_u64 {
        let length_of = |number: u64| [5000, 100_000, 1_500_000][number as usize % 3];
        let put = |number: u64| {
            let bytes = random(length_of(number), round << 16 | number);
            bucket.put_with(&number.to_be_bytes(), &bytes, PutOptions::new(NOW_MS))
        };
        let Some((count, full)) =
            (0..1000).find_map(|number| put(number).err().map(|error| (number, error)))
        else {
            panic!("a store of 64 MiB takes more than 500 MiB");
        };
        assert!(full.is_no_space(), "{full:?}");
        // Shorter ones may fit still; then nothing does.
        let mut more = count;
        while bucket
            .put_with(&more.to_be_bytes(), &random(3000, more), PutOptions::new(NOW_MS))
            .is_ok()
        {
            more += 1;
        }
        let last = count - 1;
        let bytes = random(length_of(last), round << 16 | last);
        assert!(bucket.bytes(&last.to_be_bytes()) == Some(bytes));
        check_whole(&bucket);
        if round % 3 == 1 {
            drop(bucket);
            bucket = Bucket::open(volume.clone(), &LITTLE).unwrap();
        }
        let keys: Vec<[u8; 8]> = (0..more).map(u64::to_be_bytes).collect();
        let (some, others) = keys.split_at(keys.len() / 2);
        for key in some {
            assert!(bucket.delete(key, &Condition::None, DELETE).unwrap().is_some());
        }
        let others: Vec<_> = others.iter().map(|key| (&key[..], Condition::None)).collect();
        for deleted in bucket.delete_many(&others, DELETE).unwrap() {
            assert!(deleted.unwrap().is_some());
        }
        while !bucket.trim_some(100).unwrap().is_done {}
        assert_eq!(bucket.figures(), Default::default());
        check_whole(&bucket);
        counts.push(count);
    }
    assert!(counts[0] > 50 && counts[9] + 6 >= counts[0], "{counts:?} objects were put");
}
