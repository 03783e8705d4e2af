//! Where in a store's files its structures lie: what a byte belongs to.
//!
//! For a test that damages a store to see what comes of it, or wants to know what a bad block hit.

use containers::{directory_of, directory_range, footer};
use disk::Disk;
use format::container_page::ContainerState;
use format::directory::FOOTER_BYTES;
use format::superblock::{GEOMETRY_BLOCKS, root_block};
use format::units::{BlockPtr, CONTAINER_BYTES, ContainerId, TreeId, Zone, block_offset_bytes};
use format::{BLOCK_BYTES, record::Change};

use crate::devices::Devices;
use crate::open::open_error::OpenError;
use crate::repair::damage_reads::DamageReads;
use crate::repair::frame_accounts::stored_chunks;
use crate::repair::journal_image::each_record;
use crate::repair::ledger::Ledger;
use crate::repair::survey::{RootImage, Survey};

/// A structure of a store, in one piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Structure {
    /// What it is.
    pub kind: String,
    /// Its file.
    pub zone: Zone,
    /// Where it starts.
    pub offset_bytes: u64,
    /// How long it is.
    pub length_bytes: u64,
    /// Whether something durable says that it must be there. What the last sync before a crash
    /// wrote is not proven: without it the store looks as if the crash had come earlier.
    pub proven: bool,
}

/// The structures of a sound, closed store, everything that means something.
///
/// # Errors
/// [`OpenError`] when nothing of it can be read.
pub fn structures(disk: Box<dyn Disk>) -> Result<Vec<Structure>, OpenError> {
    let mut reads = DamageReads::new(Devices::new(disk));
    let survey = Survey::of(&mut reads, &mut |_| {})?;
    let mut all = Vec::new();
    for block in GEOMETRY_BLOCKS {
        all.push(block_structure("geometry", Zone::Superblock, block));
    }
    for image in [Some(&survey.base), survey.other.as_ref()].into_iter().flatten() {
        let block = root_block(image.root.generation);
        all.push(block_structure("root", Zone::Superblock, block));
        pages(image, &mut all);
    }
    // That of the newest root is not known to be durable, and nothing needs it.
    let older = survey.by_age().1.map(|image| image.root.label).filter(|&label| label != 0);
    all.extend(older.map(|block| block_structure("label", Zone::Tables, block)));
    let unproven = records(&mut reads, &survey, &mut all);
    let ledger = Ledger::read(&mut reads, &survey, &mut |_| {});
    let frames = stored_chunks(&ledger).into_iter().map(|(pba, _)| ("frame", pba));
    let copies = ledger.copies.values().map(|&pba| ("second copy", pba));
    for (kind, pba) in frames.chain(copies) {
        let Some((zone, start_bytes)) = survey.geometry.container_zone(pba.container) else {
            continue;
        };
        all.push(Structure {
            kind: kind.to_owned(),
            zone,
            offset_bytes: start_bytes + u64::from(pba.offset_bytes),
            length_bytes: u64::from(pba.length_bytes),
            proven: !unproven.contains(&pba),
        });
    }
    directories(&mut reads, &survey, &ledger, &mut all);
    Ok(all)
}

fn block_structure(kind: &str, zone: Zone, block: u64) -> Structure {
    let (offset_bytes, length_bytes) = (block_offset_bytes(block), BLOCK_BYTES as u64);
    Structure { kind: kind.to_owned(), zone, offset_bytes, length_bytes, proven: true }
}

/// What a page of a tree is called, whatever the volume.
fn page_kind(tree: TreeId, is_leaf: bool) -> String {
    let table = match tree.volume_id() {
        Some(_) => "map".to_owned(),
        None => tree.to_string().trim_start_matches("the ").to_owned(),
    };
    format!("{table}, {}", if is_leaf { "leaf" } else { "inner page" })
}

fn pages(image: &RootImage, all: &mut Vec<Structure>) {
    for (&tree, pages) in &image.trees {
        let mut add = |pointers: &mut dyn Iterator<Item = BlockPtr>, is_leaf| {
            let kind = page_kind(tree, is_leaf);
            all.extend(pointers.map(|at| block_structure(&kind, Zone::Tables, at.block())));
        };
        add(&mut pages.leaves.iter().map(|(_, at)| at), true);
        add(&mut pages.inner.values().copied(), false);
    }
}

/// Records from the older root on; gives the frames of those that no sync is known to cover.
fn records(
    reads: &mut DamageReads,
    survey: &Survey,
    all: &mut Vec<Structure>,
) -> Vec<format::units::Pba> {
    let images = survey.other.iter().chain([&survey.base]);
    let Some(oldest) = images.min_by_key(|image| image.root.journal.sequence) else {
        return Vec::new();
    };
    let synced = oldest.journal.settled.durable_sequence.max(survey.base.root.journal.sequence - 1);
    let ring_bytes = survey.geometry.journal_bytes;
    let mut start_bytes = oldest.root.journal.offset_bytes;
    let mut unproven = Vec::new();
    each_record(reads, &survey.geometry, oldest.root.journal, |_, record, end| {
        let proven = record.sequence <= synced;
        // A filler before the record belongs to it: both end where the ring does, or do not.
        let mut at = start_bytes;
        while at < end.offset_bytes {
            let length_bytes = (ring_bytes - at % ring_bytes).min(end.offset_bytes - at);
            let (kind, offset_bytes) = ("journal record".to_owned(), at % ring_bytes);
            let zone = Zone::Journal;
            all.push(Structure { kind, zone, offset_bytes, length_bytes, proven });
            at += length_bytes;
        }
        start_bytes = end.offset_bytes;
        if !proven {
            unproven.extend(record.changes().unwrap_or_default().iter().filter_map(|change| {
                match change {
                    Change::Store { pba, .. }
                    | Change::StoreAside { pba, .. }
                    | Change::Move { to: pba, .. }
                    | Change::Copy { at: pba, .. } => Some(*pba),
                    _ => None,
                }
            }));
        }
        true
    });
    unproven
}

fn directories(
    reads: &mut DamageReads,
    survey: &Survey,
    ledger: &Ledger,
    all: &mut Vec<Structure>,
) {
    let geometry = &survey.geometry;
    for (id, entry) in (0..).map(ContainerId).zip(&ledger.containers) {
        let sealed = entry.filter(|entry| entry.state == ContainerState::Sealed);
        let (Some(entry), Some((zone, start_bytes))) = (sealed, geometry.container_zone(id)) else {
            continue;
        };
        let bytes = reads.container(geometry, id);
        let sound = directory_of(id, entry.sequence, geometry.uuid, &bytes).is_ok();
        let Ok(footer) = footer(id, entry.sequence, geometry.uuid, &bytes) else { continue };
        let range = directory_range(&footer);
        let parts = [
            ("directory", range.start, range.end - range.start),
            ("footer", CONTAINER_BYTES - FOOTER_BYTES as u32, FOOTER_BYTES as u32),
        ];
        all.extend(parts.into_iter().filter(|_| sound).map(|(kind, offset, length)| Structure {
            kind: kind.to_owned(),
            zone,
            offset_bytes: start_bytes + u64::from(offset),
            length_bytes: u64::from(length),
            proven: true,
        }));
    }
}
