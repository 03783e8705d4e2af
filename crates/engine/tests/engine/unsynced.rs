//! A sync failed, and the store is opened again by the next process: what it finds may be in a
//! cache only. What it believes is on the medium before it promises anything.

use disk::{Fault, Loss, MemoryDisk};
use engine::{RequestError, Zone};
use format::root::Root;

use crate::stand::{CHUNK, Hand, MIB, Opens, Wish, check_clean, fresh};

const DATA: Zone = Zone::Data(0);

/// A store whose sync of `zone` failed in the flush behind a write of so many bytes: what the death
/// of its process leaves.
fn left_by_failed_flush(zone: Zone, length_bytes: u64) -> MemoryDisk {
    // One whose dice let all of the record that fails into the cache.
    let mut hand = Hand::new(&Wish { seed: 10, ..Wish::default() });
    let volume = hand.volume("v", 16 * MIB);
    hand.write(&volume, 0, &fresh(1, CHUNK));
    let flush = hand.flush();
    hand.wait(flush).unwrap();
    hand.disk.inject(Fault::Sync { zone });
    for at in (0..length_bytes).step_by(MIB as usize) {
        let bytes = fresh(2 + at, MIB.min(length_bytes - at));
        hand.write(&volume, MIB + at, &bytes);
        hand.settle();
    }
    let flush = hand.flush();
    let failed = hand.wait(flush).unwrap_err();
    assert!(matches!(failed, RequestError::SyncFailed { .. }), "{failed:?}");
    hand.disk.heal();
    hand.disk.restart(1)
}

/// Opened at once, a flush answered, and then the power goes: all that was there is there.
fn assert_kept(disk: MemoryDisk, length_bytes: u64) {
    let wish = Wish::default();
    let mut hand = Hand::open(&wish, disk);
    let volume = hand.beside(|client| client.volume("v").unwrap());
    let there = hand.read(&volume, 0, (MIB + length_bytes) as u32);
    let flush = hand.flush();
    hand.wait(flush).unwrap();
    let disk = hand.disk.left_by_power_loss(1, Loss::All);
    check_clean(&disk);
    let mut hand = Hand::open(&wish, disk);
    let volume = hand.beside(|client| client.volume("v").unwrap());
    assert!(
        hand.read(&volume, 0, (MIB + length_bytes) as u32) == there,
        "what was flushed is gone"
    );
    assert!(there[MIB as usize..][..CHUNK as usize] == fresh(2, CHUNK), "nothing was in the cache");
    check_clean(&hand.close());
}

#[test]
fn records_that_were_never_synced_are_written_again_before_they_are_promised() {
    assert_kept(left_by_failed_flush(Zone::Journal, CHUNK), CHUNK);
    assert_kept(left_by_failed_flush(Zone::Journal, 6 * MIB), 6 * MIB);
}

/// Of two containers and the directory of the first.
#[test]
fn frames_that_were_never_synced_are_written_again_before_they_are_promised() {
    assert_kept(left_by_failed_flush(DATA, MIB), MIB);
    assert_kept(left_by_failed_flush(DATA, 6 * MIB), 6 * MIB);
}

/// What the journal carries may have been written to its place, and lost on the way to the medium.
#[test]
fn what_was_placed_and_never_synced_is_placed_again() {
    let wish = Wish::default();
    let mut hand = Hand::new(&wish);
    let volume = hand.volume("v", 16 * MIB);
    for number in 0..8 {
        hand.write(&volume, number * CHUNK, &fresh(number, CHUNK));
        let flush = hand.flush();
        hand.wait(flush).unwrap();
    }
    hand.disk.inject(Fault::Sync { zone: DATA });
    assert!(hand.beside(|client| client.close()).is_err());
    hand.disk.heal();
    let mut hand = Hand::open(&wish, hand.disk.restart(1));
    let volume = hand.beside(|client| client.volume("v").unwrap());
    let flush = hand.flush();
    hand.wait(flush).unwrap();
    let disk = hand.disk.left_by_power_loss(1, Loss::All);
    check_clean(&disk);
    let mut after = Hand::open(&wish, disk);
    drop(volume);
    let volume = after.beside(|client| client.volume("v").unwrap());
    for number in 0..8 {
        assert!(after.read(&volume, number * CHUNK, CHUNK as u32) == fresh(number, CHUNK));
    }
}

#[test]
fn a_root_that_was_never_synced_is_written_again() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", MIB);
    hand.write(&volume, 0, &fresh(1, CHUNK));
    hand.disk.inject(Fault::Sync { zone: Zone::Superblock });
    assert!(hand.beside(|client| client.close()).is_err());
    hand.disk.heal();
    let disk = hand.disk.restart(1);
    let roots = |disk: &MemoryDisk| {
        let slot = |block: u64| disk.peek(Zone::Superblock, block * 4096, 4096);
        [1, 2].map(|block| Root::decode(&slot(block), [3; 16]).ok().map(|root| root.generation))
    };
    let believed = roots(&disk);
    assert_ne!(roots(&disk.left_by_power_loss(1, Loss::All)), believed, "it was synced");
    let hand = Hand::open(&Wish::default(), disk);
    assert_eq!(roots(&hand.disk.left_by_power_loss(1, Loss::All)), believed);
}
