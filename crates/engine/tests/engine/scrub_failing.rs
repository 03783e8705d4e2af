//! Scrub on a device that fails: what heals is worth no more than what was promised.

use disk::{Fault, Loss, MemoryDisk};
use engine::{Problem, Reply, ScrubPosition, ScrubRequest, Zone};
use format::root::Root;

use crate::scrub::{filled, scrub, sentences, spoil};
use crate::stand::{CHUNK, Hand, MIB, Opens, Wish, check_clean, fresh};

const DATA: Zone = Zone::Data(0);

/// A sync covers what everybody wrote, and the kernel tells of a failure once.
#[test]
fn a_sync_that_a_scrub_asked_for_and_that_fails_stops_the_writing() {
    let (stand, _) = filled(2500);
    let mut hand = Hand::open(&Wish::default(), stand.close());
    let volume = hand.beside(|client| client.volume("a").unwrap());
    spoil(&hand.disk, DATA, 4 * MIB - 30);
    for number in 0..512 {
        hand.write(&volume, number * CHUNK, &fresh(90_000 + number, CHUNK));
    }
    hand.settle();

    hand.disk.inject(Fault::Sync { zone: DATA });
    let (tag, done) = hand.done();
    let position = ScrubPosition::Containers { container: 0 };
    let request = ScrubRequest { position, fingerprints: false };
    hand.client.administer(request, done);
    let Reply::Scrub(step) = hand.wait(tag).unwrap() else { panic!("no step") };
    assert!(step.findings.len() == 1 && !step.findings[0].healed, "{step:?}");
    hand.disk.heal();

    let flush = hand.flush();
    let flushed = hand.wait(flush);
    let stand = Wish::default().open(hand.disk.left_by_power_loss(1, Loss::All));
    let volume = stand.client.volume("a").unwrap();
    let is_there = stand.try_read(&volume, 100 * CHUNK, CHUNK) == Ok(fresh(90_100, CHUNK));
    assert!(flushed.is_err(), "{flushed:?}, and what was flushed is there: {is_there}");
}

/// As long as the newest root is damaged, the slot that the next one goes to has the only one.
#[test]
fn no_root_follows_a_damaged_one_that_cannot_be_written_again() {
    let (stand, _) = filled(300);
    let mut hand = Hand::open(&Wish::default(), stand.close());
    let volume = hand.beside(|client| client.volume("a").unwrap());
    let slot = |disk: &MemoryDisk, block: u64| disk.peek(Zone::Superblock, block * 4096, 4096);
    let generation = |block| Root::decode(&slot(&hand.disk, block), [3; 16]).unwrap().generation;
    let (newest, older) = if generation(1) > generation(2) { (1, 2) } else { (2, 1) };
    let only_root = slot(&hand.disk, older);
    let offset_bytes = newest * 4096 + 40;
    spoil(&hand.disk, Zone::Superblock, offset_bytes);
    hand.disk.inject(Fault::Write { zone: Zone::Superblock, offset_bytes });

    let found = hand.beside(|client| scrub(&client, false));
    assert!(found.findings.len() == 1 && !found.findings[0].healed, "{found:?}");
    hand.write(&volume, 0, &fresh(8000, CHUNK));
    let closed = hand.beside(|client| client.close());
    assert!(slot(&hand.disk, older) == only_root, "the only root was written over");
    assert!(closed.is_err(), "{closed:?}");

    let disk = hand.disk.left_by_power_loss(1, Loss::All);
    disk.heal();
    let stand = Wish::default().open(disk);
    let volume = stand.client.volume("a").unwrap();
    assert_eq!(stand.read(&volume, 299 * CHUNK, CHUNK), fresh(299, CHUNK));
    check_clean(&stand.close());
}

/// What a device does not give now it may give later.
#[test]
fn a_container_that_cannot_be_read_for_a_while_keeps_its_directory() {
    let (stand, volume) = filled(3000);
    for number in (0..900).step_by(2) {
        stand.write(&volume, number * CHUNK, &fresh(90_000 + number, CHUNK));
    }
    stand.flush();
    for offset_bytes in (0..4 * MIB).step_by(4096) {
        stand.disk.inject(Fault::Read { zone: DATA, offset_bytes });
    }
    let found = scrub(&stand.client, false).findings;
    let told = |problem: &Problem| found.iter().any(|one| one.problem == *problem && !one.healed);
    assert!(told(&Problem::Directory { container: 0 }), "its directory was written anew");
    let (zone, offset_bytes) = ("data.0".to_owned(), 0);
    assert!(told(&Problem::Unreadable { zone, offset_bytes }), "nothing says why not");
    stand.disk.heal();
    assert_eq!(sentences(&scrub(&stand.client, true).findings), Vec::<String>::new());
    assert_eq!(stand.stats().damaged_chunks, 0);
    check_clean(&stand.close());
}

#[test]
fn a_directory_that_cannot_be_read_is_written_again() {
    let (stand, _) = filled(2500);
    stand.disk.inject(Fault::Read { zone: DATA, offset_bytes: 4 * MIB - 30 });
    let found = scrub(&stand.client, false).findings;
    assert_eq!(sentences(&found), ["the directory of container 0 is damaged (healed)"]);
    stand.disk.heal();
    check_clean(&stand.close());
}
