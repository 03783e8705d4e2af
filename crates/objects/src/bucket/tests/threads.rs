//! Many threads on one bucket.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::rig::{DELETE, NOW_MS, Shorthand, check_whole, create, noise, read_all, store_of};
use crate::bucket::{BucketError, Condition, CopyOptions, PutOptions};

#[test]
fn of_many_creators_of_a_key_one_wins() {
    let store = store_of(256 << 20);
    let (_, bucket) = create(&store, "bucket");
    for round in 0..20_u64 {
        let key = round.to_be_bytes();
        let wins = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (bucket, wins, key) = (bucket.clone(), &wins, &key);
                scope.spawn(move || {
                    let options =
                        PutOptions { condition: Condition::Absent, ..PutOptions::new(NOW_MS) };
                    match bucket.put_with(key, &noise(700, thread), options) {
                        Ok(_) => drop(wins.fetch_add(1, Ordering::SeqCst)),
                        Err(BucketError::ConditionFailed { .. }) => (),
                        Err(error) => panic!("{error}"),
                    }
                });
            }
        });
        assert_eq!(wins.into_inner(), 1);
    }
    assert_eq!(bucket.figures().objects, 20);
    check_whole(&bucket);
}

/// Puts, copies and deletions of few keys, readers and a trimmer beside them: a reader has the
/// bytes of one put, the counts are those of the records, and no quota is passed.
#[test]
fn threads_leave_a_whole_bucket() {
    let store = store_of(256 << 20);
    let (_, bucket) = create(&store, "bucket");
    bucket.set_quota(Some(900_000), DELETE.durability).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = |thread: u64| {
            let bucket = bucket.clone();
            move || {
                for round in 0..150_u64 {
                    let pick = round.wrapping_mul(7) + thread * 3;
                    let (key, other) = ([pick as u8 % 9], [pick as u8 % 7]);
                    let done = match pick % 5 {
                        0 => bucket.delete(&key, &Condition::None, DELETE).map(drop),
                        1 => bucket.copy(&other, &key, CopyOptions::new(NOW_MS)).map(drop),
                        _ => {
                            let bytes = vec![pick as u8; 400 + 40_000 * (pick as usize % 4)];
                            bucket.put_with(&key, &bytes, PutOptions::new(NOW_MS)).map(drop)
                        }
                    };
                    match done {
                        Ok(()) | Err(BucketError::NoSuchObject) => (),
                        Err(BucketError::QuotaExceeded { .. }) => (),
                        Err(error) => panic!("{error}"),
                    }
                    assert!(bucket.figures().object_bytes <= 900_000);
                }
            }
        };
        let writers: Vec<_> = (0..4).map(|thread| scope.spawn(writer(thread))).collect();
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                bucket.free_released(5).unwrap();
                bucket.trim_some(20).unwrap();
            }
        });
        scope.spawn(|| {
            for key in (0..9_u8).cycle() {
                if is_over.load(Ordering::SeqCst) {
                    break;
                }
                if let Some(reader) = bucket.get(&[key], &Condition::None, NOW_MS).unwrap() {
                    let bytes = read_all(reader);
                    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "bytes of one put");
                }
            }
        });
        let ends: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::SeqCst);
        assert!(ends.iter().all(Result::is_ok));
    });
    check_whole(&bucket);
}
