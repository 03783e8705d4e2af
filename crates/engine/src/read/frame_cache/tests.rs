use std::collections::BTreeMap;

use format::frame::{FRAME_HEADER_BYTES, FrameHeader, check_of, write_header};
use format::record::Change;
use format::units::{Codec, Fingerprint, FrameCheck, Pba, Pbn};
use proptest::prelude::{any, prop_oneof, proptest};
use proptest::strategy::Strategy;

use super::{FrameCache, Ticket, cost_bytes};

/// A frame of `pbn` whose payload is of `fill`.
fn frame(pbn: u64, fill: u8) -> Vec<u8> {
    let stored_bytes = 512;
    let mut frame = vec![fill; FRAME_HEADER_BYTES + stored_bytes as usize];
    let (codec, plain_bytes) = (Codec::Raw, stored_bytes);
    let (pbn, domain) = (Pbn(pbn), Default::default());
    write_header(&mut frame, &FrameHeader { codec, stored_bytes, plain_bytes, pbn, domain });
    frame
}

fn read(cache: &mut FrameCache, pbn: u64, fill: u8) {
    let ticket = cache.ticket();
    cache.expect(Pbn(pbn), ticket);
    cache.arrive(Pbn(pbn), ticket, Some(&frame(pbn, fill)));
}

fn forgotten(pbn: u64) -> Change {
    Change::Forget { pbn: Pbn(pbn), fingerprint: Fingerprint::default() }
}

fn moved(pbn: u64, frame: &[u8]) -> Change {
    let length_bytes = frame.len() as u32;
    let to = Pba { length_bytes, check: check_of(frame), ..Pba::default() };
    Change::Move { pbn: Pbn(pbn), to, fingerprint: None }
}

/// Room for so many frames of the tests.
fn cache_of(frames: u64) -> FrameCache {
    FrameCache::new(frames * cost_bytes(frame(0, 0).len()))
}

#[test]
fn a_frame_is_had_until_its_chunk_is_forgotten_or_stored_otherwise() {
    let mut cache = cache_of(10);
    read(&mut cache, 7, 1);
    cache.settle(&moved(7, &frame(7, 1)));
    assert_eq!(
        cache.get(Pbn(7)).as_deref().map(|f| &**f),
        Some(&frame(7, 1)[..]),
        "only its place is another"
    );
    cache.settle(&moved(7, &frame(7, 2)));
    assert!(cache.get(Pbn(7)).is_none());
    read(&mut cache, 7, 2);
    cache.settle(&forgotten(8));
    assert!(cache.get(Pbn(7)).is_some());
    cache.settle(&forgotten(7));
    assert!(cache.get(Pbn(7)).is_none() && cache.resident_bytes() == 0);
}

#[test]
fn a_frame_that_was_read_before_its_name_changed_is_not_let_in() {
    let mut cache = cache_of(10);
    let early = cache.ticket();
    cache.expect(Pbn(7), early);
    cache.settle(&forgotten(7));
    // The PBN is another chunk's by now, and that is being read, too.
    let late = cache.ticket();
    cache.expect(Pbn(7), late);
    cache.arrive(Pbn(7), early, Some(&frame(7, 1)));
    assert!(cache.get(Pbn(7)).is_none());
    cache.arrive(Pbn(7), late, Some(&frame(7, 2)));
    assert_eq!(cache.get(Pbn(7)).as_deref().map(|f| &**f), Some(&frame(7, 2)[..]));
}

#[test]
fn what_did_not_come_is_expected_no_more() {
    let mut cache = cache_of(10);
    let ticket = cache.ticket();
    cache.expect(Pbn(7), ticket);
    cache.arrive(Pbn(7), ticket, None);
    cache.arrive(Pbn(7), ticket, Some(&frame(7, 1)));
    assert!(cache.get(Pbn(7)).is_none() && cache.coming.is_empty());
}

#[test]
fn who_reads_everything_once_pushes_out_nothing_that_is_read_again() {
    let mut cache = cache_of(100);
    for round in 0..3 {
        for pbn in 0..60 {
            if cache.get(Pbn(pbn)).is_none() {
                assert_eq!(round, 0);
                read(&mut cache, pbn, 1);
            }
        }
    }
    (1000..3000).for_each(|pbn| read(&mut cache, pbn, 1));
    assert!((0..60).all(|pbn| cache.get(Pbn(pbn)).is_some()));
}

#[test]
fn what_comes_back_soon_stays_longer_than_what_does_not() {
    let mut cache = cache_of(100);
    (0..150).for_each(|pbn| read(&mut cache, pbn, 1));
    assert!(cache.get(Pbn(0)).is_none());
    let returned = 40..50;
    returned.clone().for_each(|pbn| read(&mut cache, pbn, 1));
    (1000..1200).for_each(|pbn| read(&mut cache, pbn, 1));
    assert!(returned.into_iter().all(|pbn| cache.get(Pbn(pbn)).is_some()));
}

/// It was found elsewhere, and verified, while it was being read.
#[test]
fn a_frame_that_is_kept_while_it_is_expected_counts_once() {
    let mut cache = cache_of(10);
    let ticket = cache.ticket();
    cache.expect(Pbn(7), ticket);
    assert!(cache.keep(Pbn(7), &frame(7, 1)).is_some());
    assert!(cache.arrive(Pbn(7), ticket, Some(&frame(7, 1))).is_none());
    assert_eq!(cache.resident_bytes(), cost_bytes(frame(7, 1).len()));
    cache.settle(&forgotten(7));
    assert_eq!(cache.resident_bytes(), 0);
}

#[test]
fn no_memory_is_no_cache() {
    let mut cache = FrameCache::new(0);
    read(&mut cache, 1, 1);
    assert!(cache.get(Pbn(1)).is_none() && cache.coming.is_empty() && cache.len() == 0);
}

#[test]
fn what_a_frame_costs_is_more_than_it_is_long_and_not_much_more() {
    for length_bytes in 16..70_000 {
        let cost = cost_bytes(length_bytes) as usize;
        assert!(cost > length_bytes + 16 && cost <= length_bytes + length_bytes / 4 + 224);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Expect(u64),
    /// The oldest that is under way comes, sound or not at all.
    Arrive(bool),
    Get(u64),
    /// It was verified by what the tables mean now.
    Keep(u64),
    Forget(u64),
    /// With other bytes, or only to another place.
    Move(u64, bool),
    /// Others have the memory of so many frames.
    Lend(u64),
    /// So many frames go.
    GiveUp(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pbn = || 0..12_u64;
    let step = prop_oneof![
        4 => pbn().prop_map(Step::Expect),
        4 => any::<bool>().prop_map(Step::Arrive),
        4 => pbn().prop_map(Step::Get),
        2 => pbn().prop_map(Step::Keep),
        1 => pbn().prop_map(Step::Forget),
        1 => (pbn(), any::<bool>()).prop_map(|(pbn, other)| Step::Move(pbn, other)),
        1 => (0..12_u64).prop_map(Step::Lend),
        1 => (0..4_u64).prop_map(Step::GiveUp),
    ];
    proptest::collection::vec(step, 1..300)
}

proptest! {
    /// The model is what the tables mean by each PBN: a number that every change of meaning raises.
    #[test]
    fn what_is_had_is_what_the_tables_mean_and_the_memory_is_bounded(
        steps in steps(),
        frames in 1..10_u64,
    ) {
        let mut cache = cache_of(frames);
        let each_bytes = cost_bytes(frame(0, 0).len());
        let mut lent_bytes = 0;
        let mut meant: BTreeMap<u64, u8> = BTreeMap::new();
        let mut under_way: Vec<(u64, Ticket, u8)> = Vec::new();
        for step in steps {
            match step {
                Step::Expect(pbn) => {
                    let ticket = cache.ticket();
                    cache.expect(Pbn(pbn), ticket);
                    under_way.push((pbn, ticket, *meant.entry(pbn).or_default()));
                }
                Step::Arrive(sound) if !under_way.is_empty() => {
                    let (pbn, ticket, fill) = under_way.remove(0);
                    let comes = sound && cache.is_expected(Pbn(pbn), ticket);
                    let before_bytes = cache.resident_bytes();
                    cache.arrive(Pbn(pbn), ticket, sound.then_some(&frame(pbn, fill)));
                    let most_bytes = cache.bytes_max().saturating_sub(lent_bytes);
                    match comes && most_bytes >= each_bytes {
                        true => {
                            assert!(cache.contains(Pbn(pbn)));
                            assert!(cache.resident_bytes() <= most_bytes);
                        }
                        false => assert_eq!(cache.resident_bytes(), before_bytes),
                    }
                }
                Step::Arrive(_) => {}
                Step::Get(pbn) => {
                    let expected = frame(pbn, *meant.entry(pbn).or_default());
                    let had = cache.get(Pbn(pbn));
                    assert!(had.is_none_or(|had| had[..] == expected[..]));
                }
                Step::Keep(pbn) => {
                    let sound = frame(pbn, *meant.entry(pbn).or_default());
                    let kept = cache.keep(Pbn(pbn), &sound);
                    assert!(kept.is_none_or(|kept| kept[..] == sound[..]));
                }
                Step::Forget(pbn) => {
                    *meant.entry(pbn).or_default() += 1;
                    cache.settle(&forgotten(pbn));
                }
                Step::Lend(frames) => {
                    lent_bytes = frames * each_bytes;
                    cache.lend(lent_bytes);
                }
                Step::GiveUp(frames) => {
                    let left_bytes = cache.resident_bytes().saturating_sub(frames * each_bytes);
                    cache.give_up(frames * each_bytes);
                    assert_eq!(cache.resident_bytes(), left_bytes);
                }
                Step::Move(pbn, other) => {
                    *meant.entry(pbn).or_default() += u8::from(other);
                    cache.settle(&moved(pbn, &frame(pbn, meant[&pbn])));
                }
            }
            assert!(cache.resident_bytes() <= cache.bytes_max());
            let counted: u64 = cache.held.values().map(|held| cost_bytes(held.frame.len())).sum();
            assert_eq!(counted, cache.resident_bytes());
            assert!(cache.coming.len() <= under_way.len());
        }
        for (pbn, ticket, _) in under_way {
            cache.arrive(Pbn(pbn), ticket, None);
        }
        assert!(cache.coming.is_empty());
    }
}

#[test]
fn a_frame_without_a_known_check_is_at_any_place_of_its_length() {
    let mut cache = cache_of(10);
    read(&mut cache, 7, 1);
    let length_bytes = frame(7, 1).len() as u32;
    let to = Pba { length_bytes, check: FrameCheck::UNKNOWN, ..Pba::default() };
    cache.settle(&Change::Move { pbn: Pbn(7), to, fingerprint: None });
    assert!(cache.get(Pbn(7)).is_some());
}
