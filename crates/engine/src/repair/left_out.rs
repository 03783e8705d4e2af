//! What the records changed that are there and are not applied: which chunks of which volumes may
//! hold what they held before, and which volumes are gone.
//!
//! Whole records behind a damaged one are looked for in all of the ring. None of them is applied,
//! since a file system would then find writes without those before them; but their chunks are
//! named, so that somebody can look at what is in them. A record that is damaged says nothing: that
//! there is one is said, since what it changed may be any chunk of any volume.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use format::catalog::CatalogEntry;
use format::map_page;
use format::record::{Change, Changes};
use format::superblock::Geometry;
use format::units::VolumeId;

use crate::check::problem::Problem;
use crate::repair::damage_reads::DamageReads;
use crate::repair::journal_image::each_whole_record;
use crate::repair::ledger::Ledger;

/// A volume with more ranges than this is named from the first to the last.
const RANGES_MAX: usize = 1000;

/// All chunks of a volume, however many they are.
const ALL: u64 = u64::MAX;

/// What records changed.
pub(crate) struct LeftOut {
    /// Chunks by volume: where each range begins, and how many they are.
    ranges: BTreeMap<VolumeId, BTreeMap<u64, u64>>,
    /// Volumes and snapshots that were made, and of which volume a snapshot is.
    made: BTreeMap<VolumeId, (Option<VolumeId>, String)>,
    /// Which records were looked for.
    wanted: RangeInclusive<u64>,
    /// Those of them that say all that they changed.
    read: BTreeSet<u64>,
}

impl LeftOut {
    /// What the whole ones changed of these records of this store.
    pub(crate) fn read(
        reads: &mut DamageReads,
        geometry: &Geometry,
        wanted: RangeInclusive<u64>,
    ) -> Self {
        let (ranges, made, read) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let mut left_out = Self { ranges, made, wanted, read };
        each_whole_record(reads, geometry, |header, body| {
            if left_out.wanted.contains(&header.sequence) && left_out.add_changes(geometry, body) {
                left_out.read.insert(header.sequence);
            }
        });
        left_out
    }

    /// Adds what a record changed; false if not all of that can be read.
    fn add_changes(&mut self, geometry: &Geometry, body: &[u8]) -> bool {
        Changes::new(body).all(|change| change.map(|change| self.add(geometry, change)).is_ok())
    }

    fn add(&mut self, geometry: &Geometry, change: Change) {
        match change {
            Change::Map { volume, first, pbns } => self.range(volume, first.0, pbns.len() as u64),
            Change::Unmap { volume, first, count } => self.range(volume, first.0, count),
            Change::CutOff { volume, leaves, .. } => {
                let chunks = |leaves: u64| leaves.saturating_mul(map_page::SLOTS as u64);
                let count = chunks(leaves.end.saturating_sub(leaves.start));
                self.range(volume, chunks(leaves.start), count);
            }
            Change::ResizeVolume { id, size_bytes } => {
                self.range(id, size_bytes / u64::from(geometry.chunk_bytes), ALL);
            }
            Change::Rollback { volume, .. } => self.range(volume, 0, ALL),
            Change::CreateVolume { id, name, .. } | Change::CloneVolume { id, name, .. } => {
                self.made.insert(id, (None, name));
            }
            Change::TakeSnapshot { volume, id, name, .. } => {
                self.made.insert(id, (Some(volume), name));
            }
            _ => {}
        }
    }

    fn range(&mut self, volume: VolumeId, first: u64, count: u64) {
        let longest = self.ranges.entry(volume).or_default().entry(first).or_default();
        *longest = count.max(*longest);
    }

    /// All of that as problems: chunks of volumes that are there, volumes that are not, and that
    /// there are records which say neither.
    pub(crate) fn problems(&self, ledger: &Ledger, geometry: &Geometry) -> Vec<Problem> {
        let (first_sequence, last_sequence) = (*self.wanted.start(), *self.wanted.end());
        let records = (last_sequence + 1).saturating_sub(first_sequence);
        let count = records.saturating_sub(self.read.len() as u64);
        let unread = Problem::UnreadRecords { first_sequence, last_sequence, count };
        let mut problems: Vec<_> = (count > 0).then_some(unread).into_iter().collect();
        for (id, ranges) in &self.ranges {
            let Some(volume) = ledger.volumes.get(id) else { continue };
            problems.extend(older(
                &ledger.full_name(&volume.entry),
                &volume.entry,
                ranges,
                geometry,
            ));
        }
        let gone = self.made.iter().filter(|(id, _)| !ledger.volumes.contains_key(id));
        problems.extend(gone.map(|(_, (of, name))| {
            let volume = match of.and_then(|of| ledger.volumes.get(&of)) {
                Some(of) => format!("{}@{name}", of.entry.name),
                None => name.clone(),
            };
            Problem::GoneVolume { volume }
        }));
        problems
    }
}

/// Chunks of a volume, none behind its end.
fn older<'a>(
    name: &'a str,
    entry: &CatalogEntry,
    ranges: &BTreeMap<u64, u64>,
    geometry: &'a Geometry,
) -> impl Iterator<Item = Problem> + use<'a> {
    let chunks = entry.chunks(geometry.chunk_bytes);
    joined(ranges).into_iter().filter(move |(lba, _)| *lba < chunks).map(move |(lba, count)| {
        let count = count.min(chunks - lba);
        let bytes = count.saturating_mul(u64::from(geometry.chunk_bytes));
        Problem::OlderChunks { volume: name.to_owned(), lba, count, bytes }
    })
}

/// Ranges that touch as one, and all as one where they are too many.
fn joined(ranges: &BTreeMap<u64, u64>) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (&first, &count) in ranges {
        match joined.last_mut() {
            Some((start, length)) if first <= start.saturating_add(*length) => {
                *length = (*length).max(first.saturating_add(count) - *start);
            }
            _ => joined.push((first, count)),
        }
    }
    if let (true, Some(&(start, _)), Some(&(last, count))) =
        (joined.len() > RANGES_MAX, joined.first(), joined.last())
    {
        return vec![(start, last.saturating_add(count) - start)];
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::{RANGES_MAX, joined};

    #[test]
    fn ranges_that_touch_are_one_and_too_many_are_one() {
        let ranges = [(3, 2), (5, 1), (4, 4), (20, 1)].into_iter().collect();
        assert_eq!(joined(&ranges), [(3, 5), (20, 1)]);
        let many = (0..=RANGES_MAX as u64).map(|number| (10 * number, 2)).collect();
        assert_eq!(joined(&many), [(0, 10 * RANGES_MAX as u64 + 2)]);
    }
}
