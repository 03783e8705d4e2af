//! Threads that put, copy, delete, read and trim in one bucket.

use std::sync::{Barrier, Mutex};
use std::thread;

use super::bucket::{Bucket, Cut, SMALL, noise};
use super::recount::recount;
use crate::values::ValueError;

const THREADS: u8 = 4;
const ROUNDS: u64 = 150;

/// What a key holds, if anything; its lock is what a bucket calls the lock of the key.
type Key = Mutex<Option<Vec<u8>>>;

fn work(bucket: &Bucket, keys: &[Key], seed: u64) -> Result<(), ValueError> {
    let mut state = seed;
    let mut dice = |end: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(seed | 1);
        (state >> 33) % end
    };
    for round in 0..ROUNDS {
        let key = dice(keys.len() as u64) as u8;
        let mut held = keys[usize::from(key)].lock().unwrap();
        match dice(8) {
            0..3 => {
                let length = [300, 5000, 40_000][dice(3) as usize];
                let bytes = noise(length, seed << 32 | round);
                bucket.put(key, &bytes, Cut::Content)?;
                *held = Some(bytes);
            }
            3 => {
                bucket.delete(&[key])?;
                *held = None;
            }
            4 if key > 0 => {
                // Locks in one order: the lower key second would wait for ever, so it is tried.
                if let Ok(from) = keys[usize::from(key) - 1].try_lock()
                    && from.is_some()
                {
                    bucket.copy(key - 1, key)?;
                    held.clone_from(&from);
                }
            }
            5 => {
                let reader = bucket.reader_or_raced(key);
                drop(held);
                bucket.values.trim_some(dice(80))?;
                if let Some((mut reader, expected)) = reader {
                    let mut out = vec![0; expected.len()];
                    reader.read_at(0, &mut out)?;
                    assert!(out == expected, "a pinned value stays as it was");
                }
            }
            _ => {
                drop(held);
                bucket.values.trim_some(dice(80))?;
            }
        }
    }
    Ok(())
}

#[test]
fn threads_side_by_side_leak_and_lose_nothing() {
    let bucket = Bucket::new(SMALL, 32 << 20);
    let keys: Vec<Key> = (0..6).map(|_| Key::default()).collect();
    thread::scope(|scope| {
        for seed in 1..=THREADS {
            let (bucket, keys) = (&bucket, &keys);
            scope.spawn(move || work(bucket, keys, seed.into()).unwrap());
        }
    });
    recount(&bucket);
    for (key, held) in (0..).zip(&keys) {
        assert!(bucket.bytes(key) == *held.lock().unwrap());
    }
    bucket.delete(&[0, 1, 2, 3, 4, 5]).unwrap();
    bucket.trim_all();
    let bucket = bucket.reopened();
    bucket.trim_all();
    let usage = recount(&bucket);
    assert_eq!((usage.named, usage.to_free, usage.shared_ranges), (0, 0, 0));
}

/// Both find that two name the chunks; one of them must see that the other has gone.
#[test]
fn the_last_of_two_that_are_deleted_at_once_frees() {
    let bucket = Bucket::new(SMALL, 32 << 20);
    for round in 0..300 {
        bucket.put(1, &noise(9000, round), Cut::Fixed).unwrap();
        bucket.copy(1, 2).unwrap();
        let both = Barrier::new(2);
        thread::scope(|scope| {
            for key in [1, 2] {
                let (bucket, both) = (&bucket, &both);
                scope.spawn(move || {
                    both.wait();
                    bucket.delete(&[key]).unwrap();
                });
            }
        });
        assert_eq!(recount(&bucket).named, 0, "round {round}");
        bucket.trim_all();
    }
}
