//! Maps: LBAs get and lose chunks, and with them references come and go.
//!
//! A version of a volume holds a reference for each LBA that it maps to another chunk than its
//! parent does ([`format::catalog::Lineage`]). So an overwrite retains what is new unless the
//! parent maps it there too, and releases what was there unless the parent still maps it. What a
//! write needs of the parent is one leaf of its map; what it needs of other versions is nothing.
//!
//! Only versions without children change. That a snapshot is taken, or a clone made, therefore
//! changes no count: the new version maps what its parent does, and holds no reference.

use std::ops::Range;

use format::catalog::VolumeState;
use format::map_page::SLOTS;
use format::units::{Lba, Pbn, TreeId, VolumeId};
use mutants::mutant;
use tables::{NextLeaf, PageError, PageRead, Pointers, lba_pbn};

use crate::pages::wanted::Wanted;
use crate::state::{State, lower};

/// Stands for the map of a version that does not exist: no volume has this number.
pub(crate) const NO_MAP: TreeId = TreeId(u32::MAX);

impl State {
    /// The map of which a version's leaf is a change: its parent's, or, where the parent has given
    /// its leaves back, that one's parent's.
    pub(crate) fn parent_at(&self, id: VolumeId, leaf: u64) -> Option<TreeId> {
        let parent = self.catalog.get(id)?.lineage.parent?;
        let above = &self.catalog.get(parent)?.lineage;
        if leaf < above.given_back_leaves {
            above.parent.map(TreeId::volume)
        } else {
            Some(TreeId::volume(parent))
        }
    }

    fn has_parent(&self, id: VolumeId) -> bool {
        self.catalog.get(id).is_some_and(|entry| entry.lineage.parent.is_some())
    }

    /// What the parent maps where a run of LBAs lies; nothing for a version without one.
    fn inherited(&self, id: VolumeId, first: Lba, count: usize) -> Vec<Pbn> {
        let mut inherited = Vec::with_capacity(count);
        for (lba, count) in runs_by_leaf(first, count) {
            match self.parent_at(id, lba_pbn::place(lba).0) {
                Some(parent) => {
                    lba_pbn::extend_run(&self.store, parent, lba, count, &mut inherited)
                }
                None => inherited.resize(inherited.len() + count, Pbn::NONE),
            }
        }
        inherited
    }

    /// Asks for a leaf of the map that a version's own is compared with.
    fn want_parent_leaf(
        &mut self,
        id: VolumeId,
        leaf: u64,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        match self.parent_at(id, leaf) {
            Some(parent) => self.store.want(&mut wanted.pins, parent, leaf, &mut wanted.reads),
            None => Ok(true),
        }
    }

    /// The next leaf at `from` or behind it in which a version may map what its parent does not, as
    /// far as one and the same parent reaches: behind the end there may be a place to go on from.
    pub(crate) fn next_own_leaf(
        &mut self,
        id: VolumeId,
        from: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<(NextLeaf, Option<u64>), PageError> {
        let given_back = self
            .catalog
            .get(id)
            .and_then(|entry| self.catalog.get(entry.lineage.parent?))
            .map_or(0, |parent| parent.lineage.given_back_leaves);
        let further = (from < given_back && given_back < u64::MAX).then_some(given_back);
        let parent = self.parent_at(id, from).unwrap_or(NO_MAP);
        let trees = [TreeId::volume(id), parent];
        let skip = |pointers: &Pointers<'_>, _: &Range<u64>| pointers.same(0, 1);
        let found = self.store.next_difference(&trees, from, skip, reads)?;
        Ok(match (found, further) {
            (NextLeaf::Found(leaf), Some(end)) if leaf >= end => (NextLeaf::End, further),
            (found, further) => (found, further),
        })
    }

    /// Pages to map a run: the map's leaves, its parent's, and those of every PBN retained or
    /// released.
    pub(crate) fn want_map(
        &mut self,
        volume: VolumeId,
        first: Lba,
        pbns: &[Pbn],
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        let tree = TreeId::volume(volume);
        let mut here = true;
        for (lba, count) in runs_by_leaf(first, pbns.len()) {
            let (leaf, _) = lba_pbn::place(lba);
            here &= self.want_parent_leaf(volume, leaf, wanted)?;
            if self.store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads)? {
                here &= self.want_mapped(tree, lba, count, wanted)?;
            } else {
                here = false;
            }
        }
        for &pbn in pbns.iter().filter(|pbn| !pbn.is_none()) {
            here &= self.want_pba(pbn, wanted)?;
        }
        Ok(here)
    }

    /// Pages to unmap a range: only leaves that exist.
    pub(crate) fn want_unmap(
        &mut self,
        volume: VolumeId,
        first: Lba,
        count: u64,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        let tree = TreeId::volume(volume);
        let end = first.0.saturating_add(count);
        let mut here = true;
        let mut from = lba_pbn::place(first).0;
        loop {
            match self.store.next_leaf(tree, from, &mut wanted.reads)? {
                NextLeaf::Missing => return Ok(false),
                NextLeaf::End => return Ok(here),
                NextLeaf::Found(leaf) if leaf_start(leaf) >= end => return Ok(here),
                NextLeaf::Found(leaf) => {
                    here &= self.want_parent_leaf(volume, leaf, wanted)?;
                    here &= self.want_unmap_leaf(tree, leaf, first.0, end, wanted)?;
                    from = leaf + 1;
                }
            }
        }
    }

    fn want_unmap_leaf(
        &mut self,
        tree: TreeId,
        leaf: u64,
        first: u64,
        end: u64,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        if !self.store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads)? {
            return Ok(false);
        }
        let range = leaf_range(leaf, first, end);
        self.want_mapped(tree, Lba(range.start), (range.end - range.start) as usize, wanted)
    }

    /// Pages of the PBN-PBA table for what a part of a leaf names; the leaf is here.
    pub(crate) fn want_mapped(
        &mut self,
        tree: TreeId,
        first: Lba,
        count: usize,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        let mut mapped = std::mem::take(&mut self.scratch.mapped);
        mapped.clear();
        lba_pbn::extend_run(&self.store, tree, first, count, &mut mapped);
        let mut here = true;
        for &pbn in mapped.iter().filter(|pbn| !pbn.is_none()) {
            here &= self.want_pba(pbn, wanted)?;
        }
        self.scratch.mapped = mapped;
        Ok(here)
    }

    pub(crate) fn map_run(&mut self, volume: VolumeId, first: Lba, pbns: &[Pbn]) {
        let tree = TreeId::volume(volume);
        self.entries_seen.maps += pbns.len() as u64;
        let mut replaced = std::mem::take(&mut self.scratch.replaced);
        replaced.clear();
        if self.has_parent(volume) {
            let inherited = self.inherited(volume, first, pbns.len());
            self.retain(&others(pbns, &inherited));
            for (lba, count) in runs_by_leaf(first, pbns.len()) {
                lba_pbn::extend_run(&self.store, tree, lba, count, &mut replaced);
            }
            lba_pbn::set_run(&mut self.store, tree, first, pbns, &mut Vec::new());
            self.count_mapped(volume, count_mapped(pbns), count_mapped(&replaced));
            self.release_but(&replaced, &inherited);
        } else {
            self.retain(pbns);
            lba_pbn::set_run(&mut self.store, tree, first, pbns, &mut replaced);
            self.count_mapped(volume, count_mapped(pbns), replaced.len() as u64);
            if !mutant!(ForgetsRelease) {
                self.release(&replaced);
            }
        }
        self.scratch.replaced = replaced;
    }

    pub(crate) fn unmap(&mut self, volume: VolumeId, first: Lba, count: u64) {
        let tree = TreeId::volume(volume);
        let end = first.0.saturating_add(count);
        let mut from = lba_pbn::place(first).0;
        let mut reads = Vec::new();
        let (mut unmapped, mut inherited) = (Vec::new(), Vec::new());
        while let Ok(NextLeaf::Found(leaf)) = self.store.next_leaf(tree, from, &mut reads) {
            if leaf_start(leaf) >= end {
                break;
            }
            let range = leaf_range(leaf, first.0, end);
            let (start, length) = (Lba(range.start), (range.end - range.start) as usize);
            inherited.append(&mut self.inherited(volume, start, length));
            lba_pbn::extend_run(&self.store, tree, start, length, &mut unmapped);
            lba_pbn::clear_run(&mut self.store, tree, start, length, &mut Vec::new());
            from = leaf + 1;
        }
        self.count_mapped(volume, 0, count_mapped(&unmapped));
        self.release_but(&unmapped, &inherited);
    }

    /// Releases what was mapped, but for what the parent maps at the same place.
    fn release_but(&mut self, mapped: &[Pbn], inherited: &[Pbn]) {
        let inherited = if mutant!(ReleasesInherited) { &[] } else { inherited };
        self.release(&others(mapped, inherited));
    }

    fn count_mapped(&mut self, volume: VolumeId, added: u64, removed: u64) {
        let Some(entry) = self.catalog.get_mut(volume) else { return };
        // Of a version that is being deleted nothing is counted any more.
        let removed = if entry.state == VolumeState::Live {
            removed
        } else {
            removed.min(entry.mapped_chunks)
        };
        entry.mapped_chunks += added;
        lower(&mut entry.mapped_chunks, removed);
        self.totals.mapped_chunks += added;
        lower(&mut self.totals.mapped_chunks, removed);
    }
}

fn count_mapped(pbns: &[Pbn]) -> u64 {
    pbns.iter().filter(|pbn| !pbn.is_none()).count() as u64
}

/// Those that differ from what stands at the same place of `than`, or have nothing there.
fn others(pbns: &[Pbn], than: &[Pbn]) -> Vec<Pbn> {
    let than = than.iter().copied().chain(std::iter::repeat(Pbn::NONE));
    pbns.iter().zip(than).filter(|(one, other)| **one != *other).map(|(&pbn, _)| pbn).collect()
}

/// A run of LBAs, cut at the ends of leaves.
pub(crate) fn runs_by_leaf(first: Lba, count: usize) -> impl Iterator<Item = (Lba, usize)> {
    let end = first.0 + count as u64;
    let mut at = first;
    std::iter::from_fn(move || {
        let here = (SLOTS - lba_pbn::place(at).1).min((end - at.0) as usize);
        let run = (at, here);
        at.0 += here as u64;
        (here > 0).then_some(run)
    })
}

/// First LBA of a leaf of a volume's map.
pub(crate) fn leaf_start(leaf: u64) -> u64 {
    leaf * SLOTS as u64
}

/// The LBAs of a leaf that lie in `first..end`.
pub(crate) fn leaf_range(leaf: u64, first: u64, end: u64) -> Range<u64> {
    let start = leaf_start(leaf);
    start.max(first)..(start + SLOTS as u64).min(end)
}
