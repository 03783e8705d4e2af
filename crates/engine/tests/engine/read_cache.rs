//! Frames that were read are in memory: what is read again needs no disk, and is never old.

use std::collections::BTreeSet;

use engine::{
    Address, Caches, CollectRequest, ComparingAhead, Detection, FingerprintKind, OpenVolume,
    Options, RequestError, ScrubPosition, ScrubRequest, SnapshotRequest, Zone,
};

use crate::stand::{CHUNK, Dice, Hand, MIB, Opens, Stand, Wish, check_clean, fresh};

const DATA: Zone = Zone::Data(0);

/// What a door tells of the first chunk of a volume, if it can.
fn told(hand: &Hand, volume: &OpenVolume) -> Option<Vec<u8>> {
    let pieces = hand.client.read_held(volume, 0, CHUNK as u32)?;
    let mut bytes = vec![0xaa; CHUNK as usize];
    pieces.assemble(&mut bytes).unwrap();
    Some(bytes)
}

/// Reads the first chunk of a volume until a door tells it.
fn read_until_told(hand: &mut Hand, volume: &OpenVolume, bytes: &[u8]) {
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    for _ in 0..8 {
        assert!(hand.read(volume, 0, CHUNK as u32) == bytes);
        if let Some(told) = told(hand, volume) {
            return assert!(told == bytes);
        }
    }
    panic!("no door tells it");
}

#[test]
fn doors_tell_nothing_of_before_a_rollback() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", MIB);
    hand.write(&volume, 0, &fresh(1, CHUNK));
    hand.beside(|client| {
        let (volumes, name) = (vec!["v".to_owned()], "s".to_owned());
        client.ask(SnapshotRequest { volumes, name, taken_unix_s: 7 }).unwrap();
    });
    hand.write(&volume, 0, &fresh(2, CHUNK));
    read_until_told(&mut hand, &volume, &fresh(2, CHUNK));
    drop(volume);
    let volume = hand.beside(|client| {
        client.roll_back("v@s").unwrap();
        client.volume("v").unwrap()
    });
    assert!(told(&hand, &volume).is_none_or(|bytes| bytes == fresh(1, CHUNK)));
    assert!(hand.read(&volume, 0, CHUNK as u32) == fresh(1, CHUNK));
}

/// The read was asked for before the write, and is answered behind its acknowledgement.
#[test]
fn doors_keep_nothing_of_a_read_that_a_write_has_overtaken() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", MIB);
    hand.write(&volume, 0, &fresh(1, CHUNK));
    read_until_told(&mut hand, &volume, &fresh(1, CHUNK));
    let (read, done) = hand.done();
    hand.client.read(&volume, 0, CHUNK as u32, done);
    assert_eq!(hand.write(&volume, 0, &fresh(2, CHUNK)), None, "it is acknowledged at once");
    assert!(hand.bytes_of(read) == fresh(1, CHUNK));
    assert!(told(&hand, &volume).is_none_or(|bytes| bytes == fresh(2, CHUNK)));
}

/// Chunks of reads that were in memory, and those that were not.
fn hits_and_misses(stand: &Stand) -> (u64, u64) {
    let cache = stand.stats().read_cache;
    (cache.hits, cache.misses)
}

/// A store whose first sixteen chunks of two volumes are the same, opened anew.
fn shared(wish: &Wish) -> Stand {
    let stand = wish.stand();
    let volumes = ["v", "w"].map(|name| stand.volume(name, 16 * MIB));
    for volume in &volumes {
        stand.write(volume, 0, &fresh(1, 16 * CHUNK));
    }
    wish.open(stand.close())
}

fn spoil(stand: &Stand, lba: u64) {
    let told = stand.client.explain("v", Address::Lba(lba)).unwrap();
    let at = told.chunk.unwrap().place.unwrap().zone_offset_bytes;
    stand.disk.corrupt(DATA, at + 100, |byte| *byte ^= 0x40);
}

fn scrub(stand: &Stand) -> usize {
    let (mut found, mut position) = (0, Some(ScrubPosition::default()));
    while let Some(at) = position {
        let step = stand.client.ask(ScrubRequest { position: at, fingerprints: false }).unwrap();
        found += step.findings.len();
        position = step.next;
    }
    found
}

#[test]
fn what_one_volume_read_is_in_memory_for_all() {
    let stand = shared(&Wish::default());
    let [v, w] = ["v", "w"].map(|name| stand.client.volume(name).unwrap());
    assert!(stand.read(&v, 0, 16 * CHUNK) == fresh(1, 16 * CHUNK));
    assert_eq!(hits_and_misses(&stand), (0, 16));
    // Nobody asks the disk any more.
    (0..16).for_each(|lba| spoil(&stand, lba));
    assert!(stand.read(&w, 0, 16 * CHUNK) == fresh(1, 16 * CHUNK));
    assert!(
        stand.read(&w, 5 * CHUNK + 512, 1024) == fresh(1, 16 * CHUNK)[5 * 4096 + 512..][..1024]
    );
    assert_eq!(hits_and_misses(&stand), (17, 16));
    let cache = stand.stats().read_cache;
    assert_eq!(cache.frames, 16);
    assert!((16 * CHUNK..cache.bytes_max).contains(&cache.bytes), "{cache:?}");
}

#[test]
fn a_long_read_leaves_nothing_in_memory() {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 16 * MIB);
    stand.write(&volume, 0, &fresh(1, MIB));
    let stand = Wish::default().open(stand.close());
    let volume = stand.client.volume("v").unwrap();
    assert!(stand.read(&volume, 0, MIB) == fresh(1, MIB));
    assert_eq!(stand.stats().read_cache.frames, 0);
}

#[test]
fn damage_is_never_kept_and_what_is_kept_outlives_damage() {
    let stand = shared(&Wish::default());
    let volume = stand.client.volume("v").unwrap();
    spoil(&stand, 3);
    let damaged = stand.try_read(&volume, 0, 16 * CHUNK);
    assert!(matches!(damaged, Err(RequestError::Damaged { lba: 3, .. })), "{damaged:?}");
    assert_eq!(stand.stats().read_cache.frames, 15);
    spoil(&stand, 3);
    assert!(stand.read(&volume, 3 * CHUNK, CHUNK) == fresh(1, 16 * CHUNK)[3 * 4096..][..4096]);
    // Now it is in memory, and damaged again on the disk: a scrub says so.
    spoil(&stand, 3);
    assert!(stand.read(&volume, 0, 16 * CHUNK) == fresh(1, 16 * CHUNK));
    assert_eq!(scrub(&stand), 3, "the frame, and who has the chunk");
    // The same content heals it, as ever.
    stand.write(&volume, 0, &fresh(1, 16 * CHUNK));
    stand.flush();
    assert_eq!(stand.stats().counters.chunks_healed, 1);
    assert!(stand.read(&volume, 0, 16 * CHUNK) == fresh(1, 16 * CHUNK));
    assert_eq!(scrub(&stand), 0);
    check_clean(&stand.close());
}

#[test]
fn a_name_that_is_given_again_is_another_chunk_to_who_reads() {
    let caches = Caches {
        pages: 64,
        dirty_pages_max: 48,
        young_max: 1000,
        directory_entries: 0,
        frame_bytes: 16 * MIB,
        lends: false,
    };
    let wish = Wish { cache: Some(caches), ..Wish::default() };
    let stand = wish.stand();
    let volume = stand.volume("v", 16 * MIB);
    let (mut names, mut again) = (BTreeSet::new(), 0);
    for round in 0..24 {
        let bytes = fresh(round, 4 * MIB);
        stand.write(&volume, 0, &bytes);
        stand.flush();
        for at in (0..4 * MIB).step_by(256 << 10) {
            let read = stand.read(&volume, at, 256 << 10);
            assert!(read == bytes[at as usize..][..256 << 10], "round {round}");
        }
        for lba in (0..1024).step_by(64) {
            let told = stand.client.explain("v", Address::Lba(lba)).unwrap();
            again += u64::from(!names.insert(told.chunk.unwrap().pbn));
        }
        stand.trim(&volume, 0, 4 * MIB);
        stand.flush();
        let (mut position, recompress) = (None, None);
        loop {
            position = stand.client.ask(CollectRequest { position, recompress }).unwrap().next;
            if position.is_none() {
                break;
            }
        }
    }
    assert!(again > 3, "names were given again {again} times");
    // Of a read that waited for others of its chunks, those that it had found before.
    let cache = stand.stats().read_cache;
    assert!(cache.hits < cache.misses / 10, "{cache:?}");
    check_clean(&stand.close());
}

#[test]
fn reads_and_comparisons_find_what_the_other_brought_in() {
    let kind = FingerprintKind::Blake3;
    let wish = Wish {
        detection: Detection { kind, verify: true, ..Detection::default() },
        ..Wish::default()
    };
    let stand = shared(&wish);
    let [v, w] = ["v", "w"].map(|name| stand.client.volume(name).unwrap());
    assert!(stand.read(&v, 0, 8 * CHUNK) == fresh(1, 16 * CHUNK)[..8 * 4096]);
    stand.write(&w, 8 * MIB, &fresh(1, 16 * CHUNK));
    stand.flush();
    let counters = stand.stats().counters;
    let compared = (counters.lookups_equal, counters.frames_hit_to_compare);
    assert_eq!((compared, counters.chunks_read_to_compare), ((16, 8), 8));
    assert!(stand.read(&v, 0, 16 * CHUNK) == fresh(1, 16 * CHUNK));
    assert_eq!(hits_and_misses(&stand), (16, 8));
}

/// A store with so many MiB of fresh bytes in volume `v`, opened anew with 1 GiB of memory.
fn long(mib: u64, detection: Detection) -> (Wish, Stand) {
    long_with(mib, detection, ComparingAhead::default())
}

fn long_with(mib: u64, detection: Detection, comparing_ahead: ComparingAhead) -> (Wish, Stand) {
    let memory_bytes = 1024 * MIB;
    let options =
        Options { memory_bytes, worker_threads: 0, comparing_ahead, ..Options::default() };
    let wish = Wish { options, detection, ..Wish::default() };
    let stand = wish.stand();
    let volume = stand.volume("v", 64 * MIB);
    (0..mib).for_each(|at| stand.write(&volume, at * MIB, &fresh(at, MIB)));
    let stand = wish.open(stand.close());
    (wish, stand)
}

#[test]
fn who_reads_on_and_on_finds_it_read() {
    let (_, stand) = long(16, Detection::default());
    let volume = stand.client.volume("v").unwrap();
    for (at, bytes) in (0..16).map(|at| (at, fresh(at, MIB))) {
        for part in (0..MIB).step_by(32 << 10) {
            let read = stand.read(&volume, at * MIB + part, 32 << 10);
            assert!(read == bytes[part as usize..][..32 << 10], "MiB {at}");
        }
    }
    let cache = stand.stats().read_cache;
    assert_eq!(cache.hits_ahead + cache.misses + cache.hits, 4096, "{cache:?}");
    assert!(cache.misses < 100 && cache.hits == 0, "{cache:?}");
    // Behind the end of what is written there is nothing to be read.
    assert!((15 * MIB..18 * MIB).contains(&cache.ahead_read_bytes), "{cache:?}");
    assert!(cache.ahead_used_bytes > cache.ahead_read_bytes / 10 * 9, "{cache:?}");
    assert!(cache.bytes <= cache.bytes_max, "{cache:?}");
    check_clean(&stand.close());
}

#[test]
fn who_jumps_about_has_nothing_read_ahead() {
    let (_, stand) = long(16, Detection::default());
    let volume = stand.client.volume("v").unwrap();
    let mut dice = Dice(3);
    (0..1000).for_each(|_| drop(stand.read(&volume, dice.below(4096) * CHUNK, CHUNK)));
    assert_eq!(stand.stats().read_cache.ahead_read_bytes, 0);
}

#[test]
fn what_was_read_ahead_of_an_overwrite_is_not_what_is_read_after_it() {
    let (_, stand) = long(16, Detection::default());
    let volume = stand.client.volume("v").unwrap();
    for at in 0..160_u64 {
        let here = at * (32 << 10);
        let mut expected = fresh(here >> 20, MIB)[(here % MIB) as usize..][..32 << 10].to_vec();
        if at % 5 == 4 {
            stand.write(&volume, here + CHUNK, &fresh(at << 20, CHUNK));
            expected[4096..8192].copy_from_slice(&fresh(at << 20, CHUNK));
        }
        assert!(stand.read(&volume, here, 32 << 10) == expected, "{at}");
    }
    assert!(stand.stats().read_cache.hits_ahead > 500);
}

#[test]
fn a_run_of_comparisons_finds_its_frames_read() {
    let kind = FingerprintKind::Blake3;
    let (wish, stand) = long(16, Detection { kind, verify: true, ..Detection::default() });
    let volume = stand.client.volume("v").unwrap();
    for at in 0..16 {
        stand.write(&volume, (32 + at) * MIB, &fresh(at, MIB));
    }
    stand.flush();
    let stats = stand.stats();
    let (counters, cache) = (&stats.counters, &stats.read_cache);
    assert_eq!(
        (counters.lookups_equal, counters.chunks_unindexed, stats.unique_chunks),
        (4096, 0, 4096)
    );
    assert!(counters.chunks_read_to_compare < 2000, "{counters:?}");
    assert!(cache.hits_ahead_to_compare > 2000, "{cache:?}");
    assert!(cache.ahead_used_bytes > cache.ahead_read_bytes / 2, "{cache:?}");
    let disk = stand.close();
    check_clean(&disk);
    let stand = wish.open(disk);
    let volume = stand.client.volume("v").unwrap();
    (0..16).for_each(|at| assert!(stand.read(&volume, (32 + at) * MIB, MIB) == fresh(at, MIB)));
}

/// How much is on its way when it is needed is a matter of time; that nothing is, is not.
#[test]
fn when_and_how_far_comparisons_read_ahead_is_a_choice() {
    let read_ahead_bytes = |run_min, bytes| {
        let detection = Detection { verify: true, ..Detection::default() };
        let (_, stand) = long_with(4, detection, ComparingAhead { run_min, bytes });
        let volume = stand.client.volume("v").unwrap();
        (0..4).for_each(|at| stand.write(&volume, (32 + at) * MIB, &fresh(at, MIB)));
        stand.flush();
        let stats = stand.stats();
        assert_eq!((stats.counters.lookups_equal, stats.unique_chunks), (1024, 1024));
        stats.read_cache.ahead_read_bytes
    };
    assert_eq!(read_ahead_bytes(32, 0), 0);
    assert_eq!(read_ahead_bytes(513, 1 << 20), 0, "a group has 512 chunks");
    assert!(read_ahead_bytes(1, 1 << 20) > 0);
}

#[test]
fn damage_in_what_is_read_ahead_costs_nothing_but_its_chunk() {
    let kind = FingerprintKind::Blake3;
    let (_, stand) = long(8, Detection { kind, verify: true, ..Detection::default() });
    let volume = stand.client.volume("v").unwrap();
    let damaged = [700, 1100, 1500];
    damaged.into_iter().for_each(|lba| spoil(&stand, lba));
    for at in (0..8 * MIB).step_by(32 << 10) {
        let expected = &fresh(at >> 20, MIB)[(at % MIB) as usize..][..32 << 10];
        let lbas = at / CHUNK..at / CHUNK + 8;
        match stand.try_read(&volume, at, 32 << 10) {
            Ok(read) => assert!(read == expected),
            Err(RequestError::Damaged { lba, .. }) => {
                assert!(damaged.contains(&lba) && lbas.contains(&lba));
            }
            Err(error) => panic!("{error}"),
        }
    }
    // The strong fingerprint heals them, as everywhere.
    (0..8).for_each(|at| stand.write(&volume, (32 + at) * MIB, &fresh(at, MIB)));
    stand.flush();
    assert_eq!(stand.stats().counters.chunks_healed, 3);
    (0..8).for_each(|at| assert!(stand.read(&volume, at * MIB, MIB) == fresh(at, MIB)));
    check_clean(&stand.close());
}
