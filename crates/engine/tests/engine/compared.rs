//! Stores that compare bytes: chunks that share a fingerprint are told apart wherever they meet,
//! and what shares its bytes as well is stored once.

use disk::{Fault, Loss, MemoryDisk};
use engine::{
    Address, Caches, CollectRequest, Detection, FingerprintKind, OpenVolume, Problem,
    ScrubPosition, ScrubRequest, Stats, Zone, repair,
};
use reduce::Fingerprinter;

use crate::stand::{
    CHUNK, Dice, Hand, MIB, Opens, Stand, Wish, bch_twins, check, check_clean, crc64_twins, fresh,
    md5_twins, sha1_twins,
};

const DATA: Zone = Zone::Data(0);

/// Chunks of a number that share a fingerprint.
type Twins = fn(u64) -> Vec<Vec<u8>>;

fn wish(kind: FingerprintKind) -> Wish {
    Wish { detection: Detection { kind, verify: true, ..Default::default() }, ..Wish::default() }
}

fn md5() -> Wish {
    wish(FingerprintKind::Md5)
}

/// Chunks written, looked up alone, and what the store says after each.
fn write_each(stand: &Stand, volume: &OpenVolume, chunks: &[(u64, &[u8])]) {
    for (lba, chunk) in chunks {
        stand.write(volume, lba * CHUNK, chunk);
        stand.flush();
    }
}

fn aside_and_equal(stats: &Stats) -> (u64, u64) {
    (stats.counters.chunks_unindexed, stats.counters.lookups_equal)
}

fn is_aside(stand: &Stand, lba: u64) -> bool {
    let told = stand.client.explain("v", Address::Lba(lba)).unwrap();
    assert!(told.is_sound(), "{told:?}");
    told.chunk.unwrap().place.unwrap().frame.unwrap().unindexed
}

#[test]
fn the_twins_of_the_tests_collide() {
    for (kind, [one, other]) in
        [(FingerprintKind::Md5, md5_twins(7)), (FingerprintKind::Sha1, sha1_twins(7))]
    {
        let of = |chunk: &[u8]| Fingerprinter::new(kind).one(chunk).unwrap();
        assert_eq!((one.len(), of(&one)), (CHUNK as usize, of(&other)));
        assert_ne!(one, other);
    }
}

/// What an adversary would write, under every kind of fingerprint: it reads back as it was written,
/// now, after a power loss, and after a clean end; and what is no collision is stored once.
#[test]
fn crafted_collisions_read_back_right_under_every_kind() {
    let families: [(FingerprintKind, Twins); 4] = [
        (FingerprintKind::Md5, |number| md5_twins(number).into()),
        (FingerprintKind::Sha1, |number| sha1_twins(number).into()),
        (FingerprintKind::EccCrc64, |number| crc64_twins(number).into()),
        (FingerprintKind::EccBch, |number| bch_twins(number).into()),
    ];
    let all_twins = families.iter().flat_map(|&(_, twins)| (0..12).flat_map(twins));
    let file: Vec<u8> = all_twins.flatten().collect();
    let chunks = file.len() as u64 / CHUNK;
    for kind in FingerprintKind::ALL {
        let wish = wish(kind);
        let stand = wish.stand();
        let volume = stand.volume("v", 64 * MIB);
        // In one row, then each alone: what collides meets in one group and from one to the next.
        stand.write(&volume, 0, &file);
        stand.flush();
        for (at, chunk) in (0..).zip(file.chunks(CHUNK as usize)) {
            stand.write(&volume, 8 * MIB + at * CHUNK, chunk);
            if at % 16 == 3 {
                stand.flush();
            }
        }
        stand.flush();
        let counters = stand.stats().counters;
        // Each time all of a family but its first.
        let family = families.iter().find(|(of, _)| *of == kind);
        let asides = family.map_or(0, |(_, twins)| 2 * 12 * (twins(0).len() as u64 - 1));
        assert_eq!(counters.chunks_unindexed, asides, "{kind}");
        assert_eq!(counters.lookups_equal, chunks - asides / 2, "{kind}");
        let read_all = |stand: &Stand| {
            let volume = stand.client.volume("v").unwrap();
            for at_bytes in [0, 8 * MIB] {
                assert!(stand.read(&volume, at_bytes, file.len() as u64) == file, "{kind}");
            }
        };
        read_all(&stand);
        let stand = wish.open(stand.cut_power_flushed(1));
        read_all(&stand);
        let disk = stand.close();
        check_clean(&disk);
        let stand = wish.open(disk);
        read_all(&stand);
        check_clean(&stand.close());
    }
}

/// A twin may meet the other in its own group, on its way in a group before, in a container that is
/// in memory, and on the disk.
#[test]
fn a_chunk_is_told_from_its_twin_wherever_they_meet() {
    for (kind, twins) in [
        (FingerprintKind::Md5, md5_twins as fn(u64) -> [Vec<u8>; 2]),
        (FingerprintKind::Sha1, sha1_twins),
    ] {
        let wish = wish(kind);
        let stand = wish.stand();
        let volume = stand.volume("v", 64 * MIB);
        let [one, other] = twins(1);
        // In one group: the first, its twin, both again.
        let group = [&one[..], &other, &one, &other].concat();
        stand.write(&volume, 0, &group);
        stand.flush();
        // The second twin is not found by the fourth: it is aside.
        let stats = stand.stats();
        assert_eq!((aside_and_equal(&stats), stats.unique_chunks), ((2, 1), 3), "{kind}");
        write_each(&stand, &volume, &[(10, &one), (11, &other)]);
        assert_eq!(aside_and_equal(&stand.stats()), (3, 2), "{kind}");
        assert_eq!(stand.stats().counters.chunks_read_to_compare, 0, "all is in memory");
        assert!(!is_aside(&stand, 0) && is_aside(&stand, 1) && is_aside(&stand, 11));
        // On the disk.
        let stand = wish.open(stand.close());
        let volume = stand.client.volume("v").unwrap();
        write_each(&stand, &volume, &[(20, &one), (21, &other)]);
        let stats = stand.stats();
        assert_eq!((aside_and_equal(&stats), stats.counters.lookups_differ), ((1, 1), 1));
        // The one was read to be compared with the first, and was in memory for the second.
        let read_and_held =
            (stats.counters.chunks_read_to_compare, stats.counters.frames_hit_to_compare);
        assert_eq!(read_and_held, (1, 1), "{kind}");
        for (lba, expected) in [(0, &group), (10, &one), (11, &other), (20, &one), (21, &other)] {
            assert_eq!(&stand.read(&volume, lba * CHUNK, expected.len() as u64), expected);
        }
        // Replay stores aside what was stored aside, and compares nothing.
        let stand = wish.open(stand.cut_power_flushed(3));
        let volume = stand.client.volume("v").unwrap();
        assert_eq!(stand.read(&volume, 0, 4 * CHUNK), group);
        assert!(is_aside(&stand, 21) && !is_aside(&stand, 20));
        check_clean(&stand.close());
    }
}

/// Twins everywhere, overwritten, trimmed, collected and crashed on, against plain bytes.
#[test]
fn twins_that_come_and_go_never_take_each_others_place() {
    for seed in 0..6 {
        let wish = Wish { seed, capacities: vec![64 * MIB], ..md5() };
        let mut dice = Dice(seed);
        let mut hand = Hand::new(&wish);
        let mut volume = hand.volume("v", 16 * MIB);
        let lbas = 2000;
        let mut model = vec![0u8; (lbas * CHUNK) as usize];
        for round in 0..120 {
            let (first, count) = (dice.below(lbas - 40), 1 + dice.below(40));
            for lba in first..first + count {
                let at = (lba * CHUNK) as usize..((lba + 1) * CHUNK) as usize;
                let [one, other] = md5_twins(dice.below(200));
                match dice.below(5) {
                    0 => {
                        hand.trim(&volume, lba * CHUNK, CHUNK);
                        model[at].fill(0);
                    }
                    1 | 2 => {
                        hand.write(&volume, lba * CHUNK, &one);
                        model[at].copy_from_slice(&one);
                    }
                    _ => {
                        hand.write(&volume, lba * CHUNK, &other);
                        model[at].copy_from_slice(&other);
                    }
                }
            }
            hand.steps(dice.below(20));
            if round % 10 == 3 {
                let step = CollectRequest { position: None, recompress: None };
                hand.beside(move |client| client.ask(step)).unwrap();
            }
            if round % 30 == 17 {
                let flush = hand.flush();
                hand.wait(flush).unwrap();
                let disk = hand.disk.crash(dice.roll());
                check_clean(&disk);
                hand = Hand::open(&wish, disk);
                volume = hand.beside(|client| client.volume("v").unwrap());
            }
        }
        let read = hand.read(&volume, 0, (lbas * CHUNK) as u32);
        assert!(read == model, "seed {seed}");
        let flush = hand.flush();
        hand.wait(flush).unwrap();
        let stats = hand.beside(|client| client.stats()).unwrap();
        assert!(
            stats.counters.chunks_unindexed > 0 && stats.counters.lookups_equal > 0,
            "{stats:?}"
        );
        check_clean(&hand.close());
    }
}

fn place_of(disk: &MemoryDisk, bytes: &[u8]) -> u64 {
    let image = disk.peek(DATA, 0, 32 * MIB as usize);
    let at = image.windows(64).position(|window| window == &bytes[200..264]);
    at.expect("the chunk is stored as it is") as u64
}

/// What fails its check says nothing of a chunk that only shares a weak fingerprint with it: the
/// chunk is stored aside, and the damage is listed. A strong fingerprint names the chunk: it heals.
#[test]
fn a_damaged_chunk_is_nobodys_duplicate_and_heals_by_a_strong_name_only() {
    for kind in [FingerprintKind::Md5, FingerprintKind::Blake3] {
        let wish = wish(kind);
        let stand = wish.stand();
        let volume = stand.volume("v", 64 * MIB);
        let [one, other] = md5_twins(1);
        stand.write(&volume, 0, &one);
        let stand = wish.open(stand.close());
        let volume = stand.client.volume("v").unwrap();
        stand.disk.corrupt(DATA, place_of(&stand.disk, &one), |byte| *byte ^= 0x40);
        write_each(&stand, &volume, &[(5, &other), (6, &one)]);
        let heals = kind.is_strong();
        assert_eq!(stand.try_read(&volume, 0, CHUNK).is_ok(), heals, "{kind}");
        assert_eq!(stand.read(&volume, 5 * CHUNK, CHUNK), other);
        assert_eq!(stand.read(&volume, 6 * CHUNK, CHUNK), one);
        let stats = stand.stats();
        assert_eq!(stats.damaged_chunks, u64::from(!heals), "{kind}");
        assert_eq!(stats.counters.chunks_unindexed, if heals { 0 } else { 2 }, "{kind}");
        assert!(stats.counters.chunks_damaged > 0);
        let found = check(&stand.close()).problems;
        let is_damage = |problem: &Problem| {
            matches!(problem, Problem::DamagedFrame { .. } | Problem::LostChunks { .. })
        };
        assert!(found.iter().all(is_damage) && found.is_empty() == heals, "{kind}: {found:?}");
    }
}

/// What the device does not give cannot be compared, and is no damage either.
#[test]
fn a_candidate_that_cannot_be_read_is_passed_over() {
    let wish = md5();
    let stand = wish.stand();
    let volume = stand.volume("v", 64 * MIB);
    let [one, _] = md5_twins(1);
    stand.write(&volume, 0, &one);
    let stand = wish.open(stand.close());
    let volume = stand.client.volume("v").unwrap();
    let offset_bytes = place_of(&stand.disk, &one);
    stand.disk.inject(Fault::Read { zone: DATA, offset_bytes });
    stand.write(&volume, 7 * CHUNK, &one);
    stand.flush();
    stand.disk.heal();
    let stats = stand.stats();
    assert_eq!((stats.counters.chunks_unindexed, stats.damaged_chunks), (1, 0), "{stats:?}");
    assert_eq!(stand.read(&volume, 7 * CHUNK, CHUNK), one);
    assert_eq!(stand.read(&volume, 0, CHUNK), one);
    check_clean(&stand.close());
}

/// The chunk that has the entry dies and is forgotten, then the one aside: neither takes the
/// other's entry along, and what is written later finds what is there.
#[test]
fn who_is_forgotten_takes_no_others_entry() {
    for entry_dies in [true, false] {
        let wish = Wish { capacities: vec![64 * MIB], ..md5() };
        let stand = wish.stand();
        let volume = stand.volume("v", 64 * MIB);
        let [one, other] = md5_twins(1);
        write_each(&stand, &volume, &[(0, &one), (1, &other)]);
        // The rest of the container dies with it.
        stand.write(&volume, MIB, &fresh(1, 12 * MIB));
        stand.flush();
        let (dying, left) = if entry_dies { (0, 1) } else { (1, 0) };
        stand.trim(&volume, dying * CHUNK, CHUNK);
        stand.trim(&volume, MIB, 12 * MIB);
        stand.flush();
        let mut position = None;
        loop {
            let step = CollectRequest { position, recompress: None };
            position = stand.client.ask(step).unwrap().next;
            if position.is_none() {
                break;
            }
        }
        let left_bytes = if entry_dies { &other } else { &one };
        assert_eq!(&stand.read(&volume, left * CHUNK, CHUNK), left_bytes);
        let before = aside_and_equal(&stand.stats());
        write_each(&stand, &volume, &[(30, &one), (31, &one), (32, &other)]);
        let after = aside_and_equal(&stand.stats());
        // Whoever came first has the entry: the one that was left, or the one written anew.
        let expected = if entry_dies { (1, 1) } else { (1, 2) };
        assert_eq!((after.0 - before.0, after.1 - before.1), expected, "entry dies: {entry_dies}");
        for (lba, expected) in [(30, &one), (31, &one), (32, &other)] {
            assert_eq!(&stand.read(&volume, lba * CHUNK, CHUNK), expected);
        }
        check_clean(&stand.close());
    }
}

/// A strong kind whose bytes are compared all the same: nothing is ever aside, every hit is looked
/// at, neighbours in one read.
#[test]
fn a_strong_kind_compares_too_and_gathers_what_it_reads() {
    let wish = wish(FingerprintKind::Blake3);
    let stand = wish.stand();
    let volume = stand.volume("v", 64 * MIB);
    let bytes = fresh(1, 4 * MIB);
    stand.write(&volume, 0, &bytes);
    let stand = wish.open(stand.close());
    let volume = stand.client.volume("v").unwrap();
    stand.write(&volume, 8 * MIB, &bytes);
    stand.flush();
    let stats = stand.stats();
    let counters = &stats.counters;
    assert_eq!((counters.chunks_unindexed, counters.lookups_equal), (0, 1024), "{stats:?}");
    assert!(counters.chunks_read_to_compare > 900, "{stats:?}");
    assert!(counters.comparison_reads < 40, "{stats:?}");
    assert!(counters.comparison_bytes_read < 5 * MIB, "{stats:?}");
    assert_eq!(stats.unique_chunks, 1024);
    assert!(stand.read(&volume, 8 * MIB, 4 * MIB) == bytes);
    check_clean(&stand.close());
}

#[test]
fn scrub_and_repair_know_what_is_aside() {
    let wish = md5();
    let stand = wish.stand();
    let volume = stand.volume("v", 64 * MIB);
    for number in 0..50 {
        let [one, other] = md5_twins(number);
        stand.write(&volume, 2 * number * CHUNK, &[one, other].concat());
    }
    stand.flush();
    let request = ScrubRequest { position: ScrubPosition::default(), fingerprints: true };
    let mut position = Some(request.position);
    while let Some(at) = position {
        let step = stand.client.ask(ScrubRequest { position: at, ..request }).unwrap();
        assert!(step.findings.is_empty(), "{:?}", step.findings);
        position = step.next;
    }
    // A repair makes all tables again: where places are lost, and where fingerprints are as well.
    let mut sound = stand.close();
    // No record that either root needs tells of them any more.
    for number in 0..3 {
        let stand = wish.open(sound);
        let volume = stand.client.volume("v").unwrap();
        stand.write(&volume, 32 * MIB, &fresh(1000 + number, CHUNK));
        sound = stand.close();
    }
    for kinds in [&["PBN-PBA"][..], &["PBN-PBA", "Hash-PBN", "young"]] {
        let disk = sound.left_by_power_loss(0, Loss::None);
        let map = engine::structures(Box::new(disk.clone())).unwrap();
        let is_meant = |name: &str| kinds.iter().any(|kind| name.contains(kind));
        let spoiled: Vec<_> = map.iter().filter(|at| is_meant(&at.kind)).collect();
        assert!(spoiled.len() >= kinds.len(), "{spoiled:?}");
        for structure in spoiled {
            disk.corrupt(structure.zone, structure.offset_bytes + 100, |byte| *byte ^= 1);
        }
        assert!(!check(&disk).problems.is_empty());
        repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
        check_clean(&disk);
        let stand = wish.open(disk);
        let volume = stand.client.volume("v").unwrap();
        for number in 0..50 {
            let expected = md5_twins(number).concat();
            let read = stand.read(&volume, 2 * number * CHUNK, 2 * CHUNK);
            assert!(read == expected, "{number}, {kinds:?}");
        }
        assert_eq!((0..100).filter(|&lba| is_aside(&stand, lba)).count(), 50);
        check_clean(&stand.close());
    }
}

/// What a group is looked up by and what it is compared with are more pages than the cache keeps.
#[test]
fn a_group_is_compared_however_few_pages_stay_in_memory() {
    let (pages, dirty_pages_max, young_max) = (24, 6, 150);
    let (directory_entries, frame_bytes, lends) = (0, 0, false);
    let cache = Caches { pages, dirty_pages_max, young_max, directory_entries, frame_bytes, lends };
    let detection = Detection { verify: true, ..Default::default() };
    let mut hand = Hand::new(&Wish { cache: Some(cache), detection, ..Wish::default() });
    let volume = hand.volume("v", 64 * MIB);
    let chunk = |number: u64| fresh(number, CHUNK);
    let mut write = |at: u64, numbers: &[u64]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|&number| chunk(number)).collect();
        hand.write(&volume, at, &bytes);
        let flush = hand.flush();
        hand.wait(flush).unwrap();
    };
    for mib in 0..16 {
        write(mib * MIB, &(mib * 256..(mib + 1) * 256).collect::<Vec<u64>>());
    }
    let scattered: Vec<u64> = (0..512).map(|number| number * 8).collect();
    write(32 * MIB, &scattered);
    for (lba, &number) in (8192..).zip(&scattered) {
        assert!(hand.read(&volume, lba * CHUNK, CHUNK as u32) == chunk(number), "{number}");
    }
    check_clean(&hand.close());
}
