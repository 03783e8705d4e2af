//! A store whose zones lie on other devices than they did is refused, and nothing is written; one
//! whose own are damaged is not.

use disk::{Disk, Fault, MemoryDisk};
use engine::{GivenUp, Holds, OpenError, Problem, RepairError, Zone, repair, repair_without};
use format::superblock::Geometry;

use crate::stand::{CHUNK, MIB, Opens, Stand, Wish, check, check_clean, fresh, put};

const CHUNKS: u64 = 10_000;
const FIRST: Zone = Zone::Data(0);
const SECOND: Zone = Zone::Data(1);

fn without(zones: &[Zone]) -> GivenUp<'_> {
    GivenUp { zones, ..GivenUp::default() }
}

fn wish() -> Wish {
    Wish { capacities: vec![64 * MIB, 64 * MIB], ..Wish::default() }
}

/// A store with some full containers in each of its data zones.
fn filled() -> Stand {
    let stand = wish().stand();
    fill(&stand, 0);
    stand
}

fn fill(stand: &Stand, from: u64) {
    let volume = stand.volume("v", 64 * MIB);
    for number in (0..CHUNKS).step_by(100) {
        stand.write(&volume, number * CHUNK, &fresh(from + number, 100 * CHUNK));
    }
    stand.flush();
    // The record of this one says that what came before is durable.
    stand.write(&volume, 0, &fresh(from, CHUNK));
    stand.flush();
}

/// The parts of the store that a chunk reads as they were written.
fn parts_there(disk: &MemoryDisk) -> u64 {
    let stand = wish().open(disk.clone());
    let volume = stand.client.volume("v").unwrap();
    let is_there = |&number: &u64| {
        let read = stand.try_read(&volume, number * CHUNK, 100 * CHUNK);
        read.is_ok_and(|bytes| bytes == fresh(number, 100 * CHUNK))
    };
    let there = (0..CHUNKS).step_by(100).filter(is_there).count() as u64;
    stand.close();
    there
}

/// A store that was closed once, and into whose next life all that [`filled`] writes was flushed.
fn filled_later() -> Stand {
    let stand = wish().open(wish().stand().close());
    fill(&stand, 0);
    stand
}

fn zone_of(disk: &MemoryDisk, zone: Zone) -> Vec<u8> {
    disk.peek(zone, 0, disk.size_bytes(zone) as usize)
}

fn exchange(disk: &MemoryDisk) {
    let (first, second) = (zone_of(disk, FIRST), zone_of(disk, SECOND));
    put(disk, FIRST, &second);
    put(disk, SECOND, &first);
}

fn blank(disk: &MemoryDisk, zone: Zone) {
    put(disk, zone, &vec![0; disk.size_bytes(zone) as usize]);
}

/// A new store of the same shape, but for what `change` makes of it.
fn made_otherwise(change: impl FnOnce(&mut Geometry)) -> MemoryDisk {
    let like = wish().disk();
    let mut geometry = Geometry::decode(&like.peek(Zone::Superblock, 0, 4096)).unwrap();
    change(&mut geometry);
    let zones: Vec<_> = geometry.zones().collect();
    let disk = MemoryDisk::new(&zones, 1);
    engine::create(Box::new(disk.clone()), &geometry, wish().compression).unwrap();
    disk
}

fn another_store() -> MemoryDisk {
    made_otherwise(|geometry| geometry.uuid = [9; 16])
}

/// A disk of the same shape that another store has used.
fn of_another_store() -> MemoryDisk {
    let stand = wish().open(another_store());
    fill(&stand, 1 << 32);
    stand.close()
}

fn everything(disk: &MemoryDisk) -> Vec<Vec<u8>> {
    [Zone::Superblock, Zone::Journal, Zone::Tables, FIRST, SECOND]
        .map(|zone| zone_of(disk, zone))
        .to_vec()
}

/// Opening, check and repair refuse the store because of these zones, and leave it as it is.
fn assert_refused(disk: &MemoryDisk, foreign: &[(Zone, Holds)]) {
    let before = everything(disk);
    let (first, first_holds) = foreign.first().unwrap();
    match wish().try_open(disk.clone()).map(|_| ()) {
        Err(OpenError::ForeignZone { zone, holds }) => {
            assert_eq!((zone, &holds), (*first, first_holds));
        }
        other => panic!("{other:?}"),
    }
    let found: Vec<_> = check(disk)
        .problems
        .into_iter()
        .filter_map(|problem| match problem {
            Problem::ForeignZone { zone, holds } => Some((zone, holds)),
            _ => None,
        })
        .collect();
    let named = |(zone, holds): &(Zone, Holds)| (disk::ZoneName(*zone).to_string(), holds.clone());
    assert_eq!(found, foreign.iter().map(named).collect::<Vec<_>>());
    match repair(Box::new(disk.clone()), &mut |_| {}) {
        Err(RepairError::Open(OpenError::ForeignZone { .. })) => {}
        other => panic!("{other:?}"),
    }
    assert!(everything(disk) == before, "something was written");
}

/// Stores that were left in three ways.
fn left() -> [MemoryDisk; 3] {
    [filled().close(), filled().kill(1), filled().cut_power_flushed(2)]
}

/// What a kill left of which no record says that it is durable.
fn killed_at_once() -> MemoryDisk {
    let stand = wish().stand();
    let volume = stand.volume("v", 64 * MIB);
    for number in (0..CHUNKS).step_by(100) {
        stand.write(&volume, number * CHUNK, &fresh(number, 100 * CHUNK));
    }
    stand.flush();
    stand.kill(3)
}

#[test]
fn data_zones_that_were_exchanged_are_refused_and_nothing_is_written() {
    let first = Holds::OtherZone("data.1".to_owned());
    let second = Holds::OtherZone("data.0".to_owned());
    for disk in left().into_iter().chain([killed_at_once()]) {
        exchange(&disk);
        assert_refused(&disk, &[(FIRST, first.clone()), (SECOND, second.clone())]);
        exchange(&disk);
        check_clean(&disk);
        assert_eq!(parts_there(&disk), CHUNKS / 100);
    }
}

#[test]
fn a_blank_disk_and_one_of_another_store_are_refused_in_place_of_data() {
    let other = zone_of(&of_another_store(), SECOND);
    for disk in left() {
        let own = zone_of(&disk, SECOND);
        blank(&disk, SECOND);
        assert_refused(&disk, &[(SECOND, Holds::Nothing)]);
        put(&disk, SECOND, &other);
        assert_refused(&disk, &[(SECOND, Holds::OtherStore)]);
        put(&disk, SECOND, &own);
        check_clean(&disk);
        assert_eq!(parts_there(&disk), CHUNKS / 100);
    }
}

#[test]
fn a_repair_that_is_told_which_zone_is_gone_saves_the_others() {
    let used = zone_of(&of_another_store(), SECOND);
    let new = zone_of(&another_store(), SECOND);
    let length_bytes = new.len();
    for instead in [used, new, fresh(78, length_bytes as u64), vec![0; length_bytes]] {
        let disk = filled().close();
        put(&disk, SECOND, &instead);
        let other = [FIRST, Zone::Journal];
        assert!(repair_without(Box::new(disk.clone()), &without(&other), &mut |_| {}).is_err());
        let report =
            repair_without(Box::new(disk.clone()), &without(&[SECOND]), &mut |_| {}).unwrap();
        assert!(report.lost_chunks > CHUNKS / 4 && report.lost_chunks < CHUNKS, "{report:?}");
        let there = parts_there(&disk);
        assert!(there > CHUNKS / 400, "{there} parts");
        let is_loss = |problem: &Problem| matches!(problem, Problem::LostChunks { .. });
        assert!(check(&disk).problems.iter().all(is_loss));
    }
}

#[test]
fn directories_that_rot_keep_no_store_from_opening() {
    let disk = filled().close();
    let structures = engine::structures(Box::new(disk.clone())).unwrap();
    let directories = structures.iter().filter(|structure| structure.kind.contains("directory"));
    for directory in directories {
        let end = directory.offset_bytes + directory.length_bytes;
        disk.corrupt(directory.zone, end - 10, |byte| *byte ^= 1);
    }
    assert_eq!(parts_there(&disk), CHUNKS / 100);
    repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    check_clean(&disk);
}

/// Stores with records behind a root and without, that were left in four ways.
fn left_with_records() -> [MemoryDisk; 4] {
    let closed = filled().close();
    [closed, filled_later().kill(4), filled_later().cut_power_flushed(5), wish().stand().close()]
}

#[test]
fn a_blank_journal_and_one_of_another_store_are_refused() {
    let other = zone_of(&of_another_store(), Zone::Journal);
    for disk in left_with_records() {
        let own = zone_of(&disk, Zone::Journal);
        blank(&disk, Zone::Journal);
        assert_refused(&disk, &[(Zone::Journal, Holds::Nothing)]);
        put(&disk, Zone::Journal, &other);
        assert_refused(&disk, &[(Zone::Journal, Holds::OtherStore)]);
        put(&disk, Zone::Journal, &fresh(77, own.len() as u64));
        assert_refused(&disk, &[(Zone::Journal, Holds::Nothing)]);
        put(&disk, Zone::Journal, &own);
        check_clean(&disk);
    }
}

#[test]
fn a_repair_that_is_told_that_the_journal_is_gone_goes_on_from_the_root() {
    let disk = filled_later().kill(6);
    blank(&disk, Zone::Journal);
    assert_refused(&disk, &[(Zone::Journal, Holds::Nothing)]);
    let report =
        repair_without(Box::new(disk.clone()), &without(&[Zone::Journal]), &mut |_| {}).unwrap();
    assert!(report.lost_journal && report.lost_chunks == 0, "{report:?}");
    for _ in 0..2 {
        check_clean(&disk);
        let stand = wish().open(disk.clone());
        assert!(stand.client.volume("v").is_err(), "it was made behind the root");
        stand.close();
    }
}

/// A store that was closed a second time, and into which something was flushed since then.
fn lived_on(disk: MemoryDisk) -> MemoryDisk {
    let stand = wish().open(disk);
    let volume = stand.volume("second", 4 * MIB);
    stand.write(&volume, 0, &fresh(1 << 40, 512 * CHUNK));
    let stand = wish().open(stand.close());
    stand.volume("third", MIB);
    stand.kill(5)
}

/// The store is refused with this journal, and sound with its own.
fn assert_too_old(disk: &MemoryDisk, journal: &[u8]) {
    let own = zone_of(disk, Zone::Journal);
    put(disk, Zone::Journal, journal);
    assert_refused(disk, &[(Zone::Journal, Holds::Older)]);
    put(disk, Zone::Journal, &own);
    check_clean(disk);
}

#[test]
fn an_older_copy_of_the_journal_is_refused() {
    for disk in left_with_records() {
        let older = zone_of(&disk, Zone::Journal);
        let disk = lived_on(disk);
        let own = zone_of(&disk, Zone::Journal);
        assert_too_old(&disk, &older);
        let stand = wish().open(disk.clone());
        assert!(stand.client.volume("third").is_ok());
        assert_too_old(&stand.close(), &own);
    }
}

/// However much was written to the one that took its place.
#[test]
fn a_journal_that_a_repair_gave_up_is_refused_when_it_is_put_back() {
    let lives: [fn(MemoryDisk) -> MemoryDisk; 3] =
        [|disk| disk, |disk| wish().open(disk).close(), lived_on];
    for (live, disk) in lives.iter().flat_map(|live| left_with_records().map(|disk| (live, disk))) {
        let given_up = zone_of(&disk, Zone::Journal);
        put(&disk, Zone::Journal, &fresh(80, given_up.len() as u64));
        repair_without(Box::new(disk.clone()), &without(&[Zone::Journal]), &mut |_| {}).unwrap();
        assert_too_old(&live(disk), &given_up);
    }
}

/// Of a store that has written a few only, all but one; and the only one that there is.
#[test]
fn records_that_rot_keep_no_store_from_opening() {
    let stand = wish().stand();
    stand.volume("v", MIB);
    let disk = stand.close();
    let journal = zone_of(&disk, Zone::Journal);
    let blocks = journal.chunks(4096).take_while(|block| block.iter().any(|&byte| byte != 0));
    let count = blocks.count() as u64;
    assert!(count > 1, "an opening and a close have their records");
    for block in 1..count {
        disk.corrupt(Zone::Journal, block * 4096 + 20, |byte| *byte ^= 1);
    }
    wish().open(disk.clone()).close();
    put(&disk, Zone::Journal, &vec![0; journal.len()]);
    put(&disk, Zone::Journal, &journal[..4096]);
    disk.corrupt(Zone::Journal, 20, |byte| *byte ^= 1);
    wish().open(disk).close();
}

#[test]
fn a_journal_that_the_device_does_not_give_is_not_called_anothers() {
    let disk = filled().close();
    blank(&disk, Zone::Journal);
    disk.inject(Fault::Read { zone: Zone::Journal, offset_bytes: 9 * MIB });
    wish().open(disk.clone()).close();
}

#[test]
fn a_store_that_was_never_opened_can_be_after_a_repair() {
    let disk = wish().disk();
    disk.corrupt(Zone::Superblock, 20, |byte| *byte ^= 1);
    repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    wish().open(disk.clone()).close();
    check_clean(&disk);
}

#[test]
fn zones_that_hold_nothing_yet_are_known_by_their_marks() {
    let (disk, other) = (wish().disk(), another_store());
    exchange(&disk);
    let first = (FIRST, Holds::OtherZone("data.1".to_owned()));
    assert_refused(&disk, &[first, (SECOND, Holds::OtherZone("data.0".to_owned()))]);
    exchange(&disk);
    for zone in [Zone::Journal, FIRST, SECOND] {
        let own = zone_of(&disk, zone);
        put(&disk, zone, &zone_of(&other, zone));
        assert_refused(&disk, &[(zone, Holds::OtherStore)]);
        put(&disk, zone, &fresh(79, own.len() as u64));
        assert_refused(&disk, &[(zone, Holds::Nothing)]);
        put(&disk, zone, &own);
    }
    check_clean(&disk);
    // Nothing is lost with what holds nothing.
    blank(&disk, SECOND);
    wish().open(disk).close();
}

#[test]
fn tables_of_another_store_are_refused_and_not_written_to() {
    for (disk, other) in [(wish().disk(), another_store()), (filled().close(), of_another_store())]
    {
        let own = zone_of(&disk, Zone::Tables);
        put(&disk, Zone::Tables, &zone_of(&other, Zone::Tables));
        assert_refused(&disk, &[(Zone::Tables, Holds::OtherStore)]);
        put(&disk, Zone::Tables, &own);
        check_clean(&disk);
    }
}

/// A store in its first life, in which little was written: no root and no footer tells.
fn young() -> MemoryDisk {
    let stand = wish().stand();
    let volume = stand.volume("v", 64 * MIB);
    stand.write(&volume, 0, &fresh(7, 16 * CHUNK));
    stand.flush();
    stand.kill(7)
}

#[test]
fn a_young_store_that_was_killed_is_refused_with_other_devices() {
    let disk = young();
    let journal = zone_of(&disk, Zone::Journal);
    blank(&disk, Zone::Journal);
    assert_refused(&disk, &[(Zone::Journal, Holds::Nothing)]);
    put(&disk, Zone::Journal, &journal);
    exchange(&disk);
    assert_refused(&disk, &[(FIRST, Holds::OtherZone("data.1".to_owned()))]);
    exchange(&disk);
    let disk = wish().use_again(disk);
    blank(&disk, FIRST);
    assert_refused(&disk, &[(FIRST, Holds::Nothing)]);
}

/// What a crash may leave of a first write, and a first frame that has rotted.
#[test]
fn a_zone_with_half_a_mark_or_a_rotten_beginning_is_this_stores() {
    let mark = zone_of(&wish().disk(), FIRST)[..512].to_vec();
    let whole = zone_of(&young(), FIRST);
    let torn = [&mark, &whole[512..]].concat();
    let begun = [&whole[..512], &vec![0; 3584], &whole[4096..]].concat();
    let rotten = [&[0xff; 16], &whole[16..]].concat();
    for zone in [torn, begun, rotten] {
        let disk = young();
        put(&disk, FIRST, &zone);
        wish().open(disk).close();
    }
}

#[test]
fn a_store_that_was_made_without_marks_opens_without_them() {
    let disk = made_otherwise(|geometry| geometry.marked = false);
    assert!(zone_of(&disk, Zone::Tables).iter().all(|&byte| byte == 0));
    put(&disk, SECOND, &fresh(80, 64 * MIB));
    wish().open(disk.clone()).close();
    check_clean(&disk);
}
