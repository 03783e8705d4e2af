//! Versions of volumes in the accounts of a repair: what [`crate::volumes::versions`] does to the
//! tables, done to the ledger.

use std::collections::{BTreeMap, BTreeSet};

use format::catalog::{CatalogEntry, Lineage, VolumeState};
use format::record::Change;
use format::units::VolumeId;

use crate::repair::ledger::{Ledger, VolumeLedger};

impl Ledger {
    /// A new version that is what `source` is.
    fn copy_version(&self, source: VolumeId, id: VolumeId) -> Option<VolumeLedger> {
        let mut copy = self.volumes.get(&source)?.clone();
        let lineage = Lineage { parent: copy.entry.lineage.parent, ..Lineage::default() };
        (copy.entry.id, copy.entry.lineage) = (id, lineage);
        (copy.entry.quota_bytes, copy.entry.reservation_bytes) = (0, 0);
        Some(copy)
    }

    fn add_version(&mut self, version: VolumeLedger) {
        self.next_volume = self.next_volume.max(version.entry.id.0 + 1);
        self.volumes.insert(version.entry.id, version);
    }

    fn set_parent(&mut self, id: VolumeId, parent: Option<VolumeId>) {
        if let Some(volume) = self.volumes.get_mut(&id) {
            volume.entry.lineage.parent = parent;
        }
    }

    pub(crate) fn apply_to_versions(&mut self, change: &Change) {
        match change {
            Change::TakeSnapshot { volume, id, taken_unix_s, name } => {
                let Some(mut copy) = self.copy_version(*volume, *id) else { return };
                (copy.entry.name, copy.entry.read_only) = (name.clone(), true);
                copy.entry.lineage.snapshot_of = Some(*volume);
                copy.entry.lineage.taken_unix_s = *taken_unix_s;
                self.add_version(copy);
                self.set_parent(*volume, Some(*id));
            }
            Change::CloneVolume { snapshot, id, name } => {
                let Some(mut copy) = self.copy_version(*snapshot, *id) else { return };
                (copy.entry.name, copy.entry.read_only) = (name.clone(), false);
                copy.entry.lineage.parent = Some(*snapshot);
                self.add_version(copy);
            }
            Change::CutOff { volume, into, leaves } => {
                let Some(mut copy) = self.copy_version(*volume, *into) else { return };
                copy.entry.state = VolumeState::Deleting;
                self.add_version(copy);
                self.set_parent(*volume, Some(*into));
                if let Some(volume) = self.volumes.get_mut(volume) {
                    volume.unmap_leaves(leaves);
                }
            }
            Change::Rollback { volume, to, into } => self.roll_back(*volume, *to, *into),
            Change::SetOrigin { id, origin } => {
                if let Some(copy) = self.volumes.get_mut(id) {
                    copy.entry.lineage.origin = Some(*origin);
                }
            }
            Change::GiveBack { id, leaves } => {
                if let Some(volume) = self.volumes.get_mut(id) {
                    volume.unmap_leaves(&(0..*leaves));
                    volume.entry.lineage.given_back_leaves = *leaves;
                }
            }
            Change::DropVolume { id } => {
                let Some(gone) = self.volumes.remove(id) else { return };
                let orphans = self.volumes.values_mut().map(|volume| &mut volume.entry.lineage);
                for lineage in orphans.filter(|lineage| lineage.parent == Some(*id)) {
                    lineage.parent = gone.entry.lineage.parent;
                }
            }
            _ => {}
        }
    }

    fn roll_back(&mut self, volume: VolumeId, to: VolumeId, into: VolumeId) {
        let Some(mut what_was) = self.copy_version(volume, into) else { return };
        let Some(mut snapshot) = self.volumes.get(&to).cloned() else { return };
        let Some(now) = self.volumes.get_mut(&volume) else { return };
        std::mem::swap(&mut now.entry, &mut snapshot.entry);
        snapshot.entry.size_bytes = now.entry.size_bytes;
        snapshot.entry.lineage.parent = Some(to);
        *now = snapshot;
        what_was.entry.state = VolumeState::Deleting;
        self.add_version(what_was);
    }

    /// The version whose leaf a version's own is a change of: as `State::parent_at`.
    pub(crate) fn parent_at(&self, volume: &VolumeLedger, leaf: u64) -> Option<&VolumeLedger> {
        let parent = self.volumes.get(&volume.entry.lineage.parent?)?;
        let above = &parent.entry.lineage;
        match leaf < above.given_back_leaves {
            true => self.volumes.get(&above.parent?),
            false => Some(parent),
        }
    }

    /// Every version with the first of its line: versions of one line may share pages.
    pub(crate) fn lines(&self) -> BTreeMap<VolumeId, VolumeId> {
        let mut first_of = BTreeMap::new();
        for &id in self.volumes.keys() {
            let (mut line, mut at) = (Vec::new(), id);
            let first = loop {
                // Parents that lead round in a circle, which nobody writes, end here as well.
                if let Some(&first) = first_of.get(&at) {
                    break first;
                }
                first_of.insert(at, at);
                line.push(at);
                let parent = self.volumes.get(&at).and_then(|of| of.entry.lineage.parent);
                match parent.filter(|parent| self.volumes.contains_key(parent)) {
                    Some(parent) => at = parent,
                    None => break at,
                }
            };
            first_of.extend(line.into_iter().map(|version| (version, first)));
        }
        first_of
    }

    /// Volumes are deleted with their snapshots, and snapshots, which may be those of a volume that
    /// is named as well; the names of all that go.
    ///
    /// # Errors
    /// A name that none has.
    pub(crate) fn give_up(&mut self, names: &[String]) -> Result<Vec<String>, String> {
        let live = self.volumes.values().filter(|of| of.entry.state == VolumeState::Live);
        let live: BTreeMap<_, _> =
            live.map(|of| (self.full_name(&of.entry), of.entry.id)).collect();
        let id_of = |name: &String| live.get(name).copied().ok_or_else(|| name.clone());
        let named = names.iter().map(id_of).collect::<Result<BTreeSet<VolumeId>, _>>()?;
        let mut gone = Vec::new();
        for (name, id) in live {
            let Some(volume) = self.volumes.get_mut(&id) else { continue };
            let owner = volume.entry.lineage.snapshot_of;
            if named.contains(&id) || owner.is_some_and(|owner| named.contains(&owner)) {
                volume.entry.state = VolumeState::Deleting;
                gone.push(name);
            }
        }
        Ok(gone)
    }

    /// The name by which clients know a version.
    pub(crate) fn full_name(&self, entry: &CatalogEntry) -> String {
        match entry.lineage.snapshot_of.and_then(|volume| self.volumes.get(&volume)) {
            Some(volume) => format!("{}@{}", volume.entry.name, entry.name),
            None => entry.name.clone(),
        }
    }
}
