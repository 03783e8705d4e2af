//! Verifying the pages on disk while the store is in use.
//!
//! The cache hides the disk: a page that is resident is not read again, however its block rots. So
//! a verifier walks the pointers, reads the blocks itself and compares. Pages come level by
//! level, in order, inner pages too; only the page above has to be resident.
//!
//! A block is only worth looking at while it is stable: a live pointer names it, and no write to
//! it is in flight. A live pointer's block is never written again, so if the same pointer stands
//! after the read ([`PageStore::is_steady`]), what was read is what is there. All else is passed
//! over: it has just been written, or is just going.
//!
//! A damaged block whose page is resident is healed by [`PageStore::rewrite`]: the next checkpoint
//! writes the page to another one.

use format::pointer_page::{self, FANOUT};
use format::units::{PageId, TreeId};

use super::page_io::{PageRead, checked_page};
use super::page_store::PageStore;
use super::path::{Path, UNWRITTEN, child_slot, first_used};
use super::pins::PinSet;
use super::slot::Slot;
use crate::error::PageError;

/// What follows on a level of a tree.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NextPage {
    /// This page is on disk and stable.
    Found(PageRead),
    /// No further page of this level exists.
    End,
    /// A page above has to be read first.
    Missing,
}

impl PageStore {
    /// The first page of `level` at `from` or behind it that is on disk and stable. What is
    /// above it is pinned. What lies below a damaged page cannot be found and is passed over.
    pub fn next_page(
        &mut self,
        pins: &mut PinSet,
        tree: TreeId,
        level: u8,
        from: u64,
        reads: &mut Vec<PageRead>,
    ) -> NextPage {
        let mut from = from;
        loop {
            let found = match self.next_named(pins, tree, level, from, reads) {
                NextPage::Found(found) => found,
                other => return other,
            };
            let pointer = found.pointer;
            if pointer != UNWRITTEN && !self.space.is_being_written(pointer.block()) {
                return NextPage::Found(found);
            }
            let Some(next) = found.id.index.checked_add(1) else { return NextPage::End };
            from = next;
        }
    }

    /// The first page of `level` at `from` or behind it that a pointer names.
    fn next_named(
        &mut self,
        pins: &mut PinSet,
        tree: TreeId,
        level: u8,
        from: u64,
        reads: &mut Vec<PageRead>,
    ) -> NextPage {
        let root = self.tree_root(tree);
        if root.pointer.is_none() || level > root.depth || (level == root.depth && from > 0) {
            return NextPage::End;
        }
        if level == root.depth {
            let id = PageId { tree, level, index: 0 };
            return NextPage::Found(PageRead { id, pointer: root.pointer });
        }
        let mut from = from;
        loop {
            let parent = match self.next_named(pins, tree, level + 1, from / FANOUT as u64, reads) {
                NextPage::Found(parent) => parent.id,
                other => return other,
            };
            let Some(first) = parent.index.checked_mul(FANOUT as u64) else { return NextPage::End };
            from = from.max(first);
            match self.resident(parent, reads) {
                Ok(Some(slot)) => {
                    self.frames.pin(slot, pins);
                    let wanted = child_slot(PageId { tree, level, index: from });
                    let page = self.page_at(slot);
                    if let Some(used) = first_used(page, wanted) {
                        let id = PageId { tree, level, index: first + used as u64 };
                        return NextPage::Found(PageRead {
                            id,
                            pointer: pointer_page::get(page, used),
                        });
                    }
                }
                Ok(None) => return NextPage::Missing,
                Err(_) => {}
            }
            let Some(behind) = first.checked_add(FANOUT as u64) else { return NextPage::End };
            from = behind;
        }
    }

    /// An inner page that a pointer names, if it is resident; else it is asked for.
    fn resident(
        &mut self,
        page: PageId,
        reads: &mut Vec<PageRead>,
    ) -> Result<Option<Slot>, PageError> {
        loop {
            match self.path_to(page) {
                Path::Here(slot) => return Ok(Some(slot)),
                Path::Absent { .. } => return Ok(None),
                Path::Missing { read, parent } => {
                    if !self.fetch(read, parent, reads)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Whether the page that was read is still where it was when [`Self::next_page`] found it. What
    /// is above it must have been pinned since.
    #[must_use]
    pub fn is_steady(&self, read: &PageRead) -> bool {
        let PageRead { id, pointer } = *read;
        let root = self.tree_root(id.tree);
        let named = if id.level >= root.depth {
            (id.level == root.depth && id.index == 0).then_some(root.pointer)
        } else {
            let parent =
                PageId { level: id.level + 1, index: id.index / FANOUT as u64, tree: id.tree };
            let slot = self.frames.find(parent);
            slot.map(|slot| pointer_page::get(self.page_at(slot), child_slot(id)))
        };
        named == Some(pointer) && !self.space.is_being_written(pointer.block())
    }

    /// Whether these bytes are the page that a pointer names.
    ///
    /// # Errors
    /// [`PageError`] says what is wrong with them.
    pub fn verify_page(read: &PageRead, bytes: Result<&[u8], ()>) -> Result<(), PageError> {
        checked_page(read, bytes).map(|_| ())
    }

    /// The page that was read turned out to be sound. If it could not be had before, because the
    /// device failed once, it may be wanted again.
    pub fn found_sound(&mut self, read: &PageRead) {
        self.damaged.remove(&read.id);
    }

    /// Has a resident page written to another block by the next checkpoint, because its block is
    /// damaged; false when it is not resident.
    pub fn rewrite(&mut self, id: PageId) -> bool {
        let Some(slot) = self.frames.find(id) else { return false };
        self.own(slot);
        self.frames.mark_dirty(slot);
        true
    }
}
