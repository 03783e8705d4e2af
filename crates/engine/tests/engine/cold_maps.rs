//! Whoever goes through a map that is not in memory has many of its leaves read at a time.

use std::sync::Arc;

use engine::{
    Client, DifferenceRequest, Done, OpenVolume, Reply, SnapshotRequest, WeightRequest, Zone,
};

use crate::stand::{CHUNK, Hand, Held, Holder, Opens, Wish, check_clean, fresh};

const LEAF_CHUNKS: u64 = 677;
const LEAVES: u64 = 40;
const SIZE_BYTES: u64 = LEAVES * LEAF_CHUNKS * CHUNK;

fn at(leaf: u64) -> u64 {
    leaf * LEAF_CHUNKS * CHUNK
}

fn snap(hand: &mut Hand, name: &str) {
    let (volumes, name) = (vec!["v".to_owned()], name.to_owned());
    let request = SnapshotRequest { volumes, name, taken_unix_s: 7 };
    hand.beside(|client| client.ask(request)).unwrap();
}

/// A volume with a chunk in each leaf, and two snapshots that differ in all of them; none of its
/// leaves is in memory.
fn cold() -> (Hand, Held, OpenVolume) {
    let wish = Wish::default();
    let mut hand = Hand::new(&wish);
    let volume = hand.volume("v", SIZE_BYTES);
    for (round, name) in ["a", "b"].into_iter().enumerate() {
        for leaf in 0..LEAVES {
            hand.write(&volume, at(leaf), &fresh(round as u64, CHUNK));
        }
        snap(&mut hand, name);
    }
    let (mut hand, held) = Holder::open(&wish, hand.close());
    let volume = hand.beside(|client| client.volume("v").unwrap());
    (hand, held, volume)
}

/// Pages that are read at once for a request, the first of its reads having brought what is above
/// the leaves; and what comes of it in the end.
fn reads_at_once<A: Into<Reply>>(
    hand: &mut Hand,
    held: &Held,
    ask: impl FnOnce(&Client, Done<A>),
) -> (usize, Reply) {
    held.hold(Zone::Tables);
    let (tag, done) = hand.done();
    ask(&hand.client, done);
    let mut most = 0;
    for _ in 0..8 {
        hand.settle();
        most = most.max(held.count());
        held.let_by();
    }
    held.let_go();
    (most, hand.wait(tag).unwrap())
}

#[test]
fn leaves_are_read_together_for_whoever_asks_what_is_data() {
    let (mut hand, held, volume) = cold();
    let volume = Arc::new(volume);
    let of = Arc::clone(&volume);
    let ask = move |client: &Client, done| client.extents(&of, 0, SIZE_BYTES, 1000, done);
    let (reads, reply) = reads_at_once(&mut hand, &held, ask);
    let Reply::Extents(mut extents) = reply else { panic!("no extents") };
    assert!(reads as u64 >= LEAVES - 1, "{reads} reads");
    let told = |extents: &[engine::Extent]| extents.iter().map(|one| one.length_bytes).sum();
    loop {
        let from: u64 = told(&extents);
        if from == SIZE_BYTES {
            break;
        }
        let of = Arc::clone(&volume);
        let more = move |client: Client| {
            client.extents_blocking(&of, from, SIZE_BYTES - from, 1000).unwrap()
        };
        extents.extend(hand.beside(more));
    }
    let data = extents.iter().filter(|extent| !extent.hole);
    assert_eq!(data.map(|extent| extent.length_bytes).collect::<Vec<_>>(), [CHUNK; 40]);
    drop(volume);
    check_clean(&hand.close());
}

#[test]
fn leaves_are_read_together_for_whoever_compares() {
    let (mut hand, held, _) = cold();
    let (from, to) = ("v@a".to_owned(), "v@b".to_owned());
    let request = DifferenceRequest { from, to, lba: 0 };
    let ask = |client: &Client, done| client.administer(request, done);
    let (reads, reply) = reads_at_once(&mut hand, &held, ask);
    let Reply::Difference(step) = reply else { panic!("no difference") };
    assert!(reads >= 2 * 16, "{reads} reads");
    let offsets = step.ranges.iter().map(|range| range.offset_bytes);
    assert!(offsets.eq((0..LEAVES).map(at)));
    check_clean(&hand.close());
}

#[test]
fn leaves_are_read_together_for_whoever_weighs() {
    let (mut hand, held, _) = cold();
    let (volume, leaf, pbns) = ("v".to_owned(), 0, 0..1000);
    let request = WeightRequest { volume, leaf, pbns };
    let ask = |client: &Client, done| client.administer(request, done);
    let (reads, reply) = reads_at_once(&mut hand, &held, ask);
    let Reply::Weight(step) = reply else { panic!("no weight") };
    assert!(reads >= 16, "{reads} reads");
    assert_eq!(step.mapped, LEAVES);
    check_clean(&hand.close());
}
