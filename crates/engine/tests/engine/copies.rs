//! Second copies: a chunk that many LBAs name lies in two containers, and either frame may be lost.

use std::collections::{BTreeMap, BTreeSet};

use disk::{Fault, Loss, MemoryDisk};
use engine::{
    Address, Codec, CollectRequest, Compression, ExplainedPlace, OpenVolume, Options, Problem,
    RequestError, ScrubPosition, ScrubRequest, Stats, Zone, repair, structures,
};

use crate::stand::{CHUNK, Dice, MIB, Opens, Stand, Wish, check, check_clean, fresh};

const DATA: Zone = Zone::Data(0);
const COPIES_ABOVE: u32 = 4;
/// The chunk that is popular, and where it is mapped.
const POPULAR: u64 = 1;
const LBAS: std::ops::Range<u64> = 10..16;
const FRAME_BYTES: u64 = CHUNK + 16;

fn wish() -> Wish {
    Wish { copies_above: COPIES_ABOVE, ..Wish::default() }
}

fn popular() -> Vec<u8> {
    fresh(POPULAR, CHUNK)
}

/// A store in which one chunk among some is stored twice, opened anew.
fn copied() -> (Stand, OpenVolume) {
    let stand = wish().stand();
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 20 * CHUNK, &fresh(1000, MIB));
    for lba in LBAS {
        stand.write(&volume, lba * CHUNK, &popular());
    }
    stand.flush();
    stand.wait_until("a second copy", |stats| stats.copied_chunks == 1);
    reopened(stand)
}

/// Nothing of it is in memory any more.
fn reopened(stand: Stand) -> (Stand, OpenVolume) {
    let disk = stand.close();
    check_clean(&disk);
    let stand = wish().open(disk);
    let volume = stand.client.volume("v").unwrap();
    (stand, volume)
}

fn place(stand: &Stand) -> ExplainedPlace {
    let told = stand.client.explain("v", Address::Lba(LBAS.start)).unwrap();
    told.chunk.unwrap().place.unwrap()
}

fn frame_at(stand: &Stand) -> u64 {
    place(stand).zone_offset_bytes
}

fn copy_at(stand: &Stand) -> u64 {
    place(stand).second_copy.unwrap().zone_offset_bytes
}

fn spoil(disk: &MemoryDisk, offset_bytes: u64) {
    disk.corrupt(DATA, offset_bytes + 100, |byte| *byte ^= 0x40);
}

/// The popular chunk, read wherever it is mapped.
fn read_everywhere(stand: &Stand, volume: &OpenVolume) {
    for lba in LBAS {
        assert!(stand.read(volume, lba * CHUNK, CHUNK) == popular(), "chunk {lba}");
    }
}

/// What a scrub finds, with what of it healed.
fn scrub(stand: &Stand) -> Vec<(Problem, bool)> {
    let (mut found, mut position) = (Vec::new(), Some(ScrubPosition::default()));
    while let Some(at) = position {
        let step = stand.client.ask(ScrubRequest { position: at, fingerprints: true }).unwrap();
        found.extend(step.findings.into_iter().map(|finding| (finding.problem, finding.healed)));
        position = step.next;
    }
    found
}

fn is_healed(stats: &Stats) -> bool {
    stats.counters.chunks_healed == 1 && stats.copied_chunks == 1
}

#[test]
fn a_chunk_that_many_map_is_stored_twice_and_its_copy_is_counted() {
    let stand = wish().stand();
    let volume = stand.volume("v", 64 * MIB);
    for lba in 0..u64::from(COPIES_ABOVE) {
        stand.write(&volume, lba * CHUNK, &popular());
    }
    stand.flush();
    assert_eq!(stand.stats().counters.chunks_copied, 0, "one more makes it popular");
    stand.write(&volume, MIB, &popular());
    stand.flush();
    stand.wait_until("a second copy", |stats| stats.copied_chunks == 1);
    let stats = stand.stats();
    assert_eq!((stats.copy_bytes, stats.counters.chunks_copied), (FRAME_BYTES, 1));
    assert_eq!((stats.unique_chunks, stats.stored_bytes), (1, FRAME_BYTES));
    assert_eq!(stats.written.copied_frame_bytes, FRAME_BYTES);
    // More of the same make no third.
    for lba in 300..320 {
        stand.write(&volume, lba * CHUNK, &popular());
    }
    stand.flush();
    let disk = stand.cut_power_flushed(3);
    let stand = wish().open(disk);
    assert_eq!((stand.stats().copied_chunks, stand.stats().copy_bytes), (1, FRAME_BYTES));
    let told = stand.client.explain("v", Address::Lba(0)).unwrap().chunk.unwrap().place.unwrap();
    assert_ne!(told.second_copy.unwrap().container, told.container);
    check_clean(&stand.close());
}

#[test]
fn without_a_limit_nothing_is_stored_twice() {
    let stand = Wish { copies_above: 0, ..wish() }.stand();
    let volume = stand.volume("v", 64 * MIB);
    for lba in LBAS {
        stand.write(&volume, lba * CHUNK, &popular());
    }
    stand.flush();
    scrub(&stand);
    let stats = stand.stats();
    assert_eq!((stats.copied_chunks, stats.counters.chunks_copied), (0, 0));
    // Who opens it otherwise has it done by a scrub.
    let (stand, _) = reopened(stand);
    scrub(&stand);
    stand.wait_until("a second copy", |stats| stats.copied_chunks == 1);
    check_clean(&stand.close());
}

#[test]
fn a_damaged_frame_is_read_from_its_second_copy_and_healed() {
    let (stand, volume) = copied();
    let (first, second) = (frame_at(&stand), copy_at(&stand));
    spoil(&stand.disk, first);
    read_everywhere(&stand, &volume);
    stand.wait_until("healing", is_healed);
    let stats = stand.stats();
    assert!(stats.counters.chunks_read_from_copies > 0, "{stats:?}");
    assert_eq!((stats.counters.chunks_damaged, stats.damaged_chunks), (0, 0));
    // The copy has taken its place, and there is another.
    assert_eq!(frame_at(&stand), second);
    assert!(![first, second].contains(&copy_at(&stand)));
    let disk = stand.cut_power_flushed(5);
    check_clean(&disk);
    let stand = wish().open(disk);
    read_everywhere(&stand, &stand.client.volume("v").unwrap());
    // And so the next damage costs nothing either.
    let (stand, volume) = reopened(stand);
    spoil(&stand.disk, second);
    read_everywhere(&stand, &volume);
    stand.wait_until("healing", is_healed);
    check_clean(&stand.close());
}

#[test]
fn a_damaged_frame_among_what_is_read_ahead_is_read_from_its_second_copy() {
    const FIRST_MIB: u64 = 20;
    const MIBS: u64 = 16;
    let options = Options { memory_bytes: 1024 * MIB, worker_threads: 0, ..wish().options };
    let wish = Wish { options, ..wish() };
    let stand = wish.stand();
    let volume = stand.volume("v", 64 * MIB);
    let mut bytes: Vec<u8> = (0..MIBS).flat_map(|at| fresh(1000 + at, MIB)).collect();
    let middle = (MIBS / 2 * MIB) as usize;
    bytes[middle..middle + CHUNK as usize].copy_from_slice(&popular());
    for (at, bytes) in (FIRST_MIB..).zip(bytes.chunks(MIB as usize)) {
        stand.write(&volume, at * MIB, bytes);
    }
    LBAS.for_each(|lba| stand.write(&volume, lba * CHUNK, &popular()));
    stand.flush();
    stand.wait_until("a second copy", |stats| stats.copied_chunks == 1);
    let stand = wish.open(stand.close());
    let volume = stand.client.volume("v").unwrap();
    spoil(&stand.disk, frame_at(&stand));
    // Too long for the cache of frames.
    let step = MIB as usize / 2;
    for at in (0..bytes.len()).step_by(step) {
        let read = stand.read(&volume, FIRST_MIB * MIB + at as u64, step as u64);
        assert!(read == bytes[at..at + step], "at {at}");
    }
    let stats = stand.stats();
    assert!(stats.read_cache.hits_ahead > 0, "{:?}", stats.read_cache);
    assert_eq!(stats.counters.chunks_read_from_copies, 1, "{stats:?}");
    stand.wait_until("healing", is_healed);
    check_clean(&stand.close());
}

#[test]
fn a_sector_that_cannot_be_read_costs_nothing_either() {
    let (stand, volume) = copied();
    let at = frame_at(&stand);
    stand.disk.inject(Fault::Read { zone: DATA, offset_bytes: at + 600 });
    // Its neighbours are asked for in the same read.
    let read = stand.read(&volume, 0, 16 * CHUNK);
    for lba in LBAS {
        assert!(read[(lba * CHUNK) as usize..][..CHUNK as usize] == popular()[..]);
    }
    stand.wait_until("healing", is_healed);
    stand.disk.heal();
    check_clean(&stand.close());
}

#[test]
fn a_partial_write_onto_a_damaged_frame_takes_the_rest_from_its_copy() {
    let (stand, volume) = copied();
    spoil(&stand.disk, frame_at(&stand));
    stand.write(&volume, LBAS.start * CHUNK + 512, &[7; 512]);
    let mut expected = popular();
    expected[512..1024].fill(7);
    assert!(stand.read(&volume, LBAS.start * CHUNK, CHUNK) == expected);
    stand.wait_until("healing", is_healed);
    check_clean(&stand.close());
}

#[test]
fn scrub_heals_either_frame_from_the_other() {
    let (stand, _) = copied();
    spoil(&stand.disk, frame_at(&stand));
    let found = scrub(&stand);
    assert!(matches!(found[..], [(Problem::DamagedFrame { .. }, true)]), "{found:?}");
    stand.wait_until("another copy", |stats| stats.copied_chunks == 1);
    let (stand, _) = reopened(stand);
    let at = copy_at(&stand);
    let disk = stand.close();
    spoil(&disk, at);
    let problems = check(&disk).problems;
    assert!(matches!(problems[..], [Problem::DamagedCopy { .. }]), "{problems:?}");
    let stand = wish().open(disk);
    let found = scrub(&stand);
    assert!(matches!(found[..], [(Problem::DamagedCopy { .. }, true)]), "{found:?}");
    stand.wait_until("another copy", |stats| stats.copied_chunks == 1);
    assert_ne!(copy_at(&stand), at);
    assert!(scrub(&stand).is_empty());
    check_clean(&stand.close());
}

/// Whether a container was freed by compressing all of them anew, once.
fn is_freed_by_recompression(stand: &Stand, container: u32) -> bool {
    let recompress = Some(Compression { codec: Codec::Zstd, level: 3 });
    let (mut position, mut freed) = (None, false);
    loop {
        let step = stand.client.ask(CollectRequest { position, recompress }).unwrap();
        freed |= step.collected.is_some_and(|one| one.container == container && one.freed);
        position = step.next;
        if position.is_none() {
            return freed;
        }
    }
}

#[test]
fn a_container_whose_damaged_chunk_heals_while_it_is_collected_is_freed() {
    let (stand, volume) = copied();
    stand.write(&volume, 8 * MIB, &fresh(5000, 8 * MIB));
    stand.flush();
    let (stand, volume) = reopened(stand);
    let first = place(&stand).container;
    spoil(&stand.disk, frame_at(&stand));
    // It heals in the middle of the collection that finds it damaged, or behind the end of it.
    let freed = (0..3).any(|_| is_freed_by_recompression(&stand, first));
    assert!(freed, "container {first} holds nothing, and is kept");
    assert_eq!(stand.stats().damaged_chunks, 0);
    read_everywhere(&stand, &volume);
    check_clean(&stand.close());
}

#[test]
fn where_both_are_damaged_the_chunk_is_lost_until_it_is_written_again() {
    let (stand, volume) = copied();
    spoil(&stand.disk, frame_at(&stand));
    spoil(&stand.disk, copy_at(&stand));
    for _ in 0..2 {
        let read = stand.try_read(&volume, LBAS.start * CHUNK, CHUNK);
        assert!(matches!(read, Err(RequestError::Damaged { .. })), "{read:?}");
        stand.wait_until("the verdict", |stats| stats.damaged_chunks == 1);
    }
    assert_eq!(stand.stats().copied_chunks, 0);
    stand.write(&volume, 9 * MIB, &popular());
    stand.flush();
    read_everywhere(&stand, &volume);
    stand.wait_until("healing", is_healed);
    check_clean(&stand.close());
}

#[test]
fn a_copy_that_cannot_be_read_for_a_while_is_kept() {
    let (stand, volume) = copied();
    let (first, second) = (frame_at(&stand), copy_at(&stand));
    spoil(&stand.disk, first);
    stand.disk.inject(Fault::Read { zone: DATA, offset_bytes: second + 600 });
    assert!(stand.try_read(&volume, LBAS.start * CHUNK, CHUNK).is_err());
    stand.wait_until("the verdict", |stats| stats.damaged_chunks == 1);
    stand.disk.heal();
    read_everywhere(&stand, &volume);
    stand.wait_until("healing", is_healed);
    assert_eq!((frame_at(&stand), stand.stats().damaged_chunks), (second, 0));
    check_clean(&stand.close());
}

#[test]
fn a_scrub_drops_no_copy_that_it_could_not_read() {
    let (stand, volume) = copied();
    let copy = place(&stand).second_copy.unwrap();
    spoil(&stand.disk, frame_at(&stand));
    stand.disk.inject(Fault::Read { zone: DATA, offset_bytes: copy.zone_offset_bytes + 600 });
    // The scrub has not come to the frame, and nobody else has.
    let position = ScrubPosition::Containers { container: copy.container };
    stand.client.ask(ScrubRequest { position, fingerprints: true }).unwrap();
    stand.disk.heal();
    read_everywhere(&stand, &volume);
    stand.wait_until("healing", is_healed);
    check_clean(&stand.close());
}

#[test]
fn a_copy_that_a_scrub_could_not_read_gets_another_in_its_place() {
    let (stand, volume) = copied();
    let second = copy_at(&stand);
    stand.disk.inject(Fault::Read { zone: DATA, offset_bytes: second + 600 });
    let found = scrub(&stand);
    assert!(matches!(found[..], [(Problem::DamagedCopy { .. }, false)]), "{found:?}");
    stand.wait_until("another copy", |stats| stats.counters.chunks_copied == 1);
    assert_ne!(copy_at(&stand), second);
    assert_eq!(stand.stats().copied_chunks, 1);
    spoil(&stand.disk, frame_at(&stand));
    read_everywhere(&stand, &volume);
    stand.disk.heal();
    stand.wait_until("healing", is_healed);
    check_clean(&stand.close());
}

#[test]
fn a_check_counts_no_chunk_as_lost_that_has_a_sound_copy_and_a_repair_takes_it() {
    let (stand, volume) = copied();
    let at = frame_at(&stand);
    drop(volume);
    let disk = stand.close();
    spoil(&disk, at);
    let problems = check(&disk).problems;
    assert!(matches!(problems[..], [Problem::DamagedFrame { .. }]), "{problems:?}");
    let report = engine::repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    assert_eq!(report.lost_chunks, 0, "{report:?}");
    check_clean(&disk);
    let stand = wish().open(disk);
    read_everywhere(&stand, &stand.client.volume("v").unwrap());
    assert_eq!(stand.stats().copied_chunks, 0);
    scrub(&stand);
    stand.wait_until("another copy", |stats| stats.copied_chunks == 1);
    check_clean(&stand.close());
}

/// Volume of the lives below, and contents in it: some written often, many now and then.
const CHUNKS: u64 = 6000;
const FAVOURITES: u64 = 40;

/// A store of sixteen containers that clients write over and over, so that collection has always
/// something to move.
struct Life {
    stand: Option<Stand>,
    content: Vec<Option<u64>>,
    dice: Dice,
}

impl Life {
    fn wish() -> Wish {
        Wish { capacities: vec![64 * MIB], ..wish() }
    }

    fn new(seed: u64) -> Self {
        let stand = Self::wish().stand();
        stand.volume("v", CHUNKS * CHUNK);
        Self { stand: Some(stand), content: vec![None; CHUNKS as usize], dice: Dice(seed) }
    }

    fn stand(&self) -> &Stand {
        self.stand.as_ref().unwrap()
    }

    fn volume(&self) -> OpenVolume {
        self.stand().client.volume("v").unwrap()
    }

    fn go_on(&mut self, writes: u64) {
        let volume = self.volume();
        for _ in 0..writes {
            let lba = self.dice.below(CHUNKS);
            let content = match self.dice.below(8) {
                0..3 => Some(self.dice.below(FAVOURITES)),
                3..7 => Some(self.dice.below(1 << 40)),
                _ => None,
            };
            match content {
                Some(content) => {
                    self.stand().write(&volume, lba * CHUNK, &fresh(content, CHUNK));
                }
                None => self.stand().trim(&volume, lba * CHUNK, CHUNK),
            }
            self.content[lba as usize] = content;
        }
        self.stand().flush();
    }

    fn reopen(&mut self, end: impl FnOnce(Stand) -> MemoryDisk) {
        let disk = end(self.stand.take().unwrap());
        check_clean(&disk);
        self.stand = Some(Self::wish().open(disk));
    }

    /// How many LBAs name each content.
    fn references(&self) -> BTreeMap<u64, u32> {
        let mut references = BTreeMap::new();
        for content in self.content.iter().flatten() {
            *references.entry(*content).or_insert(0) += 1;
        }
        references
    }

    /// The frames of all popular chunks, when each has a copy.
    fn places_of_copied(&self) -> Vec<ExplainedPlace> {
        let is_popular = |content: &u64| self.references()[content] > COPIES_ABOVE;
        let mut popular = BTreeMap::new();
        for (lba, content) in (0..).zip(&self.content) {
            if let Some(content) = content.filter(|content| *content < FAVOURITES) {
                popular.insert(content, lba);
            }
        }
        popular.retain(|content, _| is_popular(content));
        assert!(popular.len() as u64 > FAVOURITES / 2);
        for _ in 0..100 {
            scrub(self.stand());
            let told = popular.values().map(|&lba| {
                let told = self.stand().client.explain("v", Address::Lba(lba)).unwrap();
                told.chunk.unwrap().place.unwrap()
            });
            let places: Vec<_> = told.collect();
            if places.iter().all(|place| place.second_copy.is_some()) {
                return places;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("copies never came: {:?}", self.stand().stats());
    }

    fn read_all(&self) {
        let volume = self.volume();
        for (lba, content) in (0..).zip(&self.content) {
            let expected = content.map_or(vec![0; CHUNK as usize], |of| fresh(of, CHUNK));
            assert!(self.stand().read(&volume, lba * CHUNK, CHUNK) == expected, "chunk {lba}");
        }
    }
}

#[test]
fn collection_moves_copies_and_keeps_them_apart_from_their_chunks() {
    for seed in 1..3 {
        let mut life = Life::new(seed);
        for round in 0..4 {
            life.go_on(5000);
            life.stand().wait_until("copies", |stats| stats.copied_chunks > FAVOURITES / 2);
            life.reopen(|stand| stand.cut_power_flushed(4 * seed + round));
        }
        // What collection does depends on when it finds time: writes go on until it was enough.
        let collected = |life: &Life| life.stand().stats().counters.containers_collected;
        for _ in 0..50 {
            if collected(&life) > 3 {
                break;
            }
            life.go_on(1000);
        }
        assert!(collected(&life) > 3, "hardly anything was collected");
        life.reopen(Stand::close);
        life.read_all();
        // Every popular chunk has a copy, once there is time for it; and one frame of each may go.
        let places = life.places_of_copied();
        for place in &places {
            spoil(&life.stand().disk, place.zone_offset_bytes);
        }
        life.read_all();
        assert!(scrub(life.stand()).iter().all(|(_, healed)| *healed));
        life.reopen(Stand::close);
        life.read_all();
    }
}

#[test]
fn a_copy_goes_with_half_of_the_references() {
    let mut life = Life::new(9);
    life.go_on(6000);
    life.stand().wait_until("copies", |stats| stats.copied_chunks > FAVOURITES / 2);
    let volume = life.volume();
    // Half of the volume goes, and one LBA of each favourite stays.
    let mut kept = BTreeSet::new();
    for lba in 0..CHUNKS {
        let content = life.content[lba as usize].filter(|&content| content < FAVOURITES);
        if content.is_some_and(|content| !kept.insert(content)) || lba % 2 == 0 {
            life.stand().trim(&volume, lba * CHUNK, CHUNK);
            life.content[lba as usize] = None;
        }
    }
    // Whatever has been written since, collection has met every copy.
    for round in 0..40 {
        let at = round % 4 * 400;
        let old = (at..at + 400).map(|lba| lba as usize);
        life.stand().write(&volume, at * CHUNK, &fresh((1 << 50) + round * 400, 400 * CHUNK));
        old.for_each(|lba| life.content[lba] = None);
    }
    life.stand().flush();
    life.stand().wait_until("dropping", |stats| stats.copied_chunks < FAVOURITES / 4);
    life.reopen(Stand::close);
}

#[test]
fn a_repair_finds_a_second_copy_whose_page_is_lost_as_well() {
    let (stand, _) = copied();
    let (frame_at, disk) = (frame_at(&stand), stand.close());
    let all = structures(Box::new(disk.left_by_power_loss(0, Loss::None))).unwrap();
    for leaf in all.iter().filter(|of| of.kind == "table of second copies, leaf") {
        // Both roots may name it.
        disk.corrupt(leaf.zone, leaf.offset_bytes + 500, |byte| *byte = 0xa5);
    }
    spoil(&disk, frame_at);
    let problems = check(&disk.left_by_power_loss(0, Loss::None)).problems;
    let is_named = |problem: &Problem| matches!(problem, Problem::HiddenChunks { count: 6, .. });
    assert!(problems.iter().any(is_named), "{problems:?}");
    let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    assert_eq!((report.lost_chunks, report.lost_records), (0, 0), "{report:?}");
    check_clean(&disk);
    let stand = wish().open(disk);
    read_everywhere(&stand, &stand.client.volume("v").unwrap());
}
