//! Cleaning: cold dirty pages are written ahead of the checkpoint, so that they can be dropped.
//!
//! The queue of dirty pages is gone through from the oldest change on; a page that was wanted since
//! it was last looked at, or is held, or has children in the cache, goes back to its end. Blocks
//! given out here are fresh: a page that is changed again before the checkpoint gives its block
//! back at once.
//!
//! A replay cleans a whole tree before it copies it ([`PageStore::clean_tree`]): live, the freeze
//! before the copy had, and what had a block was shared.

use format::units::TreeId;

use super::page_io::PageWrite;
use super::page_store::PageStore;
use super::slot::Slot;

/// Dirty pages that are looked at for each one that is to be cleaned.
const LOOKS_PER_PAGE: usize = 4;

/// Blocks that cleaning leaves beside those that a freeze of all dirty pages needs.
const BLOCKS_LEFT_MIN: u64 = 64;

impl PageStore {
    /// Assigns blocks to at most `pages_max` cold dirty pages; none when blocks are scarce. The
    /// writes come in ascending order of blocks.
    #[must_use]
    pub fn clean_batch(&mut self, pages_max: usize) -> Vec<PageWrite> {
        let mut cold = Vec::new();
        let looks = (pages_max.saturating_mul(LOOKS_PER_PAGE)).min(self.dirty_pages());
        for _ in 0..looks {
            if cold.len() == pages_max {
                break;
            }
            let Some(slot) = self.frames.pop_dirty() else { break };
            if self.is_cold(slot) {
                cold.push(slot);
            } else {
                self.frames.put_back_dirty(slot);
            }
        }
        self.sort_for_writing(&mut cold);
        let mut writes: Vec<PageWrite> =
            cold.into_iter().filter_map(|slot| self.clean(slot)).collect();
        writes.sort_unstable_by_key(|write| write.block);
        writes
    }

    /// Gives every dirty page of a tree a block, so that a copy of the tree shares it; what finds
    /// none stays dirty. The writes come in ascending order of blocks.
    #[must_use]
    pub fn clean_tree(&mut self, tree: TreeId) -> Vec<PageWrite> {
        let mut due = self.take_dirty(|of| of == tree);
        self.sort_for_writing(&mut due);
        let mut writes = Vec::with_capacity(due.len());
        let mut left = due.into_iter();
        for slot in left.by_ref() {
            let Some(block) = self.space.allocate_fresh(self.frames.get(slot).id) else {
                self.frames.put_back_dirty(slot);
                break;
            };
            writes.push(self.place(slot, block, self.generation_next));
        }
        // What is above a page without a block has none either.
        left.for_each(|slot| self.frames.put_back_dirty(slot));
        writes.sort_unstable_by_key(|write| write.block);
        writes
    }

    fn is_cold(&self, slot: Slot) -> bool {
        let frame = self.frames.get(slot);
        // Its own mark: eviction's is not cleaning's to take.
        !frame.take_referenced() && frame.pins == 0 && frame.children == 0
    }

    fn clean(&mut self, slot: Slot) -> Option<PageWrite> {
        let id = self.frames.get(slot).id;
        // A freeze writes the dirty pages; it must always find its blocks, and those of the pages
        // that become dirty until then.
        let reserve = 2 * self.dirty_pages() as u64 + BLOCKS_LEFT_MIN;
        if self.free_blocks() <= reserve {
            self.frames.put_back_dirty(slot);
            return None;
        }
        let Some(block) = self.space.allocate_fresh(id) else {
            self.frames.put_back_dirty(slot);
            return None;
        };
        Some(self.place(slot, block, self.generation_next))
    }
}
