//! Damage that a repair could take for something else: a page of another volume, or an earlier
//! one, where a device lost a write or did it elsewhere; and what a check names, and a repair
//! takes, when one root has what the other lost.

use std::collections::BTreeSet;

use disk::{Loss, MemoryDisk};
use engine::{
    GivenUp, Problem, RepairError, SnapshotRequest, VolumeId, Zone, repair, repair_without,
    structures,
};
use format::page::Page;
use format::units::TreeId;

use crate::stand::{CHUNK, GIB, MIB, Opens, Stand, Wish, check, check_clean, fresh};

const BLOCK: usize = 4096;
/// Chunks of each volume: a leaf of a map and a part of another.
const CHUNKS: u64 = 900;

fn copy_of(disk: &MemoryDisk) -> MemoryDisk {
    disk.left_by_power_loss(0, Loss::None)
}

/// Contents of a volume at a moment.
fn chunk(volume: u64, moment: u64, number: u64) -> Vec<u8> {
    fresh(10_000 * (2 * volume + moment) + number, CHUNK)
}

fn write_both(stand: &Stand, moment: u64) {
    for number in 0..CHUNKS {
        for (at, name) in (0..).zip(["a", "b"]) {
            let volume = stand.client.volume(name).unwrap();
            stand.write(&volume, number * CHUNK, &chunk(at, moment, number));
        }
    }
}

/// A store of two volumes that were written twice, as it was after each time.
fn written_twice() -> [MemoryDisk; 2] {
    let stand = Wish::default().stand();
    stand.volume("a", 8 * MIB);
    stand.volume("b", 8 * MIB);
    write_both(&stand, 0);
    let disk = stand.close();
    let first = copy_of(&disk);
    let stand = Wish::default().open(disk);
    write_both(&stand, 1);
    // So that both roots have all of it.
    let disk = Wish::default().open(stand.close()).close();
    [first, disk]
}

/// Blocks of a volume's map of this kind below one root, then below the other; the root from which
/// a repair would go on comes first.
fn blocks_of(disk: &MemoryDisk, kind: &str, volume: u32) -> Vec<u64> {
    let all = structures(Box::new(copy_of(disk))).unwrap();
    let of_kind = all.iter().filter(|structure| structure.kind == kind);
    let blocks = of_kind.map(|structure| structure.offset_bytes);
    let is_of = |at: &u64| page(disk, *at).id().tree == TreeId::volume(VolumeId(volume));
    blocks.filter(is_of).collect()
}

/// Blocks of the inner pages of a volume's map, below either root.
fn inner_pages(disk: &MemoryDisk, volume: u32) -> BTreeSet<u64> {
    blocks_of(disk, "map, inner page", volume).into_iter().collect()
}

fn page(disk: &MemoryDisk, at_bytes: u64) -> Page {
    Page::from_bytes(&disk.peek(Zone::Tables, at_bytes, BLOCK)).unwrap()
}

/// As if a write of the page had been lost, or another one had gone there.
fn put(disk: &MemoryDisk, at_bytes: u64, page: &Page) {
    for (at, &new) in (at_bytes..).zip(page.as_bytes()) {
        disk.corrupt(Zone::Tables, at, |byte| *byte = new);
    }
}

/// Every chunk of volume `a` that reads at all reads as it was written last; gives how many do not.
fn assert_only_right_bytes(disk: MemoryDisk) -> u64 {
    let stand = Wish::default().open(disk);
    let volume = stand.client.volume("a").unwrap();
    let mut failed = 0;
    for number in 0..CHUNKS {
        match stand.try_read(&volume, number * CHUNK, CHUNK) {
            Ok(bytes) => assert!(bytes == chunk(0, 1, number), "chunk {number} is another one"),
            Err(_) => failed += 1,
        }
    }
    failed
}

#[test]
fn a_repair_takes_no_page_for_another_that_stands_in_its_place() {
    let [first, disk] = written_twice();
    let own = inner_pages(&disk, 1);
    let of_b = *inner_pages(&disk, 2).first().unwrap();
    let earlier = *inner_pages(&first, 1).first().unwrap();
    assert!(!own.contains(&earlier), "the page was not written again");
    for (name, other) in [("of b", page(&disk, of_b)), ("earlier", page(&first, earlier))] {
        let disk = copy_of(&disk);
        own.iter().for_each(|&at| put(&disk, at, &other));
        let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
        // Nobody knows where the holes were.
        assert_eq!(report.lost_chunks, 8 * MIB / CHUNK, "{name}");
        assert_eq!(assert_only_right_bytes(disk), CHUNKS, "{name}");
    }
}

#[test]
fn what_is_left_of_a_damaged_page_still_leads_to_the_pages_below_it() {
    let [_, disk] = written_twice();
    let own = inner_pages(&disk, 1);
    // Its checksum, its header, pointers that lead nowhere.
    for damaged in [0..2, 0..32, 5..16, 2000..4096] {
        let disk = copy_of(&disk);
        for at in own.iter().flat_map(|own| damaged.clone().map(move |at| own + at)) {
            disk.corrupt(Zone::Tables, at, |byte| *byte ^= 0xa5);
        }
        let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
        assert!(!report.found.is_empty(), "{damaged:?}");
        assert_eq!(assert_only_right_bytes(disk), 0, "{damaged:?}");
    }
}

#[test]
fn a_check_names_what_cannot_be_read_though_the_older_root_has_the_places() {
    let stand = Wish::default().stand();
    stand.volume("a", 8 * MIB);
    stand.volume("b", 8 * MIB);
    write_both(&stand, 1);
    let disk = stand.close();
    let all = structures(Box::new(copy_of(&disk))).unwrap();
    let places = all.iter().filter(|structure| structure.kind == "PBN-PBA table, leaf");
    let places: Vec<u64> = places.map(|structure| structure.offset_bytes).collect();
    // The newest root's come first.
    let only_newest = places.iter().find(|at| places.iter().filter(|of| of == at).count() == 1);
    let Some(&at) = only_newest else { panic!("both roots have all places: {places:?}") };
    disk.corrupt(Zone::Tables, at + 500, |byte| *byte ^= 0x40);

    let of_a = check(&copy_of(&disk)).problems.into_iter().filter_map(|problem| match problem {
        Problem::HiddenChunks { volume, lba, count, .. } if volume == "a" => Some(lba..lba + count),
        _ => None,
    });
    let named: BTreeSet<u64> = of_a.flatten().collect();
    let stand = Wish::default().open(copy_of(&disk));
    let volume = stand.client.volume("a").unwrap();
    let fails = |number: &u64| stand.try_read(&volume, number * CHUNK, CHUNK).is_err();
    let failed: BTreeSet<u64> = (0..CHUNKS).filter(fails).collect();
    assert!(!failed.is_empty());
    assert_eq!(named, failed);
    drop(stand);
    let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    assert_eq!(report.lost_chunks, 0, "{report:?}");
    assert_eq!(assert_only_right_bytes(disk), 0);
}

/// A store of a small volume and of one far larger than its tables, and the inner pages of that
/// one's map.
fn with_a_volume_far_too_large() -> (MemoryDisk, BTreeSet<u64>) {
    let stand = Wish::default().stand();
    let large = stand.volume("a", 64 * GIB);
    for number in [0, 1] {
        stand.write(&large, number * 32 * GIB, &chunk(0, 0, number));
    }
    let (volumes, name) = (vec!["a".to_owned()], "s".to_owned());
    stand.client.ask(SnapshotRequest { volumes, name, taken_unix_s: 7 }).unwrap();
    stand.write(&stand.volume("b", MIB), 0, &chunk(1, 0, 0));
    let disk = Wish::default().open(stand.close()).close();
    let inner = inner_pages(&disk, 1);
    (disk, inner)
}

fn spoil_all(disk: &MemoryDisk, pages: &BTreeSet<u64>) {
    for at in pages.iter().flat_map(|&page| page..page + BLOCK as u64) {
        disk.corrupt(Zone::Tables, at, |byte| *byte ^= 0xa5);
    }
}

#[test]
fn a_repair_that_has_no_room_for_all_that_a_page_stood_for_changes_nothing() {
    let (disk, inner) = with_a_volume_far_too_large();
    spoil_all(&disk, &inner);
    let answer = repair(Box::new(disk.clone()), &mut |_| {});
    let Err(RepairError::TooMuchLost { volumes, .. }) = answer else { panic!("{answer:?}") };
    assert_eq!(volumes, ["a"]);
    spoil_all(&disk, &inner);
    check_clean(&disk);
    let stand = Wish::default().open(disk);
    let volume = stand.client.volume("a").unwrap();
    for number in [0, 1] {
        assert_eq!(stand.read(&volume, number * 32 * GIB, CHUNK), chunk(0, 0, number));
    }
}

#[test]
fn a_volume_of_which_too_much_is_lost_can_be_given_up_for_the_others() {
    let (mut disk, inner) = with_a_volume_far_too_large();
    spoil_all(&disk, &inner);
    let spoiled = copy_of(&disk);
    let without = |disk: &MemoryDisk, names: &[String]| {
        let given_up = GivenUp { volumes: names, ..GivenUp::default() };
        repair_without(Box::new(disk.clone()), &given_up, &mut |_| {})
    };
    let answer = without(&disk, &["c".to_owned()]);
    assert!(matches!(answer, Err(RepairError::NoVolume { .. })), "{answer:?}");
    // A snapshot goes with its volume, whoever names it besides.
    for names in [&["a".to_owned()][..], &["a@s".to_owned(), "a".to_owned()]] {
        disk = copy_of(&spoiled);
        let report = without(&disk, names).unwrap();
        assert_eq!((report.lost_chunks, report.given_up.join(" ")), (0, "a a@s".to_owned()));
    }
    check_clean(&disk);
    let stand = Wish::default().open(disk.clone());
    stand.wait_until("the end of all deletions", |stats| stats.deletions == 0);
    assert_eq!(stand.stats().unique_chunks, 1);
    let names: Vec<_> = stand.client.volumes().unwrap().into_iter().map(|of| of.name).collect();
    assert_eq!(names, ["b"]);
    let volume = stand.client.volume("b").unwrap();
    assert_eq!(stand.read(&volume, 0, CHUNK), chunk(1, 0, 0));
    check_clean(&stand.close());
}

/// Leaves of the map of volume `a` below the newer root, and below the older one.
fn leaves_of_a(disk: &MemoryDisk) -> [Vec<u64>; 2] {
    let blocks = blocks_of(disk, "map, leaf", 1);
    // Between them those of a snapshot.
    [blocks[..2].to_vec(), blocks[blocks.len() - 2..].to_vec()]
}

/// A chunk in each leaf of volume `a`, between one root and the next.
const CHANGED: [u64; 2] = [3, 800];

/// Volume `a` with other chunks since the older root, and of each leaf one root's page damaged. A
/// snapshot is taken before the change, if it is named.
fn with_a_half_of_each_root(snapshot: Option<&str>) -> MemoryDisk {
    let [_, disk] = written_twice();
    let stand = Wish::default().open(disk);
    if let Some(name) = snapshot {
        let (volumes, name) = (vec!["a".to_owned()], name.to_owned());
        stand.client.ask(SnapshotRequest { volumes, name, taken_unix_s: 7 }).unwrap();
    }
    let volume = stand.client.volume("a").unwrap();
    CHANGED.iter().for_each(|at| stand.write(&volume, at * CHUNK, &chunk(0, 2, *at)));
    let disk = stand.close();
    let [newer, older] = leaves_of_a(&disk);
    assert!(newer.iter().all(|at| !older.contains(at)), "{newer:?}, {older:?}");
    for at in [newer[0], older[1]] {
        disk.corrupt(Zone::Tables, at + 500, |byte| *byte ^= 0x40);
    }
    disk
}

/// What a volume reads as, chunk by chunk, is what is meant, or an error; gives how many errors.
fn assert_right(stand: &Stand, name: &str, meant: impl Fn(u64) -> Vec<u8>) -> u64 {
    let volume = stand.client.volume(name).unwrap();
    let read = |number: &u64| stand.try_read(&volume, number * CHUNK, CHUNK);
    let is_lost = |number: &u64| match read(number) {
        Ok(bytes) => {
            assert!(bytes == meant(*number), "{name}, chunk {number} is another one");
            false
        }
        Err(_) => true,
    };
    (0..CHUNKS).filter(is_lost).count() as u64
}

fn after_change(number: u64) -> Vec<u8> {
    chunk(0, if CHANGED.contains(&number) { 2 } else { 1 }, number)
}

#[test]
fn a_leaf_that_one_root_lost_comes_from_the_other_whatever_that_has_lost() {
    let disk = with_a_half_of_each_root(None);
    let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    assert_eq!(report.lost_chunks, 0, "{report:?}");
    let stand = Wish::default().open(disk);
    assert_eq!(assert_right(&stand, "a", after_change), 0);
    check_clean(&stand.close());
}

#[test]
fn what_was_never_written_is_not_lost_with_the_older_roots_inner_page() {
    let disk = with_a_half_of_each_root(None);
    let older = blocks_of(&disk, "map, inner page", 1)[0];
    spoil_all(&disk, &BTreeSet::from([older]));
    let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    // A leaf, but for what was changed of it.
    assert_eq!(report.lost_chunks, 676, "{report:?}");
    assert_eq!(assert_right(&Wish::default().open(disk), "a", after_change), 676);
}

#[test]
fn a_snapshot_taken_since_the_older_root_gets_no_leaf_of_its_volume_from_the_newer() {
    let disk = with_a_half_of_each_root(Some("s"));
    repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    let stand = Wish::default().open(disk);
    assert_eq!(assert_right(&stand, "a", after_change), 0);
    let lost = assert_right(&stand, "a@s", |number| chunk(0, 1, number));
    assert_eq!(lost, CHUNKS - 677, "what only the damaged page had");
}
