//! Freezing: every dirty page gets its place in the next checkpoint, in one go.
//!
//! Children go before parents, level by level over all trees, because a parent holds the block and
//! the tag of its child; the ancestors of a dirty page are therefore dirty too. Within a level
//! pages go in the order of their trees, so that neighbours in a table are neighbours on disk.
//!
//! The roots of the volumes' maps stand in leaves of the catalog. Hence two steps: first all trees
//! but the catalog; then the engine puts the new roots into the catalog; then the catalog.

use format::pointer_page::{self, FANOUT};
use format::units::{BlockPtr, TreeId};

use super::frames::Frame;
use super::page_io::PageWrite;
use super::page_store::PageStore;
use super::path::UNWRITTEN;
use super::slot::Slot;
use crate::catalog_table::LEAVES_ANEW_MAX;
use crate::error::OutOfBlocks;

impl PageStore {
    /// Gives every dirty page of all trees but the catalog a block; the live trees go on at once.
    /// [`Self::freeze_catalog`] must follow before anything else is changed. The writes come in
    /// ascending order of blocks.
    ///
    /// # Errors
    /// [`OutOfBlocks`], and no page has moved.
    pub fn freeze_trees(&mut self, generation: u64) -> Result<Vec<PageWrite>, OutOfBlocks> {
        self.freeze(generation, false)
    }

    /// Gives every dirty page of the catalog a block: the checkpoint is complete, and
    /// [`Self::tree_root`] is what its root names.
    ///
    /// # Errors
    /// [`OutOfBlocks`], and no page of the catalog has moved.
    pub fn freeze_catalog(&mut self, generation: u64) -> Result<Vec<PageWrite>, OutOfBlocks> {
        let writes = self.freeze(generation, true)?;
        self.space.frozen();
        self.generation_next = generation + 1;
        Ok(writes)
    }

    fn freeze(&mut self, generation: u64, is_catalog: bool) -> Result<Vec<PageWrite>, OutOfBlocks> {
        let mut due = self.take_dirty(|tree| (tree == TreeId::CATALOG) == is_catalog);
        let (pages, free_blocks) = (due.len() as u64, self.free_blocks());
        if pages > free_blocks {
            due.iter().for_each(|&slot| self.frames.put_back_dirty(slot));
            return Err(OutOfBlocks { pages, free_blocks });
        }
        self.sort_for_writing(&mut due);
        let is_small = due.len() as u64 <= 2 * LEAVES_ANEW_MAX;
        let former = (is_catalog && is_small).then(|| self.former_blocks(&due));
        let place = |slot| {
            let id = self.frames.get(slot).id;
            let block = match &former {
                Some(former) => self.space.allocate_far_from(former, id)?,
                None => self.space.allocate(id)?,
            };
            Some(self.place(slot, block, generation))
        };
        let mut writes: Vec<PageWrite> = due.into_iter().filter_map(place).collect();
        writes.sort_unstable_by_key(|write| write.block);
        Ok(writes)
    }

    /// Where the pages of a small catalog are now. All of it is due with every freeze: the older
    /// root's pages stay where they are, and the newer's come far from them.
    fn former_blocks(&self, due: &[Slot]) -> Vec<u64> {
        let blocks = due.iter().map(|&slot| self.frames.get(slot).block);
        blocks.filter(|&block| block != 0).collect()
    }

    /// Takes the dirty pages of the trees that are due out of the queue.
    pub(super) fn take_dirty(&mut self, is_due: impl Fn(TreeId) -> bool) -> Vec<Slot> {
        let mut due = Vec::with_capacity(self.frames.dirty_pages());
        let mut others = Vec::new();
        while let Some(slot) = self.frames.pop_dirty() {
            let list = if is_due(self.frames.get(slot).id.tree) { &mut due } else { &mut others };
            list.push(slot);
        }
        others.into_iter().for_each(|slot| self.frames.put_back_dirty(slot));
        due
    }

    /// Children before parents, neighbours beside each other.
    pub(super) fn sort_for_writing(&self, slots: &mut [Slot]) {
        slots.sort_unstable_by_key(|&slot| {
            let id = self.frames.get(slot).id;
            (id.level, id.tree, id.index)
        });
    }

    /// Moves a dirty page, taken out of the queue, to `block`.
    pub(super) fn place(&mut self, slot: Slot, block: u64, generation: u64) -> PageWrite {
        self.frames.mark_clean(slot);
        let crc = self.frames.own(slot).seal(generation);
        let frame = self.frames.get_mut(slot);
        debug_assert!(has_written_children(frame), "{} is written before its children", frame.id);
        let former = std::mem::replace(&mut frame.block, block);
        frame.writing = true;
        let (id, parent) = (frame.id, frame.parent);
        let page = self.frames.share(slot);
        self.traffic.count_write(id);
        if id.tree.is_map() {
            self.space.set_page(block, &page);
        }
        self.point(parent, id, BlockPtr::new(block, crc));
        if former != 0 {
            self.space.free(former);
        }
        PageWrite { block, page }
    }

    /// The writes to these blocks have ended.
    pub fn write_done(&mut self, blocks: &[u64]) {
        self.pay_for_pages(blocks.len());
        for &block in blocks {
            let Some(id) = self.space.write_ended(block, &mut self.frames.spares) else { continue };
            if let Some(slot) = self.frames.find(id) {
                let frame = self.frames.get_mut(slot);
                frame.writing &= frame.block != block;
                self.frames.settle(slot);
            }
        }
    }

    /// The root of the last freeze is durable in its slot, and with it everything it names: blocks
    /// that neither root slot names become free.
    pub fn checkpoint_durable(&mut self) {
        self.space.checkpoint_durable();
    }
}

fn has_written_children(frame: &Frame) -> bool {
    let is_written = |slot| pointer_page::get(&frame.page, slot) != UNWRITTEN;
    frame.id.level == 0 || (0..FANOUT).all(is_written)
}
