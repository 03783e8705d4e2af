//! What each record of a sound store's journal changed: what is lost with it.

use std::collections::BTreeMap;
use std::ops::Range;

use disk::MemoryDisk;
use engine::{Structure, Zone};
use format::map_page;
use format::record::{Change, Changes, decode_header, verify_body};
use format::units::VolumeId;

use crate::damage::truth::{Place, VOLUME_CHUNKS};

/// A record of a sound store.
pub(crate) struct Recorded {
    /// Where it stands.
    pub(crate) range: Range<u64>,
    /// Ranges of chunks, and in which volume.
    changed: Vec<(usize, Range<u64>)>,
}

impl Recorded {
    /// The chunks that it changed.
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        self.changed.iter().flat_map(|(volume, lbas)| lbas.clone().map(move |lba| (*volume, lba)))
    }
}

/// The records of a sound store whose volumes have these numbers.
pub(crate) fn records(
    disk: &MemoryDisk,
    structures: &[Structure],
    numbers: &BTreeMap<VolumeId, usize>,
) -> Vec<Recorded> {
    let of_journal = structures.iter().filter(|structure| structure.zone == Zone::Journal);
    let recorded = |structure: &Structure| {
        let Structure { offset_bytes, length_bytes, .. } = *structure;
        let bytes = disk.peek(Zone::Journal, offset_bytes, length_bytes as usize);
        let changed = changes(&bytes).into_iter().filter_map(|change| changed(change, numbers));
        Recorded { range: offset_bytes..offset_bytes + length_bytes, changed: changed.collect() }
    };
    of_journal.map(recorded).collect()
}

/// The changes of the record that these bytes are; none if they are none.
pub(crate) fn changes(record: &[u8]) -> Vec<Change> {
    let body = decode_header(record).and_then(|header| verify_body(&header, record));
    let changes = body.map(|body| Changes::new(body).map_while(Result::ok));
    changes.map(Iterator::collect).unwrap_or_default()
}

fn changed(change: Change, numbers: &BTreeMap<VolumeId, usize>) -> Option<(usize, Range<u64>)> {
    let (volume, first, count) = match change {
        Change::Map { volume, first, pbns } => (volume, first.0, pbns.len() as u64),
        Change::Unmap { volume, first, count } => (volume, first.0, count),
        Change::CutOff { volume, leaves, .. } => {
            let slots = map_page::SLOTS as u64;
            (volume, leaves.start * slots, (leaves.end - leaves.start) * slots)
        }
        Change::CreateVolume { id, .. } | Change::CloneVolume { id, .. } => (id, 0, VOLUME_CHUNKS),
        _ => return None,
    };
    Some((*numbers.get(&volume)?, first..(first + count).min(VOLUME_CHUNKS)))
}
