//! The volumes: in memory whole, in pages at each checkpoint.

use std::collections::{BTreeMap, BTreeSet};

use format::catalog::{self, CatalogEntry, SLOTS, VolumeState};
use format::units::{TreeId, TreeRoot, VolumeId};

use crate::error::PageError;
use crate::page_store::{PageRead, PageStore, PinSet};

/// All volumes of a store.
pub struct CatalogTable {
    entries: BTreeMap<VolumeId, (u64, CatalogEntry)>,
    vacant: BTreeSet<u64>,
    slots: u64,
    changed: BTreeSet<u64>,
}

impl CatalogTable {
    /// A catalog of `slots` places whose entries are not loaded yet.
    #[must_use]
    pub fn new(slots: u64) -> Self {
        let (entries, vacant, changed) = Default::default();
        Self { entries, vacant, slots, changed }
    }

    /// Places in use or vacant.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Names all pages of the catalog.
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
            here &= store.want(pins, TreeId::CATALOG, leaf, reads)?;
        }
        Ok(here)
    }

    /// Takes the entries out of the pages.
    ///
    /// # Errors
    /// [`PageError`] when an entry cannot be.
    pub fn load(&mut self, store: &PageStore) -> Result<(), PageError> {
        for slot in 0..self.slots {
            let leaf = slot / SLOTS as u64;
            let entry = match store.page(TreeId::CATALOG, leaf) {
                None => None,
                Some(page) => catalog::get(page, (slot % SLOTS as u64) as usize)
                    .map_err(|source| PageError::new(page.id(), 0, Some(source)))?,
            };
            match entry {
                Some(entry) => drop(self.entries.insert(entry.id, (slot, entry))),
                None => drop(self.vacant.insert(slot)),
            }
        }
        Ok(())
    }

    /// Names the pages of entries that have changed or may change by a freeze: all that hold
    /// volumes, since each has its map's root.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_store(
        &self,
        store: &mut PageStore,
        pins: &mut PinSet,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        self.want_load(store, pins, reads)
    }

    /// Puts changed entries into their pages.
    pub fn store(&mut self, store: &mut PageStore) {
        let by_slot: BTreeMap<u64, &CatalogEntry> =
            self.entries.values().map(|(slot, entry)| (*slot, entry)).collect();
        for slot in std::mem::take(&mut self.changed) {
            let page = store.page_mut(TreeId::CATALOG, slot / SLOTS as u64);
            catalog::set(page, (slot % SLOTS as u64) as usize, by_slot.get(&slot).copied());
        }
    }

    /// Adds a volume.
    pub fn insert(&mut self, entry: CatalogEntry) {
        let slot = self.vacant.pop_first().unwrap_or(self.slots);
        self.slots = self.slots.max(slot + 1);
        self.changed.insert(slot);
        self.entries.insert(entry.id, (slot, entry));
    }

    /// Removes a volume.
    pub fn remove(&mut self, id: VolumeId) {
        if let Some((slot, _)) = self.entries.remove(&id) {
            self.changed.insert(slot);
            self.vacant.insert(slot);
        }
    }

    /// One volume.
    #[must_use]
    pub fn get(&self, id: VolumeId) -> Option<&CatalogEntry> {
        self.entries.get(&id).map(|(_, entry)| entry)
    }

    /// One volume, to be changed.
    pub fn get_mut(&mut self, id: VolumeId) -> Option<&mut CatalogEntry> {
        let (slot, entry) = self.entries.get_mut(&id)?;
        self.changed.insert(*slot);
        Some(entry)
    }

    /// Gives a volume another name.
    pub fn rename(&mut self, id: VolumeId, name: &str) {
        if let Some(entry) = self.get_mut(id) {
            name.clone_into(&mut entry.name);
        }
    }

    /// The volume is gone for clients.
    pub fn mark_deleting(&mut self, id: VolumeId) {
        if let Some(entry) = self.get_mut(id) {
            entry.state = VolumeState::Deleting;
        }
    }

    /// The root of a volume's map, after a freeze.
    pub fn set_root(&mut self, id: VolumeId, root: TreeRoot) {
        if self.get(id).is_some_and(|entry| entry.root != root)
            && let Some(entry) = self.get_mut(id)
        {
            entry.root = root;
        }
    }

    /// Numbers of all volumes.
    #[must_use]
    pub fn ids(&self) -> Vec<VolumeId> {
        self.entries.keys().copied().collect()
    }

    /// All volumes, by number.
    pub fn iter(&self) -> impl Iterator<Item = &CatalogEntry> {
        self.entries.values().map(|(_, entry)| entry)
    }
}
