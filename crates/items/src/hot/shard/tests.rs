//! A shard against a plain map: what it answers is what was kept last; its bytes are in bounds.

use std::collections::HashMap;
use std::hash::BuildHasher;

use memcached::Item;
use objects::bucket::{Bucket, BucketOptions, Moment, OpenOptions};
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use store::{CreateOptions, Options, Store};

use super::{NewEntry, Shard, Where};

const PARTS: usize = 3;
const BYTES_MAX: usize = 20_000;

#[derive(Clone, Debug)]
enum Step {
    Insert {
        key: u8,
        length: usize,
    },
    Look {
        key: u8,
    },
    Remove {
        key: u8,
    },
    /// Another door has changed something.
    Age {
        part: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![4 => 0..300_usize, 1 => 0..12_000_usize];
    prop_oneof![
        4 => (any::<u8>(), length).prop_map(|(key, length)| Step::Insert { key, length }),
        6 => any::<u8>().prop_map(|key| Step::Look { key: key / 8 }),
        1 => any::<u8>().prop_map(|key| Step::Remove { key }),
        1 => (0..PARTS).prop_map(|part| Step::Age { part }),
    ]
}

/// Moments are made by buckets only, by changing something.
fn moments(count: usize) -> Vec<Moment> {
    let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 1).unwrap();
    let store = Store::open_in_memory(&disk, Options::default()).unwrap();
    let volume = std::sync::Arc::new(store.create_volume("bucket", 1 << 50).unwrap());
    Bucket::create(volume.clone(), &BucketOptions::new([7; 16])).unwrap();
    let bucket = Bucket::open(volume, &OpenOptions::default()).unwrap();
    let moment = |_| {
        let put = bucket.put(b"key", objects::bucket::PutOptions::new(1)).unwrap();
        put.finish(objects::bucket::FinishOptions::new([0; 16])).unwrap();
        bucket.moment(b"key").unwrap()
    };
    let moments = (0..count).map(moment).collect();
    drop(bucket);
    store.close().unwrap();
    moments
}

fn place_of(key: u8) -> Where {
    let hasher = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default();
    Where { hash: hasher.hash_one(key), part: usize::from(key) % PARTS }
}

fn entry(key: u8, length: usize) -> NewEntry {
    NewEntry::new(&[key], Item { cas: length as u64, ..Item::default() }, 7, &vec![key; length])
}

#[test]
fn a_shard_answers_what_was_kept_last_within_its_bounds() {
    let moments = moments(200);
    proptest!(|(steps in vec(step(), 1..300))| {
        let mut shard = Shard::new(BYTES_MAX, PARTS);
        let mut model: HashMap<u8, usize> = HashMap::new();
        let mut now = [0; PARTS];
        (0..PARTS).for_each(|part| shard.set_moment(Where { hash: 0, part }, moments[0]));
        for step in steps {
            match step {
                Step::Insert { key, length } => {
                    shard.insert(place_of(key), &[key], entry(key, length));
                    model.insert(key, length);
                }
                Step::Look { key } => {
                    let at = moments[now[usize::from(key) % PARTS]];
                    let found = shard.valid(place_of(key), &[key], at);
                    let found = found.map(|hot| (hot.item.cas, hot.value.unwrap().to_vec()));
                    if let Some((cas, value)) = found {
                        let length = model[&key];
                        assert_eq!((cas, value), (length as u64, vec![key; length]));
                    }
                }
                Step::Remove { key } => {
                    shard.remove(place_of(key), &[key]);
                    model.remove(&key);
                }
                Step::Age { part } => {
                    now[part] += 1;
                    shard.set_moment(Where { hash: 0, part }, moments[now[part] % moments.len()]);
                    now[part] %= moments.len();
                    model.retain(|key, _| usize::from(*key) % PARTS != part);
                }
            }
            let bytes = shard.small.bytes + shard.main.bytes;
            assert!(bytes <= BYTES_MAX, "{bytes} bytes");
            let sum: usize = shard.numbers.iter().map(|n| shard.entries.of(*n).bytes()).sum();
            assert_eq!(bytes, sum, "the queues count what is there");
        }
    });
}

#[test]
fn what_is_wanted_stays_and_a_scan_passes_by() {
    let mut shard = Shard::new(40_000, 1);
    let at = moments(1)[0];
    let place = |key: u32| {
        let hasher = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default();
        Where { hash: hasher.hash_one(key), part: 0 }
    };
    shard.set_moment(place(0), at);
    let insert = |shard: &mut Shard, key: u32| {
        let name = key.to_le_bytes();
        shard.insert(place(key), &name, NewEntry::new(&name, Item::default(), 1, &[0; 100]));
    };
    for key in 0..20 {
        insert(&mut shard, key);
        for _ in 0..3 {
            shard.valid(place(key), &key.to_le_bytes(), at).unwrap();
        }
    }
    (1000..5000).for_each(|key| insert(&mut shard, key));
    for key in 0..20_u32 {
        assert!(shard.valid(place(key), &key.to_le_bytes(), at).is_some(), "{key} was wanted");
    }
}

/// An item takes little beside its key and value.
const _: () = assert!(super::ENTRY_BYTES <= 136);
