//! A bucket is a map from fingerprint to PBN, as far as its page goes.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::values::{fingerprint, pbn};
use crate::bucket::{self, CAPACITY, Full, TAG_BYTE};
use crate::page::Page;
use crate::units::{Fingerprint, PageId, Pbn, TreeId};

#[derive(Clone, Debug)]
enum Step {
    Push(Fingerprint, Pbn),
    Remove(Fingerprint),
    Find(Fingerprint),
    SetOverflowed(bool),
    Clear,
}

fn empty() -> Page {
    Page::empty(PageId { tree: TreeId::HASH_PBN, level: 0, index: 0 })
}

/// One of 400 fingerprints that share few tags, so that tags collide and steps meet.
fn close_fingerprint() -> impl Strategy<Value = Fingerprint> {
    (0..4u8, 0..100u8).prop_map(|(tag, number)| {
        let mut bytes = [number; 32];
        bytes[TAG_BYTE] = tag;
        bytes[31] = number ^ tag;
        Fingerprint(bytes)
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        400 => (close_fingerprint(), pbn()).prop_map(|(fp, pbn)| Step::Push(fp, pbn)),
        100 => close_fingerprint().prop_map(Step::Remove),
        200 => close_fingerprint().prop_map(Step::Find),
        5 => any::<bool>().prop_map(Step::SetOverflowed),
        1 => proptest::strategy::Just(Step::Clear),
    ]
}

proptest! {
    #[test]
    fn a_bucket_behaves_like_a_map(steps in vec(step(), 0..600)) {
        let mut page = empty();
        let mut model: HashMap<Fingerprint, Pbn> = HashMap::new();
        let mut overflowed = false;
        for step in steps {
            match step {
                Step::Push(fingerprint, pbn) => {
                    if model.contains_key(&fingerprint) {
                        continue;
                    }
                    let pushed = bucket::push(&mut page, &fingerprint, pbn);
                    if model.len() == CAPACITY {
                        prop_assert_eq!(pushed, Err(Full));
                    } else {
                        prop_assert_eq!(pushed, Ok(()));
                        model.insert(fingerprint, pbn);
                    }
                }
                Step::Remove(fingerprint) => {
                    let removed = bucket::remove(&mut page, &fingerprint);
                    prop_assert_eq!(removed, model.remove(&fingerprint));
                }
                Step::Find(fingerprint) => {
                    let found = bucket::find(&page, &fingerprint);
                    prop_assert_eq!(found, model.get(&fingerprint).copied());
                }
                Step::SetOverflowed(value) => {
                    bucket::set_overflowed(&mut page, value);
                    overflowed = value;
                }
                Step::Clear => {
                    bucket::clear(&mut page);
                    model.clear();
                    overflowed = false;
                }
            }
            prop_assert_eq!(bucket::len(&page), model.len());
            prop_assert_eq!(bucket::is_empty(&page), model.is_empty());
            prop_assert_eq!(bucket::overflowed(&page), overflowed);
        }
        let listed = (0..bucket::len(&page)).map(|slot| bucket::entry(&page, slot));
        prop_assert_eq!(listed.collect::<HashMap<_, _>>(), model);
    }

    #[test]
    fn removing_all_leaves_no_trace(fingerprints in vec(fingerprint(), 0..CAPACITY)) {
        let mut page = empty();
        for fingerprint in &fingerprints {
            bucket::push(&mut page, fingerprint, Pbn(1)).unwrap();
        }
        for fingerprint in &fingerprints {
            prop_assert_eq!(bucket::remove(&mut page, fingerprint), Some(Pbn(1)));
        }
        prop_assert!(page == empty());
    }

    #[test]
    fn hostile_buckets_are_searched_within_bounds(
        payload in vec(any::<u8>(), 4064),
        fingerprint in fingerprint(),
    ) {
        let mut page = empty();
        page.payload_mut().copy_from_slice(&payload);
        let _ = bucket::find(&page, &fingerprint);
        (0..bucket::len(&page)).for_each(|slot| {
            let _ = bucket::entry(&page, slot);
        });
        if bucket::remove(&mut page, &fingerprint).is_none() {
            prop_assert_eq!(&page.payload()[..], &payload[..]);
        }
        let full = bucket::len(&page) == CAPACITY;
        prop_assert_eq!(bucket::push(&mut page, &fingerprint, Pbn(9)).is_err(), full);
    }
}

#[test]
fn every_slot_of_a_full_bucket_is_found() {
    let numbered = |number: usize| {
        let mut bytes = [0; 32];
        bytes[0] = number as u8;
        Fingerprint(bytes)
    };
    let mut page = empty();
    for number in 0..CAPACITY {
        bucket::push(&mut page, &numbered(number), Pbn(number as u64 + 1)).unwrap();
    }
    for number in 0..CAPACITY {
        assert_eq!(bucket::find(&page, &numbered(number)), Some(Pbn(number as u64 + 1)));
    }
    assert_eq!(bucket::find(&page, &numbered(CAPACITY)), None);
}
