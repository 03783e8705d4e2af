//! State and live bytes of every container: in memory whole, in pages at each checkpoint.

use std::collections::BTreeSet;

use format::container_page::{self, ContainerEntry, ContainerState, SLOTS};
use format::units::{ContainerId, TreeId};

use crate::error::PageError;
use crate::page_store::{PageRead, PageStore, PinSet};

/// All containers of a store; 16 bytes of memory each.
pub struct ContainerTable {
    entries: Vec<ContainerEntry>,
    changed: BTreeSet<u64>,
}

impl ContainerTable {
    /// Containers that are all free.
    #[must_use]
    pub fn new(count: u64) -> Self {
        let entries = vec![ContainerEntry::default(); usize::try_from(count).unwrap_or(0)];
        Self { entries, changed: BTreeSet::new() }
    }

    fn leaves(&self) -> u64 {
        self.entries.len().div_ceil(SLOTS) as u64
    }

    /// Names all pages of the table.
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
        for leaf in 0..self.leaves() {
            here &= store.want(pins, TreeId::CONTAINERS, leaf, reads)?;
        }
        Ok(here)
    }

    /// Takes the entries out of the pages.
    ///
    /// # Errors
    /// [`PageError`] when an entry cannot be.
    pub fn load(&mut self, store: &PageStore) -> Result<(), PageError> {
        for (at, entry) in self.entries.iter_mut().enumerate() {
            let (leaf, slot) = ((at / SLOTS) as u64, at % SLOTS);
            if let Some(page) = store.page(TreeId::CONTAINERS, leaf) {
                *entry = container_page::get(page, slot)
                    .map_err(|source| PageError::new(page.id(), 0, Some(source)))?;
            }
        }
        Ok(())
    }

    /// Names the pages of entries that have changed.
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
        for &leaf in &self.changed {
            here &= store.want(pins, TreeId::CONTAINERS, leaf, reads)?;
        }
        Ok(here)
    }

    /// Puts changed entries into their pages.
    pub fn store(&mut self, store: &mut PageStore) {
        for leaf in std::mem::take(&mut self.changed) {
            let first = leaf as usize * SLOTS;
            let page = store.page_mut(TreeId::CONTAINERS, leaf);
            for (slot, entry) in self.entries.iter().skip(first).take(SLOTS).enumerate() {
                container_page::set(page, slot, entry);
            }
        }
    }

    fn change(&mut self, id: ContainerId, change: impl FnOnce(&mut ContainerEntry)) {
        if let Some(entry) = self.entries.get_mut(id.0 as usize) {
            change(entry);
            self.changed.insert(u64::from(id.0) / SLOTS as u64);
        }
    }

    /// One entry; a container that the store does not have is free.
    #[must_use]
    pub fn get(&self, id: ContainerId) -> ContainerEntry {
        self.entries.get(id.0 as usize).copied().unwrap_or_default()
    }

    /// All entries, by number.
    pub fn iter(&self) -> impl Iterator<Item = (ContainerId, ContainerEntry)> {
        self.entries.iter().enumerate().map(|(at, entry)| (ContainerId(at as u32), *entry))
    }

    /// The container takes frames from now on.
    pub fn open(&mut self, id: ContainerId, sequence: u32) {
        self.change(id, |entry| {
            *entry = ContainerEntry {
                live_bytes: 0,
                used_bytes: 0,
                state: ContainerState::Open,
                sequence,
            };
        });
    }

    /// The container is full.
    pub fn seal(&mut self, id: ContainerId, used_bytes: u32) {
        self.change(id, |entry| {
            entry.state = ContainerState::Sealed;
            entry.used_bytes = used_bytes;
        });
    }

    /// Nothing in the container is named any more.
    pub fn free(&mut self, id: ContainerId) {
        self.change(id, |entry| *entry = ContainerEntry::default());
    }

    /// Frames reach up to `end_bytes`.
    pub fn fill_to(&mut self, id: ContainerId, end_bytes: u32) {
        self.change(id, |entry| entry.used_bytes = entry.used_bytes.max(end_bytes));
    }

    /// Frames have come to life and died.
    pub fn change_live(&mut self, id: ContainerId, added_bytes: u32, removed_bytes: u32) {
        self.change(id, |entry| {
            entry.live_bytes = (entry.live_bytes + added_bytes).saturating_sub(removed_bytes);
        });
    }
}
