//! Writes of a vector are in their order, next to one another, and answered once; unindexed chunks
//! are found by nobody.

use engine::{Address, Dedup, Durability, OpenVolume, RequestError, WriteOptions};

use crate::stand::{CHUNK, Hand, MIB, Opens, Stand, Wish, check_clean, fresh};

const PLAIN: WriteOptions = WriteOptions { durability: Durability::Acknowledged, unindexed: false };
const DURABLE: WriteOptions = WriteOptions { durability: Durability::Durable, ..PLAIN };
const UNINDEXED: WriteOptions = WriteOptions { unindexed: true, ..PLAIN };

fn write_vector(
    stand: &Stand,
    volume: &OpenVolume,
    writes: &[(u64, &[u8])],
    options: WriteOptions,
) -> Result<(), RequestError> {
    stand.client.write_vectored_at(volume, writes, options)
}

#[test]
fn a_later_write_of_a_vector_is_over_an_earlier_one() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", MIB);
    let (first, second) = (fresh(1, 4 * CHUNK), fresh(2, 2 * CHUNK));
    let part = [7; 512];
    let whole = [(0, &first[..]), (CHUNK, &second)];
    write_vector(&stand, &volume, &whole, PLAIN).unwrap();
    let mut expected = first.clone();
    expected[CHUNK as usize..3 * CHUNK as usize].copy_from_slice(&second);
    assert!(stand.read(&volume, 0, 4 * CHUNK) == expected);
    // With parts of chunks, and with nothing.
    write_vector(&stand, &volume, &[(512, &part), (0, &first), (1024, &part), (0, &[])], PLAIN)
        .unwrap();
    expected = first;
    expected[1024..1536].copy_from_slice(&part);
    assert!(stand.read(&volume, 0, 4 * CHUNK) == expected);
    write_vector(&stand, &volume, &[], DURABLE).unwrap();
    check_clean(&stand.close());
}

#[test]
fn a_durable_vector_survives_a_loss_of_power() {
    for seed in 0..6 {
        let stand = Wish { seed, ..Wish::default() }.stand();
        let volume = stand.volume("v", 64 * MIB);
        let (values, index) = (fresh(seed, 5 * MIB), fresh(100 + seed, CHUNK));
        write_vector(&stand, &volume, &[(MIB, &values), (0, &index)], DURABLE).unwrap();
        let stand = Wish::default().open(stand.cut_power(seed));
        let volume = stand.client.volume("v").unwrap();
        assert!(stand.read(&volume, MIB, 5 * MIB) == values);
        assert!(stand.read(&volume, 0, CHUNK) == index);
    }
}

/// The index names the newest values: where it is, they are.
#[test]
fn a_crash_leaves_a_prefix_of_each_vector() {
    let (mut cut, mut kept) = (0, 0);
    for seed in 0..40 {
        let wish = Wish { seed, ..Wish::default() };
        let mut hand = Hand::new(&wish);
        let volume = hand.volume("v", 64 * MIB);
        for round in 1..=3_u64 {
            // As long as a group, and most of them in two.
            let values = fresh(round, 512 * CHUNK);
            let index = fresh(round << 32, CHUNK);
            let writes = [(round * 4 * MIB, &values[..]), (0, &index)];
            hand.write_vector(&volume, &writes, PLAIN);
            hand.steps(1 + seed % 9);
        }
        hand.flush();
        hand.steps(seed * 3);
        let disk = hand.disk.crash(seed);
        drop(hand);
        let stand = wish.open(disk);
        let volume = stand.client.volume("v").unwrap();
        let index = stand.read(&volume, 0, CHUNK);
        let round = (1..=3).find(|round| index == fresh(round << 32, CHUNK));
        assert!(round.is_some() || index == vec![0; CHUNK as usize], "seed {seed}");
        let values = |round: u64| {
            stand.read(&volume, round * 4 * MIB, 512 * CHUNK) == fresh(round, 512 * CHUNK)
        };
        for round in 1..=round.unwrap_or(0) {
            assert!(values(round), "seed {seed}: the index names values {round}");
        }
        cut += u64::from(round.is_none_or(|round| round < 3));
        kept += u64::from(round.is_some());
    }
    assert!(cut > 0 && kept > 0, "{cut} {kept}");
}

#[test]
fn of_a_vector_that_cannot_be_nothing_is_written() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", MIB);
    let bytes = fresh(1, CHUNK);
    let error = write_vector(&stand, &volume, &[(0, &bytes), (MIB, &bytes)], PLAIN).unwrap_err();
    assert!(matches!(error, RequestError::OutOfRange { .. }), "{error}");
    assert!(stand.read(&volume, 0, CHUNK) == [0; CHUNK as usize]);
}

#[test]
fn behind_a_write_that_a_quota_refuses_nothing_of_its_vector_is_done() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", MIB);
    stand.client.set_quota("v", Some(4 * CHUNK)).unwrap();
    let three = fresh(1, 3 * CHUNK);
    let writes = [(0, &three[..]), (8 * CHUNK, &three), (16 * CHUNK, &three[..4096])];
    let error = write_vector(&stand, &volume, &writes, PLAIN).unwrap_err();
    assert_eq!(error, RequestError::QuotaExceeded { volume: "v".to_owned() });
    assert!(stand.read(&volume, 0, 3 * CHUNK) == three);
    assert!(stand.read(&volume, 8 * CHUNK, 12 * CHUNK) == vec![0; 12 * CHUNK as usize]);
    write_vector(&stand, &volume, &writes[2..], DURABLE).unwrap();
    check_clean(&stand.close());
}

/// What a vector has of the write buffer comes at once: two that want all of it take turns.
#[test]
fn vectors_as_long_as_the_write_buffer_do_not_wait_for_each_other() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 256 * MIB);
    std::thread::scope(|scope| {
        for writer in 0..4_u64 {
            let (client, volume) = (&stand.client, &volume);
            scope.spawn(move || {
                let bytes = fresh(writer, MIB);
                let at = |number: u64| (writer * 12 + number) * MIB;
                let writes: Vec<(u64, &[u8])> =
                    (0..12).map(|number| (at(number), &bytes[..])).collect();
                client.write_vectored_at(volume, &writes, PLAIN).unwrap();
            });
        }
    });
    for writer in 0..4 {
        assert!(stand.read(&volume, (writer * 12 + 11) * MIB, MIB) == fresh(writer, MIB));
    }
    check_clean(&stand.close());
}

fn chunk_is_aside(stand: &Stand, lba: u64) -> bool {
    let explanation = stand.client.explain("v", Address::Lba(lba)).unwrap();
    explanation.chunk.unwrap().place.unwrap().frame.unwrap().unindexed
}

#[test]
fn unindexed_chunks_are_stored_each_time_and_found_by_nobody() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 4 * MIB);
    let bytes = fresh(1, 20 * CHUNK);
    let write = |stand: &Stand, lba: u64, options| {
        let volume = stand.client.volume("v").unwrap();
        write_vector(stand, &volume, &[(lba * CHUNK, &bytes)], options).unwrap();
        stand.flush();
    };
    // What is indexed first is found; what is unindexed neither finds it nor is found.
    write(&stand, 0, UNINDEXED);
    write(&stand, 20, UNINDEXED);
    write(&stand, 40, PLAIN);
    write(&stand, 60, UNINDEXED);
    write(&stand, 80, PLAIN);
    let counters = stand.stats().counters;
    assert_eq!((counters.lookups_skipped, counters.chunks_duplicate), (60, 20));
    let stand = Wish::default().open(stand.cut_power_flushed(3));
    for lba in [0, 20, 40, 60, 80] {
        assert!(stand.read(&volume_of(&stand), lba * CHUNK, 20 * CHUNK) == bytes);
        assert_eq!(chunk_is_aside(&stand, lba), [0, 20, 60].contains(&lba), "{lba}");
    }
    // As they are after a replay, they stay found by nobody.
    write(&stand, 100, PLAIN);
    assert_eq!(stand.stats().counters.chunks_duplicate, 20);
    let report = check_clean(&stand.close());
    assert_eq!((report.stored_chunks, report.mapped_chunks), (80, 120));
    drop(volume);
}

fn volume_of(stand: &Stand) -> OpenVolume {
    stand.client.volume("v").unwrap()
}

/// In one group the newest write of a chunk says whether it is indexed.
#[test]
fn a_hint_goes_with_the_bytes_that_stay() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", MIB);
    let [first, second] = [1, 2].map(|number| fresh(number, CHUNK));
    hand.write_vector(&volume, &[(0, &first), (CHUNK, &first), (2 * CHUNK, &first)], UNINDEXED);
    hand.write_vector(&volume, &[(0, &second), (CHUNK, &[3; 512])], PLAIN);
    hand.write_vector(&volume, &[(3 * CHUNK, &second)], PLAIN);
    hand.write_vector(&volume, &[(3 * CHUNK, &[4; 512])], UNINDEXED);
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let stats = hand.beside(|client| client.stats()).unwrap();
    assert_eq!(stats.counters.lookups_skipped, 2);
    check_clean(&hand.close());
}

/// A volume under `auto` learns nothing from chunks that were not to be looked for.
#[test]
fn unindexed_chunks_do_not_mislead_auto() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 32 * MIB);
    stand.client.set_dedup("v", Dedup::Auto).unwrap();
    let bytes = fresh(1, 3000 * CHUNK);
    write_vector(&stand, &volume, &[(0, &bytes)], UNINDEXED).unwrap();
    stand.flush();
    let volumes = stand.client.volumes().unwrap();
    let info = volumes.iter().find(|volume| volume.name == "v").unwrap();
    assert!(info.dedup_active, "{info:?}");
}
