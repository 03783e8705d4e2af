//! A store that fills says so at its watermarks, and again when room has come back.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use disk::{Loss, MemoryDisk};
use engine::{
    Address, Caches, DeleteRequest, Engine, NewVolume, Notice, OpenVolume, Reply, RequestError,
    Room, ScrubFinding, ScrubPosition, ScrubRequest, SnapshotRequest, Zone, control,
};

use crate::stand::{
    CHUNK, Dice, GIB, Hand, Holder, MIB, Opens, Stand, Wish, check_clean, fresh, packed,
};

/// What the operator was told since this was last asked, in words.
fn told(notices: &Mutex<Vec<Notice>>) -> Vec<String> {
    let of_room = |notice: &Notice| match notice {
        Notice::RoomRunsOut { room, percent } => Some(format!("{room} {percent} up")),
        Notice::RoomCameBack { room, percent } => Some(format!("{room} {percent} down")),
        Notice::WritesRefused => Some("refused".to_owned()),
        Notice::WritesFitAgain => Some("fits".to_owned()),
        _ => None,
    };
    std::mem::take(&mut *notices.lock().unwrap()).iter().filter_map(of_room).collect()
}

#[test]
fn a_store_that_fills_and_empties_says_so_once_each_way() {
    let mut hand = Hand::new(&Wish::default());
    let notices = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&notices);
    hand.engine.observe(Box::new(move |notice| heard.lock().unwrap().push(notice.clone())));
    hand.engine.warn_at(&[50, 20, 50]);
    let volume = hand.volume("v", 1 << 30);
    let mut written = 0;
    let mut fits = |hand: &mut Hand| {
        written += 1;
        let later = hand.write(&volume, written * MIB, &fresh(written, MIB));
        let outcome = later.map(|tag| hand.wait(tag).map(|_| ()));
        hand.settle();
        hand.engine.tick();
        outcome.unwrap_or(Ok(()))
    };
    while fits(&mut hand).is_ok() {}
    assert_eq!(told(&notices), ["data 20 up", "data 50 up", "refused"]);
    assert_eq!(fits(&mut hand), Err(RequestError::NoSpace));
    assert!(told(&notices).is_empty(), "a store that is full says so once");
    let stats = hand.beside(|client| client.stats()).unwrap();
    assert_eq!(stats.watermark_percent, Some(50));
    assert!(stats.data_used_ratio > 0.8 && stats.tables_used_ratio < 0.5, "{stats:?}");

    hand.beside(|client| client.delete_volume("v")).unwrap();
    for _ in 0..100 {
        hand.settle();
        hand.engine.tick();
    }
    assert_eq!(told(&notices), ["data 50 down", "data 20 down", "fits"]);
    assert_eq!(Room::Tables.to_string(), "tables");
}

/// A store that is nearly full of living chunks is written over and over: collection always finds
/// the room that it needs to give some back, and no write waits for ever.
#[test]
fn a_nearly_full_store_is_written_over_for_as_long_as_one_likes() {
    let wish = Wish { capacities: vec![64 * MIB], ..Wish::default() };
    let stand = wish.stand();
    let volume = stand.volume("v", GIB);
    let chunks = 48 * MIB / CHUNK;
    stand.write(&volume, 0, &fresh(1, chunks * CHUNK));
    stand.flush();
    let mut dice = Dice(7);
    for round in 0..chunks {
        let bytes = fresh(1 << 32 | round, 2 * CHUNK);
        stand.write(&volume, dice.below(chunks - 1) * CHUNK, &bytes);
    }
    stand.flush();
    assert!(stand.stats().counters.containers_collected > 16);
    check_clean(&stand.close());
}

/// Writes a MiB after the other until one is refused; returns how many fit.
fn fill(hand: &mut Hand, volume: &OpenVolume) -> u64 {
    let mut written = 0;
    loop {
        let later = hand.write(volume, written * MIB, &fresh(written, MIB));
        if later.is_some_and(|tag| hand.wait(tag).is_err()) {
            hand.settle();
            return written;
        }
        written += 1;
        hand.settle();
    }
}

/// What is kept for collection counts as no room, whatever a store's size: a write fails when all
/// of what is left is used, not before, and not long after it was called so.
#[test]
fn when_the_first_write_is_refused_all_of_the_room_is_used() {
    for (capacities, chunk_bytes) in [
        (vec![64 * MIB], CHUNK),
        (vec![64 * MIB], 16 * CHUNK),
        (vec![100 * MIB], CHUNK),
        (vec![40 * MIB, 160 * MIB], CHUNK),
    ] {
        let wish = Wish { capacities, chunk_bytes: chunk_bytes as u32, ..Wish::default() };
        let mut hand = Hand::new(&wish);
        let volume = hand.volume("v", GIB);
        let stats = hand.beside(|client| client.stats()).unwrap();
        assert!(stats.data_used_ratio == 0.0 && stats.data_taken_ratio == 0.0, "{stats:?}");
        fill(&mut hand, &volume);
        let stats = hand.beside(|client| client.stats()).unwrap();
        assert!(stats.data_used_ratio > 0.99 && stats.data_taken_ratio > 0.99, "{stats:?}");
        drop(volume);
        check_clean(&hand.close());
    }
}

/// Dead chunks in containers that collection leaves alone are no room: neither figures nor notices
/// call them so. What gives a container back is, before it is collected and after.
#[test]
fn what_collection_never_moves_is_no_room_and_nobody_is_told_that_it_is() {
    let mut hand = Hand::new(&Wish { capacities: vec![64 * MIB], ..Wish::default() });
    let notices = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&notices);
    hand.engine.observe(Box::new(move |notice| heard.lock().unwrap().push(notice.clone())));
    let volume = hand.volume("v", GIB);
    let written = fill(&mut hand, &volume);
    hand.engine.tick();
    let mut said = told(&notices);
    said.sort();
    assert_eq!(said, ["data 80 up", "data 95 up", "refused"]);

    let pass_time = |hand: &mut Hand| {
        for _ in 0..100 {
            hand.settle();
            hand.engine.tick();
        }
    };
    for lba in (0..written * MIB / CHUNK).step_by(18) {
        let trimmed = hand.trim(&volume, lba * CHUNK, CHUNK);
        hand.wait(trimmed).unwrap();
    }
    pass_time(&mut hand);
    let stats = hand.beside(|client| client.stats()).unwrap();
    assert!(stats.dead_bytes > 2 * MIB && stats.data_used_ratio > 0.99, "{stats:?}");
    assert_eq!(stats.collectable_bytes, 0);
    assert_eq!(told(&notices), [""; 0]);
    let refused = hand.write(&volume, 512 * MIB, &fresh(1 << 32, MIB)).unwrap();
    assert_eq!(hand.wait(refused).err(), Some(RequestError::NoSpace));

    let trimmed = hand.trim(&volume, 0, 16 * MIB);
    hand.wait(trimmed).unwrap();
    pass_time(&mut hand);
    assert_eq!(told(&notices), ["data 95 down", "data 80 down", "fits"]);
    let stats = hand.beside(|client| client.stats()).unwrap();
    assert!(stats.data_used_ratio < 0.8, "{stats:?}");
    for number in 0..12 {
        let later = hand.write(&volume, number * MIB, &fresh(1 << 33 | number, MIB));
        later.into_iter().for_each(|tag| drop(hand.wait(tag).unwrap()));
        hand.settle();
    }
    drop(volume);
    check_clean(&hand.close());
}

/// A close begins no collection: writes that wait for what it would bring fail, and are told why.
#[test]
fn a_full_store_closes_although_writes_wait_for_collection() {
    let mut hand = Hand::new(&Wish { capacities: vec![64 * MIB], ..Wish::default() });
    let volume = hand.volume("v", GIB);
    let written = fill(&mut hand, &volume);
    for number in 0..written {
        hand.trim(&volume, number * MIB, MIB / 8);
    }
    let waiting: Vec<u64> = (0..8)
        .filter_map(|number| hand.write(&volume, number * MIB, &fresh(1 << 32 | number, MIB)))
        .collect();
    let (closed, done) = hand.done();
    hand.client.administer(control::Close {}, done);
    hand.wait(closed).unwrap();
    let outcomes = waiting.into_iter().map(|tag| hand.outcome(tag).unwrap().err());
    let refused: Vec<_> = outcomes.flatten().collect();
    assert!(!refused.is_empty() && refused.iter().all(|error| *error == RequestError::Closing));
    drop(volume);
    check_clean(&hand.disk);
}

/// What is left of a chunk at a new end is written again, which may need more room than there is:
/// then the volume keeps its size, and everything else goes on.
#[test]
fn a_volume_of_a_full_store_shrinks_to_whole_chunks_or_says_why_not() {
    let chunk_bytes = 16 * CHUNK;
    let wish =
        Wish { capacities: vec![64 * MIB], chunk_bytes: chunk_bytes as u32, ..Wish::default() };
    let mut hand = Hand::new(&wish);
    let volume = hand.volume("v", GIB);
    let written = fill(&mut hand, &volume);
    let mut refused = 0;
    for number in 1..10 {
        let size_bytes = written * MIB - number * chunk_bytes - 512;
        let shrunk = hand.beside(move |client| client.resize_volume("v", size_bytes));
        refused += u32::from(shrunk == Err(RequestError::NoSpace));
    }
    assert!(refused > 0);
    let size_bytes = written / 2 * MIB;
    hand.beside(move |client| client.resize_volume("v", size_bytes)).unwrap();
    let later = hand.write(&volume, 0, &fresh(1 << 32, MIB));
    later.into_iter().for_each(|tag| drop(hand.wait(tag).unwrap()));
    let ragged_bytes = size_bytes - 512;
    hand.beside(move |client| client.resize_volume("v", ragged_bytes)).unwrap();
    drop(volume);
    check_clean(&hand.close());
}

/// Room that is on its way is waited for, as a trim waits for it.
#[test]
fn a_volume_of_a_full_store_shrinks_anywhere_when_room_comes() {
    let mut hand = Hand::new(&Wish { capacities: vec![64 * MIB], ..Wish::default() });
    let volume = hand.volume("v", GIB);
    let written = fill(&mut hand, &volume);
    let trimmed = hand.trim(&volume, 0, written * MIB);
    hand.wait(trimmed).unwrap();
    let size_bytes = written / 2 * MIB - 512;
    let shrunk = hand.beside(move |client| client.resize_volume("v", size_bytes)).unwrap();
    assert_eq!(shrunk.size_bytes, size_bytes);
    drop(volume);
    check_clean(&hand.close());
}

/// Unmaps take no memory of payloads: who sends more than are applied is answered later.
#[test]
fn trims_are_not_taken_faster_than_they_are_applied() {
    let mut hand = Hand::new(&Wish::default());
    let volume = hand.volume("v", GIB);
    hand.write(&volume, 0, &fresh(1, MIB));
    let tags: Vec<u64> = (0..400).map(|at| hand.trim(&volume, at * MIB, MIB)).collect();
    hand.steps(1);
    let answered = tags.iter().filter(|&&tag| hand.outcome(tag).is_some()).count();
    assert!((60..80).contains(&answered), "{answered} of 400 are answered at once");
    hand.settle();
    let later = tags.iter().filter(|&&tag| hand.outcome(tag).is_some_and(|ended| ended.is_ok()));
    assert_eq!(later.count(), 400 - answered);
    assert_eq!(hand.read(&volume, 0, CHUNK as u32), vec![0; CHUNK as usize]);
    drop(volume);
    check_clean(&hand.close());
}

/// What a trim covers in part takes memory of chunks: the write buffer's, while there is some.
#[test]
fn trims_of_sectors_take_no_more_memory_than_the_write_buffer() {
    const TRIMS: u64 = 4000;
    let wish = Wish { capacities: vec![GIB], ..Wish::default() };
    let mut hand = Hand::new(&wish);
    let sparse = hand.volume("sparse", 1024 * GIB);
    for number in 0..20 {
        hand.write(&sparse, number * 700 * CHUNK, &packed(number));
    }
    drop(sparse);
    let (mut hand, held) = Holder::open(&wish, hand.close());
    let sparse = hand.beside(|client| client.volume("sparse").unwrap());
    let volume = hand.volume("v", GIB);
    for number in 0..TRIMS {
        hand.write(&volume, number * CHUNK, &packed(number));
        hand.settle();
    }
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    // A long trim whose pages do not come stands before all that follows.
    held.hold(Zone::Tables);
    let first = hand.trim(&sparse, 0, 1024 * GIB);
    hand.settle();
    let tags: Vec<u64> =
        (0..TRIMS).map(|number| hand.trim(&volume, number * CHUNK + 512, 512)).collect();
    hand.settle();
    let answered = tags.iter().filter(|&&tag| hand.outcome(tag).is_some()).count() as u64;
    let most = std::iter::from_fn(|| hand.client.try_buffer(0, CHUNK as usize));
    assert_eq!(most.count(), 0, "the write buffer is full of them");
    assert!((1000..2500).contains(&answered), "{answered} of {TRIMS} are answered at once");
    held.let_go();
    hand.wait(first).unwrap();
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let later = tags.iter().filter(|&&tag| hand.outcome(tag).is_some_and(|ended| ended.is_ok()));
    assert_eq!(later.count() as u64, TRIMS - answered);
    let mut left = packed(77);
    left[512..1024].fill(0);
    assert!(hand.read(&volume, 77 * CHUNK, CHUNK as u32) == left);
    drop((sparse, volume));
    check_clean(&hand.close());
}

/// A deletion that a close puts off until the next opening makes no room: a write that waits for it
/// fails, but not as if the store were full, and the store closes.
#[test]
fn a_full_store_closes_although_a_write_waits_for_a_deletion() {
    let mut hand = Hand::new(&Wish { capacities: vec![64 * MIB], ..Wish::default() });
    let (full, other) = (hand.volume("v", GIB), hand.volume("w", GIB));
    fill(&mut hand, &full);
    let (_, done) = hand.done();
    hand.client.administer(DeleteRequest { even_if_open: true, ..DeleteRequest::of("v") }, done);
    let waits = hand.write(&other, 0, &fresh(1 << 32, MIB)).unwrap();
    let (closed, done) = hand.done();
    hand.client.administer(control::Close {}, done);
    hand.wait(closed).unwrap();
    assert_eq!(hand.outcome(waits).unwrap().unwrap_err(), RequestError::Closing);
    check_clean(&hand.disk);
}

/// Steps of a scrub through all containers, in which no time passes: what is buffered stays so.
fn scrub_in_no_time(hand: &mut Hand) -> Vec<ScrubFinding> {
    let (mut findings, mut position) = (Vec::new(), ScrubPosition::Containers { container: 0 });
    while matches!(position, ScrubPosition::Containers { .. }) {
        let (tag, done) = hand.done();
        let request = ScrubRequest { position, fingerprints: false };
        hand.client.administer(request, done);
        let outcome = (0..100_000).find_map(|_| {
            hand.engine.step();
            hand.outcome(tag)
        });
        let Some(Ok(Reply::Scrub(step))) = outcome else { panic!("{outcome:?}") };
        findings.extend(step.findings);
        position = step.next.unwrap_or_default();
    }
    findings
}

/// A scrub heals what is damaged in the open container from memory, at a new place for each chunk;
/// but not where all places are promised to writes that were acknowledged.
#[test]
fn a_scrub_of_a_full_store_heals_nothing_into_room_that_is_promised() {
    let mut hand = Hand::new(&Wish { capacities: vec![64 * MIB], ..Wish::default() });
    let volume = hand.volume("v", GIB);
    let room_bytes = |hand: &mut Hand| hand.beside(|client| client.stats()).unwrap().free_bytes;
    let mut written = 0;
    while room_bytes(&mut hand) > 2 * MIB {
        assert_eq!(hand.write(&volume, written * MIB, &fresh(written, MIB)), None);
        written += 1;
        hand.settle();
    }
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let damaged = (written - 2) * MIB / CHUNK..(written - 2) * MIB / CHUNK + 8;
    for lba in damaged {
        let told = hand.beside(move |client| client.explain("v", Address::Lba(lba))).unwrap();
        let at = told.chunk.unwrap().place.unwrap().zone_offset_bytes + 100;
        hand.disk.corrupt(Zone::Data(0), at, |byte| *byte ^= 0x40);
    }
    let promised = fresh(1 << 32, room_bytes(&mut hand));
    assert_eq!(hand.write(&volume, 512 * MIB, &promised), None, "it is acknowledged");

    let findings = scrub_in_no_time(&mut hand);
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    assert_eq!(findings.len(), 8, "{findings:?}");
    assert!(findings.iter().all(|finding| !finding.healed), "{findings:?}");
    assert!(hand.read(&volume, 512 * MIB, promised.len() as u32) == promised);
    // There is room again, and something heals: the container may leave memory meanwhile.
    let trimmed = hand.trim(&volume, 0, 16 * MIB);
    hand.wait(trimmed).unwrap();
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    let findings = scrub_in_no_time(&mut hand);
    assert!(findings.iter().any(|finding| finding.healed), "{findings:?}");
    hand.close();
}

fn cache_of(pages: usize, young_max: usize) -> Option<Caches> {
    let dirty_pages_max = pages / 4 * 3;
    let (directory_entries, frame_bytes, lends) = (0, 0, false);
    Some(Caches { pages, dirty_pages_max, young_max, directory_entries, frame_bytes, lends })
}

/// A store whose tables are full, and hold many entries that are young.
fn full_of_young(wish: &Wish) -> MemoryDisk {
    let stand = wish.stand();
    let volume = stand.volume("v", 2 * GIB);
    for number in 0..800 {
        let chunks = (0..256).flat_map(|at| packed(number * 256 + at));
        stand.write(&volume, number * MIB, &chunks.collect::<Vec<u8>>());
    }
    // A page of a map for each of these.
    let sparse = stand.volume("sparse", 1024 * GIB);
    let mut number = 0;
    while stand.client.write_at(&sparse, number * 700 * CHUNK, &packed(1)).is_ok() {
        number += 1;
    }
    let stats = stand.stats();
    assert!(number > 5000 && stats.tables_used_ratio > 0.99, "{number}, {stats:?}");
    assert!(stats.tables.young_entries > 200_000 && stats.writing_stopped.is_none(), "{stats:?}");
    stand.close()
}

/// A chunk so often is a page of a map for each.
const SPARSE_CHUNKS: u64 = 700;

/// A disk after a loss of power, for each MiB of the volume what may be there: what was flushed or
/// has been written since, by the number of its first chunk, and how many trims were durable.
type Left = (MemoryDisk, Vec<Vec<u64>>, u64);

/// What is known of the first MiB of a volume that is written over and over.
#[derive(Default)]
struct WrittenOver {
    may_be_there: Vec<Vec<u64>>,
    chunks: u64,
    /// Chunks of the sparse volume that are trimmed for good.
    trimmed: u64,
    /// Told of each checkpoint that begins.
    begun: Option<Sender<()>>,
    /// Whether the next root is one that is written twice.
    root_repeats: bool,
    /// Of losses of power while a root that was written twice was the newest.
    left: Vec<Left>,
}

impl WrittenOver {
    /// While a root that is written twice is the newest, what a loss of power leaves is kept.
    fn note(&mut self, notice: &Notice, disk: &MemoryDisk) {
        match notice {
            // Whoever trims may have done all that it was to do.
            Notice::CheckpointBegan { .. } => {
                let _ = self.begun.as_ref().map(|to| to.send(()));
            }
            Notice::RootRepeated { .. } => self.root_repeats = true,
            Notice::CheckpointEnded { .. } if std::mem::take(&mut self.root_repeats) => {
                let disk = disk.left_by_power_loss(self.chunks, Loss::Mixed);
                self.left.push((disk, self.may_be_there.clone(), self.trimmed));
            }
            _ => {}
        }
    }

    fn write(this: &Mutex<Self>, stand: &Stand, volume: &OpenVolume, at: u64) {
        let mut known = this.lock().unwrap();
        let first_chunk = known.chunks;
        known.chunks += 256;
        known.may_be_there.resize_with(400, Vec::new);
        known.may_be_there[at as usize].push(first_chunk);
        drop(known);
        let chunks = (0..256).flat_map(|n| packed(first_chunk + n));
        stand.write(volume, at * MIB, &chunks.collect::<Vec<u8>>());
    }

    /// With each checkpoint that begins, a trim that is durable: what a root that is written twice
    /// leaves out is missed then. The leaf that it changes stays.
    fn trim_with_checkpoints(this: &Mutex<Self>, stand: &Stand, sparse: &OpenVolume, most: u64) {
        let (to, begun) = mpsc::channel();
        this.lock().unwrap().begun = Some(to);
        for (number, ()) in (0..most).zip(begun) {
            stand.trim(sparse, (number * SPARSE_CHUNKS + 1) * CHUNK, CHUNK);
            stand.flush();
            this.lock().unwrap().trimmed = number + 1;
        }
    }

    fn flush(this: &Mutex<Self>, stand: &Stand) {
        stand.flush();
        for numbers in &mut this.lock().unwrap().may_be_there {
            numbers.drain(..numbers.len().saturating_sub(1));
        }
    }
}

fn assert_is_there(wish: &Wish, (disk, may_be_there, trimmed): Left) {
    let stand = wish.open(disk);
    let sparse = stand.client.volume("sparse").unwrap();
    for number in 0..trimmed {
        let there = stand.read(&sparse, number * SPARSE_CHUNKS * CHUNK, 2 * CHUNK);
        assert!(there[..CHUNK as usize] == packed(1), "chunk {number} is gone");
        assert!(there[CHUNK as usize..] == [0; CHUNK as usize], "chunk {number} is back");
    }
    let volume = stand.client.volume("v").unwrap();
    for (at, numbers) in may_be_there.iter().enumerate() {
        let there = stand.read(&volume, at as u64 * MIB, MIB);
        for (n, chunk) in there.chunks(CHUNK as usize).enumerate() {
            let is_one = numbers.iter().any(|first| packed(first + n as u64) == chunk);
            assert!(is_one, "chunk {n} of MiB {at} is none of {numbers:?}");
        }
    }
    check_clean(&stand.close());
}

/// What overwriting leaves behind in the tables comes back, as far as it has to: entries that are
/// young and what takes them back are no reason to refuse writes. Blocks are so short that a root
/// is written twice to have some; that loses nothing when power fails.
#[test]
fn nearly_full_tables_are_written_over_for_as_long_as_one_likes() {
    let wish = Wish { cache: cache_of(20_000, 1_000_000), ..Wish::default() };
    let known = Arc::new(Mutex::new(WrittenOver::default()));
    let disk = wish.disk();
    let (told, of) = (Arc::clone(&known), disk.clone());
    let observer = move |notice: &Notice| told.lock().unwrap().note(notice, &of);
    let observe = |engine: &mut Engine| engine.observe(Box::new(observer));
    let stand = wish.open_prepared(disk, observe).unwrap();
    let volume = stand.volume("v", 2 * GIB);
    (0..400).for_each(|at| WrittenOver::write(&known, &stand, &volume, at));
    let sparse = stand.volume("sparse", 1024 * GIB);
    let mut number = 0;
    while stand.stats().tables_used_ratio < 0.9 {
        for _ in 0..20 {
            let chunks = [packed(1), packed(2)].concat();
            stand.write(&sparse, number * SPARSE_CHUNKS * CHUNK, &chunks);
            number += 1;
        }
    }
    thread::scope(|scope| {
        scope.spawn(|| WrittenOver::trim_with_checkpoints(&known, &stand, &sparse, number));
        let written = catch_unwind(AssertUnwindSafe(|| {
            for at in (0..20).flat_map(|_| 0..100) {
                WrittenOver::write(&known, &stand, &volume, at);
                if at % 10 == 0 {
                    WrittenOver::flush(&known, &stand);
                }
            }
        }));
        // A failure would never be seen if the other thread went on waiting for checkpoints.
        known.lock().unwrap_or_else(PoisonError::into_inner).begun = None;
        written.unwrap_or_else(|failure| resume_unwind(failure));
    });
    let stats = stand.stats();
    assert!((0.85..0.95).contains(&stats.tables_used_ratio), "{stats:?}");
    check_clean(&stand.close());
    let left = std::mem::take(&mut known.lock().unwrap().left);
    left.into_iter().for_each(|left| assert_is_there(&wish, left));
}

/// With much memory much stays young, until the tables are full; opened with little, it is merged
/// all the same, also through a cache that most pages leave at once. They leave the blocks alone
/// that checkpoints need, what they replace comes back by checkpoints, and what merging takes was
/// never given to clients. After a kill the opening begins with it, and no checkpoint helps it.
#[test]
fn what_much_memory_has_gathered_little_memory_merges() {
    for (pages, killed) in [(20_000, false), (300, true)] {
        let wish = Wish { cache: cache_of(pages, 1_000_000), ..Wish::default() };
        let mut disk = full_of_young(&wish);
        if killed {
            let stand = wish.open(disk);
            stand.trim(&stand.client.volume("v").unwrap(), 0, MIB);
            disk = stand.cut_power_flushed(1);
        }
        let wish = Wish { cache: cache_of(300, 1000), ..wish };
        let stand = wish.open(disk);
        assert_eq!(stand.report.records_replayed > 0, killed);
        stand.wait_until("what is young is merged", |stats| {
            assert_eq!(stats.writing_stopped, None, "{stats:?}");
            stats.tables.young_entries < 5000
        });
        check_clean(&stand.close());
    }
}

/// Volumes and snapshots take pages of the catalog, for good: not those that are kept, or the next
/// checkpoint would find none, and nor would any opening after it.
#[test]
fn full_tables_take_no_more_volumes_and_snapshots_and_everything_else_goes_on() {
    let wish = Wish { cache: cache_of(300, 1000), ..Wish::default() };
    let stand = wish.stand();
    let volumes: Vec<String> = (0..100).map(|number| format!("v{number}")).collect();
    volumes.iter().for_each(|name| drop(stand.volume(name, MIB)));
    let sparse = stand.volume("sparse", 1024 * GIB);
    let mut number = 0;
    while stand.client.write_at(&sparse, number * SPARSE_CHUNKS * CHUNK, &packed(1)).is_ok() {
        number += 1;
    }
    let stats = stand.stats();
    assert!(number > 5000 && stats.tables_used_ratio > 0.9, "{number}, {stats:?}");
    let snap = |stand: &Stand, number: usize| {
        let (volumes, name) = (volumes.clone(), format!("s{number}"));
        stand.client.ask(SnapshotRequest { volumes, name, taken_unix_s: 7 })
    };
    let taken = (0..100).take_while(|&number| snap(&stand, number).is_ok()).count();
    assert!(taken < 100 && stand.stats().writing_stopped.is_none(), "{taken}");
    assert_eq!(snap(&stand, taken), Err(RequestError::NoSpace));
    // What could not be had with all the room there is does not ask for room.
    let (volumes_of, name) = (vec!["ghost".to_owned()], "s".to_owned());
    let of_nobody = SnapshotRequest { volumes: volumes_of, name, taken_unix_s: 7 };
    let refused = stand.client.ask(of_nobody).unwrap_err();
    assert_eq!(refused, RequestError::NoSuchVolume { name: "ghost".to_owned() });
    while stand.client.create_volume(&format!("w{number}"), MIB, false).is_ok() {
        number += 1;
    }
    stand.flush();
    stand.client.delete_volume_with_snapshots("v0").unwrap();
    assert_eq!(stand.stats().writing_stopped, None);
    drop(sparse);
    let stand = wish.open(stand.close());
    let sparse = stand.client.volume("sparse").unwrap();
    stand.trim(&sparse, 0, 1024 * GIB);
    stand.wait_until("the trim's room", |stats| stats.tables_used_ratio < 0.5);
    let [_, volumes @ ..] = &volumes[..] else { panic!("no volumes") };
    let (volumes, name) = (volumes.to_vec(), "later".to_owned());
    let request = SnapshotRequest { volumes, name, taken_unix_s: 7 };
    stand.client.ask(request).unwrap();
    check_clean(&stand.close());
}

/// Versions that are copied behind a freeze share what it gave blocks. An opening before its root
/// is durable finds the same pages dirty: were they copied for each version, the next freeze would
/// find no blocks for them, now or ever.
#[test]
fn versions_copied_behind_a_freeze_take_no_more_blocks_after_a_crash() {
    const DIRTY_LEAVES: u64 = 2000;
    let wish = Wish { cache: cache_of(20_000, 1_000_000), ..Wish::default() };
    let mut hand = Hand::new(&wish);
    let sparse = hand.volume("sparse", 1024 * GIB);
    let write = |hand: &mut Hand, volume: &OpenVolume, leaf: u64, bytes: &[u8]| {
        let later = hand.write(volume, leaf * SPARSE_CHUNKS * CHUNK, bytes);
        later.into_iter().for_each(|tag| assert!(hand.wait(tag).is_ok()));
        if leaf.is_multiple_of(200) {
            hand.settle();
        }
    };
    (0..3000).for_each(|leaf| write(&mut hand, &sparse, leaf, &packed(1)));
    drop(sparse);
    let (mut hand, held) = Holder::open(&wish, hand.close());
    let sparse = hand.beside(|client| client.volume("sparse").unwrap());
    (0..DIRTY_LEAVES).for_each(|leaf| write(&mut hand, &sparse, leaf, &packed(2)));
    let flushed = hand.flush();
    hand.wait(flushed).unwrap();
    held.hold_writes(Zone::Tables);
    for number in 0..10 {
        let (volumes, name) = (vec!["sparse".to_owned()], format!("s{number}"));
        let request = SnapshotRequest { volumes, name, taken_unix_s: 7 };
        hand.beside(|client| client.ask(request)).unwrap();
    }
    assert!(held.count() > 0, "the freeze has its pages written");
    let stats = hand.beside(|client| client.stats()).unwrap();
    assert!(stats.tables_used_ratio < 0.9, "{stats:?}");

    let mut hand = Hand::open(&wish, hand.disk.crash(5));
    let stats = hand.beside(|client| client.stats()).unwrap();
    assert!(stats.tables.dirty_pages < DIRTY_LEAVES, "{}", stats.tables.dirty_pages);
    let sparse = hand.beside(|client| client.volume("sparse").unwrap());
    let written = hand.write_durable(&sparse, 0, &packed(3));
    hand.wait(written).unwrap();
    let last = hand.beside(|client| client.volume("sparse@s9").unwrap());
    assert!(hand.read(&last, 0, CHUNK as u32) == packed(2));
    drop((sparse, last));
    check_clean(&hand.close());
}

/// Writes a chunk to a leaf of its own, the `number`th.
fn write_sparse(hand: &mut Hand, sparse: &OpenVolume, number: u64) -> Result<(), RequestError> {
    let later = hand.write(sparse, number * SPARSE_CHUNKS * CHUNK, &packed(1));
    hand.settle();
    later.map_or(Ok(()), |tag| hand.wait(tag).map(drop))
}

/// Writes leaves until the tables have no room for one; which one that was.
fn fill_tables(hand: &mut Hand, sparse: &OpenVolume) -> u64 {
    (0..20_000).find(|&number| write_sparse(hand, sparse, number).is_err()).unwrap()
}

/// What needs several blocks at once is not let in by one that is free: it hears that there is no
/// room, and those behind it go on.
#[test]
fn a_snapshot_of_many_volumes_waits_for_no_room_that_does_not_come() {
    let wish = Wish { cache: cache_of(300, 1000), ..Wish::default() };
    let mut hand = Hand::new(&wish);
    let volumes: Vec<String> = (0..100).map(|number| format!("v{number}")).collect();
    for name in &volumes {
        hand.volume(name, MIB);
    }
    let sparse = hand.volume("sparse", 1024 * GIB);
    let full = fill_tables(&mut hand, &sparse);
    let mut answers = Vec::new();
    for round in 0..20 {
        let leaves_bytes = 8 * SPARSE_CHUNKS * CHUNK;
        let end_bytes = full * SPARSE_CHUNKS * CHUNK - round * leaves_bytes;
        let trimmed = hand.trim(&sparse, end_bytes - leaves_bytes, leaves_bytes);
        hand.wait(trimmed).unwrap();
        // What waits has checkpoints come, which bring what was trimmed.
        write_sparse(&mut hand, &sparse, 0).unwrap();
        let (taken, done) = hand.done();
        let (volumes, name) = (volumes.clone(), format!("s{round}"));
        let request = SnapshotRequest { volumes, name, taken_unix_s: 7 };
        hand.client.administer(request, done);
        answers.push(hand.wait(taken).map(drop));
    }
    let refused = Err(RequestError::NoSpace);
    assert!(answers.contains(&refused) && answers.contains(&Ok(())), "{answers:?}");
    drop(sparse);
    check_clean(&hand.close());
}

/// Volumes that wait for the secret of a store's first domain find less room when it is there than
/// each of them found when it was asked for.
#[test]
fn volumes_of_a_first_domain_take_no_more_pages_than_there_are() {
    const VOLUMES: usize = 400;
    let wish = Wish { cache: cache_of(300, 1000), ..Wish::default() };
    let mut hand = Hand::new(&wish);
    let sparse = hand.volume("sparse", 1024 * GIB);
    let full = fill_tables(&mut hand, &sparse);
    drop(sparse);
    let mut hand = Hand::open(&wish, hand.close());
    let sparse = hand.beside(|client| client.volume("sparse").unwrap());
    // Too few to be cut off, which would be given back later.
    let leaves_bytes = 30 * SPARSE_CHUNKS * CHUNK;
    let trimmed = hand.trim(&sparse, full * SPARSE_CHUNKS * CHUNK - leaves_bytes, leaves_bytes);
    hand.wait(trimmed).unwrap();
    drop(sparse);
    // What the older root names as well is free when another is written.
    let hand = Hand::open(&wish, hand.close());
    let (mut hand, held) = Holder::open(&wish, hand.close());
    let sparse = hand.beside(|client| client.volume("sparse").unwrap());
    // What is queued behind it stays in the queue.
    held.hold(Zone::Tables);
    hand.trim(&sparse, 0, 1024 * GIB);
    let tags: Vec<u64> = (0..VOLUMES)
        .map(|number| {
            let (tag, done) = hand.done();
            let (name, domain) = (format!("v{number}"), Some("first".to_owned()));
            let volume = NewVolume {
                name,
                size_bytes: MIB,
                read_only: false,
                domain,
                ..NewVolume::default()
            };
            hand.client.administer(volume, done);
            tag
        })
        .collect();
    hand.steps(5_000);
    let queued = hand.beside(|client| client.volumes()).unwrap().len() - 1;
    assert!((1..VOLUMES).contains(&queued), "{queued} found room");
    held.let_go();
    for tag in tags {
        hand.wait(tag).unwrap();
    }
    drop(sparse);
    check_clean(&hand.close());
}
