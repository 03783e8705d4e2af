//! What roots and records prove: rot of what was durable is an error for what it hit, or told as
//! lost. It never passes for what a crash leaves unfinished.

use disk::{Disk, Loss, MemoryDisk};
use engine::{OpenError, ScrubRequest, Zone, repair, structures};
use format::root::Root;

use crate::stand::{CHUNK, Hand, Left, Looker, MIB, Opens, Wish, check, check_clean, fresh};

/// Chunks of one flush: so many that no record carries their frames.
const CHUNKS: u64 = 600;
/// One that is stored by the last record of the flush.
const LATE: u64 = 595;

fn root(disk: &MemoryDisk, slot: u64) -> Option<Root> {
    Root::decode(&disk.peek(Zone::Superblock, slot * 4096, 4096), [3; 16]).ok()
}

/// The roots of a store, the newest first.
fn roots(disk: &MemoryDisk) -> Vec<Root> {
    let mut roots: Vec<Root> = [1, 2].into_iter().filter_map(|slot| root(disk, slot)).collect();
    roots.sort_by_key(|root| std::cmp::Reverse(root.generation));
    roots
}

/// A store after a flush, still running, and what the power would have left at each write.
fn flushed() -> (Hand, Left) {
    // One whose dice have the scrub end before an idle store marks what is durable.
    let stand = Wish { seed: 11, ..Wish::default() }.stand();
    stand.volume("v", 4 * MIB);
    let (mut hand, left) = Looker::open(&Wish::default(), stand.close());
    let volume = hand.beside(|client| client.volume("v").unwrap());
    for number in 0..CHUNKS {
        hand.write(&volume, number * CHUNK, &fresh(number, CHUNK));
    }
    let flush = hand.flush();
    hand.wait(flush).unwrap();
    (hand, left)
}

/// A store whose power went just after a checkpoint: only its newest root says that the records
/// behind the older one are durable.
fn cut_off_after_a_checkpoint() -> MemoryDisk {
    let (mut hand, left) = flushed();
    left.lock().unwrap().clear();
    // A scrub that finds the older slot damaged has it written again.
    let older_slot = roots(&hand.disk)[1].generation % 2 + 1;
    hand.disk.corrupt(Zone::Superblock, older_slot * 4096, |byte| *byte ^= 0x40);
    // Without more ticks than that takes: an idle store marks that all of it is durable.
    let (scrubbed, done) = hand.done();
    hand.client.administer(ScrubRequest::default(), done);
    hand.wait(scrubbed).unwrap();
    let left = std::mem::take(&mut *left.lock().unwrap());
    let proves = |disk: &MemoryDisk| match &roots(disk)[..] {
        [newest, older] => older.journal.sequence + 1 < newest.journal.sequence,
        _ => false,
    };
    left.into_iter().find(proves).unwrap()
}

fn copy_of(disk: &MemoryDisk) -> MemoryDisk {
    disk.left_by_power_loss(0, Loss::None)
}

fn spoil_frame(disk: &MemoryDisk, number: u64) {
    let (image, bytes) = (disk.peek(Zone::Data(0), 0, 8 * MIB as usize), fresh(number, CHUNK));
    let at = image.windows(64).position(|window| window == &bytes[..64]).unwrap();
    disk.corrupt(Zone::Data(0), at as u64 + 100, |byte| *byte ^= 0x40);
}

fn newest_slot_bytes(disk: &MemoryDisk) -> u64 {
    let generation = roots(disk)[0].generation;
    format::superblock::root_block(generation) * 4096
}

/// Nothing is left of the newest root.
fn lose_newest_root(disk: &MemoryDisk) {
    let start_bytes = newest_slot_bytes(disk);
    for at in start_bytes..start_bytes + 4096 {
        disk.corrupt(Zone::Superblock, at, |byte| *byte = 0xa5);
    }
}

fn problems(disk: &MemoryDisk) -> Vec<String> {
    check(disk).problems.iter().map(ToString::to_string).collect()
}

/// The opening takes the whole journal; all chunks but the late one read right, and that one fails.
fn assert_all_but_the_late_one(disk: MemoryDisk) {
    let stand = Wish::default().open(disk);
    assert!(!stand.report.cut, "{:?}", stand.report);
    let volume = stand.client.volume("v").unwrap();
    for number in 0..CHUNKS {
        let read = stand.try_read(&volume, number * CHUNK, CHUNK).ok();
        let expected = (number != LATE).then(|| fresh(number, CHUNK));
        assert!(read == expected, "chunk {number}");
    }
}

/// A repair counts the late one as lost, and nothing else.
fn assert_a_repair_loses_one(disk: &MemoryDisk) {
    let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    assert_eq!((report.lost_chunks, report.lost_records), (1, 0), "{report:?}");
}

#[test]
fn a_repair_from_the_older_root_believes_what_the_newest_proves() {
    let disk = cut_off_after_a_checkpoint();
    let map = structures(Box::new(copy_of(&disk))).unwrap();
    // The newest root's come first.
    let leaf = map.iter().find(|structure| structure.kind == "volume catalog, leaf").unwrap();
    disk.corrupt(Zone::Tables, leaf.offset_bytes + 500, |byte| *byte ^= 0x40);
    spoil_frame(&disk, LATE);
    let found = problems(&copy_of(&disk));
    assert!(found.iter().any(|problem| problem.contains("1 chunk of volume v")), "{found:?}");
    assert_a_repair_loses_one(&disk);
    assert_all_but_the_late_one(disk);
}

#[test]
fn a_store_that_was_closed_needs_its_newest_root_for_no_proof() {
    let (hand, _) = flushed();
    let disk = hand.close();
    check_clean(&disk);
    lose_newest_root(&disk);
    spoil_frame(&disk, LATE);
    let stand = Wish::default().open(copy_of(&disk));
    assert!(!stand.report.clean && stand.report.older_root, "{:?}", stand.report);
    drop(stand);
    assert_all_but_the_late_one(copy_of(&disk));
    assert_a_repair_loses_one(&disk);
}

#[test]
fn a_damaged_root_still_tells_how_far_the_journal_was_durable() {
    let disk = cut_off_after_a_checkpoint();
    disk.corrupt(Zone::Superblock, newest_slot_bytes(&disk) + 200, |byte| *byte ^= 0x40);
    spoil_frame(&disk, LATE);
    let found = problems(&copy_of(&disk));
    assert!(found.iter().any(|problem| problem.contains("1 chunk of volume v")), "{found:?}");
    assert_all_but_the_late_one(copy_of(&disk));
    assert_a_repair_loses_one(&disk);
    assert_all_but_the_late_one(disk);
}

#[test]
fn a_damaged_root_still_tells_that_records_before_it_are_missing() {
    let disk = cut_off_after_a_checkpoint();
    let [newest, older] = &roots(&disk)[..] else { panic!("two roots") };
    let (newest, older) = (newest.journal.offset_bytes, older.journal.offset_bytes);
    disk.corrupt(Zone::Superblock, newest_slot_bytes(&disk) + 200, |byte| *byte ^= 0x40);
    let records = disk.peek(Zone::Journal, older, (newest - older) as usize);
    let second = u64::from(format::record::decode_header(&records).unwrap().length_bytes);
    let ring_bytes = disk.size_bytes(Zone::Journal);
    for begin in [older, older + second] {
        let disk = copy_of(&disk);
        // As after a file that was cut short and made as long again.
        (begin..ring_bytes).for_each(|at| disk.corrupt(Zone::Journal, at, |byte| *byte = 0));
        let opened = Wish::default().try_open(copy_of(&disk));
        assert!(matches!(opened, Err(OpenError::Journal { .. })), "from {begin} on");
        let report = repair(Box::new(disk), &mut |_| {}).unwrap();
        assert!(report.lost_records > 0, "{report:?}");
    }
}

#[test]
fn what_an_idle_store_has_flushed_is_proven() {
    let (mut hand, _) = flushed();
    for _ in 0..25 {
        hand.engine.tick();
        hand.settle();
    }
    let written = hand.disk.left_by_power_loss(1, Loss::All);
    for _ in 0..100 {
        hand.engine.tick();
        hand.settle();
    }
    let disk = hand.disk.left_by_power_loss(1, Loss::All);
    let end = |disk: &MemoryDisk| disk.peek(Zone::Journal, 0, MIB as usize);
    assert!(end(&disk) == end(&written), "it marks once, and is quiet then");
    check_clean(&copy_of(&disk));
    spoil_frame(&disk, LATE);
    assert_all_but_the_late_one(copy_of(&disk));
    assert_a_repair_loses_one(&disk);
}

#[test]
fn a_cut_that_only_a_lost_root_could_explain_is_told() {
    let disk = cut_off_after_a_checkpoint();
    lose_newest_root(&disk);
    spoil_frame(&disk, LATE);
    let found = problems(&copy_of(&disk));
    assert!(found.iter().any(|problem| problem.contains("the root that would tell")), "{found:?}");
    let stand = Wish::default().open(copy_of(&disk));
    assert!(stand.report.cut && stand.report.older_root, "{:?}", stand.report);
    let report = repair(Box::new(disk), &mut |_| {}).unwrap();
    assert!(report.lost_chunks == 0 && report.lost_records > 0, "{report:?}");
}
