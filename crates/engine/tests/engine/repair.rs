//! A repair that is cut off: the store is as it was before, or repaired, and the next repair comes
//! to the same end.

use disk::{Loss, MemoryDisk};
use engine::{Zone, repair, structures};

use crate::stand::{CHUNK, Looker, MIB, Stand, Wish, check, fresh};

const CHUNKS: u64 = 1100;

/// A store with duplicates and holes, one container full and one open.
fn filled() -> Stand {
    let stand = Wish::default().stand();
    let volume = stand.volume("a", 8 * MIB);
    for number in 0..CHUNKS {
        stand.write(&volume, number * CHUNK, &fresh(number, CHUNK));
    }
    stand.flush();
    let other = stand.volume("b", MIB);
    for number in 0..100 {
        stand.write(&other, number * CHUNK, &fresh(3 * number, CHUNK));
    }
    stand.trim(&volume, 200 * CHUNK, 50 * CHUNK);
    stand.flush();
    stand
}

fn copy_of(disk: &MemoryDisk) -> MemoryDisk {
    disk.left_by_power_loss(0, Loss::None)
}

/// Damages the middle of one structure of each kind that the word is part of.
fn spoil(disk: &MemoryDisk, map_of: &[engine::Structure], kind: &str) {
    let hit = map_of.iter().filter(|structure| structure.kind.contains(kind)).nth(1);
    let hit = hit.or_else(|| map_of.iter().find(|structure| structure.kind.contains(kind)));
    let hit = hit.unwrap_or_else(|| panic!("no {kind}"));
    let at = hit.offset_bytes + hit.length_bytes / 2;
    disk.corrupt(hit.zone, at, |byte| *byte ^= 0x40);
}

/// Every chunk of both volumes; none where a read fails.
fn contents(disk: &MemoryDisk) -> Vec<Option<Vec<u8>>> {
    let stand = Wish::default().open(copy_of(disk));
    let mut chunks = Vec::new();
    for (name, count) in [("a", CHUNKS), ("b", 100)] {
        let volume = stand.client.volume(name).unwrap();
        for at in (0..count).step_by(50) {
            match stand.try_read(&volume, at * CHUNK, 50 * CHUNK) {
                Ok(bytes) => {
                    chunks.extend(bytes.chunks(CHUNK as usize).map(|chunk| Some(chunk.to_vec())));
                }
                Err(_) => {
                    let read = |lba: u64| stand.try_read(&volume, lba * CHUNK, CHUNK).ok();
                    chunks.extend((at..at + 50).map(read));
                }
            }
        }
    }
    chunks
}

/// What a check still says.
fn problems(disk: &MemoryDisk) -> Vec<String> {
    check(&copy_of(disk)).problems.iter().map(ToString::to_string).collect()
}

/// Repairs a store while the power goes at every write and every sync, and repairs what each loss
/// leaves.
fn cut_at_every_write(disk: &MemoryDisk, name: &str) {
    let (looker, left) = Looker::new(copy_of(disk));
    let whole = copy_of(disk);
    let report = repair(Box::new(looker), &mut |_| {}).unwrap();
    assert!(!report.found.is_empty(), "{name}: nothing was wrong");
    assert_eq!(repair(Box::new(whole.clone()), &mut |_| {}).unwrap(), report, "{name}");
    let (expected, remaining) = (contents(&whole), problems(&whole));
    assert_eq!(expected.iter().flatten().count() as u64, CHUNKS + 100 - report.lost_chunks);
    let left = std::mem::take(&mut *left.lock().unwrap());
    assert!(left.len() > 10, "{name}: {} moments", left.len());
    for (moment, left) in left.iter().enumerate() {
        repair(Box::new(left.clone()), &mut |_| {})
            .unwrap_or_else(|error| panic!("{name}, moment {moment}: {error}"));
        assert_eq!(problems(left), remaining, "{name}, moment {moment}");
        assert!(contents(left) == expected, "{name}, moment {moment}");
    }
}

#[test]
fn a_repair_may_be_cut_off_at_every_write() {
    let disk = filled().close();
    let map = structures(Box::new(copy_of(&disk))).unwrap();
    for kinds in [
        &["PBN-PBA table, leaf", "directory", "frame"][..],
        &["root", "young entries, leaf", "container table"],
        &["geometry", "map, inner page", "PBN-PBA table, leaf", "young entries, leaf"],
    ] {
        let disk = copy_of(&disk);
        kinds.iter().for_each(|kind| spoil(&disk, &map, kind));
        cut_at_every_write(&disk, &kinds.join(", "));
    }
}

#[test]
fn a_repair_of_a_killed_store_may_be_cut_off_at_every_write() {
    let disk = filled().kill(3);
    let map = structures(Box::new(copy_of(&disk))).unwrap();
    // What the killed process left in the device's cache may go with the power.
    disk.corrupt(Zone::Data(0), map_of_frame(&map), |byte| *byte ^= 1);
    cut_at_every_write(&disk, "killed");
}

fn map_of_frame(map: &[engine::Structure]) -> u64 {
    let frame = map.iter().find(|structure| structure.kind == "frame").unwrap();
    frame.offset_bytes + frame.length_bytes / 2
}
