//! What the records changed that are there and are not applied: which chunks of which volumes may
//! hold what they held before.
//!
//! A record that is damaged says nothing. Whole ones behind it do, and they are looked for in all
//! of the ring. None of them is applied, since a file system would then find writes without those
//! before them; but their chunks are named, so that somebody can look at what is in them.

use std::collections::BTreeMap;

use format::record::{Change, Changes};
use format::superblock::Geometry;
use format::units::{Lba, VolumeId};

use crate::check::problem::Problem;
use crate::repair::damage_reads::DamageReads;
use crate::repair::journal_image::each_whole_record;
use crate::repair::ledger::Ledger;

/// A volume with more ranges than this is named from the first to the last.
const RANGES_MAX: usize = 1000;

/// Chunks by volume: where each range begins, and how many they are.
#[derive(Default)]
pub(crate) struct LeftOut(BTreeMap<VolumeId, BTreeMap<u64, u64>>);

impl LeftOut {
    /// What whole records of this store changed, from the record `from_sequence` on.
    pub(crate) fn read(reads: &mut DamageReads, geometry: &Geometry, from_sequence: u64) -> Self {
        let mut left_out = Self::default();
        each_whole_record(reads, geometry, |header, body| {
            if header.sequence >= from_sequence {
                left_out.add_changes(body);
            }
        });
        left_out
    }

    fn add_changes(&mut self, body: &[u8]) {
        for change in Changes::new(body).map_while(Result::ok) {
            match change {
                Change::Map { volume, first, pbns } => self.add(volume, first, pbns.len() as u64),
                Change::Unmap { volume, first, count } => self.add(volume, first, count),
                _ => {}
            }
        }
    }

    fn add(&mut self, volume: VolumeId, first: Lba, count: u64) {
        let longest = self.0.entry(volume).or_default().entry(first.0).or_default();
        *longest = count.max(*longest);
    }

    /// Them as problems, those of volumes that are there.
    pub(crate) fn problems(&self, ledger: &Ledger, geometry: &Geometry) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (id, ranges) in &self.0 {
            let Some(volume) = ledger.volumes.get(id) else { continue };
            let name = ledger.full_name(&volume.entry);
            for (lba, count) in joined(ranges) {
                let bytes = count.saturating_mul(u64::from(geometry.chunk_bytes));
                problems.push(Problem::OlderChunks { volume: name.clone(), lba, count, bytes });
            }
        }
        problems
    }
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
