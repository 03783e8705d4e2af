//! One plane: its blocks, which of them are empty, and the one that is being written.
//!
//! A block is empty, then written page by page, then full; once enough of its pages are garbage it
//! is collected: what lives moves to a fresh block, and it is erased. At least one block is always
//! empty, so a collection can always begin. Which pages live is told from outside.

use std::collections::VecDeque;

/// Blocks that are kept empty; with fewer a block is collected for each that is begun.
const EMPTY_MIN: usize = 2;

/// A block that has been written to.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// Whose content each page holds, in the order in which they were written.
    pub(super) slots: Vec<u32>,
    /// Pages that are referred to.
    pub(super) live: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Plane {
    /// Those that have been opened ever; the others of `blocks_max` are empty.
    pub(super) blocks: Vec<Block>,
    /// In the order in which they were erased.
    erased: VecDeque<u32>,
    open: Option<u32>,
    blocks_max: u32,
    pages: u32,
}

/// What has to be done before a page can be written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// The open block has some.
    Open,
    /// This block has to be collected.
    Collect(u32),
    /// There is no garbage and no empty block to spare.
    None,
}

impl Plane {
    pub(super) fn new(blocks: u32, pages: u32) -> Self {
        let (blocks_max, erased) = (blocks, VecDeque::new());
        Self { blocks: Vec::new(), erased, open: None, blocks_max, pages }
    }

    /// Sees to it that the open block has room, if that is possible without a collection.
    pub(super) fn make_room(&mut self) -> Room {
        if self.open_has_room() {
            return Room::Open;
        }
        if self.empty() > EMPTY_MIN {
            self.open = self.take_empty();
            return Room::Open;
        }
        match self.victim() {
            Some(victim) => Room::Collect(victim),
            None if self.empty() > 1 => {
                self.open = self.take_empty();
                Room::Open
            }
            None => Room::None,
        }
    }

    /// Takes everything out of a block, opens an empty one, and erases the block. Slots that live
    /// are to be written to the open block, which has room for all of them.
    pub(super) fn collect(&mut self, victim: u32) -> Vec<u32> {
        self.open = self.take_empty();
        self.erased.push_back(victim);
        std::mem::take(&mut self.blocks[victim as usize]).slots
    }

    /// Writes a living page to the open block; where it is.
    pub(super) fn append(&mut self, slot: u32) -> Option<(u32, u32)> {
        let open = self.open.filter(|_| self.open_has_room())?;
        let block = &mut self.blocks[open as usize];
        block.slots.push(slot);
        block.live += 1;
        Some((open, block.slots.len() as u32 - 1))
    }

    fn empty(&self) -> usize {
        self.blocks_max as usize - self.blocks.len() + self.erased.len()
    }

    fn take_empty(&mut self) -> Option<u32> {
        if self.blocks.len() < self.blocks_max as usize {
            self.blocks.push(Block::default());
            return Some(self.blocks.len() as u32 - 1);
        }
        self.erased.pop_front()
    }

    fn open_has_room(&self) -> bool {
        self.open.is_some_and(|open| self.blocks[open as usize].slots.len() < self.pages as usize)
    }

    /// The full block with the fewest living pages, if there is garbage in it.
    fn victim(&self) -> Option<u32> {
        let full = (0..).zip(&self.blocks).filter(|(_, block)| {
            block.slots.len() == self.pages as usize && block.live < self.pages
        });
        full.min_by_key(|(number, block)| (block.live, *number)).map(|(number, _)| number)
    }
}
