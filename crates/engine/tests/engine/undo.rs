//! A repair is taken back: whenever it or the undo was cut off, the store is what it was before,
//! byte for byte.

use std::fs;
use std::path::PathBuf;

use disk::{Disk, Loss, MemoryDisk, UndoDisk, UndoError, UndoFile, UndoImage};
use engine::{Zone, repair, structures};

use crate::stand::{CHUNK, Looker, MIB, Wish, check, fresh};

const ZONES: [Zone; 4] = [Zone::Superblock, Zone::Journal, Zone::Tables, Zone::Data(0)];
const CHUNKS: u64 = 300;

fn path(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("tamis-undo-{name}-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

fn copy_of(disk: &MemoryDisk) -> MemoryDisk {
    disk.left_by_power_loss(0, Loss::None)
}

/// A store with damage to its newest root and to a frame.
fn damaged() -> MemoryDisk {
    let stand = Wish::default().stand();
    let volume = stand.volume("a", 8 * MIB);
    for number in 0..CHUNKS {
        stand.write(&volume, number * CHUNK, &fresh(number, CHUNK));
    }
    let disk = stand.close();
    let all = structures(Box::new(copy_of(&disk))).unwrap();
    for kind in ["root", "frame"] {
        let hit = all.iter().find(|structure| structure.kind.contains(kind)).unwrap();
        let at = hit.offset_bytes + hit.length_bytes / 2;
        disk.corrupt(hit.zone, at, |byte| *byte ^= 0x40);
    }
    disk
}

/// Repairs a store, and says what each moment of that would have left and where its undo file is.
fn repaired(disk: &MemoryDisk, name: &str) -> (MemoryDisk, Vec<MemoryDisk>, PathBuf) {
    let (path, mended) = (path(name), copy_of(disk));
    let undo = UndoFile::create(&path, Vec::new()).unwrap();
    let (looker, left) = Looker::new(mended.clone());
    let report = repair(Box::new(UndoDisk::new(Box::new(looker), &undo)), &mut |_| {}).unwrap();
    assert!(report.pages_written > 0 && report.lost_chunks > 0, "{report:?}");
    assert_eq!(undo.finish().unwrap().as_ref(), Some(&path));
    let left = std::mem::take(&mut *left.lock().unwrap());
    assert!(left.len() > 10, "{} moments", left.len());
    (mended, left, path)
}

#[track_caller]
fn assert_same(disk: &MemoryDisk, other: &MemoryDisk, what: &str) {
    for zone in ZONES {
        let all = |of: &MemoryDisk| of.peek(zone, 0, of.size_bytes(zone) as usize);
        assert!(all(disk) == all(other), "{what}: {zone:?}");
    }
}

#[test]
fn a_repair_is_taken_back_wherever_it_was_cut_off() {
    let disk = damaged();
    let (mended, left, path) = repaired(&disk, "repair");
    let image = UndoImage::read(&path).unwrap();
    for (moment, mut left) in left.into_iter().chain([mended]).enumerate() {
        image.go_back(&mut left).unwrap();
        let left = left.left_by_power_loss(0, Loss::All);
        assert_same(&left, &disk, &format!("moment {moment}"));
    }
    // Of a repair that was cut off the file is, too.
    let bytes = fs::read(&path).unwrap();
    for length in [bytes.len() - 4096, bytes.len() - 4097, bytes.len() - 8192] {
        fs::write(&path, &bytes[..length]).unwrap();
        UndoImage::read(&path).unwrap();
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn an_undo_that_was_cut_off_goes_on() {
    let disk = damaged();
    let (mended, _, path) = repaired(&disk, "undo");
    let image = UndoImage::read(&path).unwrap();
    let (mut looker, left) = Looker::new(mended);
    image.go_back(&mut looker).unwrap();
    let left = std::mem::take(&mut *left.lock().unwrap());
    for (moment, mut left) in left.into_iter().enumerate() {
        image.go_back(&mut left).unwrap_or_else(|error| panic!("moment {moment}: {error}"));
        assert_same(&left, &disk, &format!("moment {moment}"));
    }
    fs::remove_file(path).unwrap();
}

#[test]
fn a_store_that_was_opened_since_is_not_taken_back() {
    let disk = damaged();
    let (mended, left, path) = repaired(&disk, "changed");
    let image = UndoImage::read(&path).unwrap();
    let opened = Wish::default().open(copy_of(&mended));
    let killed = opened.kill(1);
    // The first moment is the store of before, which opens: one root is whole.
    let stopped = left[0].clone();
    let begun = Wish::default().open(copy_of(&stopped));
    let closed = begun.close();
    for mut changed in [killed, closed] {
        let before = copy_of(&changed);
        let refused = image.go_back(&mut changed);
        assert!(matches!(refused, Err(UndoError::Changed(_))), "{refused:?}");
        assert_same(&changed, &before, "it was changed");
    }
    // What a second repair wrote is another one's.
    let (mut twice, _, second) = repaired(&stopped, "second");
    UndoImage::read(&second).unwrap().go_back(&mut twice).unwrap();
    assert_same(&twice, &stopped, "the second alone");
    let problems = check(&mended).problems;
    assert!(!problems.is_empty(), "a chunk is lost");
    [path, second].into_iter().for_each(|path| fs::remove_file(path).unwrap());
}

#[test]
fn a_damaged_undo_file_takes_nothing_back() {
    let disk = damaged();
    let (_, _, path) = repaired(&disk, "damaged");
    let bytes = fs::read(&path).unwrap();
    for at in [0, 4096, 4096 + 40, 8192 + 7, bytes.len() / 2] {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let read = UndoImage::read(&path).err();
        assert!(matches!(read, Some(UndoError::Damaged(_))), "byte {at}: {read:?}");
    }
    fs::remove_file(path).unwrap();
}
