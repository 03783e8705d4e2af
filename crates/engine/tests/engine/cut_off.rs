//! What heals itself, cut off at every write: a scrub, and an opening that lacks a root.

use disk::{Fault, MemoryDisk};
use engine::{Client, ScrubPosition, ScrubRequest, Zone};

use crate::stand::{CHUNK, Looker, MIB, Opens, Stand, Wish, check, check_clean, fresh};

const CHUNKS: u64 = 1100;

/// Content of chunk `lba` when it was written for the `time`th time.
fn content(lba: u64, time: u64) -> Vec<u8> {
    fresh(lba + 10_000 * time, CHUNK)
}

fn bytes(first: u64, count: u64, time: u64) -> Vec<u8> {
    (first..first + count).flat_map(|lba| content(lba, time)).collect()
}

/// A closed store with one container full and one open.
fn filled() -> MemoryDisk {
    let stand = Wish::default().stand();
    let volume = stand.volume("a", 8 * MIB);
    stand.write(&volume, 0, &bytes(0, CHUNKS, 0));
    stand.close()
}

fn spoil(disk: &MemoryDisk, zone: Zone, offset_bytes: u64) {
    disk.corrupt(zone, offset_bytes, |byte| *byte ^= 0x40);
}

fn place_of(disk: &MemoryDisk, bytes: &[u8]) -> u64 {
    let image = disk.peek(Zone::Data(0), 0, 8 * MIB as usize);
    let at = image.windows(64).position(|window| window == &bytes[..64]);
    at.expect("the chunk is stored as it is") as u64
}

fn scrub(client: &Client) {
    let mut position = Some(ScrubPosition::default());
    while let Some(at) = position {
        position = client.ask(ScrubRequest { position: at, fingerprints: true }).unwrap().next;
    }
}

fn problems(disk: &MemoryDisk) -> Vec<String> {
    check(disk).problems.iter().map(ToString::to_string).collect()
}

fn read(stand: &Stand, lba: u64) -> Option<Vec<u8>> {
    let volume = stand.client.volume("a").unwrap();
    stand.try_read(&volume, lba * CHUNK, CHUNK).ok()
}

#[test]
fn healing_may_be_cut_off_at_every_write() {
    let wish = Wish::default();
    let disk = filled();
    let (mut hand, left) = Looker::open(&wish, disk.clone());
    let volume = hand.beside(|client| client.volume("a").unwrap());
    // A copy of the geometry, both root slots in turn, a directory, a frame.
    spoil(&disk, Zone::Superblock, 40);
    spoil(&disk, Zone::Superblock, 4096 + 40);
    spoil(&disk, Zone::Data(0), 4 * MIB - 30);
    spoil(&disk, Zone::Data(0), place_of(&disk, &content(1_090, 0)) + 100);
    let damaged = problems(&disk.left_by_power_loss(0, disk::Loss::None));
    left.lock().unwrap().clear();
    hand.beside(|client| scrub(&client));
    let scrubbed = left.lock().unwrap().len();
    hand.write(&volume, 0, &bytes(1_090, 1, 0));
    let flush = hand.flush();
    hand.wait(flush).unwrap();
    let left = std::mem::take(&mut *left.lock().unwrap());
    assert!(scrubbed > 4 && left.len() > scrubbed, "{scrubbed} of {}", left.len());
    for (moment, left) in left.into_iter().enumerate() {
        let found = problems(&left);
        let new = found.iter().find(|problem| !damaged.contains(problem));
        assert_eq!(new, None, "moment {moment}");
        let stand = wish.open(left);
        for lba in [1, 8, 500, CHUNKS - 1] {
            assert!(read(&stand, lba) == Some(content(lba, 0)), "moment {moment}, chunk {lba}");
        }
        scrub(&stand.client);
        let volume = stand.client.volume("a").unwrap();
        stand.write(&volume, 0, &bytes(1_090, 1, 0));
        stand.flush();
        assert!(read(&stand, 1_090) == Some(content(1_090, 0)), "moment {moment}");
        check_clean(&stand.close());
    }
}

/// A device fails to read the newest root at one opening and gives it at the next. What the store
/// did in between must not have been done on top of it.
#[test]
fn a_root_that_could_not_be_read_never_comes_back() {
    let wish = Wish::default();
    for block in [1, 2] {
        let disk = filled();
        let offset_bytes = block * 4096;
        disk.inject(Fault::Read { zone: Zone::Superblock, offset_bytes });
        let (mut hand, left) = Looker::open(&wish, disk.clone());
        let volume = hand.beside(|client| client.volume("a").unwrap());
        hand.write(&volume, 0, &bytes(0, CHUNKS, 1));
        let flush = hand.flush();
        hand.wait(flush).unwrap();
        let flushed = left.lock().unwrap().len();
        hand.close();
        let left = std::mem::take(&mut *left.lock().unwrap());
        assert!(left.len() > flushed, "{flushed} of {}", left.len());
        for (moment, left) in left.into_iter().enumerate() {
            left.heal();
            let stand = wish.open(left);
            let held = |lba: u64, time| read(&stand, lba) == Some(content(lba, time));
            for lba in [0, 300, 700, CHUNKS - 1] {
                let right = held(lba, 1) || (moment < flushed && held(lba, 0));
                assert!(right, "block {block}, moment {moment}, chunk {lba}");
            }
            check_clean(&stand.close());
        }
    }
}
