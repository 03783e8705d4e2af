//! Room of the tables: blocks that checkpoints need, set free, and may be asked for.

use format::BLOCK_BYTES;

use crate::state::State;
use crate::volumes::versions::PieceMax;

/// Checkpoints without relief after which space will not come.
const PRESSURE_ROUNDS_MAX: u32 = 3;

/// More blocks than this are not kept free for a checkpoint.
const DIRTY_PAGES_SURE_MAX: usize = 1024;

/// Dirty pages that are always certain of their blocks: no more than the tables' file can take
/// three times over, and no more than are worth keeping that much free.
pub(crate) fn dirty_pages_sure(tables_bytes: u64, cache_pages: usize) -> usize {
    let tables_blocks = (tables_bytes / BLOCK_BYTES as u64) as usize;
    (cache_pages / 4).min(tables_blocks / 16).min(DIRTY_PAGES_SURE_MAX)
}

/// Table blocks that are kept so that trims, collection and checkpoints always go on: what three
/// intervals may hold beside the live pages.
pub(crate) fn blocks_kept(dirty_pages_sure: usize) -> u64 {
    3 * dirty_pages_sure as u64 + 64
}

/// When a checkpoint is wanted, and how many pages may be dirty until then.
pub(crate) struct TableRoom {
    /// Somebody wants a checkpoint soon.
    pub(crate) asked: bool,
    /// The last one, of a close, is asked for: nothing may follow it.
    pub(crate) last_is_asked: bool,
    /// One has been frozen and is not durable yet: the next has to wait for it.
    pub(crate) is_under_way: bool,
    /// Dirty pages that a checkpoint always finds blocks for, and those that it may have when
    /// there are blocks enough.
    pub(crate) dirty_pages_sure: usize,
    pub(crate) dirty_pages_max: usize,
    /// Checkpoints since which somebody has waited for space.
    pub(crate) pressure_rounds: u32,
    /// Checkpoints since which a merge has lacked blocks.
    pub(crate) merge_rounds: u32,
}

impl TableRoom {
    pub(crate) fn new(dirty_pages_sure: usize, dirty_pages_max: usize) -> Self {
        Self {
            asked: false,
            last_is_asked: false,
            is_under_way: false,
            dirty_pages_sure,
            dirty_pages_max,
            pressure_rounds: 0,
            merge_rounds: 0,
        }
    }

    /// A checkpoint is wanted soon.
    pub(crate) fn ask(&mut self) {
        self.asked = true;
    }

    /// Table blocks that are kept so that trims, collection and checkpoints always go on.
    pub(crate) fn reserve_blocks(&self) -> u64 {
        blocks_kept(self.dirty_pages_sure)
    }

    /// Blocks that pages may still become dirty for: free now, or when the checkpoint on its way
    /// has ended, beside those that the next freeze needs.
    pub(crate) fn room_blocks(&self, state: &State) -> u64 {
        let coming = if self.is_under_way { state.store.coming_blocks() } else { 0 };
        (state.store.free_blocks() + coming).saturating_sub(state.pages_to_freeze())
    }

    /// The most of a piece of an unmap or of a deletion. A leaf may name chunks of 512 pages, and a
    /// piece goes on from twice [`Self::dirty_pages_sure`]: from 900 of those on, all that finds
    /// blocks among those that are kept.
    pub(crate) fn most_of_piece(&self) -> PieceMax {
        PieceMax { pages: self.dirty_pages_sure / 2, reads: usize::MAX }
    }

    /// Whether the next freeze needs more blocks than are free, and another root sets some free.
    pub(crate) fn lacks_blocks_that_come(&self, state: &State) -> bool {
        state.store.coming_blocks() > 0 && state.pages_to_freeze() > state.store.free_blocks()
    }

    /// Whether further checkpoints may still set blocks free for a merge.
    pub(crate) fn merge_relief_may_come(&self) -> bool {
        self.merge_rounds < PRESSURE_ROUNDS_MAX
    }

    /// Whether further checkpoints may still set space free.
    pub(crate) fn relief_may_come(&self) -> bool {
        self.pressure_rounds < PRESSURE_ROUNDS_MAX
    }

    /// Space has come.
    pub(crate) fn relieved(&mut self) {
        self.pressure_rounds = 0;
        self.merge_rounds = 0;
    }

    /// Dirty pages that start a checkpoint. The longer they wait, the more changes share the
    /// writing of a page, so they wait as long as memory and blocks allow. The checkpoint takes a
    /// block for each, and gives back those that the one before replaced; what becomes dirty
    /// while it is written has to find as many again.
    pub(crate) fn dirty_pages_due(&self, state: &State) -> usize {
        let (free, coming) = self.blocks(state);
        self.dirty_pages_sure.max(self.dirty_pages_max.min(free.min((free + coming) / 2)))
    }

    /// Whether writers must wait for a checkpoint: what is dirty has to find blocks with the next.
    pub(crate) fn tables_are_behind(&self, state: &State) -> bool {
        let (free, coming) = self.blocks(state);
        let blocks = if self.is_under_way { free + coming } else { free };
        let most = (2 * self.dirty_pages_sure).max(self.dirty_pages_max.min(blocks));
        state.store.dirty_pages() > most
    }

    /// Whether this number of pages can leave the cache and take no block that is always kept.
    pub(crate) fn has_blocks_for(&self, pages: usize, state: &State) -> bool {
        self.blocks(state).0 >= pages
    }

    /// Blocks that are free beside what is always kept and what filters take at the next freeze,
    /// and those that the next durable root, or the one on its way, sets free.
    fn blocks(&self, state: &State) -> (usize, usize) {
        let of = |blocks: u64| usize::try_from(blocks).unwrap_or(usize::MAX / 4);
        let kept = self.reserve_blocks() + state.hash.filter_pages_to_store();
        let free = state.store.free_blocks().saturating_sub(kept);
        (of(free), of(state.store.coming_blocks()))
    }
}
