//! Space: when a block may be written again.
//!
//! There are two root slots, and root `g` goes into the slot of root `g - 2`. A block that a live
//! page leaves may be named by the newest root and by older ones; it waits in *quarantine*:
//!
//! ```text
//! freed --freeze g--> frozen --root g durable--> aged --root g + 1 durable--> free
//! ```
//!
//! When root `g + 1` is durable, the slots hold roots `g` and `g + 1`, and neither names a block
//! that was freed before freeze `g`. Two blocks are treated apart:
//!
//! - A *fresh* block was given to a page between two freezes (by cleaning). Freed before the second
//!   of them, no root ever named it: it is free at once.
//! - No block is free while a write to it is in flight: the late write would hit its next owner.
//!
//! Versions of a volume share pages, so more than one pointer may lead to a block. Further pointers
//! are counted, in memory only: an opening meets every pointer anyway ([`super::ReachWalker`]). A
//! block is freed with its last pointer. What lies below a shared page is shared without being
//! counted, until the page above is made two ([`super::sharing`]).

use format::units::PageId;
use mutants::mutant;

use super::blocks::Blocks;
use super::frames::PageMap;
use super::page_memory::{PageMemory, SharedPage};
use super::spares::Spares;

struct Write {
    id: PageId,
    /// What is written, if another tree may want to read it meanwhile.
    page: Option<SharedPage>,
    /// The block is to be free when the write has ended.
    freed: bool,
}

/// The blocks of zone tables and what keeps them from being used again.
pub(super) struct Space {
    blocks: Blocks,
    total: u64,
    freed: Vec<u64>,
    frozen: Vec<u64>,
    aged: Vec<u64>,
    /// Blocks in none of the lists, to be free when their write has ended.
    late: u64,
    /// Given to pages since the last freeze.
    fresh: PageMap<u64, ()>,
    writes: PageMap<u64, Write>,
    /// Pointers to a block beyond the first.
    further: PageMap<u64, u32>,
}

impl Space {
    pub(super) fn new(tables_blocks: u64) -> Self {
        Self {
            blocks: Blocks::new(tables_blocks),
            total: tables_blocks.saturating_sub(1),
            freed: Vec::new(),
            frozen: Vec::new(),
            aged: Vec::new(),
            late: 0,
            fresh: PageMap::default(),
            writes: PageMap::default(),
            further: PageMap::default(),
        }
    }

    /// The zone has so many blocks now, and no fewer than before.
    pub(super) fn grow(&mut self, tables_blocks: u64) {
        self.blocks.grow(self.total + 1, tables_blocks);
        self.total = tables_blocks - 1;
    }

    /// One pointer more leads to `block`.
    pub(super) fn share(&mut self, block: u64) {
        *self.further.entry(block).or_default() += 1;
    }

    /// Opening: so many pointers beyond the first lead to `block`.
    pub(super) fn mark_shared(&mut self, block: u64, further: u32) {
        self.further.insert(block, further);
    }

    /// Whether more than one pointer leads to `block`.
    pub(super) fn is_shared(&self, block: u64) -> bool {
        self.further.contains_key(&block)
    }

    /// Whether any block is shared.
    pub(super) fn any_shared(&self) -> bool {
        !self.further.is_empty()
    }

    /// Blocks to which more than one pointer leads.
    pub(super) fn shared_blocks(&self) -> u64 {
        self.further.len() as u64
    }

    /// Takes one of several pointers from a block; false when there was but one.
    fn unshare(&mut self, block: u64) -> bool {
        let Some(further) = self.further.get_mut(&block) else { return false };
        *further -= 1;
        if *further == 0 {
            self.further.remove(&block);
        }
        true
    }

    /// What is being written to `block` for a map.
    pub(super) fn set_page(&mut self, block: u64, page: &SharedPage) {
        if let Some(write) = self.writes.get_mut(&block) {
            write.page = Some(SharedPage::clone(page));
        }
    }

    /// The page of a map that a write in flight brings to `block`.
    pub(super) fn page_on_its_way(&self, block: u64) -> Option<SharedPage> {
        self.writes.get(&block)?.page.clone()
    }

    /// A block for `id`, to be written now, as part of a checkpoint.
    pub(super) fn allocate(&mut self, id: PageId) -> Option<u64> {
        let block = self.blocks.allocate()?;
        self.writes.insert(block, Write { id, page: None, freed: false });
        Some(block)
    }

    /// As [`Self::allocate`], of no block that a hit of a MiB takes with any of `former`.
    pub(super) fn allocate_far_from(&mut self, former: &[u64], id: PageId) -> Option<u64> {
        let block = self.blocks.allocate_far_from(former)?;
        self.writes.insert(block, Write { id, page: None, freed: false });
        Some(block)
    }

    /// A block that holds no page.
    pub(super) fn take_block(&mut self) -> Option<u64> {
        self.blocks.allocate()
    }

    /// A block for `id`, to be written now, ahead of the next checkpoint.
    pub(super) fn allocate_fresh(&mut self, id: PageId) -> Option<u64> {
        let block = self.allocate(id)?;
        self.fresh.insert(block, ());
        Some(block)
    }

    /// A live pointer to `block` goes; with the last one a live page leaves it.
    pub(super) fn free(&mut self, block: u64) {
        if self.unshare(block) && !mutant!(FreesSharedBlock) {
            return;
        }
        if self.fresh.remove(&block).is_some() || mutant!(ReusesBlockAtOnce) {
            self.release(block);
        } else {
            self.freed.push(block);
        }
    }

    /// Nothing that is durable names `block`.
    pub(super) fn release(&mut self, block: u64) {
        match self.writes.get_mut(&block) {
            Some(write) => {
                write.freed = true;
                self.late += 1;
            }
            None => self.blocks.release(block),
        }
    }

    /// A write has ended; the page that it was for, unless it has left the block.
    pub(super) fn write_ended(&mut self, block: u64, spares: &mut Spares) -> Option<PageId> {
        let write = self.writes.remove(&block)?;
        write.page.into_iter().for_each(|page| spares.put(PageMemory::Shared(page)));
        if write.freed {
            self.late -= 1;
            self.blocks.release(block);
            return None;
        }
        Some(write.id)
    }

    /// Whether a write to `block` is in flight.
    pub(super) fn is_being_written(&self, block: u64) -> bool {
        self.writes.contains_key(&block)
    }

    /// All trees are frozen: what is live now is named by the coming root.
    pub(super) fn frozen(&mut self) {
        self.fresh.clear();
        self.frozen.append(&mut self.freed);
    }

    /// The root of the last freeze is durable.
    pub(super) fn checkpoint_durable(&mut self) {
        if mutant!(ForgetsOlderBlocks) {
            self.aged.append(&mut self.frozen);
        }
        for block in std::mem::replace(&mut self.aged, std::mem::take(&mut self.frozen)) {
            self.release(block);
        }
    }

    /// Opening: the newest root names `block`.
    pub(super) fn mark_used(&mut self, block: u64) {
        self.blocks.take(block);
    }

    /// Opening: only the older root names `block`; the next checkpoint replaces it.
    pub(super) fn mark_aged(&mut self, block: u64) {
        if self.blocks.take(block) {
            self.aged.push(block);
        }
    }

    pub(super) fn free_blocks(&self) -> u64 {
        self.blocks.free()
    }

    pub(super) fn coming_blocks(&self) -> u64 {
        self.aged.len() as u64
    }

    pub(super) fn quarantined_blocks(&self) -> u64 {
        (self.freed.len() + self.frozen.len() + self.aged.len()) as u64 + self.late
    }

    pub(super) fn used_blocks(&self) -> u64 {
        self.total - self.free_blocks() - self.quarantined_blocks()
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        let waiting = self.freed.capacity() + self.frozen.capacity() + self.aged.capacity();
        let shared = self.further.capacity() * size_of::<(u64, u32)>();
        self.blocks.resident_bytes() + (waiting * size_of::<u64>() + shared) as u64
    }
}
