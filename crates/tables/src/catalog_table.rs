//! The catalog: the volumes, by number and by name.
//!
//! All of it is in memory; what has changed goes into the leaves before each freeze of the catalog.
//! A volume keeps its slot for life; a new one takes the lowest vacant slot. The name of a volume
//! that is being deleted is free at once.

use std::collections::{BTreeMap, BTreeSet};

use format::catalog::{self, CatalogEntry, SLOTS, TreeRoot, VolumeState};
use format::units::{PageId, TreeId, VolumeId};

use crate::error::PageError;
use crate::store::{PageRead, PageStore, PinSet};

const TREE: TreeId = TreeId::CATALOG;

/// A catalog of no more leaves is written whole with every checkpoint.
pub(crate) const LEAVES_ANEW_MAX: u64 = 64;

/// All volumes of a store.
#[derive(Clone, Debug)]
pub struct CatalogTable {
    volumes: BTreeMap<VolumeId, (u64, CatalogEntry)>,
    names: BTreeMap<String, VolumeId>,
    /// Parents with each of their children.
    children: BTreeSet<(VolumeId, VolumeId)>,
    lineage_changes: u64,
    /// Slots in use and vacant ones before them.
    slots: u64,
    vacant: BTreeSet<u64>,
    /// Leaves that differ from `volumes`.
    dirty: BTreeSet<u64>,
}

impl CatalogTable {
    /// A catalog of so many slots, all vacant until it is loaded.
    #[must_use]
    pub fn new(slots: u64) -> Self {
        Self {
            volumes: BTreeMap::new(),
            names: BTreeMap::new(),
            children: BTreeSet::new(),
            lineage_changes: 0,
            slots,
            vacant: (0..slots).collect(),
            dirty: BTreeSet::new(),
        }
    }

    /// Slots, vacant ones included: what the root must hold.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Asks for all leaves, to load them.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_load(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        let mut here = true;
        for leaf in 0..self.slots.div_ceil(SLOTS as u64) {
            here &= store.want(pins, TREE, leaf, reads)?;
        }
        Ok(here)
    }

    /// Takes the volumes from the leaves, all of which must have been wanted.
    ///
    /// # Errors
    /// [`PageError`] when an entry is none.
    pub fn load(&mut self, store: &PageStore) -> Result<(), PageError> {
        *self = Self::new(self.slots);
        for place in 0..self.slots {
            let (leaf, slot) = (place / SLOTS as u64, (place % SLOTS as u64) as usize);
            let Some(page) = store.page(TREE, leaf) else { continue };
            let entry = catalog::get(page, slot).map_err(|source| {
                let id = PageId { tree: TREE, level: 0, index: leaf };
                PageError::Damaged { id, block: 0, source }
            })?;
            if let Some(entry) = entry {
                self.vacant.remove(&place);
                self.put(place, entry);
            }
        }
        Ok(())
    }

    /// Asks for the leaves that [`Self::store`] will change.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_store(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        // New roots of volumes may change any leaf that holds a volume.
        let held = self.volumes.values().map(|(place, _)| place / SLOTS as u64);
        let leaves: BTreeSet<u64> = held.chain(self.dirty.iter().copied()).collect();
        let mut here = true;
        for leaf in leaves {
            here &= store.want(pins, TREE, leaf, reads)?;
        }
        Ok(here)
    }

    /// Leaves that the next checkpoint may write, if so many maps have changed: pages that are not
    /// dirty yet.
    #[must_use]
    pub fn pages_to_store(&self, maps: u64) -> u64 {
        match self.is_small() {
            true => self.leaves(),
            false => self.leaves().min(self.dirty.len() as u64 + maps),
        }
    }

    /// Has all leaves written with the coming checkpoint, if they are few: far from where they are
    /// ([`PageStore::freeze_catalog`]), so that no hit takes the volumes of both roots.
    pub fn write_anew(&mut self) {
        if self.is_small() {
            self.dirty.extend(self.volumes.values().map(|(place, _)| place / SLOTS as u64));
        }
    }

    fn leaves(&self) -> u64 {
        self.slots.div_ceil(SLOTS as u64)
    }

    fn is_small(&self) -> bool {
        self.leaves() <= LEAVES_ANEW_MAX
    }

    /// Puts what has changed into the leaves, which must have been wanted.
    pub fn store(&mut self, store: &mut PageStore) {
        let dirty = std::mem::take(&mut self.dirty);
        if dirty.is_empty() {
            return;
        }
        let mut by_place: BTreeMap<u64, &CatalogEntry> = BTreeMap::new();
        by_place.extend(self.volumes.values().map(|(place, entry)| (*place, entry)));
        for leaf in dirty {
            let first = leaf * SLOTS as u64;
            if by_place.range(first..first + SLOTS as u64).next().is_none() {
                store.remove_page(TREE, leaf);
                continue;
            }
            let page = store.page_mut(TREE, leaf);
            for slot in 0..SLOTS {
                let entry = by_place.get(&(first + slot as u64)).copied();
                catalog::set(page, slot, entry);
            }
        }
    }

    /// A volume.
    #[must_use]
    pub fn get(&self, id: VolumeId) -> Option<&CatalogEntry> {
        self.volumes.get(&id).map(|(_, entry)| entry)
    }

    /// A volume, to change its figures. Its name, number, state, root and parent have their own
    /// calls.
    pub fn get_mut(&mut self, id: VolumeId) -> Option<&mut CatalogEntry> {
        let (place, entry) = self.volumes.get_mut(&id)?;
        self.dirty.insert(*place / SLOTS as u64);
        Some(entry)
    }

    /// The volume of this name, unless it is being deleted.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&CatalogEntry> {
        self.get(*self.names.get(name)?)
    }

    /// Numbers of all volumes, in order.
    #[must_use]
    pub fn ids(&self) -> Vec<VolumeId> {
        self.volumes.keys().copied().collect()
    }

    /// All volumes, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &CatalogEntry> {
        self.volumes.values().map(|(_, entry)| entry)
    }

    /// Number of volumes, those being deleted included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.volumes.len()
    }

    /// Whether there are no volumes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.volumes.is_empty()
    }

    /// Adds a volume.
    pub fn insert(&mut self, entry: CatalogEntry) {
        self.remove(entry.id);
        let place = self.vacant.pop_first().unwrap_or_else(|| {
            self.slots += 1;
            self.slots - 1
        });
        self.dirty.insert(place / SLOTS as u64);
        self.put(place, entry);
    }

    fn put(&mut self, place: u64, entry: CatalogEntry) {
        if entry.state == VolumeState::Live {
            self.names.insert(entry.name.clone(), entry.id);
        }
        if let Some(parent) = entry.lineage.parent {
            self.children.insert((parent, entry.id));
            self.lineage_changes += 1;
        }
        self.volumes.insert(entry.id, (place, entry));
    }

    /// How often a version has got a parent or lost one: while this stays the same, so do the
    /// children of all.
    #[must_use]
    pub fn lineage_changes(&self) -> u64 {
        self.lineage_changes
    }

    /// The versions whose parent this one is, in the order of their numbers.
    pub fn children_of(&self, id: VolumeId) -> impl Iterator<Item = VolumeId> {
        self.children_from(id, VolumeId(0))
    }

    /// Those of them with this number or a higher one.
    pub fn children_from(&self, id: VolumeId, from: VolumeId) -> impl Iterator<Item = VolumeId> {
        let all = (id, from)..=(id, VolumeId(u32::MAX));
        self.children.range(all).map(|&(_, child)| child)
    }

    /// Gives a version another parent, or none.
    pub fn set_parent(&mut self, id: VolumeId, parent: Option<VolumeId>) {
        let Some(entry) = self.get_mut(id) else { return };
        let former = std::mem::replace(&mut entry.lineage.parent, parent);
        if let Some(former) = former {
            self.children.remove(&(former, id));
        }
        self.children.extend(parent.map(|parent| (parent, id)));
        self.lineage_changes += 1;
    }

    /// Gives a volume another name.
    pub fn rename(&mut self, id: VolumeId, name: &str) {
        self.forget_name(id);
        let Some(entry) = self.get_mut(id) else { return };
        entry.name = name.to_owned();
        if entry.state == VolumeState::Live {
            self.names.insert(name.to_owned(), id);
        }
    }

    /// The volume is being emptied; its name is free.
    pub fn mark_deleting(&mut self, id: VolumeId) {
        self.forget_name(id);
        if let Some(entry) = self.get_mut(id) {
            entry.state = VolumeState::Deleting;
        }
    }

    fn forget_name(&mut self, id: VolumeId) {
        let Some((_, entry)) = self.volumes.get(&id) else { return };
        if self.names.get(&entry.name) == Some(&id) {
            self.names.remove(&entry.name);
        }
    }

    /// Removes a volume; its slot is vacant.
    pub fn remove(&mut self, id: VolumeId) {
        self.forget_name(id);
        if let Some((place, entry)) = self.volumes.remove(&id) {
            if let Some(parent) = entry.lineage.parent {
                self.children.remove(&(parent, id));
                self.lineage_changes += 1;
            }
            self.vacant.insert(place);
            self.dirty.insert(place / SLOTS as u64);
        }
    }

    /// Notes the root of a volume's map.
    pub fn set_root(&mut self, id: VolumeId, root: TreeRoot) {
        if self.get(id).is_some_and(|entry| entry.root != root)
            && let Some(entry) = self.get_mut(id)
        {
            entry.root = root;
        }
    }
}
