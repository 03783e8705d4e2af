//! Failures by their class: what waits for room, and what ends because another owner has the store.

use disk::{ErrorClass, Fault, MemoryDisk};
use engine::{RequestError, Zone, control};

use crate::stand::{CHUNK, Hand, MIB, Opens, Wish, check_clean, fresh};

const DATA: Zone = Zone::Data(0);

fn refuse(disk: &MemoryDisk, zone: Zone, class: ErrorClass) {
    disk.inject(Fault::Refusal { zone, class });
}

/// Steps and ticks for long enough that everything which can end has ended.
fn let_time_pass(hand: &mut Hand) {
    for _ in 0..60 {
        hand.settle();
        hand.engine.tick();
    }
}

#[test]
fn writes_wait_for_room_on_any_zone_and_go_on_when_there_is_some() {
    for zone in [DATA, Zone::Journal, Zone::Tables, Zone::Superblock] {
        let mut hand = Hand::new(&Wish::default());
        let volume = hand.volume("v", 64 * MIB);
        hand.write(&volume, 0, &fresh(1, 4 * MIB));
        let flush = hand.flush();
        hand.wait(flush).unwrap();
        refuse(&hand.disk, zone, ErrorClass::NoSpace);
        hand.write(&volume, 4 * MIB, &fresh(2, 6 * MIB));
        let flush = hand.flush();
        let_time_pass(&mut hand);
        if matches!(zone, DATA | Zone::Journal) {
            assert_eq!(hand.outcome(flush).map(|_| ()), None, "{zone:?}: nothing is promised");
        }
        assert!(hand.read(&volume, 4 * MIB, MIB as u32) == fresh(2, 6 * MIB)[..MIB as usize]);
        hand.disk.heal();
        let_time_pass(&mut hand);
        hand.wait(flush).unwrap();
        let disk = hand.close();
        check_clean(&disk);
        let mut hand = Hand::open(&Wish::default(), disk);
        let volume = hand.beside(|client| client.volume("v").unwrap());
        let kept = hand.read(&volume, 4 * MIB, 6 * MIB as u32);
        assert!(kept == fresh(2, 6 * MIB), "{zone:?}");
    }
}

#[test]
fn a_close_does_not_wait_for_room_for_ever_and_loses_nothing_that_was_flushed() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", 64 * MIB);
    hand.write(&volume, 0, &fresh(1, MIB));
    let flush = hand.flush();
    hand.wait(flush).unwrap();
    refuse(&hand.disk, DATA, ErrorClass::NoSpace);
    hand.write(&volume, MIB, &fresh(2, 6 * MIB));
    let (close, done) = hand.done();
    hand.client.administer(control::Close {}, done);
    for _ in 0..200 {
        hand.settle();
        hand.engine.tick();
    }
    let refused = hand.outcome(close).unwrap().map(|_| ()).unwrap_err();
    assert!(matches!(refused, RequestError::DeviceFull { .. }), "{refused:?}");
    hand.disk.heal();
    let disk = hand.disk.restart(3);
    let mut hand = Hand::open(&Wish::default(), disk);
    let volume = hand.beside(|client| client.volume("v").unwrap());
    assert!(hand.read(&volume, 0, MIB as u32) == fresh(1, MIB));
    check_clean(&hand.close());
}

/// Who asks for a close may have to wait for a flush first, as a bucket does.
#[test]
fn what_ends_before_a_close_does_not_wait_for_room_for_ever() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", 64 * MIB);
    refuse(&hand.disk, DATA, ErrorClass::NoSpace);
    hand.write(&volume, 0, &fresh(1, 6 * MIB));
    let flush = hand.flush();
    for announces in [false, true] {
        if announces {
            hand.client.announce_close();
        }
        let_time_pass(&mut hand);
        let_time_pass(&mut hand);
        let outcome = hand.outcome(flush).map(|outcome| outcome.map(|_| ()));
        match outcome {
            None => assert!(!announces, "it waits for ever"),
            Some(Err(RequestError::DeviceFull { .. })) => assert!(announces),
            other => panic!("{other:?}"),
        }
    }
}

/// Fenced by a write or by a read: both stop, what comes later is refused, and the engine ends.
#[test]
fn a_store_that_another_owner_has_neither_writes_nor_reads() {
    for by_read in [false, true] {
        let mut hand = Hand::new(&Wish::default());
        let volume = hand.volume("v", 64 * MIB);
        hand.write(&volume, 0, &fresh(1, 6 * MIB));
        let mut hand = Hand::open(&Wish::default(), hand.close());
        let volume = hand.beside(|client| client.volume("v").unwrap());
        refuse(&hand.disk, DATA, ErrorClass::Fenced);
        let first = if by_read {
            let (tag, done) = hand.done();
            hand.client.read(&volume, 0, MIB as u32, done);
            tag
        } else {
            hand.write(&volume, 8 * MIB, &fresh(2, 6 * MIB));
            hand.flush()
        };
        let (beside, done) = hand.done();
        hand.client.read(&volume, 2 * MIB, MIB as u32, done);
        let_time_pass(&mut hand);
        hand.disk.heal();
        let (later, done) = hand.done();
        hand.client.read(&volume, 0, CHUNK as u32, done);
        let (close, done) = hand.done();
        hand.client.administer(control::Close {}, done);
        for tag in [first, beside, later, close] {
            let refused = hand.outcome(tag).map(|outcome| outcome.map(|_| ()));
            assert!(matches!(refused, Some(Err(RequestError::Fenced { .. }))), "{refused:?}");
        }
        assert!(hand.client.read_held(&volume, 8 * MIB, CHUNK as u32).is_none());
        assert!(hand.engine.is_closed() && !hand.engine.step());
        let disk = hand.disk.restart(3);
        check_clean(&disk);
    }
}
