//! Random puts, copies, deletions and crashes against a map of what each key holds.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};

use super::bucket::{Bucket, Cut, SMALL, noise};
use super::recount::recount;
use crate::index::Table;
use crate::values::ValueError;

#[derive(Clone, Debug)]
enum Step {
    Put {
        key: u8,
        length: usize,
        seed: u64,
        is_fixed: bool,
    },
    Part {
        key: u8,
        length: usize,
        seed: u64,
    },
    Complete {
        key: u8,
    },
    Delete {
        keys: Vec<u8>,
    },
    Copy {
        from: u8,
        to: u8,
    },
    CopyRange {
        from: u8,
        to: u8,
        head: usize,
        start: u16,
        end: u16,
    },
    GiveUp {
        length: usize,
    },
    Trim {
        entries: u64,
    },
    FreeReleased {
        entries: u64,
    },
    Reopen,
    /// The step after it stops at this `apply`.
    Crash {
        applies: u64,
        makes_last: bool,
    },
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![0..600_usize, 600..20_000_usize, 20_000..60_000_usize]
}

fn step() -> impl Strategy<Value = Step> {
    let key = || 0..5_u8;
    let seed = || 0..3_u64;
    prop_oneof![
        4 => (key(), length(), seed(), any::<bool>())
            .prop_map(|(key, length, seed, is_fixed)| Step::Put { key, length, seed, is_fixed }),
        2 => (0..3_u8, length(), seed())
            .prop_map(|(key, length, seed)| Step::Part { key, length, seed }),
        1 => key().prop_map(|key| Step::Complete { key }),
        2 => vec(key(), 1..3).prop_map(|mut keys| {
            keys.sort_unstable();
            keys.dedup();
            Step::Delete { keys }
        }),
        2 => (key(), key()).prop_map(|(from, to)| Step::Copy { from, to }),
        3 => (key(), key(), 0..700_usize, any::<u16>(), any::<u16>()).prop_map(
            |(from, to, head, start, end)| Step::CopyRange { from, to, head, start, end }
        ),
        1 => length().prop_map(|length| Step::GiveUp { length }),
        4 => (1..60_u64).prop_map(|entries| Step::Trim { entries }),
        4 => (1..60_u64).prop_map(|entries| Step::FreeReleased { entries }),
        1 => Just(Step::Reopen),
        3 => (1..8_u64, any::<bool>())
            .prop_map(|(applies, makes_last)| Step::Crash { applies, makes_last }),
    ]
}

/// What each key holds: objects, then parts.
type Held = BTreeMap<(Table, u8), Vec<u8>>;

/// Does a step; `held` is what the keys hold when it succeeds.
fn step_through(bucket: &Bucket, step: &Step, held: &mut Held) -> Result<(), ValueError> {
    let object = |key: u8| (Table::Objects, key);
    match step {
        Step::Put { key, length, seed, is_fixed } => {
            let bytes = noise(*length, *seed);
            bucket.put(*key, &bytes, if *is_fixed { Cut::Fixed } else { Cut::Content })?;
            held.insert(object(*key), bytes);
        }
        Step::Part { key, length, seed } => {
            let bytes = noise(*length, *seed);
            bucket.put_part(*key, &bytes, Cut::Content)?;
            held.insert((Table::Uploads, *key), bytes);
        }
        Step::Complete { key } => {
            bucket.complete(*key)?;
            let parts: Vec<Vec<u8>> =
                (0..3_u8).filter_map(|part| held.remove(&(Table::Uploads, part))).collect();
            held.insert(object(*key), parts.concat());
        }
        Step::Delete { keys } => {
            bucket.delete(keys)?;
            keys.iter().for_each(|key| drop(held.remove(&object(*key))));
        }
        Step::Copy { from, to } => {
            bucket.copy(*from, *to)?;
            if let Some(bytes) = held.get(&object(*from)).cloned() {
                held.insert(object(*to), bytes);
            }
        }
        Step::CopyRange { from, to, head, start, end } => {
            if let Some(bytes) = held.get(&object(*from)).cloned() {
                let (a, b) = (usize::from(*start), usize::from(*end));
                let (start, end) = (a.min(b).min(bytes.len()), a.max(b).min(bytes.len()));
                let head = noise(*head, 5);
                bucket.copy_range(*from, *to, &head, start as u64..end as u64)?;
                held.insert(object(*to), [&head, &bytes[start..end]].concat());
            }
        }
        Step::GiveUp { length } => {
            let mut writer = bucket.values.writer_with(Cut::Content.cutter());
            writer.write(&noise(*length, 4))?;
        }
        Step::Trim { entries } => drop(bucket.values.trim_some(*entries)?),
        Step::FreeReleased { entries } => drop(bucket.values.free_released(*entries)?),
        Step::Reopen | Step::Crash { .. } => (), // The caller does these.
    }
    Ok(())
}

fn holds(bucket: &Bucket, held: &Held) -> bool {
    let tables = [Table::Objects, Table::Uploads];
    let keys = tables.into_iter().flat_map(|table| (0..5_u8).map(move |key| (table, key)));
    keys.into_iter()
        .all(|(table, key)| bucket.bytes_of(table, key) == held.get(&(table, key)).cloned())
}

fn run(steps: Vec<Step>, space_bytes: u64) {
    let mut bucket = Bucket::new(SMALL, space_bytes);
    let mut held = Held::new();
    let mut is_armed = false;
    for step in steps {
        match step {
            Step::Reopen => {
                bucket = bucket.reopened();
                is_armed = false;
            }
            Step::Crash { applies, makes_last } => {
                bucket.index.stop.after(applies, makes_last);
                is_armed = true;
            }
            step => {
                let before = held.clone();
                let done = step_through(&bucket, &step, &mut held);
                if let Err(error) = done {
                    // A step that fails has done nothing; one that a crash ended all or nothing.
                    match error {
                        ValueError::NoAddresses { .. } | ValueError::TooDeep => (),
                        _ if is_armed => {
                            bucket = bucket.reopened();
                            is_armed = false;
                        }
                        error => panic!("{step:?}: {error}"),
                    }
                    held = before;
                    if !holds(&bucket, &held) {
                        // Its batch was made: the same step says what it came to.
                        let fresh = Bucket::new(SMALL, 64 << 20);
                        replay(&fresh, &held);
                        step_through(&fresh, &step, &mut held).unwrap();
                    }
                }
            }
        }
        if !is_armed {
            assert!(holds(&bucket, &held));
            recount(&bucket);
        }
    }
    bucket = bucket.reopened();
    assert!(holds(&bucket, &held));
    bucket.delete(&[0, 1, 2, 3, 4]).unwrap();
    for key in 0..3 {
        bucket.put_part(key, b"", Cut::Content).unwrap();
    }
    bucket.trim_all();
    let bucket = bucket.reopened();
    bucket.trim_all();
    let usage = recount(&bucket);
    assert_eq!((usage.named, usage.to_free, usage.shared_ranges), (0, 0, 0), "all is free again");
    assert!(bucket.index.entries(Table::Free).len() <= 1);
}

fn replay(bucket: &Bucket, held: &Held) {
    for ((table, key), bytes) in held {
        match table {
            Table::Uploads => bucket.put_part(*key, bytes, Cut::Fixed).unwrap(),
            _ => bucket.put(*key, bytes, Cut::Fixed).unwrap(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn every_chunk_is_in_one_state_whatever_happens(steps in vec(step(), 1..40)) {
        run(steps, 16 << 20);
    }

    #[test]
    fn every_chunk_is_in_one_state_where_addresses_are_few(steps in vec(step(), 1..40)) {
        run(steps, 2 << 20);
    }
}
