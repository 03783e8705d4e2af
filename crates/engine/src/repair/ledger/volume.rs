//! The account of one volume: its map on disk, and what the journal says differs from it.

use std::collections::BTreeMap;
use std::ops::Range;

use format::catalog::CatalogEntry;
use format::map_page::SLOTS;
use format::units::{Pbn, TreeId};

use crate::repair::survey::Survey;
use crate::repair::tree_image::TreeImage;

/// A volume and what the journal changed in its map.
#[derive(Clone)]
pub(crate) struct VolumeLedger {
    pub(crate) entry: CatalogEntry,
    /// The map that it began with, at the root: its own, or that of the version it was copied from.
    pub(crate) base: TreeId,
    /// What these chunks are mapped to; none: unmapped.
    pub(crate) set: BTreeMap<u64, Pbn>,
    /// Chunks unmapped, unless `set` says otherwise.
    pub(crate) cleared: Vec<Range<u64>>,
    /// The map that this was when the newer root was written, for leaves that the base has lost:
    /// its own, or that of the version it was copied from since. What the journal says nothing of
    /// is the same there. None if the base is the newest root, or the volume did not exist.
    pub(super) newer: Option<TreeId>,
}

impl VolumeLedger {
    pub(super) fn new(entry: CatalogEntry) -> Self {
        let base = TreeId::volume(entry.id);
        Self { entry, base, set: BTreeMap::new(), cleared: Vec::new(), newer: None }
    }

    /// That map, if what is below the newer root leads to it.
    pub(crate) fn newer_map<'a>(&self, survey: &'a Survey) -> Option<(TreeId, &'a TreeImage)> {
        let tree = self.newer?;
        survey.newer()?.trees.get(&tree).map(|image| (tree, image))
    }

    pub(crate) fn unmap_leaves(&mut self, leaves: &Range<u64>) {
        let first = leaves.start.saturating_mul(SLOTS as u64);
        self.unmap(first, leaves.end.saturating_mul(SLOTS as u64).saturating_sub(first));
    }

    pub(super) fn unmap(&mut self, first: u64, count: u64) {
        let end = first.saturating_add(count);
        let mut behind = self.set.split_off(&first);
        self.set.append(&mut behind.split_off(&end));
        self.cleared.push(first..end);
    }

    pub(super) fn settle(&mut self) {
        self.cleared.sort_by_key(|range| range.start);
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in self.cleared.drain(..) {
            match merged.last_mut() {
                Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        self.cleared = merged;
    }

    /// What the journal says of a chunk, if it says anything.
    pub(crate) fn journaled(&self, lba: u64) -> Option<Pbn> {
        self.set.get(&lba).copied().or_else(|| {
            let after = self.cleared.partition_point(|range| range.start <= lba);
            let cleared = after.checked_sub(1).map(|at| &self.cleared[at]);
            cleared.filter(|range| range.contains(&lba)).map(|_| Pbn::NONE)
        })
    }
}
