//! The page store: radix trees of 4-KiB pages, cached, never overwritten in place.
//!
//! A tree is an array of leaves under inner pages of [`FANOUT`] pointers. Leaf `i` is page `i` of
//! level 0; its ancestor of level `k` is page `i / FANOUT^k`. The topmost page, index 0 of level
//! `depth`, is what the tree's root points to. A tree grows a level when a leaf's index does not
//! fit, and absent subtrees cost nothing.
//!
//! **Life of a page.** It comes in by a read or is made, is changed any number of times (*dirty*),
//! is given a block and a tag that its parent then holds (*clean*, and *writing* until the write
//! has ended), and is dropped when the cache needs room:
//!
//! ```text
//! absent --page_mut--> dirty --freeze, clean_batch--> clean, writing --write_done--> clean
//! on disk --want, page_arrived--> clean --page_mut--> dirty        clean --shrink--> on disk
//! ```
//!
//! Invariants:
//!
//! - The parent of a resident page is resident, and so is the parent of one that is being read;
//!   both are counted as its children. Only a page without children is dropped.
//! - A page is dropped only clean, written and unpinned; only [`PageStore::shrink`] drops pages, so
//!   nothing that a want found resident goes away before the caller's operation has run.
//! - A pointer names an existing subtree, resident or not: a page that has no block yet is pointed
//!   to by [`UNWRITTEN`], which never reaches the disk, because children are written first.
//! - The bytes of a write in flight never change: a page that changes meanwhile is copied.
//! - An inner page has at least one pointer, and a tree without leaves has no page at all.

mod blocks;
mod cleaning;
mod eviction;
mod frames;
mod freeze;
mod leaf_walk;
mod path;
mod pins;
mod reach;
mod space;
mod touch;

use std::sync::Arc;

use format::page::Page;
use format::pointer_page::{self, FANOUT};
use format::units::{BlockPtr, PageId, TreeId, TreeRoot};

use crate::error::PageError;
pub(crate) use frames::Slot;
use frames::{Frame, Frames, PageMap};
pub use leaf_walk::NextLeaf;
use path::{Path, child_slot, depth_for, fits, leaf_id};
pub use pins::PinSet;
pub use reach::ReachWalker;
use space::Space;

/// Stands for the block of a page that has none yet.
const UNWRITTEN: BlockPtr = BlockPtr::new(BlockPtr::BLOCKS_MAX - 1, 0);

/// How large a store's tables and their cache are.
#[derive(Copy, Clone, Debug)]
pub struct PageStoreOptions {
    /// Pages that the cache keeps; operations under way may exceed it for as long as they last.
    pub cache_pages: usize,
    /// Dirty pages at which a checkpoint is due.
    pub dirty_pages_max: usize,
    /// Length of the zone, block 0 included.
    pub tables_blocks: u64,
}

/// A page to be read: one block at `pointer.block()` of zone tables.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PageRead {
    /// Which page.
    pub id: PageId,
    /// Where it is.
    pub pointer: BlockPtr,
}

/// A page to be written to zone tables; its bytes stay as they are.
#[derive(Clone, Debug)]
pub struct PageWrite {
    /// Where to.
    pub block: u64,
    /// What.
    pub page: Arc<Page>,
}

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
struct Arriving {
    parent: Option<Slot>,
    pointer: BlockPtr,
}

/// All trees of a store.
pub struct PageStore {
    options: PageStoreOptions,
    trees: PageMap<TreeId, TreeRoot>,
    frames: Frames,
    space: Space,
    arriving: PageMap<PageId, Arriving>,
    damaged: PageMap<PageId, PageError>,
    /// Place of the clock's hand.
    hand: usize,
    /// Generation that the next checkpoint will have, as far as is known.
    generation_next: u64,
}

impl PageStore {
    /// A store without trees and with every block free.
    #[must_use]
    pub fn new(options: PageStoreOptions) -> Self {
        Self {
            options,
            trees: PageMap::default(),
            frames: Frames::default(),
            space: Space::new(options.tables_blocks),
            arriving: PageMap::default(),
            damaged: PageMap::default(),
            hand: 0,
            generation_next: 1,
        }
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
        match self.path_to(leaf) {
            Path::Here(slot) => {
                self.frames.pin(slot, pins);
                Ok(Wanted::Here(slot))
            }
            Path::Absent { above } => {
                if let Some(above) = above {
                    self.frames.pin(above, pins);
                }
                Ok(Wanted::Absent)
            }
            Path::Missing { read, parent } => {
                self.request(read, parent, reads)?;
                Ok(Wanted::Coming)
            }
        }
    }

    /// Adds the read of a page, unless it is on its way already.
    fn request(
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
        reads.push(read);
        Ok(())
    }

    /// Takes a page that was read; `Err` when the device failed. A page that nobody waits for is
    /// ignored.
    ///
    /// # Errors
    /// [`PageError`] when it is not the page asked for; it is remembered, and every want of it or
    /// of what is below it fails from now on.
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
        match checked_page(&read, bytes) {
            Ok(page) => {
                let frame = Frame::read(read, Arc::new(page), parent);
                self.frames.insert(frame);
                Ok(())
            }
            Err(error) => {
                if let Some(parent) = parent {
                    self.frames.get_mut(parent).children -= 1;
                }
                self.damaged.insert(read.id, error.clone());
                Err(error)
            }
        }
    }

    /// A leaf; none when it is absent. It must have been wanted.
    #[must_use]
    pub fn page(&self, tree: TreeId, index: u64) -> Option<&Page> {
        self.find_leaf(tree, index).map(|slot| self.page_at(slot))
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

    /// How many operations hold the page.
    pub(crate) fn pins_at(&self, slot: Slot) -> u32 {
        self.frames.get(slot).pins
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
        self.frames.change(slot)
    }

    /// Makes an absent leaf and the inner pages that it lacks.
    fn make(&mut self, leaf: PageId) -> Slot {
        self.grow_to(leaf);
        let Path::Absent { mut above } = self.path_to(leaf) else {
            unreachable!("{leaf} is changed without having been wanted")
        };
        let depth = self.tree_root(leaf.tree).depth;
        let missing = above.map_or(depth + 1, |slot| self.frames.get(slot).id.level);
        let mut made = None;
        for level in (0..missing).rev() {
            let id = path::ancestor(leaf, level);
            let slot = self.frames.insert(Frame::made(id, above));
            self.frames.mark_dirty(slot);
            self.point(above, id, UNWRITTEN);
            if let Some(above) = above {
                self.frames.get_mut(above).children += 1;
            }
            above = Some(slot);
            made = Some(slot);
        }
        made.unwrap_or_else(|| unreachable!("{leaf} is absent and below what is resident"))
    }

    /// Adds levels on top until `leaf` fits.
    fn grow_to(&mut self, leaf: PageId) {
        let tree = leaf.tree;
        let mut root = self.tree_root(tree);
        if root.pointer.is_none() {
            root.depth = depth_for(leaf.index);
            self.trees.insert(tree, root);
        }
        while !fits(root.depth, leaf.index) {
            let old = PageId { tree, level: root.depth, index: 0 };
            let id = PageId { level: root.depth + 1, ..old };
            let slot = self.frames.insert(Frame::made(id, None));
            pointer_page::set(self.frames.change(slot), 0, root.pointer);
            self.adopt_child(slot, old);
            root = TreeRoot { pointer: UNWRITTEN, depth: id.level };
            self.trees.insert(tree, root);
        }
    }

    /// The former top of a tree, if it is resident or on its way, gets a parent.
    fn adopt_child(&mut self, parent: Slot, child: PageId) {
        if let Some(slot) = self.frames.find(child) {
            self.frames.get_mut(slot).parent = Some(parent);
        } else if let Some(arriving) = self.arriving.get_mut(&child) {
            arriving.parent = Some(parent);
        } else {
            return;
        }
        self.frames.get_mut(parent).children += 1;
    }

    /// Makes `parent`, or the tree's root, point to `child`.
    fn point(&mut self, parent: Option<Slot>, child: PageId, pointer: BlockPtr) {
        match parent {
            Some(parent) => {
                pointer_page::set(self.frames.change(parent), child_slot(child), pointer);
            }
            None => {
                let root = TreeRoot { pointer, depth: child.level };
                self.trees.insert(child.tree, root);
            }
        }
    }

    /// Removes a leaf, and the inner pages that are empty then. It must have been wanted; an absent
    /// leaf stays absent.
    pub fn remove_page(&mut self, tree: TreeId, index: u64) {
        let Some(mut slot) = self.frames.find(leaf_id(tree, index)) else { return };
        loop {
            let frame = self.frames.remove(slot);
            if frame.block != 0 {
                self.space.free(frame.block);
            }
            let Some(parent) = frame.parent else {
                self.trees.insert(tree, TreeRoot::default());
                return;
            };
            self.point(Some(parent), frame.id, BlockPtr::NONE);
            let above = self.frames.get_mut(parent);
            above.children -= 1;
            if above.children > 0 || path::first_used(&above.page, 0).is_some() {
                return;
            }
            slot = parent;
        }
    }

    /// Gives back what wants have pinned.
    pub fn release_pins(&mut self, pins: PinSet) {
        self.frames.release(pins);
    }

    /// Blocks that pages can be written to now.
    #[must_use]
    pub fn free_blocks(&self) -> u64 {
        self.space.free_blocks()
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

    /// Pages that differ from the disk.
    #[must_use]
    pub fn dirty_pages(&self) -> usize {
        self.frames.dirty_pages()
    }

    /// Whether so many pages are dirty that a checkpoint is due.
    #[must_use]
    pub fn checkpoint_is_due(&self) -> bool {
        self.dirty_pages() >= self.options.dirty_pages_max
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

fn checked_page(read: &PageRead, bytes: Result<&[u8], ()>) -> Result<Page, PageError> {
    let (id, block) = (read.id, read.pointer.block());
    let Ok(bytes) = bytes else { return Err(PageError::Unreadable { id, block }) };
    let check = |page: Page| page.check(id, read.pointer.tag()).map(|()| page);
    Page::from_bytes(bytes).and_then(check).map_err(|source| PageError::Damaged {
        id,
        block,
        source,
    })
}

const _: () = assert!(FANOUT > 1);
