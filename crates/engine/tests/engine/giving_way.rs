//! What was deleted is given back beside readers, in few reads at a time, and goes on all the same.

use engine::{Client, OpenVolume, Zone};

use crate::stand::{CHUNK, Hand, Held, Holder, MIB, Opens, Wish, check_clean, fresh};

const LEAF_CHUNKS: u64 = 677;
/// As many leaves are cut off and given back in the background.
const LEAVES: u64 = 34;
/// Of chunks of which the places fill a page of the PBN-PBA table.
const PAGE_BYTES: u64 = 254 * CHUNK;
/// Pages of it that the first leaf of the volume leads to.
const PAGES: u64 = 24;

/// A store that is not in memory, with a volume of which a leaf leads to many pages, that may map
/// no more than it does, and another volume.
fn scattered() -> (Hand, Held, OpenVolume, OpenVolume) {
    let wish = Wish::default();
    let mut hand = Hand::new(&wish);
    let volume = hand.volume("v", LEAVES * LEAF_CHUNKS * CHUNK);
    let other = hand.volume("other", 64 * MIB);
    for page in 0..PAGES {
        hand.write(&volume, page * CHUNK, &fresh(page, CHUNK));
        hand.write(&other, page * PAGE_BYTES, &fresh(PAGES + page, PAGE_BYTES));
        hand.settle();
    }
    for leaf in 1..LEAVES {
        hand.write(&volume, leaf * LEAF_CHUNKS * CHUNK, &fresh(0, CHUNK));
    }
    let quota = Some((PAGES + LEAVES - 1) * CHUNK);
    hand.beside(move |client: Client| client.set_quota("v", quota)).unwrap();
    let (mut hand, held) = Holder::open(&wish, hand.close());
    let [volume, other] =
        ["v", "other"].map(|name| hand.beside(move |client| client.volume(name).unwrap()));
    (hand, held, volume, other)
}

/// The most reads of tables that are under way at once until what was trimmed has been given back.
fn most_reads_at_once(hand: &mut Hand, held: &Held) -> usize {
    while hand.deletions() == 0 {}
    held.hold(Zone::Tables);
    let mut most = 0;
    for _ in 0..1_000 {
        hand.settle();
        let count = held.count_of(Zone::Tables);
        most = most.max(count);
        held.let_by_of(Zone::Tables);
        if count == 0 && hand.deletions() == 0 {
            return most;
        }
    }
    panic!("it stands still");
}

/// A read of a client that is under way for good.
fn begin_read(hand: &mut Hand, held: &Held, other: &OpenVolume) -> u64 {
    held.hold(Zone::Data(0));
    let (tag, done) = hand.done();
    hand.client.read(other, 0, CHUNK as u32, done);
    while held.count_of(Zone::Data(0)) == 0 {
        hand.steps(1);
    }
    tag
}

#[test]
fn a_deletion_has_few_reads_under_way_beside_a_clients_read_and_goes_on() {
    let (mut hand, held, volume, other) = scattered();
    let read = begin_read(&mut hand, &held, &other);
    hand.trim(&volume, 0, volume.size_bytes());
    let most = most_reads_at_once(&mut hand, &held);
    assert!((1..=4).contains(&most), "{most} reads at once");
    assert_eq!(hand.outcome(read).map(|_| ()), None);
    held.let_go();
    assert!(hand.bytes_of(read) == fresh(PAGES, CHUNK));
    drop((volume, other));
    check_clean(&hand.close());
}

#[test]
fn a_deletion_has_ever_more_reads_under_way_while_nobody_reads() {
    let (mut hand, held, volume, other) = scattered();
    hand.trim(&volume, 0, volume.size_bytes());
    let most = most_reads_at_once(&mut hand, &held);
    assert!(most as u64 >= PAGES / 3, "{most} reads at once");
    held.let_go();
    drop((volume, other));
    check_clean(&hand.close());
}

#[test]
fn a_deletion_that_somebody_waits_for_reads_all_at_once_beside_a_clients_read() {
    let (mut hand, held, volume, other) = scattered();
    let read = begin_read(&mut hand, &held, &other);
    hand.trim(&volume, 0, volume.size_bytes());
    let write = hand.write(&volume, 0, &fresh(1_000, CHUNK)).unwrap();
    let most = most_reads_at_once(&mut hand, &held);
    assert!(most as u64 >= PAGES - 4, "{most} reads at once");
    hand.wait(write).unwrap();
    held.let_go();
    assert!(hand.bytes_of(read) == fresh(PAGES, CHUNK));
    drop((volume, other));
    check_clean(&hand.close());
}
