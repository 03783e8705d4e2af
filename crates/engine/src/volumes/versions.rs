//! Versions: snapshots and clones come, and what is deleted goes, without touching what is shared.
//!
//! ```text
//! take a snapshot T of V     S <- V             becomes   S <- T <- V
//! clone S                    S <- V             becomes   S <- V, S <- C
//! cut a range off V          S <- V             becomes   S <- (cut off) <- V
//! roll V back to S           S <- T <- V        becomes   S <- V, S <- T <- (what was)
//! delete T                   S <- T <- V        becomes   S <- V, after T was given back
//! ```
//!
//! All of it but the last is done at once, however large the volume
//! ([`tables::PageStore::copy_tree`]), and changes no count. Giving back is the work of a deletion,
//! done in pieces in the background: where a version differs from its parent *and* from its child,
//! it alone holds what it maps, and that is released. Where it agrees with the child, the child's
//! difference from it is the child's difference from the parent from now on, and its reference with
//! it. Where the child agrees with the parent, two references become one. Subtrees that the version
//! shares with either are passed over unread.
//!
//! A version with several children stays, unseen, until at most one is left: to give it back would
//! mean a reference of each child for all it has from it.
//!
//! **One at a time**: at most one version has begun to be given back and not ended. So the parent
//! of one that has begun is whole, and `parent_at` looks one step further and no more.

use std::ops::Range;

use format::catalog::{CatalogEntry, Lineage, VolumeState};
use format::record::Change;
use format::units::{Pbn, TreeId, VolumeId};
use tables::{NextLeaf, PageError, Pointers, lba_pbn};

use crate::pages::wanted::Wanted;
use crate::state::mapping::NO_MAP;
use crate::state::{State, lower};

/// The versions that a change copies. A copy doubles what is dirty of its source.
pub(crate) fn copied_versions(change: &Change) -> impl Iterator<Item = VolumeId> {
    let copied = match change {
        Change::TakeSnapshot { volume, .. } | Change::CutOff { volume, .. } => {
            [Some(*volume), None]
        }
        Change::CloneVolume { snapshot, .. } => [Some(*snapshot), None],
        Change::Rollback { volume, to, .. } => [Some(*volume), Some(*to)],
        _ => [None, None],
    };
    copied.into_iter().flatten()
}

/// A version being given back, and those whose references it decides.
struct Leaving {
    /// Its own map, its parent's, its child's.
    trees: [TreeId; 3],
    has_child: bool,
    /// Leaves whose chunks are to be counted as well.
    counted: Range<u64>,
}

impl Leaving {
    /// Whether nothing is to be done below pointers that lead to these leaves.
    fn is_settled(&self, pointers: &Pointers<'_>, leaves: &Range<u64>) -> bool {
        let [own, parent, child] = [0, 1, 2];
        let holds_nothing = pointers.same(own, parent)
            || (self.has_child && pointers.same(own, child))
            || (!self.has_child && pointers.is_absent(own));
        let uncounted = leaves.end <= self.counted.start || self.counted.end <= leaves.start;
        holds_nothing && (uncounted || pointers.is_absent(own))
    }
}

/// What is released with a leaf, and how many chunks it maps.
#[derive(Default)]
struct LeafGone {
    released: Vec<Pbn>,
    mapped: u64,
}

/// Leaves that one piece of a long unmap, or of a deletion, covers at most.
const LEAVES_PER_PIECE: usize = 8;

/// How much one piece of a long unmap, or of a deletion, covers at most.
#[derive(Copy, Clone)]
pub(crate) struct PieceMax {
    /// Pages beside which it takes in no further leaf.
    pub(crate) pages: usize,
    /// Reads of pages beside which it asks for no further place of a chunk.
    pub(crate) reads: usize,
}

impl PieceMax {
    /// Whether a piece of so many leaves, which hold these pages, takes in no further one. It has
    /// one at least: with none it would be the last.
    pub(crate) fn is_reached(self, leaves: usize, wanted: &Wanted) -> bool {
        leaves == LEAVES_PER_PIECE || (leaves > 0 && wanted.pins.len() >= self.pages)
    }
}

impl State {
    /// Whether a version is there for clients, and not being deleted.
    pub(crate) fn is_live(&self, id: VolumeId) -> bool {
        self.catalog.get(id).is_some_and(|entry| entry.state == VolumeState::Live)
    }

    /// The name by which clients know a version.
    pub(crate) fn full_name(&self, entry: &CatalogEntry) -> String {
        match entry.lineage.snapshot_of.and_then(|volume| self.catalog.get(volume)) {
            Some(volume) => format!("{}@{}", volume.name, entry.name),
            None => entry.name.clone(),
        }
    }

    pub(crate) fn want_version_change(
        &mut self,
        change: &Change,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        match change {
            Change::CutOff { volume, leaves, .. } => self.want_cut_off(*volume, leaves, wanted),
            Change::GiveBack { id, leaves } => {
                let reached = self.want_give_back(*id, *leaves, None, wanted)?;
                Ok(reached.is_some())
            }
            _ => Ok(true),
        }
    }

    /// Pages to cut leaves off a volume.
    pub(crate) fn want_cut_off(
        &mut self,
        volume: VolumeId,
        leaves: &Range<u64>,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        let tree = TreeId::volume(volume);
        self.store.want_cut(&mut wanted.pins, tree, leaves, true, &mut wanted.reads)
    }

    pub(crate) fn apply_to_versions(&mut self, change: &Change) {
        match change {
            Change::TakeSnapshot { volume, id, taken_unix_s, name } => {
                self.take_snapshot(*volume, *id, *taken_unix_s, name);
            }
            Change::CloneVolume { snapshot, id, name } => self.clone_volume(*snapshot, *id, name),
            Change::CutOff { volume, into, leaves } => self.cut_off(*volume, *into, leaves),
            Change::Rollback { volume, to, into } => self.roll_back(*volume, *to, *into),
            Change::DeleteVolume { id } => self.delete_version(*id),
            Change::GiveBack { id, leaves } => self.give_back(*id, *leaves),
            Change::DropVolume { id } => self.drop_version(*id),
            Change::SetOrigin { id, origin } => {
                if let Some(entry) = self.catalog.get_mut(*id) {
                    entry.lineage.origin = Some(*origin);
                }
            }
            _ => {}
        }
    }

    /// A new version that holds what `source` holds; its entry is yet to be put into the catalog.
    fn copy_version(&mut self, source: VolumeId, id: VolumeId) -> Option<CatalogEntry> {
        let entry = self.catalog.get(source)?.clone();
        self.store.copy_tree(TreeId::volume(source), TreeId::volume(id));
        self.next_volume = self.next_volume.max(id.0 + 1);
        let lineage = Lineage { parent: entry.lineage.parent, ..Lineage::default() };
        // A quota and a reservation are a volume's own.
        let (quota_bytes, reservation_bytes, root) = (0, 0, Default::default());
        Some(CatalogEntry { id, root, lineage, quota_bytes, reservation_bytes, ..entry })
    }

    fn take_snapshot(&mut self, volume: VolumeId, id: VolumeId, taken_unix_s: u64, name: &str) {
        let Some(mut entry) = self.copy_version(volume, id) else { return };
        entry.name = name.to_owned();
        entry.read_only = true;
        entry.lineage.snapshot_of = Some(volume);
        entry.lineage.taken_unix_s = taken_unix_s;
        self.catalog.insert(entry);
        self.catalog.set_parent(volume, Some(id));
    }

    fn clone_volume(&mut self, snapshot: VolumeId, id: VolumeId, name: &str) {
        let Some(mut entry) = self.copy_version(snapshot, id) else { return };
        entry.name = name.to_owned();
        entry.read_only = false;
        entry.lineage.parent = Some(snapshot);
        self.totals.mapped_chunks += entry.mapped_chunks;
        self.catalog.insert(entry);
    }

    /// A version that nobody sees, to be given back.
    fn hide(&mut self, mut entry: CatalogEntry) {
        entry.state = VolumeState::Deleting;
        entry.mapped_chunks = 0;
        self.catalog.insert(entry);
    }

    fn cut_off(&mut self, volume: VolumeId, into: VolumeId, leaves: &Range<u64>) {
        let Some(mut entry) = self.copy_version(volume, into) else { return };
        entry.lineage.cut_leaves = leaves.clone();
        self.hide(entry);
        self.catalog.set_parent(volume, Some(into));
        self.store.cut(TreeId::volume(volume), leaves);
    }

    fn roll_back(&mut self, volume: VolumeId, to: VolumeId, into: VolumeId) {
        let Some((size_bytes, mapped)) =
            self.catalog.get(to).map(|entry| (entry.size_bytes, entry.mapped_chunks))
        else {
            return;
        };
        let Some(entry) = self.copy_version(volume, into) else { return };
        self.hide(entry);
        let tree = TreeId::volume(volume);
        self.store.cut(tree, &(0..u64::MAX));
        self.store.copy_tree(TreeId::volume(to), tree);
        if let Some(entry) = self.catalog.get_mut(volume) {
            lower(&mut self.totals.mapped_chunks, entry.mapped_chunks);
            self.totals.mapped_chunks += mapped;
            (entry.size_bytes, entry.mapped_chunks) = (size_bytes, mapped);
        }
        self.catalog.set_parent(volume, Some(to));
    }

    fn delete_version(&mut self, id: VolumeId) {
        self.catalog.mark_deleting(id);
        let Some(entry) = self.catalog.get_mut(id) else { return };
        let mapped = std::mem::take(&mut entry.mapped_chunks);
        if entry.lineage.snapshot_of.is_none() {
            lower(&mut self.totals.mapped_chunks, mapped);
        }
    }

    fn drop_version(&mut self, id: VolumeId) {
        let Some(entry) = self.catalog.get(id) else { return };
        let (parent, mapped) = (entry.lineage.parent, entry.mapped_chunks);
        lower(&mut self.totals.mapped_chunks, mapped);
        let children: Vec<VolumeId> = self.catalog.children_of(id).collect();
        children.into_iter().for_each(|child| self.catalog.set_parent(child, parent));
        self.catalog.remove(id);
        self.store.drop_tree(TreeId::volume(id));
    }

    fn leaving(&self, id: VolumeId) -> Option<Leaving> {
        let lineage = &self.catalog.get(id)?.lineage;
        let child = self.catalog.children_of(id).next();
        let map = |version: Option<VolumeId>| version.map_or(NO_MAP, TreeId::volume);
        Some(Leaving {
            trees: [TreeId::volume(id), map(lineage.parent), map(child)],
            has_child: child.is_some(),
            counted: lineage.cut_leaves.clone(),
        })
    }

    /// Pages to give back a version up to leaf `end`, or as many of the leaves that matter as are
    /// here, a piece at most. Tells up to which leaf all is here; none while nothing further is.
    pub(crate) fn want_give_back(
        &mut self,
        id: VolumeId,
        end: u64,
        most: Option<PieceMax>,
        wanted: &mut Wanted,
    ) -> Result<Option<u64>, PageError> {
        let Some(leaving) = self.leaving(id) else { return Ok(Some(end)) };
        let start = self.catalog.get(id).map_or(0, |entry| entry.lineage.given_back_leaves);
        let (all, reads_max) = (most.is_none(), most.map_or(usize::MAX, |most| most.reads));
        let (mut at, mut found) = (start, 0);
        let reached = loop {
            match self.next_to_give(&leaving, at, wanted)? {
                NextLeaf::Found(leaf) if leaf < end => {
                    if most.is_some_and(|most| most.is_reached(found, wanted)) {
                        break leaf;
                    }
                    if !self.want_leaf_gone(&leaving, leaf, reads_max, wanted)? {
                        if all || found == 0 {
                            return Ok(None);
                        }
                        break leaf;
                    }
                    (at, found) = (leaf + 1, found + 1);
                }
                NextLeaf::Missing if all || found == 0 => return Ok(None),
                NextLeaf::Missing => break at,
                NextLeaf::Found(_) | NextLeaf::End => break end,
            }
        };
        let own = leaving.trees[0];
        let gone = start..reached;
        let here = self.store.want_cut(&mut wanted.pins, own, &gone, false, &mut wanted.reads)?;
        Ok(here.then_some(reached))
    }

    fn next_to_give(
        &mut self,
        leaving: &Leaving,
        from: u64,
        wanted: &mut Wanted,
    ) -> Result<NextLeaf, PageError> {
        let skip =
            |pointers: &Pointers<'_>, leaves: &Range<u64>| leaving.is_settled(pointers, leaves);
        self.store.next_difference(&leaving.trees, from, skip, &mut wanted.reads)
    }

    fn want_leaf_gone(
        &mut self,
        leaving: &Leaving,
        leaf: u64,
        reads_max: usize,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        let mut here = true;
        for tree in leaving.trees {
            here &= self.store.want(&mut wanted.pins, tree, leaf, &mut wanted.reads)?;
        }
        if here {
            for pbn in self.leaf_gone(leaving, leaf).released {
                if wanted.reads.len() >= reads_max {
                    return Ok(false);
                }
                here &= self.want_pba(pbn, wanted)?;
            }
        }
        Ok(here)
    }

    fn leaf_gone(&self, leaving: &Leaving, leaf: u64) -> LeafGone {
        let slots = |tree| lba_pbn::slots(&self.store, tree, leaf);
        let [own, parent, child] = leaving.trees.map(slots);
        let mut gone = LeafGone::default();
        for ((own, parent), child) in own.into_iter().zip(parent).zip(child) {
            gone.mapped += u64::from(!own.is_none());
            if own == parent {
                continue;
            }
            let child = leaving.has_child.then_some(child);
            if !own.is_none() && child != Some(own) {
                gone.released.push(own);
            }
            if !parent.is_none() && child == Some(parent) {
                gone.released.push(parent);
            }
        }
        gone
    }

    fn give_back(&mut self, id: VolumeId, end: u64) {
        let Some(leaving) = self.leaving(id) else { return };
        let Some(entry) = self.catalog.get(id) else { return };
        let start = entry.lineage.given_back_leaves;
        let mut wanted = Wanted::default();
        let mut gone = LeafGone::default();
        let mut at = start;
        while let Ok(NextLeaf::Found(leaf)) = self.next_to_give(&leaving, at, &mut wanted)
            && leaf < end
        {
            let LeafGone { mut released, mapped } = self.leaf_gone(&leaving, leaf);
            gone.released.append(&mut released);
            gone.mapped += if leaving.counted.contains(&leaf) { mapped } else { 0 };
            at = leaf + 1;
        }
        self.store.cut(leaving.trees[0], &(start..end));
        if let Some(entry) = self.catalog.get_mut(id) {
            entry.lineage.given_back_leaves = end;
        }
        self.lower_descendants(id, gone.mapped);
        self.release(&gone.released);
    }

    /// What was cut off leaves the figures of all that was copied since from what it was cut off.
    fn lower_descendants(&mut self, id: VolumeId, mapped: u64) {
        if mapped == 0 {
            return;
        }
        for id in self.descendants_of(id) {
            let Some(entry) = self.catalog.get_mut(id) else { continue };
            if entry.state == VolumeState::Live {
                lower(&mut entry.mapped_chunks, mapped);
                if entry.lineage.snapshot_of.is_none() {
                    lower(&mut self.totals.mapped_chunks, mapped);
                }
            }
        }
    }

    /// Whether a version's figure still counts what was cut off above it and will be given back.
    pub(crate) fn count_may_fall(&self, id: VolumeId) -> bool {
        let parent = |entry: &&CatalogEntry| self.catalog.get(entry.lineage.parent?);
        let above = std::iter::successors(self.catalog.get(id), parent).skip(1);
        let mut lineages = above.map(|entry| &entry.lineage);
        lineages.any(|lineage| lineage.given_back_leaves < lineage.cut_leaves.end)
    }

    /// Children, their children, and so on.
    pub(crate) fn descendants_of(&self, id: VolumeId) -> Vec<VolumeId> {
        let mut found: Vec<VolumeId> = self.catalog.children_of(id).collect();
        let mut at = 0;
        while let Some(&parent) = found.get(at) {
            found.extend(self.catalog.children_of(parent));
            at += 1;
        }
        found
    }
}
