//! A volume with a quota never maps more than it, whatever is under way and wherever the power
//! goes; what is refused is what would, and nothing else.

use std::collections::BTreeMap;

use engine::{OpenVolume, RequestError, SnapshotRequest, Zone};

use crate::stand::{
    CHUNK, Dice, GIB, Hand, Holder, MIB, Opens, Stand, Wish, cases, check_clean, fresh, giving_back,
};

use proptest::prelude::*;

const LEAF_CHUNKS: u64 = 677;

fn at_quota() -> RequestError {
    RequestError::QuotaExceeded { volume: "v".to_owned() }
}

fn mapped(stand: &Stand, name: &str) -> u64 {
    let volumes = stand.client.volumes().unwrap();
    volumes.iter().find(|volume| volume.name == name).unwrap().mapped_bytes
}

fn try_write(
    stand: &Stand,
    volume: &OpenVolume,
    lba: u64,
    bytes: &[u8],
) -> Result<(), RequestError> {
    stand.client.write_at(volume, lba * CHUNK, bytes)
}

#[test]
fn a_volume_that_ends_inside_a_chunk_can_be_filled_within_a_quota_of_its_size() {
    let stand = Wish::default().stand();
    let size_bytes = 2 * CHUNK + 512;
    let volume = stand.volume("v", size_bytes);
    stand.client.set_quota("v", Some(size_bytes)).unwrap();
    stand.write(&volume, 0, &fresh(1, size_bytes));
    stand.flush();
    assert_eq!(mapped(&stand, "v"), 3 * CHUNK);
    check_clean(&stand.close());
}

#[test]
fn what_would_exceed_it_is_refused_and_all_else_goes_on() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 64 * MIB);
    let other = stand.volume("w", 64 * MIB);
    assert_eq!(stand.client.set_quota("v", Some(8 * CHUNK)).unwrap().quota_bytes, Some(8 * CHUNK));
    try_write(&stand, &volume, 0, &fresh(1, 6 * CHUNK)).unwrap();
    assert_eq!(try_write(&stand, &volume, 100, &fresh(2, 3 * CHUNK)), Err(at_quota()));
    try_write(&stand, &volume, 100, &fresh(2, 2 * CHUNK)).unwrap();
    // A part of a chunk maps all of it.
    assert_eq!(stand.client.write_at(&volume, 7 * CHUNK, &[1; 512]), Err(at_quota()));
    // Over what is mapped; the same content is no way around it, and other volumes have their own.
    try_write(&stand, &volume, 0, &fresh(3, 6 * CHUNK)).unwrap();
    stand.client.write_at(&volume, 512, &[1; 512]).unwrap();
    assert_eq!(try_write(&stand, &volume, 7, &fresh(3, CHUNK)), Err(at_quota()));
    try_write(&stand, &other, 0, &fresh(4, MIB)).unwrap();
    stand.trim(&volume, 0, 2 * CHUNK);
    try_write(&stand, &volume, 200, &fresh(5, 2 * CHUNK)).unwrap();
    assert_eq!(try_write(&stand, &volume, 202, &fresh(6, CHUNK)), Err(at_quota()));
    let stand = Wish::default().open(stand.cut_power_flushed(1));
    assert_eq!(mapped(&stand, "v"), 8 * CHUNK);
    let volume = stand.client.volume("v").unwrap();
    assert_eq!(try_write(&stand, &volume, 202, &fresh(6, CHUNK)), Err(at_quota()));
    stand.client.set_quota("v", Some(4 * CHUNK)).unwrap();
    try_write(&stand, &volume, 200, &fresh(7, 2 * CHUNK)).unwrap();
    stand.client.set_quota("v", None).unwrap();
    try_write(&stand, &volume, 300, &fresh(8, MIB)).unwrap();
    for too_little in [0, 1, CHUNK - 1] {
        let refused = stand.client.set_quota("v", Some(too_little)).unwrap_err();
        assert_eq!(refused, RequestError::BadQuota { chunk_bytes: CHUNK as u32 });
    }
    check_clean(&stand.close());
}

#[test]
fn snapshots_do_not_count_and_clones_have_none() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", MIB);
    stand.client.set_quota("v", Some(2 * CHUNK)).unwrap();
    try_write(&stand, &volume, 0, &fresh(1, 2 * CHUNK)).unwrap();
    let (volumes, name) = (vec!["v".to_owned()], "a".to_owned());
    stand.client.ask(SnapshotRequest { volumes, name, taken_unix_s: 7 }).unwrap();
    try_write(&stand, &volume, 0, &fresh(2, 2 * CHUNK)).unwrap();
    assert_eq!(try_write(&stand, &volume, 2, &fresh(3, CHUNK)), Err(at_quota()));
    assert_eq!(stand.client.clone_volume("v@a", "c").unwrap().quota_bytes, None);
    let clone = stand.client.volume("c").unwrap();
    try_write(&stand, &clone, 2, &fresh(3, CHUNK)).unwrap();
    let of_a_snapshot = stand.client.set_quota("v@a", Some(CHUNK)).unwrap_err();
    assert_eq!(of_a_snapshot, RequestError::NotAVolume { name: "v@a".to_owned() });
    check_clean(&stand.close());
}

/// The room of a large trim comes back in the background, and a write waits for it.
#[test]
fn a_write_waits_for_what_a_trim_gives_back() {
    let stand = Wish::default().stand();
    let leaves = 60;
    let volume = stand.volume("v", leaves * LEAF_CHUNKS * CHUNK);
    stand.client.set_quota("v", Some(leaves * CHUNK)).unwrap();
    for round in 0..3 {
        for leaf in 0..leaves {
            try_write(&stand, &volume, leaf * LEAF_CHUNKS, &fresh(round, CHUNK)).unwrap();
        }
        assert_eq!(try_write(&stand, &volume, 1, &fresh(9, CHUNK)), Err(at_quota()));
        stand.trim(&volume, 0, leaves * LEAF_CHUNKS * CHUNK);
    }
    check_clean(&stand.close());
}

#[test]
fn writes_at_the_quota_have_their_leaves_read_at_once_and_enter_in_order() {
    let wish = Wish::default();
    let mut hand = Hand::new(&wish);
    let leaves = 32;
    let volume = hand.volume("v", 2 * leaves * LEAF_CHUNKS * CHUNK);
    let at = |leaf| leaf * LEAF_CHUNKS * CHUNK;
    for leaf in 0..leaves {
        hand.write(&volume, at(leaf), &fresh(leaf, CHUNK));
    }
    let (mut hand, held) = Holder::open(&wish, hand.close());
    let volume = hand.beside(|client| client.volume("v").unwrap());
    hand.beside(move |client| client.set_quota("v", Some(leaves * CHUNK))).unwrap();
    // The pages above the leaves are here.
    hand.read(&volume, at(leaves), CHUNK as u32);
    held.hold(Zone::Tables);
    let over: Vec<u64> = (0..leaves)
        .map(|leaf| hand.write(&volume, at(leaf), &fresh(50 + leaf, CHUNK)).unwrap())
        .collect();
    // Over what the last of them writes.
    let last = hand.write(&volume, at(leaves - 1), &fresh(99, CHUNK)).unwrap();
    let new = hand.write(&volume, at(leaves), &fresh(98, CHUNK)).unwrap();
    hand.settle();
    assert_eq!(held.count() as u64, leaves);
    held.let_go();
    assert_eq!(hand.wait(new).unwrap_err(), at_quota());
    for tag in over.into_iter().chain([last]) {
        hand.wait(tag).unwrap();
    }
    assert_eq!(hand.read(&volume, at(leaves - 1), CHUNK as u32), fresh(99, CHUNK));
    assert_eq!(hand.read(&volume, at(0), CHUNK as u32), fresh(50, CHUNK));
    check_clean(&hand.close());
}

/// What is given back elsewhere makes no room under this volume's quota, however long it takes:
/// here until pages come.
#[test]
fn a_write_does_not_wait_for_the_deletion_of_another_volume() {
    let wish = Wish::default();
    let mut hand = Hand::new(&wish);
    let volumes = ["v", "w"].map(|name| hand.volume(name, MIB));
    for volume in &volumes {
        hand.write(volume, 0, &fresh(1, CHUNK));
    }
    let (mut hand, held) = Holder::open(&wish, hand.close());
    let volume = hand.beside(|client| client.volume("v").unwrap());
    hand.beside(|client| client.set_quota("v", Some(CHUNK))).unwrap();
    hand.read(&volume, 0, CHUNK as u32);
    held.hold(Zone::Tables);
    hand.beside(|client| client.delete_volume("w")).unwrap();
    let over = hand.write(&volume, 0, &fresh(2, CHUNK)).unwrap();
    let new = hand.write(&volume, CHUNK, &fresh(3, CHUNK)).unwrap();
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    hand.settle();
    assert_eq!(hand.beside(|client| client.stats()).unwrap().deletions, 1);
    assert!(hand.outcome(over).expect("it is over what is mapped").is_ok());
    assert_eq!(hand.outcome(new).expect("it is refused").unwrap_err(), at_quota());
    held.let_go();
    check_clean(&hand.close());
}

/// What was cut off before a snapshot was taken leaves the figures of its clones, too.
#[test]
fn a_write_to_a_clone_waits_for_what_was_cut_off_above_it() {
    let (mut hand, held, _volume) = giving_back(&Wish::default());
    let (volumes, name) = (vec!["v".to_owned()], "a".to_owned());
    let request = SnapshotRequest { volumes, name, taken_unix_s: 7 };
    hand.beside(|client| client.ask(request)).unwrap();
    hand.beside(|client| client.clone_volume("v@a", "c")).unwrap();
    hand.beside(|client| client.set_quota("c", Some(CHUNK))).unwrap();
    let clone = hand.beside(|client| client.volume("c").unwrap());
    let waits = hand.write(&clone, 0, &fresh(50, CHUNK)).unwrap();
    hand.settle();
    assert!(hand.deletions() == 1 && hand.outcome(waits).is_none());
    held.let_go();
    hand.wait(waits).unwrap();
    check_clean(&hand.close());
}

/// A close puts the giving back off: who waits for it is not at the quota for good.
#[test]
fn a_write_that_waits_for_what_is_given_back_is_told_of_a_close() {
    let (mut hand, held, volume) = giving_back(&Wish::default());
    hand.beside(|client| client.set_quota("v", Some(CHUNK))).unwrap();
    let waits = hand.write(&volume, 0, &fresh(50, CHUNK)).unwrap();
    hand.settle();
    assert!(hand.deletions() == 1 && hand.outcome(waits).is_none());
    let (close, done) = hand.done();
    hand.client.administer(engine::control::Close {}, done);
    held.let_go();
    hand.wait(close).unwrap();
    assert_eq!(hand.outcome(waits).unwrap().unwrap_err(), RequestError::Closing);
    drop(volume);
    check_clean(&hand.disk);
}

/// A give-back that takes long, and one who writes on meanwhile: neither the write buffer nor
/// anybody else waits with it.
#[test]
fn what_waits_for_a_quota_leaves_the_write_buffer_to_others() {
    let (wish, leaves, in_leaf) = (Wish::default(), 40, 96 * CHUNK);
    let mut hand = Hand::new(&wish);
    let volume = hand.volume("v", leaves * LEAF_CHUNKS * CHUNK);
    hand.volume("w", MIB);
    for leaf in 0..leaves {
        hand.write(&volume, leaf * LEAF_CHUNKS * CHUNK, &fresh(leaf, in_leaf));
        hand.settle();
    }
    let (mut hand, held) = Holder::open(&wish, hand.close());
    let [volume, other] =
        ["v", "w"].map(|name| hand.beside(move |client| client.volume(name).unwrap()));
    let quota_bytes = leaves * in_leaf + MIB / 2;
    hand.beside(move |client| client.set_quota("v", Some(quota_bytes))).unwrap();
    hand.trim(&volume, 0, volume.size_bytes());
    assert!((0..1000).any(|_| hand.deletions() > 0));
    held.hold(Zone::Tables);
    hand.settle();
    let mut waiting = Vec::new();
    let mut refused = 0;
    while refused < 3 && hand.client.try_buffer(0, MIB as usize).is_some() {
        let at = waiting.len() as u64;
        waiting.push(hand.write(&volume, at * MIB, &fresh(100 + at, MIB)).unwrap());
        hand.settle();
        let last = hand.outcome(waiting[waiting.len() - 1]);
        refused += usize::from(last.is_some_and(|outcome| outcome.unwrap_err() == at_quota()));
    }
    // All of it: they keep nothing.
    let buffer = hand.client.try_buffer(0, 8 * MIB as usize);
    assert!(buffer.is_some(), "{} writes have of the write buffer", waiting.len());
    drop(buffer);
    assert!(volume.holds_writers_up() && !other.holds_writers_up());
    assert_eq!((waiting.len(), refused), (8 + 2 + 3, 3));
    held.let_go();
    for tag in waiting.drain(..10) {
        hand.wait(tag).unwrap();
    }
    assert!(!volume.holds_writers_up());
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let stats = hand.beside(|client| client.stats()).unwrap();
    check_clean(&hand.close());
    assert_eq!(stats.under_way.write_bytes, 0);
}

/// What is written over waits for space; a trim, which need not, lets go of it, and another write
/// would take its place.
#[test]
fn a_trim_that_overtakes_what_is_written_over_it_makes_no_room_for_more() {
    let mut hand = Hand::new(&Wish { capacities: vec![64 * MIB], ..Wish::default() });
    let volume = hand.volume("v", MIB);
    hand.beside(|client| client.set_quota("v", Some(10 * CHUNK))).unwrap();
    let written = hand.write(&volume, 0, &fresh(1, 10 * CHUNK)).unwrap();
    hand.wait(written).unwrap();
    let full = hand.volume("w", GIB);
    let mut offset_bytes = 0;
    for length_bytes in [MIB, CHUNK] {
        loop {
            let bytes = fresh(1 << 32 | offset_bytes, length_bytes);
            let later = hand.write(&full, offset_bytes, &bytes);
            if later.is_some_and(|tag| hand.wait(tag).is_err()) {
                break;
            }
            hand.settle();
            offset_bytes += length_bytes;
        }
    }
    let over = hand.write(&volume, 0, &fresh(2, CHUNK)).unwrap();
    hand.trim(&volume, 0, 5 * CHUNK);
    let more = hand.write(&volume, 20 * CHUNK, &fresh(3, 5 * CHUNK)).unwrap();
    hand.trim(&full, 0, full.size_bytes());
    hand.wait(over).unwrap();
    let more = hand.wait(more).map(|_| ());
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let volumes = hand.beside(|client| client.volumes()).unwrap();
    assert_eq!((volumes[0].mapped_bytes, more), (6 * CHUNK, Err(at_quota())));
    check_clean(&hand.close());
}

/// It is mapped now, and may not be any more when the write comes.
#[test]
fn what_a_trim_on_its_way_lets_go_of_is_new_to_the_write_behind_it() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", 4 * MIB);
    hand.beside(|client| client.set_quota("v", Some(300 * CHUNK))).unwrap();
    let written = hand.write(&volume, 0, &fresh(1, 300 * CHUNK)).unwrap();
    hand.wait(written).unwrap();
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    hand.trim(&volume, 0, 200 * CHUNK);
    let again = hand.write(&volume, 0, &fresh(2, 100 * CHUNK)).unwrap();
    // The trim is applied; the write is in the open group still.
    hand.settle();
    let more = hand.write(&volume, 400 * CHUNK, &fresh(3, 200 * CHUNK)).unwrap();
    hand.wait(again).unwrap();
    assert_eq!(hand.wait(more).map(|_| ()), Err(at_quota()));
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let volumes = hand.beside(|client| client.volumes()).unwrap();
    assert_eq!(volumes[0].mapped_bytes, 200 * CHUNK);
    check_clean(&hand.close());
}

#[test]
fn a_store_closes_while_writes_are_at_their_quota() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", 64 * MIB);
    hand.beside(|client| client.set_quota("v", Some(CHUNK))).unwrap();
    let tags: Vec<u64> = (0..20)
        .map(|lba| hand.write(&volume, lba * CHUNK, &fresh(lba, CHUNK)).expect("not at the door"))
        .collect();
    let (close, done) = hand.done();
    hand.client.administer(engine::control::Close {}, done);
    hand.wait(close).unwrap();
    let outcomes: Vec<bool> =
        tags.into_iter().map(|tag| hand.outcome(tag).unwrap().is_ok()).collect();
    assert!(outcomes[0] && outcomes[1..].iter().all(|taken| !taken), "{outcomes:?}");
}

const VOLUME_CHUNKS: u64 = 40;
const QUOTA_CHUNKS: u64 = 20;

/// Contents by chunk; nothing where nothing is mapped.
type Model = BTreeMap<u64, u64>;

fn content(number: u64, chunks: u64) -> Vec<u8> {
    if number == 0 {
        vec![0; (chunks * CHUNK) as usize]
    } else {
        fresh(number, CHUNK).repeat(chunks as usize)
    }
}

fn one_after_another(stand: &Stand, model: &mut Model, dice: &mut Dice) {
    let volume = stand.client.volume("v").unwrap();
    let first = dice.below(VOLUME_CHUNKS);
    let count = (1 + dice.below(8)).min(VOLUME_CHUNKS - first);
    let range = first..first + count;
    if dice.below(4) == 0 {
        stand.trim(&volume, first * CHUNK, count * CHUNK);
        model.retain(|lba, _| !range.contains(lba));
        return;
    }
    let number = dice.below(12);
    let new = range.clone().filter(|lba| !model.contains_key(lba)).count() as u64;
    let fits = new == 0 || model.len() as u64 + new <= QUOTA_CHUNKS;
    let written = try_write(stand, &volume, first, &content(number, count));
    assert_eq!(written, if fits { Ok(()) } else { Err(at_quota()) });
    if fits && number == 0 {
        model.retain(|lba, _| !range.contains(lba));
    } else if fits {
        model.extend(range.map(|lba| (lba, number)));
    }
}

fn compare(stand: &Stand, model: &Model) {
    let volume = stand.client.volume("v").unwrap();
    for lba in 0..VOLUME_CHUNKS {
        let number = model.get(&lba).copied().unwrap_or(0);
        assert!(stand.read(&volume, lba * CHUNK, CHUNK) == content(number, 1), "chunk {lba}");
    }
}

proptest! {
    #![proptest_config(cases(16))]

    #[test]
    fn a_write_is_refused_exactly_when_it_would_exceed_it(seed in any::<u64>()) {
        let mut stand = Wish { seed, ..Wish::default() }.stand();
        let (mut dice, mut model) = (Dice(seed), Model::new());
        stand.volume("v", VOLUME_CHUNKS * CHUNK);
        stand.client.set_quota("v", Some(QUOTA_CHUNKS * CHUNK)).unwrap();
        for round in 0..3 {
            (0..40).for_each(|_| one_after_another(&stand, &mut model, &mut dice));
            compare(&stand, &model);
            stand.flush();
            prop_assert_eq!(mapped(&stand, "v"), model.len() as u64 * CHUNK);
            let disk = stand.cut_power(seed ^ round);
            check_clean(&disk);
            stand = Wish::default().open(disk);
            compare(&stand, &model);
        }
        stand.close();
    }

    /// Many at once, and the count looked at between any two steps.
    #[test]
    fn whatever_is_under_way_it_is_never_exceeded(seed in any::<u64>()) {
        let mut dice = Dice(seed);
        let mut hand = Hand::new(&Wish { seed, ..Wish::default() });
        let volume = hand.volume("v", VOLUME_CHUNKS * CHUNK);
        hand.beside(|client| client.set_quota("v", Some(QUOTA_CHUNKS * CHUNK))).unwrap();
        let mut waiting = Vec::new();
        let mut taken = 0;
        for _ in 0..400 {
            let first = dice.below(VOLUME_CHUNKS);
            let count = (1 + dice.below(4)).min(VOLUME_CHUNKS - first);
            match dice.below(5) {
                0 => waiting.push(hand.trim(&volume, first * CHUNK, count * CHUNK)),
                1 => {
                    let half = content(1 + dice.below(9), 1);
                    waiting.extend(hand.write(&volume, first * CHUNK + 512, &half[..1024]));
                }
                _ => {
                    let bytes = content(dice.below(12), count);
                    waiting.extend(hand.write(&volume, first * CHUNK, &bytes));
                }
            }
            hand.steps(dice.below(4));
            if dice.below(8) == 0 {
                let (list, done) = hand.done();
                let all = engine::control::ListVolumes::all();
                hand.client.administer(all, done);
                let Ok(engine::Reply::Volumes(volumes)) = hand.wait(list) else { panic!() };
                prop_assert!(volumes[0].mapped_bytes <= QUOTA_CHUNKS * CHUNK, "{:?}", volumes[0]);
            }
        }
        for tag in waiting {
            match hand.wait(tag) {
                Ok(_) => taken += 1,
                Err(error) => prop_assert_eq!(error, at_quota()),
            }
        }
        prop_assert!(taken > 100, "{}", taken);
        let disk = hand.close();
        check_clean(&disk);
        let stand = Wish::default().open(disk);
        prop_assert!(mapped(&stand, "v") <= QUOTA_CHUNKS * CHUNK);
        stand.close();
    }
}
