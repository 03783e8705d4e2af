//! A check's look at the maps: which references each version of a volume holds, and how many LBAs
//! it maps.
//!
//! A version holds a reference where it maps something else than its parent, so only leaves in
//! which the two differ are read; what they share was counted with the parent.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use format::catalog::{CatalogEntry, VolumeState};
use format::map_page;
use format::units::{Pbn, TreeId, VolumeId};
use tables::{NextLeaf, lba_pbn};

use crate::check::checker::Checker;
use crate::check::problem::{CheckProgress, Problem};
use crate::open::open_error::OpenError;
use crate::state::State;
use crate::state::mapping::leaf_start;

/// What the versions of volumes map.
#[derive(Default)]
struct MapCounts {
    mapped: BTreeMap<VolumeId, u64>,
    /// What is still in their figures although it was cut off.
    cut_off: BTreeMap<VolumeId, u64>,
}

/// Parents before their children.
fn parents_first(volumes: &[CatalogEntry]) -> Vec<&CatalogEntry> {
    let by_id: BTreeMap<VolumeId, &CatalogEntry> =
        volumes.iter().map(|volume| (volume.id, volume)).collect();
    let mut ordered = Vec::with_capacity(volumes.len());
    let mut met = BTreeSet::new();
    for volume in volumes {
        let mut line = Vec::new();
        let mut at = Some(volume);
        while let Some(version) = at.filter(|version| met.insert(version.id)) {
            line.push(version);
            at = version.lineage.parent.and_then(|parent| by_id.get(&parent).copied());
        }
        ordered.extend(line.into_iter().rev());
    }
    ordered
}

impl Checker {
    /// Counts what every version maps, and what of it its parent does not.
    pub(crate) fn check_maps(
        &mut self,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Result<(), OpenError> {
        let volumes = self.volumes();
        let total = volumes.len() as u64;
        let mut counts = MapCounts::default();
        for (done, volume) in (0..).zip(parents_first(&volumes)) {
            progress(CheckProgress { stage: "maps", done, total });
            let counted = self.count_references(volume, &counts)?;
            counts.mapped.insert(volume.id, counted);
        }
        for volume in volumes.iter().filter(|volume| !volume.lineage.cut_leaves.is_empty()) {
            self.count_cut_off(volume, &mut counts)?;
        }
        for volume in &volumes {
            self.check_count(volume, &counts);
        }
        let is_volume = |volume: &&CatalogEntry| {
            volume.state == VolumeState::Live && volume.lineage.snapshot_of.is_none()
        };
        self.report.volumes += volumes.iter().filter(is_volume).count() as u64;
        Ok(())
    }

    /// Stored chunks that volumes of two domains map.
    pub(crate) fn tell_shared(&mut self) {
        for (pbn, id) in std::mem::take(&mut self.mapped_in.shared) {
            let Some(volume) = self.loading.state.catalog.get(id) else { continue };
            if self.known.get(pbn.0 as usize) == Some(&true) {
                let volume = self.loading.state.full_name(volume);
                self.found(Problem::SharedAcrossDomains { volume, pbn: pbn.0 });
            }
        }
    }

    fn check_count(&mut self, volume: &CatalogEntry, counts: &MapCounts) {
        let is_live = volume.state == VolumeState::Live;
        let cut_off = counts.cut_off.get(&volume.id).copied().unwrap_or(0);
        let mapped = counts.mapped.get(&volume.id).copied().unwrap_or(0) + cut_off;
        // What a version that is being deleted maps is of no interest: only what is recorded
        // counts.
        let counted = if is_live { mapped } else { volume.mapped_chunks };
        if counted != volume.mapped_chunks {
            let name = self.loading.state.full_name(volume);
            let (volume, recorded) = (name, volume.mapped_chunks);
            self.found(Problem::MappedCount { volume, counted, recorded });
        }
        if volume.lineage.snapshot_of.is_none() {
            self.report.mapped_chunks += counted;
        }
    }

    /// Counts the references that a version holds; how many LBAs it maps.
    fn count_references(
        &mut self,
        volume: &CatalogEntry,
        counts: &MapCounts,
    ) -> Result<u64, OpenError> {
        let name = self.loading.state.full_name(volume);
        let own = TreeId::volume(volume.id);
        let is_live = volume.state == VolumeState::Live;
        let end = match is_live {
            true => volume.chunks(self.geometry.chunk_bytes),
            false => u64::MAX,
        };
        let (mut gained, mut lost) = (0, 0);
        let mut from = 0;
        while let Some((leaf, parent)) = self.next_difference(volume, from)? {
            from = leaf + 1;
            let slots = |tree| lba_pbn::slots(&self.loading.state.store, tree, leaf);
            let inherited = parent.map_or(vec![Pbn::NONE; map_page::SLOTS], slots);
            for ((lba, pbn), inherited) in (leaf_start(leaf)..).zip(slots(own)).zip(inherited) {
                lost += u64::from(!inherited.is_none());
                if pbn.is_none() {
                    continue;
                }
                gained += 1;
                if pbn != inherited {
                    self.mapped_in.note(volume, pbn);
                }
                if lba >= end {
                    self.found(Problem::MapBeyondEnd { volume: name.clone(), lba });
                }
                match self.references.get_mut(pbn.0 as usize) {
                    Some(references) => {
                        *references = references.saturating_add(u32::from(pbn != inherited));
                    }
                    None => {
                        let (volume, pbn) = (name.clone(), pbn.0);
                        self.found(Problem::MapNamesNoChunk { volume, lba, pbn });
                    }
                }
            }
            self.loading.state.store.shrink();
        }
        let parent = volume.lineage.parent;
        match parent.and_then(|parent| self.loading.state.catalog.get(parent)) {
            // Below what has been given back it is another one's.
            Some(above) if above.lineage.given_back_leaves > 0 => {
                self.count_mapped(own, 0..u64::MAX)
            }
            Some(above) => {
                let inherited = counts.mapped.get(&above.id).copied().unwrap_or(0);
                Ok((inherited + gained).saturating_sub(lost))
            }
            None => Ok(gained),
        }
    }

    /// The next leaf, resident, in which a version may differ from its parent; with the parent's
    /// map.
    fn next_difference(
        &mut self,
        volume: &CatalogEntry,
        from: u64,
    ) -> Result<Option<(u64, Option<TreeId>)>, OpenError> {
        let mut from = from;
        loop {
            let Some(leaf) = self.next_leaf_that_differs(volume.id, from)? else { return Ok(None) };
            let parent = self.loading.state.parent_at(volume.id, leaf);
            let own = TreeId::volume(volume.id);
            let trees: Vec<TreeId> = [Some(own), parent].into_iter().flatten().collect();
            let next = |state: &mut State, at, reads: &mut _| {
                Ok(state.next_own_leaf(volume.id, at, reads)?.0)
            };
            self.read_ahead(&trees, leaf, next)?;
            let mut here = true;
            for tree in trees {
                here &= self.bring(tree, leaf)?;
            }
            if here {
                return Ok(Some((leaf, parent)));
            }
            from = leaf + 1;
        }
    }

    fn next_leaf_that_differs(
        &mut self,
        id: VolumeId,
        from: u64,
    ) -> Result<Option<u64>, OpenError> {
        let mut from = from;
        loop {
            let mut reads = Vec::new();
            match self.loading.state.next_own_leaf(id, from, &mut reads) {
                Ok((NextLeaf::End, None)) => return Ok(None),
                Ok((NextLeaf::End, Some(further))) => from = further,
                Ok((NextLeaf::Found(leaf), _)) => return Ok(Some(leaf)),
                Ok((NextLeaf::Missing, _)) => self.load(reads)?,
                Err(error) => {
                    let (tree, index) = (error.page().tree.0, error.page().index);
                    self.found(Problem::DamagedPage { tree, index });
                    return Ok(None);
                }
            }
        }
    }

    /// How many LBAs some leaves of a map name chunks for.
    fn count_mapped(&mut self, tree: TreeId, leaves: Range<u64>) -> Result<u64, OpenError> {
        let mut mapped = 0;
        self.each_leaf(tree, |_, leaf, page| {
            if leaves.contains(&leaf) {
                mapped += lba_pbn::mapped(leaf, page).count() as u64;
            }
        })?;
        Ok(mapped)
    }

    /// Counts what was cut off and is still in the figures of all that descends from it.
    fn count_cut_off(
        &mut self,
        volume: &CatalogEntry,
        counts: &mut MapCounts,
    ) -> Result<(), OpenError> {
        let lineage = &volume.lineage;
        let start = lineage.cut_leaves.start.max(lineage.given_back_leaves);
        let leaves = start..lineage.cut_leaves.end;
        let mapped = self.count_mapped(TreeId::volume(volume.id), leaves)?;
        for id in self.loading.state.descendants_of(volume.id) {
            *counts.cut_off.entry(id).or_default() += mapped;
        }
        Ok(())
    }
}
