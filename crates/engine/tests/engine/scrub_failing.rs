//! Scrub on a device that fails: what heals is worth no more than what was promised.

use disk::{Fault, Loss};
use engine::{AdminRequest, Reply, ScrubPosition, ScrubRequest, Zone};

use crate::scrub::{filled, spoil};
use crate::stand::{CHUNK, Hand, MIB, Wish, fresh};

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
    let request = AdminRequest::Scrub(ScrubRequest { position, fingerprints: false });
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
