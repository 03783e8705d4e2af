//! A bucket is a map from fingerprint to PBN, as far as its page goes.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof, proptest};

use super::values::{fingerprint, pbn};
use crate::bucket::{self, CAPACITY, Full, TAG_BYTE};
use crate::page::Page;
use crate::units::{Fingerprint, PageId, Pbn, TreeId};

#[derive(Clone, Debug)]
enum Step {
    Push(Fingerprint, Pbn),
    Find(Fingerprint),
    EndSegment,
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
        200 => close_fingerprint().prop_map(Step::Find),
        5 => proptest::strategy::Just(Step::EndSegment),
        1 => proptest::strategy::Just(Step::Clear),
    ]
}

proptest! {
    #[test]
    fn a_bucket_behaves_like_a_map(steps in vec(step(), 0..600)) {
        let mut page = empty();
        let mut model: HashMap<Fingerprint, Pbn> = HashMap::new();
        let mut ends = false;
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
                Step::Find(fingerprint) => {
                    let found = bucket::find(&page, &fingerprint);
                    prop_assert_eq!(found, model.get(&fingerprint).copied());
                }
                Step::EndSegment => {
                    bucket::set_ends_segment(&mut page);
                    ends = true;
                }
                Step::Clear => {
                    bucket::clear(&mut page);
                    model.clear();
                    ends = false;
                }
            }
            prop_assert_eq!(bucket::len(&page), model.len());
            prop_assert_eq!(bucket::is_empty(&page), model.is_empty());
            prop_assert_eq!(bucket::ends_segment(&page), ends);
        }
        let listed = (0..bucket::len(&page)).map(|slot| bucket::entry(&page, slot));
        prop_assert_eq!(listed.collect::<HashMap<_, _>>(), model);
    }

    #[test]
    fn what_is_taken_back_is_told_from_what_is_stored(pbn in pbn()) {
        let pbn = Pbn(pbn.0 % (1 << 47));
        prop_assert_eq!(bucket::young_pbn(pbn), (pbn, false));
        prop_assert_eq!(bucket::young_pbn(bucket::taken_back(pbn)), (pbn, true));
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
