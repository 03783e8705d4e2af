//! The store itself: wanting pages, taking them in, and handing them to operations.
//!
//! Every operation has two halves. `want` may miss and asks for one page at a time, the topmost
//! that is missing, because only its parent knows where a page is. `page`, `page_mut` and
//! `remove_page` find everything resident. What wants hold in between is in a [`PinSet`].

use format::page::Page;
use format::units::{BlockPtr, PageId, TreeId, TreeRoot};

use super::frames::{Frame, Frames, PageMap};
use super::page_io::{PageRead, PageWrite, read_page};
use super::page_memory::PageMemory;
use super::path::{Path, leaf_id};
use super::pins::PinSet;
use super::slot::Slot;
use super::space::Space;
use super::table::{HeatName, TableKind};
use super::traffic::Traffic;
use crate::error::PageError;
use crate::heat::Heat;

/// How large a store's tables and their cache are.
#[derive(Copy, Clone, Debug)]
pub struct PageStoreOptions {
    /// Pages that the cache keeps; operations under way may exceed it for as long as they last.
    pub cache_pages: usize,
    /// Length of the zone, block 0 included.
    pub tables_blocks: u64,
}

/// Entries of its queues that eviction looks at for each page that has been read or written, and
/// for each that an operation releases.
const LOOKS_PER_PAGE: usize = 64;
const LOOKS_PER_PIN: usize = 8;

/// A leaf that an operation wants.
pub(crate) enum Wanted {
    /// Resident, and pinned.
    Here(Slot),
    /// Not in the tree; its path is resident and pinned.
    Absent,
    /// A page on its path has to be read first.
    Coming,
}

/// A page on its way from the disk.
pub(super) struct Arriving {
    pub(super) parent: Option<Slot>,
    pointer: BlockPtr,
}

/// All trees of a store.
pub struct PageStore {
    pub(super) options: PageStoreOptions,
    pub(super) trees: PageMap<TreeId, TreeRoot>,
    pub(super) frames: Frames,
    pub(super) space: Space,
    pub(super) arriving: PageMap<PageId, Arriving>,
    /// Pages that could not be had when they were read, so that callers that wait for them get the
    /// error.
    pub(super) damaged: PageMap<PageId, PageError>,
    pub(super) traffic: Traffic,
    /// Entries of its queues that eviction may still look at.
    pub(super) looks_left: usize,
    /// By table.
    heat: [Heat; TableKind::COUNT],
    /// Places and slots that are looked at together, empty in between.
    pub(super) seen: Vec<(Slot, usize)>,
    /// Generation that the next checkpoint will have, as far as is known.
    pub(super) generation_next: u64,
    /// Block of the label of the root that the last freeze led to; 0: it has none.
    pub(super) label: u64,
}

impl PageStore {
    /// A store without trees and with every block free.
    #[must_use]
    pub fn new(options: PageStoreOptions) -> Self {
        Self {
            options,
            trees: PageMap::default(),
            frames: Frames::new(options.cache_pages),
            space: Space::new(options.tables_blocks),
            arriving: PageMap::default(),
            damaged: PageMap::default(),
            traffic: Traffic::default(),
            looks_left: 0,
            heat: Default::default(),
            seen: Vec::new(),
            generation_next: 1,
            label: 0,
        }
    }

    /// The zone has so many blocks now, and no fewer than before.
    pub fn grow(&mut self, tables_blocks: u64) {
        self.space.grow(tables_blocks);
        self.options.tables_blocks = tables_blocks;
    }

    /// Pages that the cache keeps.
    #[must_use]
    pub fn cache_pages(&self) -> usize {
        self.options.cache_pages
    }

    /// From now on the cache keeps so many; surplus ones leave as they can.
    pub fn set_cache_pages(&mut self, pages: usize) {
        self.options.cache_pages = pages;
    }

    /// Adds a tree as a checkpoint knows it; the default root is an empty tree.
    pub fn add_tree(&mut self, tree: TreeId, root: TreeRoot) {
        self.trees.insert(tree, root);
    }

    /// Root of a tree. It is what a checkpoint may hold only right after a freeze of the tree.
    #[must_use]
    pub fn tree_root(&self, tree: TreeId) -> TreeRoot {
        self.trees.get(&tree).copied().unwrap_or_default()
    }

    /// Forgets an empty tree; false, and the tree stays, when it is not empty.
    pub fn drop_tree(&mut self, tree: TreeId) -> bool {
        let empty = self.tree_root(tree).pointer.is_none();
        if empty {
            self.trees.remove(&tree);
        }
        empty
    }

    /// Asks for a leaf: true when it is resident, or known to be absent, so that [`Self::page`],
    /// [`Self::page_mut`] and [`Self::remove_page`] work. What is resident is pinned. Else the
    /// first page that is missing on its path is added to `reads`, unless it is on its way.
    ///
    /// # Errors
    /// [`PageError`] when the leaf or a page above it is damaged.
    pub fn want(
        &mut self,
        pins: &mut PinSet,
        tree: TreeId,
        index: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        self.want_leaf(pins, tree, index, reads).map(|wanted| !matches!(wanted, Wanted::Coming))
    }

    pub(crate) fn want_leaf(
        &mut self,
        pins: &mut PinSet,
        tree: TreeId,
        index: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<Wanted, PageError> {
        let leaf = leaf_id(tree, index);
        if let Some(slot) = self.frames.find(leaf) {
            self.frames.pin(slot, pins);
            return Ok(Wanted::Here(slot));
        }
        loop {
            match self.path_to(leaf) {
                Path::Here(slot) => {
                    self.frames.pin(slot, pins);
                    return Ok(Wanted::Here(slot));
                }
                Path::Absent { above } => {
                    if let Some(above) = above {
                        self.frames.pin(above, pins);
                    }
                    return Ok(Wanted::Absent);
                }
                Path::Missing { read, parent } => {
                    if !self.fetch(read, parent, reads)? {
                        pins.awaited = Some(read.id);
                        return Ok(Wanted::Coming);
                    }
                }
            }
        }
    }

    /// Whether what holds these pins still waits for the page that it asked for last. Pages come
    /// about in the order in which they were asked for, so then the others have mostly come too.
    #[must_use]
    pub fn awaits(&self, pins: &PinSet) -> bool {
        pins.awaited.is_some_and(|id| self.arriving.contains_key(&id))
    }

    /// Whether a page that was asked for is on its way still.
    #[must_use]
    pub fn is_coming(&self, read: &PageRead) -> bool {
        self.arriving.contains_key(&read.id)
    }

    /// Adds the read of a page, unless it is on its way already.
    pub(super) fn request(
        &mut self,
        read: PageRead,
        parent: Option<Slot>,
        reads: &mut Vec<PageRead>,
    ) -> Result<(), PageError> {
        if let Some(error) = self.damaged.get(&read.id) {
            return Err(error.clone());
        }
        if self.arriving.contains_key(&read.id) {
            return Ok(());
        }
        let (id, block) = (read.id, read.pointer.block());
        let tables_blocks = self.options.tables_blocks;
        if block >= tables_blocks {
            return Err(PageError::OutOfRange { id, block, tables_blocks });
        }
        self.arriving.insert(id, Arriving { parent, pointer: read.pointer });
        if let Some(parent) = parent {
            self.frames.get_mut(parent).children += 1;
        }
        self.traffic.count_read(id);
        reads.push(read);
        Ok(())
    }

    /// Takes a page that was read; `Err` when the device failed. A page that nobody waits for is
    /// ignored.
    ///
    /// # Errors
    /// [`PageError`] when it is not the page asked for; it is remembered, and every want of it or
    /// of what is below it fails from now on, or until [`Self::retry_unreadable`].
    pub fn page_arrived(
        &mut self,
        read: PageRead,
        bytes: Result<&[u8], ()>,
    ) -> Result<(), PageError> {
        let expected = self.arriving.get(&read.id).map(|arriving| arriving.pointer);
        if expected != Some(read.pointer) {
            return Ok(());
        }
        let Some(Arriving { parent, .. }) = self.arriving.remove(&read.id) else { return Ok(()) };
        self.pay_for_pages(1);
        let mut page = self.frames.spares.take();
        match read_page(&read, bytes, &mut page) {
            Ok(()) => {
                self.frames.insert(Frame::read(read, PageMemory::Alone(page), parent));
                Ok(())
            }
            Err(error) => {
                self.frames.spares.put(PageMemory::Alone(page));
                if let Some(parent) = parent {
                    self.frames.get_mut(parent).children -= 1;
                }
                self.damaged.insert(read.id, error.clone());
                Err(error)
            }
        }
    }

    /// Pages that the device failed to give may be asked for again: devices come back. Not while
    /// any page is on its way: who does without one that failed waits for the others, and would
    /// ask for two that fail slowly in turns, for ever.
    pub fn retry_unreadable(&mut self) {
        if self.arriving.is_empty() {
            self.damaged.retain(|_, error| !matches!(error, PageError::Unreadable { .. }));
        }
    }

    /// A leaf; none when it is absent. It must have been wanted.
    #[must_use]
    pub fn page(&self, tree: TreeId, index: u64) -> Option<&Page> {
        self.find_leaf(tree, index).map(|slot| self.page_at(slot))
    }

    /// A leaf if it is resident; counts it as wanted without holding it.
    pub(crate) fn glance(&self, tree: TreeId, index: u64) -> Option<&Page> {
        let frame = self.frames.get(self.find_leaf(tree, index)?);
        frame.touch();
        Some(&frame.page)
    }

    pub(crate) fn find_leaf(&self, tree: TreeId, index: u64) -> Option<Slot> {
        self.frames.find(leaf_id(tree, index))
    }

    pub(crate) fn page_at(&self, slot: Slot) -> &Page {
        &self.frames.get(slot).page
    }

    pub(crate) fn page_at_mut(&mut self, slot: Slot) -> &mut Page {
        self.frames.change(slot)
    }

    /// A leaf to be changed, made when it is absent. It must have been wanted.
    ///
    /// # Panics
    /// When the way to the leaf is not resident: the caller did not want it.
    pub fn page_mut(&mut self, tree: TreeId, index: u64) -> &mut Page {
        let leaf = leaf_id(tree, index);
        let slot = match self.frames.find(leaf) {
            Some(slot) => slot,
            None => self.make(leaf),
        };
        self.own(slot);
        self.frames.change(slot)
    }

    /// Gives back what wants have pinned.
    pub fn release_pins(&mut self, pins: PinSet) {
        self.looks_left = self.looks_left.saturating_add(LOOKS_PER_PIN * pins.len());
        self.frames.release(pins);
    }

    /// So many pages have been read or written, and may go: eviction may look for them.
    pub(super) fn pay_for_pages(&mut self, pages: usize) {
        self.looks_left = self.looks_left.saturating_add(LOOKS_PER_PAGE * pages);
    }

    /// Spare pages that should be brought; 0 while there are enough.
    #[must_use]
    pub fn spares_wanted(&self) -> usize {
        self.frames.spares.wanted()
    }

    /// Takes pages for later; their bytes mean nothing.
    pub fn take_spares(&mut self, pages: Vec<Box<Page>>) {
        let spares = &mut self.frames.spares;
        pages.into_iter().for_each(|page| spares.put(PageMemory::Alone(page)));
    }

    /// Takes back what was written, once its bytes are where they are written from.
    pub fn take_written(&mut self, writes: Vec<PageWrite>) {
        let spares = &mut self.frames.spares;
        writes.into_iter().for_each(|write| spares.put(PageMemory::Shared(write.page)));
    }

    /// Blocks that pages can be written to now.
    #[must_use]
    pub fn free_blocks(&self) -> u64 {
        self.space.free_blocks()
    }

    /// Blocks that become free when the next root, or the one on its way, is durable.
    #[must_use]
    pub fn coming_blocks(&self) -> u64 {
        self.space.coming_blocks()
    }

    /// Blocks that no live page is in, but that a root may still name.
    #[must_use]
    pub fn quarantined_blocks(&self) -> u64 {
        self.space.quarantined_blocks()
    }

    /// Blocks that live pages are in.
    #[must_use]
    pub fn used_blocks(&self) -> u64 {
        self.space.used_blocks()
    }

    /// Pages that were read and written since the store was made or opened.
    #[must_use]
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// Where the accesses to the leaves of a table went, by their [`HeatName`]s.
    #[must_use]
    pub fn heat(&self, table: TableKind) -> &Heat {
        &self.heat[table as usize]
    }

    /// Counts accesses to a leaf.
    pub fn count_accesses(&mut self, tree: TreeId, leaf: u64, accesses: usize) {
        let name = HeatName::of(tree, leaf);
        self.heat[TableKind::of(tree) as usize].count(name.0, accesses as u64);
    }

    /// Pages of a table in the cache, and those of them that differ from the disk.
    #[must_use]
    pub fn held_of(&self, table: TableKind) -> (usize, usize) {
        self.frames.held_of(table)
    }

    /// Pages that differ from the disk.
    #[must_use]
    pub fn dirty_pages(&self) -> usize {
        self.frames.dirty_pages()
    }

    /// Pages in the cache.
    #[must_use]
    pub fn resident_pages(&self) -> usize {
        self.frames.resident_pages()
    }

    /// Memory that the cache takes, its bookkeeping included.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.frames.resident_bytes() + self.space.resident_bytes()
    }
}
