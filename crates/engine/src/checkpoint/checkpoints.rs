//! The running checkpoint and what the last ones left.

use std::collections::VecDeque;

use format::BLOCK_BYTES;
use format::root::Root;
use mutants::mutant;
use tables::PageWrite;

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

/// How far a checkpoint has come.
pub(crate) enum Phase {
    Idle,
    Pages { writes: VecDeque<PageWrite> },
    PagesOut { mark: u64 },
    TablesSync,
    Durable,
    Root,
    RootSync,
    Label,
}

/// The running checkpoint and what the last ones left.
pub(crate) struct Checkpoints {
    pub(crate) phase: Phase,
    /// The root being made.
    pub(crate) next_root: Option<Box<Root>>,
    /// What the phase waits for has ended.
    pub(crate) ended: bool,
    /// Somebody wants one soon.
    pub(crate) asked: bool,
    /// The last root, of a close, is asked for: nothing may follow it.
    pub(crate) last_is_asked: bool,
    /// That root is durable.
    pub(crate) clean: bool,
    /// The newest durable root, as its slot has it. A replay begins where its journal does, and
    /// free PBNs before its `free_tail` may be handed out.
    pub(crate) newest: Box<Root>,
    /// A scrub writes to the superblock: the next root waits, so that not both slots are torn.
    pub(crate) superblock_is_mended: bool,
    /// Dirty pages that a checkpoint always finds blocks for, and those that it may have when
    /// there are blocks enough.
    pub(crate) dirty_pages_sure: usize,
    pub(crate) dirty_pages_max: usize,
    pub(crate) pressure_rounds: u32,
    /// Checkpoints since which a merge has lacked blocks.
    pub(crate) merge_rounds: u32,
}

impl Checkpoints {
    pub(crate) fn new(root: &Root, dirty_pages_sure: usize, dirty_pages_max: usize) -> Self {
        Self {
            phase: Phase::Idle,
            next_root: None,
            ended: false,
            asked: false,
            last_is_asked: false,
            clean: false,
            newest: Box::new(root.clone()),
            superblock_is_mended: false,
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

    /// Asks for the last, clean checkpoint; true once it is durable.
    pub(crate) fn close(&mut self) -> bool {
        self.last_is_asked = true;
        self.clean
    }

    /// Whether one has been frozen and is not durable yet: the next has to wait for it.
    pub(crate) fn is_under_way(&self) -> bool {
        !matches!(self.phase, Phase::Idle)
    }

    /// Whether a root is on its way to its slot, or there and not the newest yet.
    pub(crate) fn is_writing_root(&self) -> bool {
        matches!(self.phase, Phase::Root | Phase::RootSync | Phase::Label)
    }

    /// The sync or write that the phase waits for has ended.
    pub(crate) fn io_ended(&mut self) {
        self.ended = true;
    }

    /// The generation of the next root.
    pub(crate) fn next_generation(&self) -> u64 {
        self.newest.generation + 1
    }

    /// Table blocks that are kept so that trims, collection and checkpoints always go on.
    pub(crate) fn reserve_blocks(&self) -> u64 {
        blocks_kept(self.dirty_pages_sure)
    }

    /// Blocks that pages may still become dirty for: free now, or when the checkpoint on its way
    /// has ended, beside those that the next freeze needs.
    pub(crate) fn room_blocks(&self, state: &State) -> u64 {
        let coming = if self.is_under_way() { state.store.coming_blocks() } else { 0 };
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

    /// PBNs in the free queue that may be handed out: a root without their entries is durable.
    pub(crate) fn free_pbns(&self, state: &State) -> u64 {
        let early = mutant!(ReusesPbnAtOnce);
        let limit = if early { state.free.tail() } else { self.newest.free_tail };
        limit.saturating_sub(state.free.head())
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
        let blocks = if self.is_under_way() { free + coming } else { free };
        let most = (2 * self.dirty_pages_sure).max(self.dirty_pages_max.min(blocks));
        state.store.dirty_pages() > most
    }

    /// Whether so many pages can leave the cache without taking blocks that are always kept.
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
