//! Scrub: what is damaged is found and named, what has a second copy heals, what is only moving is
//! left in peace.

use disk::{Fault, Loss, MemoryDisk};
use engine::{
    Client, Codec, CollectRequest, OpenVolume, Problem, Reply, RequestError, ScrubFinding,
    ScrubPosition, ScrubRequest, ScrubStep, Zone, control,
};

use crate::stand::{CHUNK, Dice, Hand, MIB, Opens, Stand, Wish, check, check_clean, fresh, packed};

const DATA: Zone = Zone::Data(0);

/// Steps in which a container is read, verified and judged, and some.
const STEPS_OF_SCRUB: u64 = 60;

/// A scrub from its beginning to its end, all steps in one.
pub(crate) fn scrub(client: &Client, fingerprints: bool) -> ScrubStep {
    scrub_from(client, ScrubPosition::default(), fingerprints)
}

pub(crate) fn scrub_from(client: &Client, from: ScrubPosition, fingerprints: bool) -> ScrubStep {
    let mut sum = ScrubStep::default();
    let mut position = Some(from);
    while let Some(at) = position {
        let step = client.ask(ScrubRequest { position: at, fingerprints }).unwrap();
        add(&mut sum, &step);
        position = step.next;
    }
    sum
}

fn add(sum: &mut ScrubStep, step: &ScrubStep) {
    sum.bytes_read += step.bytes_read;
    sum.bytes_total = step.bytes_total;
    sum.pages += step.pages;
    sum.containers += step.containers;
    sum.frames += step.frames;
    sum.findings.extend(step.findings.iter().cloned());
    sum.damaged.clone_from(&step.damaged);
}

/// Findings as sentences, those that healed marked.
pub(crate) fn sentences(findings: &[ScrubFinding]) -> Vec<String> {
    let sentence = |finding: &ScrubFinding| {
        format!("{}{}", finding.problem, if finding.healed { " (healed)" } else { "" })
    };
    findings.iter().map(sentence).collect()
}

/// Where bytes that are stored as they are lie in the data zone.
pub(crate) fn place_of(disk: &MemoryDisk, bytes: &[u8]) -> u64 {
    let image = disk.peek(DATA, 0, 32 * MIB as usize);
    let at = image.windows(64).position(|window| window == &bytes[..64]);
    at.expect("the chunk is stored as it is") as u64
}

pub(crate) fn spoil(disk: &MemoryDisk, zone: Zone, offset_bytes: u64) {
    disk.corrupt(zone, offset_bytes, |byte| *byte ^= 0x40);
}

/// A store with `chunks` incompressible chunks in volume `a`, checkpointed and reopened.
pub(crate) fn filled(chunks: u64) -> (Stand, OpenVolume) {
    let wish = Wish::default();
    let stand = wish.stand();
    let volume = stand.volume("a", 64 * MIB);
    for number in 0..chunks {
        stand.write(&volume, number * CHUNK, &fresh(number, CHUNK));
    }
    let stand = wish.open(stand.close());
    let volume = stand.client.volume("a").unwrap();
    (stand, volume)
}

#[test]
fn a_sound_store_is_read_whole_and_nothing_is_found() {
    let (stand, volume) = filled(3000);
    stand.write(&volume, 20 * MIB, &packed(1));
    stand.flush();
    for fingerprints in [false, true] {
        let found = scrub(&stand.client, fingerprints);
        assert_eq!(sentences(&found.findings), Vec::<String>::new());
        // The last is carried in the journal, and in no container yet.
        assert_eq!(found.frames, 3000, "{found:?}");
        assert_eq!(found.containers, 3);
        assert!(found.pages > 40, "{found:?}");
        let read = found.bytes_read as f64 / found.bytes_total as f64;
        assert!((0.6..1.1).contains(&read), "{found:?}");
    }
    check_clean(&stand.close());
}

#[test]
fn a_damaged_chunk_is_named_and_the_same_content_written_again_heals_it_for_all() {
    let (stand, volume) = filled(1500);
    let other = stand.volume("b", MIB);
    stand.write(&other, 7 * CHUNK, &fresh(9, CHUNK));
    stand.flush();
    spoil(&stand.disk, DATA, place_of(&stand.disk, &fresh(9, CHUNK)) + 100);
    assert!(matches!(stand.try_read(&volume, 9 * CHUNK, CHUNK), Err(RequestError::Damaged { .. })));
    let part = stand.client.write_at(&volume, 9 * CHUNK + 512, &[1; 512]);
    assert_eq!(part.unwrap_err(), RequestError::Damaged { volume: "a".to_owned(), lba: 9 });

    let found = scrub(&stand.client, false);
    let lost: Vec<(&str, u64)> = found.findings.iter().flat_map(lost_chunks).collect();
    assert_eq!(lost, [("a", 9), ("b", 7)], "{:?}", sentences(&found.findings));
    assert_eq!(found.findings.len(), 3, "{:?}", sentences(&found.findings));
    assert_eq!((found.damaged.len(), stand.stats().damaged_chunks), (1, 1));

    // Two at once: the first heals, the second is a duplicate like any other.
    let twice = [fresh(9, CHUNK), fresh(9, CHUNK)].concat();
    stand.write(&other, 20 * CHUNK, &twice);
    stand.flush();
    assert_eq!(stand.read(&volume, 9 * CHUNK, CHUNK), fresh(9, CHUNK));
    assert_eq!(stand.read(&other, 7 * CHUNK, CHUNK), fresh(9, CHUNK));
    let stats = stand.stats();
    assert_eq!((stats.damaged_chunks, stats.counters.chunks_healed), (0, 1));
    assert_eq!(stats.unique_chunks, 1500);
    assert_eq!(sentences(&scrub(&stand.client, true).findings), Vec::<String>::new());

    // The power goes before any checkpoint: recovery makes the same move.
    let disk = stand.cut_power_flushed(5);
    let stand = Wish::default().open(disk);
    let volume = stand.client.volume("a").unwrap();
    assert_eq!(stand.read(&volume, 9 * CHUNK, CHUNK), fresh(9, CHUNK));
    check_clean(&stand.close());
}

/// Volume and LBA of each chunk that a finding names as lost.
fn lost_chunks(finding: &ScrubFinding) -> Vec<(&str, u64)> {
    match &finding.problem {
        Problem::LostChunks { volume, lba, count, .. } => {
            (*lba..lba + count).map(|lba| (volume.as_str(), lba)).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn a_chunk_that_heals_may_be_packed_otherwise() {
    let wish = Wish::default();
    let stand = wish.stand();
    let volume = stand.volume("a", MIB);
    let none = engine::Compression { codec: engine::Codec::Raw, level: 0 };
    stand.client.ask(control::SetCompression { compression: none }).unwrap();
    (0..20).for_each(|number| stand.write(&volume, number * CHUNK, &packed(number)));
    let stand = wish.open(stand.close());
    let volume = stand.client.volume("a").unwrap();
    spoil(&stand.disk, DATA, place_of(&stand.disk, &packed(3)) + 2000);
    assert_eq!(scrub(&stand.client, false).damaged.len(), 1);
    stand.client.ask(control::SetCompression { compression: wish.compression }).unwrap();
    stand.write(&volume, 100 * CHUNK, &packed(3));
    stand.flush();
    assert_eq!(stand.read(&volume, 3 * CHUNK, CHUNK), packed(3));
    check_clean(&stand.close());
}

#[test]
fn damage_is_found_again_by_its_container_alone() {
    let (stand, volume) = filled(2000);
    spoil(&stand.disk, DATA, place_of(&stand.disk, &fresh(1999, CHUNK)) + 5);
    let damaged = scrub(&stand.client, false).damaged;
    let stand = Wish::default().open(stand.close());
    assert_eq!(stand.stats().damaged_chunks, 0);
    let container = damaged[0].container;
    let position = ScrubPosition::Containers { container };
    stand.client.ask(ScrubRequest { position, fingerprints: false }).unwrap();
    assert_eq!(stand.stats().damaged_chunks, 1);
    stand.write(&stand.client.volume("a").unwrap(), 0, &fresh(1999, CHUNK));
    stand.flush();
    assert_eq!(stand.stats().damaged_chunks, 0);
    drop(volume);
    check_clean(&stand.close());
}

#[test]
fn a_dead_chunk_that_is_damaged_is_forgotten() {
    let (stand, volume) = filled(1200);
    let place = place_of(&stand.disk, &fresh(5, CHUNK));
    stand.write(&volume, 5 * CHUNK, &fresh(70_000, CHUNK));
    stand.flush();
    spoil(&stand.disk, DATA, place + 50);
    let found = scrub(&stand.client, false);
    assert_eq!(found.findings.len(), 1, "{:?}", sentences(&found.findings));
    assert!(found.findings[0].healed && found.damaged.is_empty(), "{found:?}");
    stand.write(&volume, 500 * CHUNK, &fresh(5, CHUNK));
    stand.flush();
    assert_eq!(stand.read(&volume, 500 * CHUNK, CHUNK), fresh(5, CHUNK));
    check_clean(&stand.close());
}

/// Wherever the scrub is when the write comes: what it calls healed is read.
#[test]
fn a_dead_chunk_that_a_write_is_to_bring_back_is_not_forgotten() {
    let (stand, volume) = filled(1200);
    let place = place_of(&stand.disk, &fresh(5, CHUNK));
    stand.write(&volume, 5 * CHUNK, &fresh(70_000, CHUNK));
    drop(volume);
    let disk = stand.close();
    spoil(&disk, DATA, place + 50);
    let mut healed = 0;
    for steps in 0..STEPS_OF_SCRUB {
        let disk = disk.left_by_power_loss(0, Loss::None);
        let mut hand = Hand::open(&Wish::default(), disk);
        let volume = hand.beside(|client| client.volume("a").unwrap());
        let (scrub, done) = hand.done();
        let position = ScrubPosition::Containers { container: 0 };
        let request = ScrubRequest { position, fingerprints: false };
        hand.client.administer(request, done);
        hand.steps(steps);
        hand.write(&volume, 500 * CHUNK, &fresh(5, CHUNK));
        let flush = hand.flush();
        hand.wait(flush).unwrap();
        let Reply::Scrub(step) = hand.wait(scrub).unwrap() else { panic!("no step") };
        // If the write was mapped before the scrub looked, nothing has the bytes any more.
        if step.findings.iter().all(|found| found.healed) {
            healed += 1;
            let there = hand.read(&volume, 500 * CHUNK, CHUNK as u32);
            assert!(there == fresh(5, CHUNK), "after {steps} steps");
            check_clean(&hand.close());
        }
    }
    assert!(healed > 0 && healed < STEPS_OF_SCRUB, "{healed}: the write came never, or always");
}

#[test]
fn the_open_container_heals_from_memory() {
    let wish = Wish::default();
    let stand = wish.stand();
    let volume = stand.volume("a", MIB);
    (0..50).for_each(|number| stand.write(&volume, number * CHUNK, &fresh(number, CHUNK)));
    stand.flush();
    spoil(&stand.disk, DATA, place_of(&stand.disk, &fresh(30, CHUNK)) + 300);
    let found = scrub(&stand.client, false);
    assert_eq!(found.findings.len(), 1, "{:?}", sentences(&found.findings));
    assert!(found.findings[0].healed && found.damaged.is_empty(), "{found:?}");
    let stand = wish.open(stand.cut_power_flushed(9));
    let volume = stand.client.volume("a").unwrap();
    assert_eq!(stand.read(&volume, 30 * CHUNK, CHUNK), fresh(30, CHUNK));
    check_clean(&stand.close());
}

#[test]
fn a_sector_that_cannot_be_read_costs_the_chunks_on_it_and_no_others() {
    let (stand, volume) = filled(3000);
    let place = place_of(&stand.disk, &fresh(400, CHUNK));
    stand.disk.inject(Fault::Read { zone: DATA, offset_bytes: place + 2048 });
    let found = scrub(&stand.client, false);
    let lost: Vec<u64> = found.findings.iter().flat_map(lost_chunks).map(|lost| lost.1).collect();
    assert!(lost.contains(&400) && lost.len() <= 3, "{:?}", sentences(&found.findings));
    assert_eq!(found.frames, 3000 - lost.len() as u64);
    // A medium that gives its bytes again gives them to the next scrub as well.
    stand.disk.heal();
    assert_eq!(sentences(&scrub(&stand.client, false).findings), Vec::<String>::new());
    assert_eq!(stand.stats().damaged_chunks, 0);
    assert_eq!(stand.read(&volume, 400 * CHUNK, CHUNK), fresh(400, CHUNK));
}

/// Puts a frame of other bytes, whole and of the same PBN, in the place of that of chunk 77; with
/// `same_check` it is one that has the check of the old frame by chance.
fn replace_frame(disk: &MemoryDisk, same_check: bool) {
    replace_frame_as(disk, Codec::Raw, same_check);
}

/// The same. What is no raw frame cannot be expanded.
fn replace_frame_as(disk: &MemoryDisk, codec: Codec, same_check: bool) {
    let start = place_of(disk, &fresh(77, CHUNK)) - format::frame::FRAME_HEADER_BYTES as u64;
    let length_bytes = CHUNK as usize + format::frame::FRAME_HEADER_BYTES;
    let mut frame = disk.peek(DATA, start, length_bytes);
    let check = format::frame::check_of(&frame);
    let (header, _) = format::frame::decode(&frame).unwrap();
    let header = format::frame::FrameHeader { codec, ..header };
    for number in 0_u32.. {
        frame[1000..1004].copy_from_slice(&number.to_le_bytes());
        format::frame::write_header(&mut frame, &header);
        if same_check == (format::frame::check_of(&frame) == check) {
            break;
        }
    }
    for (at, byte) in (start..).zip(&frame) {
        disk.corrupt(DATA, at, |old| *old = *byte);
    }
}

#[test]
fn another_frame_of_the_same_chunk_is_damage() {
    let (stand, volume) = filled(1200);
    replace_frame(&stand.disk, false);
    assert!(stand.try_read(&volume, 77 * CHUNK, CHUNK).is_err(), "wrong bytes were read");
    let found = scrub(&stand.client, false);
    let damaged = |finding: &ScrubFinding| matches!(finding.problem, Problem::DamagedFrame { .. });
    assert!(found.findings.iter().any(damaged), "{:?}", sentences(&found.findings));
    assert_eq!(found.findings.iter().flat_map(lost_chunks).collect::<Vec<_>>(), [("a", 77)]);
    stand.write(&volume, 600 * CHUNK, &fresh(77, CHUNK));
    stand.flush();
    assert_eq!(stand.read(&volume, 77 * CHUNK, CHUNK), fresh(77, CHUNK));

    let (stand, _) = filled(1200);
    replace_frame(&stand.disk, false);
    let report = check(&stand.close());
    assert!(matches!(report.problems[0], Problem::DamagedFrame { .. }), "{report:?}");
}

#[test]
fn wrong_bytes_under_a_right_checksum_are_found_by_their_fingerprint() {
    let (stand, volume) = filled(1200);
    replace_frame(&stand.disk, true);
    assert_eq!(sentences(&scrub(&stand.client, false).findings), Vec::<String>::new());
    let found = scrub(&stand.client, true);
    let wrong =
        |finding: &ScrubFinding| matches!(finding.problem, Problem::WrongFingerprint { .. });
    assert!(found.findings.iter().any(wrong), "{:?}", sentences(&found.findings));
    assert_eq!(found.findings.iter().flat_map(lost_chunks).collect::<Vec<_>>(), [("a", 77)]);
    stand.write(&volume, 600 * CHUNK, &fresh(77, CHUNK));
    stand.flush();
    assert_eq!(stand.read(&volume, 77 * CHUNK, CHUNK), fresh(77, CHUNK));
}

/// Whether chunk 77, and no other, is not what it should be, and lost.
fn tells_of_chunk_77(found: &ScrubStep) -> bool {
    let wrong = |finding: &&ScrubFinding| {
        matches!(finding.problem, Problem::WrongFingerprint { .. } | Problem::DamagedFrame { .. })
    };
    let lost: Vec<_> = found.findings.iter().flat_map(lost_chunks).collect();
    found.findings.iter().filter(wrong).count() == 1 && lost == [("a", 77)]
}

#[test]
fn what_only_a_fingerprint_shows_stays_known_until_it_heals() {
    for codec in [Codec::Raw, Codec::Lz4] {
        let (stand, volume) = filled(1200);
        replace_frame_as(&stand.disk, codec, true);
        assert_eq!(sentences(&scrub(&stand.client, false).findings), Vec::<String>::new());
        let known = scrub(&stand.client, true).damaged;
        assert!(known.len() == 1 && known[0].checksum_fits, "{known:?}");

        // Its checksum says that it is sound, wherever it is, and with or without a directory.
        let found = scrub(&stand.client, false);
        assert!(tells_of_chunk_77(&found), "{:?}", sentences(&found.findings));
        stand.trim(&volume, 100 * CHUNK, 700 * CHUNK);
        stand.flush();
        let mut request = CollectRequest::default();
        while let Some(next) = stand.client.ask(request).unwrap().next {
            request.position = Some(next);
        }
        assert_eq!(scrub(&stand.client, false).damaged, known, "what is remembered leads there");
        spoil(&stand.disk, DATA, 4 * MIB - 30);
        let found = scrub(&stand.client, false);
        assert!(tells_of_chunk_77(&found), "{:?}", sentences(&found.findings));

        stand.write(&volume, 600 * CHUNK, &fresh(77, CHUNK));
        stand.flush();
        assert_eq!(stand.read(&volume, 77 * CHUNK, CHUNK), fresh(77, CHUNK), "{codec:?}");
        assert_eq!(stand.read(&volume, 600 * CHUNK, CHUNK), fresh(77, CHUNK), "{codec:?}");
        assert_eq!(stand.stats().damaged_chunks, 0);
        assert_eq!(sentences(&scrub(&stand.client, true).findings), Vec::<String>::new());
        check_clean(&stand.close());
    }
}

#[test]
fn what_a_fingerprint_calls_right_is_damaged_no_longer() {
    let (stand, volume) = filled(1200);
    let place = place_of(&stand.disk, &fresh(77, CHUNK));
    let start = place - format::frame::FRAME_HEADER_BYTES as u64;
    let frame = stand.disk.peek(DATA, start, format::frame::FRAME_HEADER_BYTES + CHUNK as usize);
    replace_frame(&stand.disk, true);
    assert_eq!(scrub(&stand.client, true).damaged.len(), 1);
    for (at, byte) in (start..).zip(&frame) {
        stand.disk.corrupt(DATA, at, |old| *old = *byte);
    }
    assert_eq!(scrub(&stand.client, false).damaged.len(), 1);
    assert_eq!(sentences(&scrub(&stand.client, true).findings), Vec::<String>::new());
    assert_eq!(stand.stats().damaged_chunks, 0);
    assert_eq!(stand.read(&volume, 77 * CHUNK, CHUNK), fresh(77, CHUNK));
}

#[test]
fn a_damaged_directory_is_written_again_from_the_frames() {
    for damaged_frame in [false, true] {
        let (stand, _) = filled(2500);
        spoil(&stand.disk, DATA, 4 * MIB - 30);
        if damaged_frame {
            spoil(&stand.disk, DATA, place_of(&stand.disk, &fresh(12, CHUNK)) + 9);
        }
        let found = scrub(&stand.client, false);
        let directory = found
            .findings
            .iter()
            .find(|finding| matches!(finding.problem, Problem::Directory { container: 0 }));
        assert!(directory.is_some_and(|finding| finding.healed), "{found:?}");
        assert_eq!(found.frames, 2500 - u64::from(damaged_frame));
        let report = check(&stand.close());
        let directories = |problem: &&Problem| matches!(problem, Problem::Directory { .. });
        assert!(!report.problems.iter().any(|problem| directories(&problem)), "{report:?}");
        assert_eq!(report.problems.is_empty(), !damaged_frame, "{report:?}");
    }
}

#[test]
fn every_copy_in_the_superblock_heals_from_its_twin() {
    for block in [0, 1, 2, 3] {
        let (stand, _) = filled(300);
        let damaged_at = block * 4096 + 40;
        spoil(&stand.disk, Zone::Superblock, damaged_at);
        let found = scrub(&stand.client, false);
        assert_eq!(found.findings.len(), 1, "{:?}", sentences(&found.findings));
        assert!(found.findings[0].healed, "{found:?}");
        assert_eq!(sentences(&scrub(&stand.client, false).findings), Vec::<String>::new());
        // The power goes at once; the twin, and then the healed copy, is lost.
        let disk = stand.cut_power(block);
        let twin = [3, 2, 1, 0][block as usize];
        spoil(&disk, Zone::Superblock, twin * 4096 + 40);
        let stand = Wish::default().open(disk);
        let volume = stand.client.volume("a").unwrap();
        assert_eq!(stand.read(&volume, 299 * CHUNK, CHUNK), fresh(299, CHUNK), "block {block}");
    }
}

#[test]
fn damaged_pages_heal_from_the_cache() {
    let (stand, volume) = filled(3000);
    // What is read is in the cache from now on, and hides what becomes of the disk.
    for number in 0..3000 {
        stand.read(&volume, number * CHUNK, CHUNK);
    }
    let pages = stand.stats().table_bytes / 4096;
    let mut spoiled = 0;
    for block in 1..pages * 4 {
        let bytes = stand.disk.peek(Zone::Tables, block * 4096, 4096);
        // Maps, the PBN-PBA table, and what is above them.
        if bytes[4] == 128 || bytes[4] == 3 {
            spoil(&stand.disk, Zone::Tables, block * 4096 + 3000);
            spoiled += 1;
        }
    }
    let found = scrub(&stand.client, false);
    let is_healed = |finding: &ScrubFinding| {
        let problem = &finding.problem;
        let is_page = |problem: &Problem| {
            matches!(problem, Problem::DamagedPage { .. } | Problem::DamagedInnerPage { .. })
        };
        finding.healed && is_page(problem)
    };
    assert!(found.findings.iter().all(is_healed), "{:?}", sentences(&found.findings));
    assert!(found.findings.len() > 10 && found.findings.len() <= spoiled, "{found:?}");
    check_clean(&stand.close());
}

#[test]
fn a_damaged_page_that_is_not_in_the_cache_is_named() {
    let (stand, _) = filled(300);
    for block in 1..200 {
        let bytes = stand.disk.peek(Zone::Tables, block * 4096, 4096);
        let is_map_leaf = bytes[4] == 128 && bytes[5] == 0;
        if is_map_leaf {
            spoil(&stand.disk, Zone::Tables, block * 4096 + 3000);
        }
    }
    let found = scrub(&stand.client, false);
    let named = |finding: &ScrubFinding| {
        !finding.healed && matches!(finding.problem, Problem::DamagedPage { index: 0, .. })
    };
    assert!(found.findings.iter().any(named), "{:?}", sentences(&found.findings));
}

#[test]
fn a_scrub_goes_on_where_another_process_left_it() {
    let (stand, _) = filled(3000);
    spoil(&stand.disk, DATA, place_of(&stand.disk, &fresh(2990, CHUNK)) + 70);
    let mut sum = ScrubStep::default();
    let mut position = ScrubPosition::default();
    for _ in 0..4 {
        let request = ScrubRequest { position, fingerprints: false };
        let step = stand.client.ask(request).unwrap();
        add(&mut sum, &step);
        position = step.next.unwrap();
    }
    assert!(sum.findings.is_empty() && sum.frames > 0, "{sum:?}");
    let stand = Wish::default().open(stand.kill(3));
    add(&mut sum, &scrub_from(&stand.client, position, false));
    assert_eq!((sum.frames, sum.damaged.len()), (2999, 1), "{sum:?}");
}

/// Clients write, overwrite, trim and flush, checkpoints come and containers are collected and used
/// again, all in the middle of steps: a sound disk is a sound store at every moment.
#[test]
fn what_moves_under_a_scrub_is_no_damage() {
    let mut scrubs = 0;
    for seed in 1..=3 {
        let wish = Wish { capacities: vec![64 * MIB], seed, ..Wish::default() };
        let mut hand = Hand::new(&wish);
        let volume = hand.volume("a", 24 * MIB);
        let mut dice = Dice(seed);
        let (mut position, mut tag) = (ScrubPosition::default(), None);
        let (mut next_content, mut frames) = (0, 0);
        for _ in 0..2000 {
            let chunk = dice.below(5000);
            match dice.below(20) {
                0..12 => {
                    let count = 1 + dice.below(24);
                    let bytes: Vec<u8> =
                        (0..count).flat_map(|n| fresh(next_content + n, CHUNK)).collect();
                    next_content += count;
                    hand.write(&volume, chunk * CHUNK, &bytes);
                }
                12 => drop(hand.trim(&volume, chunk * CHUNK, (1 + dice.below(800)) * CHUNK)),
                13 => drop(hand.flush()),
                14 => hand.engine.tick(),
                _ => {}
            }
            hand.steps(dice.below(6));
            if let Some(asked) = tag
                && let Some(outcome) = hand.outcome(asked)
            {
                let Ok(Reply::Scrub(step)) = outcome else { panic!("{outcome:?}") };
                assert_eq!(sentences(&step.findings), Vec::<String>::new(), "seed {seed}");
                assert!(step.damaged.is_empty());
                frames += step.frames;
                scrubs += u64::from(step.next.is_none());
                position = step.next.unwrap_or_default();
                tag = None;
            }
            if tag.is_none() {
                let (asked, done) = hand.done();
                let fingerprints = dice.below(2) == 0;
                let request = ScrubRequest { position, fingerprints };
                hand.client.administer(request, done);
                tag = Some(asked);
            }
        }
        let stats = hand.beside(|client| client.stats().unwrap());
        assert!(stats.counters.containers_collected > 3, "{stats:?}");
        assert!(frames > 1000, "{frames}");
        check_clean(&hand.close());
    }
    assert!(scrubs > 3, "{scrubs}");
}
