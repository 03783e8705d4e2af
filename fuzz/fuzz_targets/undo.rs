//! Undo files of repairs: whatever the file, it is refused or read. What a file says that fits its
//! store is taken back to the byte; where it does not fit, nothing of the store changes.
#![no_main]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use disk::{AlignedBuf, Disk, Io, IoKind, MemoryDisk, UndoImage};
use format::BLOCK_BYTES;
use format::checksum::crc32c;
use format::undo::{UndoEntry, UndoStart, sector_crcs};
use format::units::Zone;
use libfuzzer_sys::fuzz_target;
use tamis_fuzz::input::Input;
use tamis_fuzz::{block, heal};

const ZONES: [Zone; 4] = [Zone::Superblock, Zone::Journal, Zone::Tables, Zone::Data(0)];
const BLOCKS: usize = 4;
const ENTRIES_MAX: usize = 12;

/// What a store holds, zone by zone.
type Bytes = BTreeMap<Zone, Vec<u8>>;

fuzz_target!(|input: &[u8]| {
    decodes(input);
    let path = PathBuf::from(format!("/dev/shm/tamis-fuzz-undo-{}", std::process::id()));
    fs::write(&path, input).unwrap();
    let _ = UndoImage::read(&path);
    go_back(&mut Input::new(input), &path);
});

/// What is decoded is encoded to the same again.
fn decodes(input: &[u8]) {
    let mut start = block(input);
    heal(&mut start, |bytes| UndoStart::decode(bytes).map(drop));
    if let Ok(start) = UndoStart::decode(&start) {
        assert_eq!(UndoStart::decode(&start.encode()), Ok(start));
    }
    let mut entry = block(input);
    heal(&mut entry, |bytes| UndoEntry::decode(bytes).map(drop));
    if let Ok(entry) = UndoEntry::decode(&entry) {
        assert_eq!(UndoEntry::decode(&entry.encode()), Ok(entry));
    }
}

/// A repair as the input says, its file with some harm, and the way back.
fn go_back(input: &mut Input<'_>, path: &Path) {
    let before: Bytes = ZONES.map(|zone| (zone, vec![input.byte(); BLOCKS * BLOCK_BYTES])).into();
    let mut now = before.clone();
    let (mut entries, mut file) = (0, Vec::new());
    for number in 0..input.below(ENTRIES_MAX) {
        let zone = ZONES[input.below(ZONES.len())];
        let first = input.below(BLOCKS);
        // Of the superblock a repair writes single blocks.
        let blocks = if zone == Zone::Superblock { 1 } else { 1 + input.below(BLOCKS - first) };
        let new = vec![input.byte(); blocks * BLOCK_BYTES];
        let range = first * BLOCK_BYTES..(first + blocks) * BLOCK_BYTES;
        let old = now[&zone][range.clone()].to_vec();
        let offset_bytes = range.start as u64;
        let length_bytes = old.len() as u32;
        let (number, old_crc, new_crcs) = (number as u64, crc32c(&old), sector_crcs(&new));
        let entry = UndoEntry { number, zone, offset_bytes, length_bytes, old_crc, new_crcs };
        file.extend_from_slice(&entry.encode());
        file.extend_from_slice(&old);
        now.get_mut(&zone).unwrap()[range].copy_from_slice(&new);
        entries += 1;
    }
    let crc = |zone| crc32c(&before[&zone]);
    let (superblock_crc, journal_crc) = (crc(Zone::Superblock), crc(Zone::Journal));
    let start = UndoStart { superblock_crc, journal_crc, short: Vec::new() };
    let mut bytes = start.encode().to_vec();
    bytes.append(&mut file);
    // A repair that was cut off, one that ended, and a byte that has changed since.
    let is_whole = input.byte() % 2 == 0;
    if is_whole {
        let (number, zone) = (entries, Zone::Superblock);
        let (offset_bytes, length_bytes, old_crc) = (0, 0, crc32c(&[]));
        let new_crcs = sector_crcs(&[]);
        let end = UndoEntry { number, zone, offset_bytes, length_bytes, old_crc, new_crcs };
        bytes.extend_from_slice(&end.encode());
    }
    let harm = input.byte() % 4;
    if harm == 1 {
        let at = input.below(bytes.len());
        bytes[at] ^= 1 << (input.byte() % 8);
    } else if harm == 2 {
        bytes.truncate(input.below(bytes.len() + 1));
    }
    fs::write(path, &bytes).unwrap();
    judge(path, &before, &now, harm != 0);
}

fn fill(disk: &mut MemoryDisk, zone: Zone, bytes: &[u8]) {
    let kind = IoKind::Write { buf: AlignedBuf::padded(bytes).into(), durable: true };
    disk.submit(Io { zone, offset_bytes: 0, kind, tag: 0 });
    while disk.in_flight() > 0 {
        disk.wait(&mut Vec::new());
    }
}

/// Takes the repair back that left `now`, and looks at what comes of it.
fn judge(path: &Path, before: &Bytes, now: &Bytes, is_harmed: bool) {
    let sizes = ZONES.map(|zone| (zone, (BLOCKS * BLOCK_BYTES) as u64));
    let mut disk = MemoryDisk::new(&sizes, 1);
    now.iter().for_each(|(zone, bytes)| fill(&mut disk, *zone, bytes));
    let peek = |disk: &MemoryDisk| -> Bytes {
        ZONES.map(|zone| (zone, disk.peek(zone, 0, BLOCKS * BLOCK_BYTES))).into()
    };
    let Ok(image) = UndoImage::read(path) else {
        assert!(is_harmed, "an undamaged file is refused");
        return;
    };
    match image.go_back(&mut disk) {
        Ok(()) if !is_harmed => assert!(peek(&disk) == *before, "it is not as it was"),
        // Of a file that was cut short the last writes are not known, and of the superblock and the
        // journal it is known that there were none.
        Ok(()) => {
            let now = peek(&disk);
            assert!(now[&Zone::Superblock] == before[&Zone::Superblock]);
            assert!(now[&Zone::Journal] == before[&Zone::Journal]);
        }
        Err(_) => {
            assert!(is_harmed, "an undamaged file is not taken back");
            assert!(peek(&disk) == *now, "a refusal changes something");
        }
    }
}
