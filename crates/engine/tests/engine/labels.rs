//! The superblock is lost: geometry and roots are found again in the labels.

use disk::{Loss, MemoryDisk};
use engine::{OpenError, Problem, Zone, repair, structures};
use format::BLOCK_BYTES;
use format::superblock::ROOT_BLOCKS;

use crate::stand::{CHUNK, MIB, Opens, Stand, Wish, check, check_clean, fresh, spoil};

const SUPERBLOCK_BYTES: u64 = 64 << 10;

fn copy_of(disk: &MemoryDisk) -> MemoryDisk {
    disk.left_by_power_loss(0, Loss::None)
}

fn zero(disk: &MemoryDisk, zone: Zone, from_bytes: u64, length_bytes: u64) {
    (from_bytes..from_bytes + length_bytes).for_each(|at| disk.corrupt(zone, at, |byte| *byte = 0));
}

/// A store that was opened and closed before, in which everything is of its second life.
fn filled() -> Stand {
    let stand = Wish::default().stand();
    stand.volume("v", 8 * MIB);
    let stand = Wish::default().open(stand.close());
    let volume = stand.client.volume("v").unwrap();
    stand.write(&volume, 0, &fresh(7, 16 * CHUNK));
    stand.write(&volume, 2 * MIB, &fresh(9, 2 * MIB));
    stand.flush();
    stand
}

/// Repairs a store and uses it: what was flushed is there.
fn mend(disk: &MemoryDisk) {
    let report = repair(Box::new(disk.clone()), &mut |_| {}).unwrap();
    assert_eq!((report.lost_chunks, report.lost_records, report.lost_journal), (0, 0, false));
    check_clean(disk);
    let disk = Wish::default().use_again(disk.clone());
    let stand = Wish::default().open(disk);
    let volume = stand.client.volume("v").unwrap();
    assert!(stand.read(&volume, 2 * MIB, 2 * MIB) == fresh(9, 2 * MIB));
}

#[test]
fn a_closed_store_outlives_its_superblock() {
    let disk = filled().close();
    zero(&disk, Zone::Superblock, 0, SUPERBLOCK_BYTES);
    let opened = Wish::default().try_open(copy_of(&disk));
    assert!(matches!(opened.err(), Some(OpenError::SuperblockLost)));
    let slots = |problem: &&Problem| matches!(problem, Problem::RootSlot { .. });
    let copies = |problem: &&Problem| matches!(problem, Problem::GeometryCopy { .. });
    let problems = check(&disk).problems;
    assert_eq!(problems.iter().filter(slots).count(), 2, "{problems:?}");
    assert_eq!(problems.iter().filter(copies).count(), 2, "{problems:?}");
    mend(&disk);
    // And once more: a repair leaves a label, too.
    zero(&disk, Zone::Superblock, 0, SUPERBLOCK_BYTES);
    mend(&disk);
}

#[test]
fn a_killed_store_outlives_its_roots() {
    for seed in 1..5 {
        let disk = filled().cut_power(seed);
        for block in ROOT_BLOCKS {
            let at_bytes = block * BLOCK_BYTES as u64;
            zero(&disk, Zone::Superblock, at_bytes, BLOCK_BYTES as u64);
        }
        mend(&disk);
    }
}

#[test]
fn a_power_cut_right_behind_a_root_leaves_a_label_that_leads_to_the_same() {
    let disk = filled().close();
    let labels = structures(Box::new(disk.clone())).unwrap();
    let older = labels.iter().find(|structure| structure.kind == "label").unwrap();
    // All labels but that of the older root: what is left when the newest never came to the disk.
    let tables_bytes = disk.left_by_power_loss(0, Loss::None);
    let blocks = (1..4096).map(|block| block * BLOCK_BYTES as u64);
    for at_bytes in blocks.filter(|&at_bytes| at_bytes != older.offset_bytes) {
        if tables_bytes.peek(Zone::Tables, at_bytes, 8) == *b"TAMIS-LB" {
            zero(&disk, Zone::Tables, at_bytes, BLOCK_BYTES as u64);
        }
    }
    check_clean(&disk);
    zero(&disk, Zone::Superblock, 0, SUPERBLOCK_BYTES);
    mend(&disk);
}

#[test]
fn a_damaged_label_is_noticed_and_written_anew() {
    let disk = filled().close();
    spoil(&disk, "label");
    let problems = check(&disk).problems;
    assert!(matches!(problems[..], [Problem::Label { .. }]), "{problems:?}");
    check_clean(&Wish::default().use_again(copy_of(&disk)));
    mend(&disk);
}

#[test]
fn a_store_that_was_never_finished_has_nothing_to_be_found() {
    let disk = Wish::default().disk();
    zero(&disk, Zone::Superblock, 0, SUPERBLOCK_BYTES);
    let opened = Wish::default().try_open(copy_of(&disk));
    assert!(matches!(opened.err(), Some(OpenError::Unfinished)));
    let repaired = repair(Box::new(disk), &mut |_| {});
    assert!(repaired.unwrap_err().to_string().contains("was stopped"));
}
