//! Frames that go along in the journal: a flush of a few writes nothing into the containers, and
//! they come back from wherever the power left them.

use disk::MemoryDisk;
use engine::{OpenVolume, Zone, repair};

use crate::stand::{CHUNK, GIB, Holder, MIB, Opens, Stand, Wish, check_clean, fresh, packed};

const FLUSHES: u64 = 60;

/// Small and long frames, each written and flushed by itself; a duplicate now and then.
fn bytes_of(number: u64) -> Vec<u8> {
    let content = if number % 7 == 6 { number - 6 } else { number };
    if content.is_multiple_of(2) { packed(content) } else { fresh(content, CHUNK) }
}

/// A store of noise that is in its containers, and behind it what was flushed bit by bit.
fn flushed_bit_by_bit(wish: &Wish) -> (Stand, OpenVolume) {
    let stand = wish.stand();
    let noise = stand.volume("noise", MIB);
    stand.write(&noise, 0, &fresh(1000, MIB));
    stand.flush();
    let volume = stand.volume("v", MIB);
    stand.flush();
    let before = stand.stats();
    for number in 0..FLUSHES {
        stand.write(&volume, number * CHUNK, &bytes_of(number));
        stand.flush();
    }
    let after = stand.stats();
    let (data, journal) = (after.counters.data_bytes_written, after.counters.journal_bytes_written);
    assert_eq!(data, before.counters.data_bytes_written, "no frame went to a container");
    assert!(journal > before.counters.journal_bytes_written + FLUSHES / 2 * CHUNK);
    assert_eq!(after.counters.syncs, before.counters.syncs, "records are durable by their writes");
    (stand, volume)
}

fn assert_all_there(stand: &Stand) {
    let volume = stand.client.volume("v").unwrap();
    for number in 0..FLUSHES {
        assert_eq!(stand.read(&volume, number * CHUNK, CHUNK), bytes_of(number), "{number}");
    }
    let noise = stand.client.volume("noise").unwrap();
    assert_eq!(stand.read(&noise, 0, MIB), fresh(1000, MIB));
}

#[test]
fn what_only_the_journal_has_outlives_power_after_power() {
    let wish = Wish::default();
    for seed in 0..8 {
        let (stand, _) = flushed_bit_by_bit(&wish);
        let mut disk: MemoryDisk = stand.cut_power(seed);
        for round in 0..3 {
            check_clean(&disk);
            let stand = wish.open(disk);
            assert_all_there(&stand);
            let volume = stand.client.volume("v").unwrap();
            // More of the same behind it, in the same container.
            stand.write(&volume, FLUSHES * CHUNK, &packed(2000 + round));
            stand.flush();
            disk = stand.cut_power(seed + 100 * round);
        }
        let stand = wish.open(disk);
        let volume = stand.client.volume("v").unwrap();
        assert_eq!(stand.read(&volume, FLUSHES * CHUNK, CHUNK), packed(2002));
        check_clean(&stand.close());
    }
}

#[test]
fn a_checkpoint_and_a_close_place_them() {
    let wish = Wish::default();
    let (stand, _) = flushed_bit_by_bit(&wish);
    let disk = stand.close();
    assert_eq!(check_clean(&disk).records_replayed, 0);
    let stand = wish.open(disk);
    assert_all_there(&stand);
    check_clean(&stand.close());
}

#[test]
fn a_repair_places_them() {
    let wish = Wish::default();
    for seed in 0..4 {
        let (stand, _) = flushed_bit_by_bit(&wish);
        let disk = stand.cut_power(seed);
        let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
        assert_eq!((report.lost_chunks, report.lost_records), (0, 0), "{report:?}");
        check_clean(&disk);
        let stand = wish.open(disk);
        assert_all_there(&stand);
        check_clean(&stand.close());
    }
}

#[test]
fn records_that_a_slow_journal_holds_up_are_bounded() {
    let wish = Wish { capacities: vec![2 * GIB], ..Wish::default() };
    let (mut hand, held) = Holder::open(&wish, wish.disk());
    let volume = hand.volume("v", 64 * MIB);
    held.hold_writes(Zone::Journal);
    let mut flushes = Vec::new();
    // Each a record of its own, of one block at least.
    for number in 0..5000 {
        hand.write(&volume, number * CHUNK, &packed(number));
        flushes.push(hand.flush());
        hand.settle();
    }
    let held_bytes = held.length_bytes() as u64;
    assert!((15 * MIB..17 * MIB).contains(&held_bytes), "{held_bytes}");
    held.let_go();
    flushes.into_iter().for_each(|flush| assert!(hand.wait(flush).is_ok()));
    assert_eq!(hand.read(&volume, 4999 * CHUNK, CHUNK as u32), packed(4999));
    check_clean(&hand.close());
}

#[test]
fn what_comes_in_bulk_is_written_once() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 8 * MIB);
    stand.flush();
    let before = stand.stats().counters;
    stand.write(&volume, 0, &fresh(1, 4 * MIB));
    stand.flush();
    let after = stand.stats().counters;
    let journal_bytes = after.journal_bytes_written - before.journal_bytes_written;
    assert!(after.data_bytes_written - before.data_bytes_written >= 4 * MIB);
    assert!(journal_bytes < MIB, "{journal_bytes}");
    check_clean(&stand.close());
}
