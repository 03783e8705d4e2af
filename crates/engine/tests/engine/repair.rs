//! A repair that is cut off: the store is as it was before, or repaired, and the next repair comes
//! to the same end. And one on a device that another store has used.

use disk::{Loss, MemoryDisk};
use engine::{CollectRequest, Dedup, Zone, repair, structures};
use format::superblock::Geometry;
use format::units::CONTAINER_BYTES;

use crate::stand::{CHUNK, Looker, MIB, Opens, Stand, Wish, check, fresh, packed};

const CHUNKS: u64 = 1100;
/// Almost three containers of them, if they do not compress.
const CHUNKS_OF_THREE: u64 = 3000;

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
    // What was told to be repaired is on the medium.
    let unplugged = whole.left_by_power_loss(1, Loss::All);
    let (expected, remaining) = (contents(&whole), problems(&whole));
    assert_eq!(problems(&unplugged), remaining, "{name}, unplugged");
    assert!(contents(&unplugged) == expected, "{name}, unplugged");
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

/// A store on the disk of an earlier one: its own, dense, chunks have the same numbers as those of
/// the other, which lie in containers that it never wrote.
fn on_a_used_disk() -> MemoryDisk {
    let stand = Wish::default().stand();
    let volume = stand.volume("other", 16 * MIB);
    for number in 0..CHUNKS_OF_THREE {
        stand.write(&volume, number * CHUNK, &fresh(number, CHUNK));
    }
    let disk = stand.close();
    let wish = Wish::default();
    let mut geometry = Geometry::decode(&disk.peek(Zone::Superblock, 0, 4096)).unwrap();
    geometry.uuid = [4; 16];
    engine::create(Box::new(disk.clone()), &geometry, wish.compression).unwrap();
    let stand = wish.open(disk);
    let volume = stand.volume("v", 16 * MIB);
    stand.client.set_dedup("v", Dedup::Off).unwrap();
    for number in 0..CHUNKS_OF_THREE {
        stand.write(&volume, number * CHUNK, &packed(number));
    }
    // Once more, so that no root is left from before.
    let stand = wish.open(stand.close());
    stand.client.create_volume("w", MIB, false).unwrap();
    stand.close()
}

#[test]
fn a_repair_takes_no_chunk_of_a_store_that_the_device_held_before() {
    let disk = on_a_used_disk();
    for structure in structures(Box::new(copy_of(&disk))).unwrap() {
        let is_lost = |kind: &&str| structure.kind.contains(kind);
        if ["PBN-PBA table, leaf", "container table, leaf"].iter().any(is_lost) {
            // Both roots may name it.
            disk.corrupt(structure.zone, structure.offset_bytes + 100, |byte| *byte = 0xa5);
        }
    }
    let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    assert!(report.found.len() > 1, "{report:?}");
    let stand = Wish::default().open(disk);
    let volume = stand.client.volume("v").unwrap();
    for number in 0..CHUNKS_OF_THREE {
        assert!(stand.read(&volume, number * CHUNK, CHUNK) == packed(number), "chunk {number}");
    }
}

/// A store of chunks that no look-up finds, in which some have the numbers of earlier ones, whose
/// frames are still there: in the first container, which is kept because a frame in it is damaged.
fn with_frames_of_an_earlier_life() -> MemoryDisk {
    let stand = Wish::default().stand();
    let volume = stand.volume("v", 8 * MIB);
    stand.client.set_dedup("v", Dedup::Off).unwrap();
    for number in 0..CHUNKS {
        stand.write(&volume, number * CHUNK, &fresh(number, CHUNK));
    }
    let stand = Wish::default().open(stand.close());
    let volume = stand.client.volume("v").unwrap();
    stand.disk.corrupt(Zone::Data(0), 100, |byte| *byte ^= 0x40);
    stand.trim(&volume, CHUNK, 900 * CHUNK);
    stand.flush();
    let mut request = CollectRequest::default();
    loop {
        request.position = stand.client.ask(request).unwrap().next;
        if request.position.is_none() {
            break;
        }
    }
    assert!(stand.stats().damaged_chunks == 1, "the first container is not kept");
    let stand = Wish::default().open(Wish::default().open(stand.close()).close());
    let volume = stand.client.volume("v").unwrap();
    for number in (1..900).chain(1200..1500) {
        stand.write(&volume, number * CHUNK, &fresh(5000 + number, CHUNK));
    }
    let stand = Wish::default().open(stand.close());
    stand.client.create_volume("w", MIB, false).unwrap();
    stand.close()
}

#[test]
fn a_repair_takes_no_older_frame_for_a_chunk_whose_own_is_damaged() {
    let disk = with_frames_of_an_earlier_life();
    for structure in structures(Box::new(copy_of(&disk))).unwrap() {
        let is_old = structure.offset_bytes < u64::from(CONTAINER_BYTES);
        if structure.kind.contains("PBN-PBA table, leaf") || structure.kind == "frame" && !is_old {
            // Both roots may name it.
            disk.corrupt(structure.zone, structure.offset_bytes + 100, |byte| *byte = 0xa5);
        }
    }
    repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    let stand = Wish::default().open(disk);
    let volume = stand.client.volume("v").unwrap();
    // Those of the container that is full: one that is open has no directory to say what it lost.
    for number in 1..800 {
        let read = stand.try_read(&volume, number * CHUNK, CHUNK);
        let is_of_now = read.as_ref().is_ok_and(|bytes| *bytes == fresh(5000 + number, CHUNK));
        assert!(read.is_err() || is_of_now, "chunk {number} reads what it was before");
    }
}
