//! The container table: how full each container is, and with what is alive.
//!
//! All of it is in memory, 16 bytes a container, because every chunk that is written, dies or moves
//! changes it. It is loaded when the store is opened; what has changed goes into the leaves before
//! each freeze. A leaf of containers that were never used is absent.

use std::collections::BTreeSet;

use format::container_page::{self, ContainerEntry, ContainerState, SLOTS};
use format::units::{ContainerId, PageId, TreeId};

use crate::error::PageError;
use crate::store::{PageRead, PageStore, PinSet};

const TREE: TreeId = TreeId::CONTAINERS;

/// All containers of a store.
#[derive(Clone, Debug)]
pub struct ContainerTable {
    entries: Vec<ContainerEntry>,
    /// Leaves that differ from `entries`.
    dirty: BTreeSet<u64>,
}

impl ContainerTable {
    /// So many free containers.
    #[must_use]
    pub fn new(containers: u64) -> Self {
        let entries = vec![ContainerEntry::default(); containers as usize];
        Self { entries, dirty: BTreeSet::new() }
    }

    /// The store has so many containers now; those that are new are free.
    pub fn grow(&mut self, containers: u64) {
        self.entries.resize(containers as usize, ContainerEntry::default());
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
        for leaf in 0..self.entries.len().div_ceil(SLOTS) as u64 {
            here &= store.want(pins, TREE, leaf, reads)?;
        }
        Ok(here)
    }

    /// Takes the entries from the leaves, all of which must have been wanted.
    ///
    /// # Errors
    /// [`PageError`] when an entry is none.
    pub fn load(&mut self, store: &PageStore) -> Result<(), PageError> {
        for (leaf, entries) in (0..).zip(self.entries.chunks_mut(SLOTS)) {
            let Some(page) = store.page(TREE, leaf) else { continue };
            for (slot, entry) in entries.iter_mut().enumerate() {
                *entry = container_page::get(page, slot).map_err(|source| {
                    let id = PageId { tree: TREE, level: 0, index: leaf };
                    PageError::Damaged { id, block: 0, source }
                })?;
            }
        }
        self.dirty.clear();
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
        let mut here = true;
        for &leaf in &self.dirty {
            here &= store.want(pins, TREE, leaf, reads)?;
        }
        Ok(here)
    }

    /// Leaves that the next checkpoint writes: pages that are not dirty yet.
    #[must_use]
    pub fn pages_to_store(&self) -> u64 {
        self.dirty.len() as u64
    }

    /// Puts what has changed into the leaves, which must have been wanted.
    pub fn store(&mut self, store: &mut PageStore) {
        for leaf in std::mem::take(&mut self.dirty) {
            let Some(entries) = self.entries.chunks(SLOTS).nth(leaf as usize) else { continue };
            if entries.iter().all(|entry| *entry == ContainerEntry::default()) {
                store.remove_page(TREE, leaf);
                continue;
            }
            let page = store.page_mut(TREE, leaf);
            for (slot, entry) in entries.iter().enumerate() {
                container_page::set(page, slot, entry);
            }
        }
    }

    /// A container; one that does not exist is free.
    #[must_use]
    pub fn get(&self, id: ContainerId) -> ContainerEntry {
        self.entries.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// All containers in order.
    pub fn iter(&self) -> impl Iterator<Item = (ContainerId, ContainerEntry)> {
        (0..).map(ContainerId).zip(self.entries.iter().copied())
    }

    /// Number of containers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no containers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Frames are appended to the container from now on.
    pub fn open(&mut self, id: ContainerId, sequence: u32) {
        let state = ContainerState::Open;
        self.change(id, |entry| *entry = ContainerEntry { state, sequence, ..Default::default() });
    }

    /// The container is full.
    pub fn seal(&mut self, id: ContainerId, used_bytes: u32) {
        self.change(id, |entry| {
            entry.state = ContainerState::Sealed;
            entry.used_bytes = used_bytes;
        });
    }

    /// The container holds nothing any more.
    pub fn free(&mut self, id: ContainerId) {
        self.change(id, |entry| *entry = ContainerEntry::default());
    }

    /// Frames fill the container up to `end_bytes`.
    pub fn fill_to(&mut self, id: ContainerId, end_bytes: u32) {
        self.change(id, |entry| entry.used_bytes = entry.used_bytes.max(end_bytes));
    }

    /// Frames in the container came to life, and died or moved away.
    pub fn change_live(&mut self, id: ContainerId, added_bytes: u32, removed_bytes: u32) {
        self.change(id, |entry| {
            let added = entry.live_bytes.saturating_add(added_bytes);
            entry.live_bytes = added.saturating_sub(removed_bytes);
        });
    }

    fn change(&mut self, id: ContainerId, change: impl FnOnce(&mut ContainerEntry)) {
        let place = id.0 as usize;
        if let Some(entry) = self.entries.get_mut(place) {
            change(entry);
            self.dirty.insert((place / SLOTS) as u64);
        }
    }
}
