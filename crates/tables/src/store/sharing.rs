//! Sharing: versions of a volume keep one copy of the pages that they have in common.
//!
//! A version is made in no time whatever its size ([`PageStore::copy_tree`]): its root points to
//! the same page. Only dirty pages are copied, since they have no block yet that could be pointed
//! to. Blocks to which several pointers lead are counted (`space.rs`).
//!
//! ```text
//! before            after a copy        after a change of leaf d by A
//! A -> [r] -> c, d   A, S -> [r] -> c, d   S -> [r] -> c, d     A -> r' -> c, d'
//!                    r counts 2            c counts 2, d counts 1
//! ```
//!
//! So a page is changed in two steps. First it is *owned*: from the root down every page on its way
//! to which several pointers lead becomes a page of this tree alone, without a block, and what it
//! points to has one pointer more. Then it is changed like any other.
//!
//! **Invariant**: what is above a dirty page is dirty (`frames.rs`), and has but one pointer to it,
//! up to the root. A copy keeps it: it copies everything that is dirty.
//!
//! The cache knows pages by tree: a shared page that is read through two trees is there twice.

use format::pointer_page::{self, FANOUT};
use format::units::{BlockPtr, PageId, TreeId};
use mutants::mutant;

use super::frames::Frame;
use super::page_io::PageRead;
use super::page_memory::PageMemory;
use super::page_store::PageStore;
use super::path::UNWRITTEN;
use super::slot::Slot;
use crate::error::PageError;

/// Whether a pointer leads to a block.
pub(super) fn is_written(pointer: BlockPtr) -> bool {
    !pointer.is_none() && pointer != UNWRITTEN
}

impl PageStore {
    /// Makes `to` a tree that holds what `from` holds. `to` must be empty and have no pages.
    pub fn copy_tree(&mut self, from: TreeId, to: TreeId) {
        let mut dirty = self.frames.dirty_of(from);
        let root = self.tree_root(from);
        self.trees.insert(to, root);
        if dirty.is_empty() {
            if is_written(root.pointer) {
                self.space.share(root.pointer.block());
            }
            return;
        }
        // Parents before children: a copy finds the copy above it.
        dirty.sort_unstable_by_key(|&slot| {
            let id = self.frames.get(slot).id;
            (std::cmp::Reverse(id.level), id.index)
        });
        // Only when all are copied is it known which children are shared and which were copied.
        let copies: Vec<Slot> = dirty.into_iter().map(|slot| self.copy_page(slot, to)).collect();
        copies.into_iter().for_each(|copy| self.share_children(copy));
    }

    fn copy_page(&mut self, slot: Slot, to: TreeId) -> Slot {
        let page = PageMemory::Shared(self.frames.share(slot));
        let frame = self.frames.get(slot);
        let id = PageId { tree: to, ..frame.id };
        let above = frame.parent.map(|parent| PageId { tree: to, ..self.frames.get(parent).id });
        let above = above.and_then(|above| self.frames.find(above));
        let copy = self.frames.insert(Frame::made(id, page, above));
        self.frames.mark_dirty(copy);
        self.point(above, id, UNWRITTEN);
        if let Some(above) = above {
            self.frames.get_mut(above).children += 1;
        }
        copy
    }

    /// Counts one pointer more to everything that an inner page points to; leaves point to nothing.
    fn share_children(&mut self, slot: Slot) {
        let Self { frames, space, .. } = self;
        let frame = frames.get(slot);
        let children = if frame.id.level > 0 { FANOUT } else { 0 };
        let pointers = (0..children).map(|child| pointer_page::get(&frame.page, child));
        pointers.filter(|&pointer| is_written(pointer)).for_each(|to| space.share(to.block()));
    }

    /// Makes a page, and what is above it, this tree's own, so that it may be changed or removed.
    pub(super) fn own(&mut self, slot: Slot) {
        if !self.space.any_shared() || self.frames.is_dirty(slot) {
            return;
        }
        let frame = self.frames.get(slot);
        if !frame.id.tree.is_map() {
            return;
        }
        let mut way = vec![slot];
        let mut above = frame.parent;
        while let Some(slot) = above {
            way.push(slot);
            above = self.frames.get(slot).parent;
        }
        way.into_iter().rev().for_each(|slot| self.own_page(slot));
    }

    /// The same for one page, when all above it is owned.
    fn own_page(&mut self, slot: Slot) {
        let frame = self.frames.get(slot);
        let (id, block, parent) = (frame.id, frame.block, frame.parent);
        if block == 0 || !self.space.is_shared(block) {
            return;
        }
        self.space.free(block);
        self.share_children(slot);
        let frame = self.frames.get_mut(slot);
        (frame.block, frame.writing) = (0, false);
        self.frames.mark_dirty(slot);
        self.point(parent, id, UNWRITTEN);
    }

    /// Brings a page into the cache that is on its way to the disk for another tree: until it has
    /// arrived there it cannot be read. False when it is not on its way.
    fn take_from_write(&mut self, read: PageRead, parent: Option<Slot>) -> bool {
        if !read.id.tree.is_map() || mutant!(ReadsPageBeingWritten) {
            return false;
        }
        // The block need not be shared any more: the other tree may have left it.
        let Some(page) = self.space.page_on_its_way(read.pointer.block()) else { return false };
        self.frames.insert(Frame::read(read, PageMemory::Shared(page), parent));
        if let Some(parent) = parent {
            self.frames.get_mut(parent).children += 1;
        }
        true
    }

    /// Gets a page that is not resident: true when it is at once, else it is asked for.
    pub(super) fn fetch(
        &mut self,
        read: PageRead,
        parent: Option<Slot>,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        if !self.arriving.contains_key(&read.id) && self.take_from_write(read, parent) {
            return Ok(true);
        }
        self.request(read, parent, reads)?;
        Ok(false)
    }

    /// Blocks of the tables that more than one version of a volume uses.
    #[must_use]
    pub fn shared_blocks(&self) -> u64 {
        self.space.shared_blocks()
    }
}
