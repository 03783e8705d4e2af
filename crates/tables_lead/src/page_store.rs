//! The page store: trees of pages that are never overwritten in place, behind one cache.
//!
//! A tree is a radix tree: leaves at level 0, inner pages of pointers above. A page in the cache
//! keeps its parent there (the parent counts its children), so the way up is always short and a
//! page that gets a new block finds its pointer. A page that has no block yet stands in its
//! parent as [`UNWRITTEN`]; it is dirty, so it is in the cache.
//!
//! ```text
//!   absent --page_mut--> dirty --freeze / clean_batch--> writing --write_done--> clean --> dropped
//!                          ^------------- page_mut (copied if still being written) --'
//! ```
//!
//! Invariants: what is dirty, pinned, being written or has children in the cache is never dropped;
//! a block is written once between two allocations; a page's block is freed only when the page
//! has another one or is gone.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use format::page::Page;
use format::pointer_page::{self, FANOUT};
use format::units::{BlockPtr, PageId, TreeId, TreeRoot};
use hashbrown::{HashMap, HashSet};

use crate::blocks::Blocks;
use crate::error::PageError;
use crate::hasher::PageHasher;
use crate::reach::ReachWalker;

/// Stands for a page that exists but has no block yet.
pub(crate) const UNWRITTEN: BlockPtr = BlockPtr::new(BlockPtr::BLOCKS_MAX - 1, 0);

/// Sizes of a page store.
#[derive(Copy, Clone, Debug)]
pub struct PageStoreOptions {
    /// Pages that the cache aims at.
    pub cache_pages: usize,
    /// Blocks of zone `tables`.
    pub tables_blocks: u64,
}

/// A page to be read from zone `tables`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PageRead {
    /// Which page.
    pub id: PageId,
    /// Where it is, and its tag.
    pub pointer: BlockPtr,
}

/// A page to be written to zone `tables`.
#[derive(Clone, Debug)]
pub struct PageWrite {
    /// Where.
    pub block: u64,
    /// What; it does not change any more.
    pub page: Arc<Page>,
}

/// Pages that an operation holds until it has run; give it back with [`PageStore::release_pins`].
#[derive(Default, Debug)]
#[must_use = "pins that are not given back hold their pages for ever"]
pub struct PinSet(Vec<(usize, u64)>);

/// Where the next leaf of a tree is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NextLeaf {
    /// This leaf exists.
    Found(u64),
    /// No leaf exists from there on.
    End,
    /// An inner page must be read first.
    Missing,
}

struct Frame {
    id: PageId,
    page: Arc<Page>,
    /// Where the page is on disk; 0 for nowhere yet.
    block: u64,
    dirty: bool,
    children: u32,
    pins: u32,
    referenced: Cell<bool>,
    /// Tells this life of the frame from others.
    epoch: u64,
}

/// All trees and the cache of their pages.
pub struct PageStore {
    options: PageStoreOptions,
    frames: Vec<Option<Frame>>,
    vacant: Vec<usize>,
    index: HashMap<PageId, usize, PageHasher>,
    trees: HashMap<TreeId, TreeRoot, PageHasher>,
    reading: HashSet<PageId, PageHasher>,
    damaged: HashMap<PageId, PageError, PageHasher>,
    /// Frames in the order in which they became dirty; some are clean again.
    dirtied: VecDeque<(usize, u64)>,
    dirty: usize,
    writing: HashSet<u64>,
    blocks: Blocks,
    hand: usize,
    epoch: u64,
}

impl PageStore {
    /// A store without trees whose blocks are all free.
    #[must_use]
    pub fn new(options: PageStoreOptions) -> Self {
        Self {
            options,
            frames: Vec::new(),
            vacant: Vec::new(),
            index: HashMap::default(),
            trees: HashMap::default(),
            reading: HashSet::default(),
            damaged: HashMap::default(),
            dirtied: VecDeque::new(),
            dirty: 0,
            writing: HashSet::new(),
            blocks: Blocks::new(options.tables_blocks),
            hand: 0,
            epoch: 0,
        }
    }

    /// Adds a tree as a root names it.
    pub fn add_tree(&mut self, tree: TreeId, root: TreeRoot) {
        self.trees.insert(tree, root);
    }

    /// Forgets a tree, which is empty.
    pub fn drop_tree(&mut self, tree: TreeId) {
        let root = self.trees.remove(&tree);
        debug_assert!(root.is_none_or(|root| root.depth == 0), "a tree is dropped when empty");
    }

    /// The tree's root as it is; complete after a freeze.
    #[must_use]
    pub fn tree_root(&self, tree: TreeId) -> TreeRoot {
        self.trees.get(&tree).copied().unwrap_or_default()
    }

    /// Takes over what is in use according to the roots.
    pub fn adopt_reach(&mut self, walker: ReachWalker) {
        self.blocks.adopt(walker.into_blocks());
    }

    fn frame(&self, at: usize) -> &Frame {
        #[expect(clippy::expect_used, reason = "the index names only frames that are in use")]
        self.frames[at].as_ref().expect("an indexed frame is in use")
    }

    fn frame_mut(&mut self, at: usize) -> &mut Frame {
        #[expect(clippy::expect_used, reason = "the index names only frames that are in use")]
        self.frames[at].as_mut().expect("an indexed frame is in use")
    }

    fn pin(&mut self, at: usize, pins: &mut PinSet) {
        let frame = self.frame_mut(at);
        frame.pins += 1;
        frame.referenced.set(true);
        pins.0.push((at, frame.epoch));
    }

    /// Lets go what an operation held.
    pub fn release_pins(&mut self, pins: PinSet) {
        for (at, epoch) in pins.0 {
            if let Some(Some(frame)) = self.frames.get_mut(at)
                && frame.epoch == epoch
            {
                frame.pins -= 1;
            }
        }
    }

    /// Makes sure that leaf `index` of `tree` can be used: true when it is here, or known to be
    /// absent with its whole path here. Otherwise the first missing page is pushed onto `reads`,
    /// unless it is being read already.
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
        if let Some(&at) = self.index.get(&PageId { tree, level: 0, index }) {
            self.pin(at, pins);
            return Ok(true);
        }
        let root = self.tree_root(tree);
        if root.depth == 0 || index >= leaves_under(root.depth) {
            return Ok(true);
        }
        let mut pointer = root.pointer;
        let mut parent = None;
        for level in (0..=root.depth).rev() {
            if pointer.is_none() {
                break;
            }
            let id = PageId { tree, level, index: index / leaves_under(level) };
            let Some(&at) = self.index.get(&id) else {
                self.begin_read(id, pointer, parent, reads)?;
                return Ok(false);
            };
            if level > 0 {
                let slot = slot_of(index, level);
                pointer = pointer_page::get(&self.frame(at).page, slot);
                parent = Some(at);
            }
        }
        if let Some(at) = parent {
            self.pin(at, pins);
        }
        Ok(true)
    }

    fn begin_read(
        &mut self,
        id: PageId,
        pointer: BlockPtr,
        parent: Option<usize>,
        reads: &mut Vec<PageRead>,
    ) -> Result<(), PageError> {
        if let Some(error) = self.damaged.get(&id) {
            return Err(*error);
        }
        if self.reading.insert(id) {
            if let Some(parent) = parent {
                self.frame_mut(parent).children += 1;
            }
            reads.push(PageRead { id, pointer });
        }
        Ok(())
    }

    /// A page that was read has come, or could not be read (`Err`).
    ///
    /// # Errors
    /// [`PageError`] when it is damaged; whoever wants it later is told again.
    pub fn page_arrived(
        &mut self,
        read: PageRead,
        bytes: Result<&[u8], ()>,
    ) -> Result<(), PageError> {
        if !self.reading.remove(&read.id) {
            return Ok(());
        }
        let PageRead { id, pointer } = read;
        let page = bytes.map_err(|()| None).and_then(|bytes| {
            let page = Page::from_bytes(bytes).map_err(Some)?;
            page.check(id, pointer.tag()).map_err(Some)?;
            Ok(page)
        });
        match page {
            Ok(page) => {
                self.insert(id, Arc::new(page), pointer.block());
                Ok(())
            }
            Err(cause) => {
                let error = PageError::new(id, pointer.block(), cause);
                self.damaged.insert(id, error);
                if let Some(parent) = self.parent_of(id) {
                    self.frame_mut(parent).children -= 1;
                }
                Err(error)
            }
        }
    }

    fn insert(&mut self, id: PageId, page: Arc<Page>, block: u64) -> usize {
        self.epoch += 1;
        let frame = Frame {
            id,
            page,
            block,
            dirty: false,
            children: 0,
            pins: 0,
            referenced: Cell::new(true),
            epoch: self.epoch,
        };
        let at = self.vacant.pop().unwrap_or(self.frames.len());
        if at == self.frames.len() {
            self.frames.push(Some(frame));
        } else {
            self.frames[at] = Some(frame);
        }
        self.index.insert(id, at);
        at
    }

    fn parent_of(&self, id: PageId) -> Option<usize> {
        let level = id.level + 1;
        let index = id.index / FANOUT as u64;
        self.index.get(&PageId { tree: id.tree, level, index }).copied()
    }

    /// The leaf, or None when it is absent. It must have been wanted.
    #[must_use]
    pub fn page(&self, tree: TreeId, index: u64) -> Option<&Page> {
        let at = *self.index.get(&PageId { tree, level: 0, index })?;
        let frame = self.frame(at);
        frame.referenced.set(true);
        Some(&frame.page)
    }

    /// The leaf, to be changed; made when it is absent. It must have been wanted.
    pub fn page_mut(&mut self, tree: TreeId, index: u64) -> &mut Page {
        let id = PageId { tree, level: 0, index };
        let at = match self.index.get(&id) {
            Some(&at) => at,
            None => self.make_leaf(id),
        };
        self.mark_dirty(at);
        let frame = self.frame_mut(at);
        frame.referenced.set(true);
        Arc::make_mut(&mut frame.page)
    }

    fn mark_dirty(&mut self, at: usize) {
        let frame = self.frame_mut(at);
        if !frame.dirty {
            frame.dirty = true;
            let epoch = frame.epoch;
            self.dirty += 1;
            self.dirtied.push_back((at, epoch));
        }
    }

    fn make_leaf(&mut self, id: PageId) -> usize {
        self.grow_to(id.tree, id.index);
        let depth = self.tree_root(id.tree).depth;
        let mut parent = None;
        let mut made = 0;
        for level in (0..=depth).rev() {
            let id = PageId { tree: id.tree, level, index: id.index / leaves_under(level) };
            made = match self.index.get(&id) {
                Some(&at) => at,
                None => self.make_page(id, parent),
            };
            parent = Some(made);
        }
        made
    }

    fn make_page(&mut self, id: PageId, parent: Option<usize>) -> usize {
        let at = self.insert(id, Arc::new(Page::empty(id)), 0);
        self.mark_dirty(at);
        let known = match parent {
            None => self.tree_root(id.tree).pointer,
            Some(parent) => {
                pointer_page::get(&self.frame(parent).page, (id.index % FANOUT as u64) as usize)
            }
        };
        assert!(known.is_none(), "{id} is on disk and was not wanted before it was changed");
        self.point_to(id, UNWRITTEN);
        if let Some(parent) = parent {
            self.frame_mut(parent).children += 1;
        }
        at
    }

    /// Adds levels on top until leaf `index` fits.
    fn grow_to(&mut self, tree: TreeId, index: u64) {
        loop {
            let root = self.tree_root(tree);
            if root.depth > 0 && index < leaves_under(root.depth) {
                return;
            }
            let depth = root.depth + 1;
            self.trees.insert(tree, TreeRoot { pointer: BlockPtr::NONE, depth });
            if root.depth > 0 {
                let top = self.make_page(PageId { tree, level: depth, index: 0 }, None);
                let below = PageId { tree, level: root.depth, index: 0 };
                let page = Arc::make_mut(&mut self.frame_mut(top).page);
                pointer_page::set(page, 0, root.pointer);
                if self.index.contains_key(&below) || self.reading.contains(&below) {
                    self.frame_mut(top).children += 1;
                }
            }
        }
    }

    /// Sets the pointer to a page, in its parent or in the tree's root.
    fn point_to(&mut self, id: PageId, pointer: BlockPtr) {
        if self.tree_root(id.tree).depth == id.level {
            if let Some(root) = self.trees.get_mut(&id.tree) {
                root.pointer = pointer;
            }
            return;
        }
        if let Some(parent) = self.parent_of(id) {
            self.mark_dirty(parent);
            let page = Arc::make_mut(&mut self.frame_mut(parent).page);
            pointer_page::set(page, (id.index % FANOUT as u64) as usize, pointer);
        }
    }

    /// Removes a leaf, and inner pages that point nowhere any more. It must have been wanted.
    pub fn remove_page(&mut self, tree: TreeId, index: u64) {
        let mut id = PageId { tree, level: 0, index };
        while let Some(&at) = self.index.get(&id) {
            let parent = self.parent_of(id);
            self.point_to(id, BlockPtr::NONE);
            self.discard(at);
            let Some(parent) = parent else {
                self.trees.insert(tree, TreeRoot::default());
                return;
            };
            self.frame_mut(parent).children -= 1;
            if pointer_page::used(&self.frame(parent).page) > 0 {
                return;
            }
            id = self.frame(parent).id;
        }
    }

    /// Takes a page that no pointer names out of the cache.
    fn discard(&mut self, at: usize) {
        let Some(frame) = self.frames[at].take() else { return };
        self.index.remove(&frame.id);
        self.vacant.push(at);
        self.dirty -= usize::from(frame.dirty);
        self.free_block(frame.block);
    }

    fn free_block(&mut self, block: u64) {
        if block != 0 {
            let in_flight = self.writing.contains(&block);
            self.blocks.free(block, in_flight);
        }
    }

    /// The first leaf from `from` on that exists; absent subtrees cost nothing.
    ///
    /// # Errors
    /// [`PageError`] when an inner page on the way is damaged.
    pub fn next_leaf(
        &mut self,
        tree: TreeId,
        from: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<NextLeaf, PageError> {
        let root = self.tree_root(tree);
        if root.depth == 0 || from >= leaves_under(root.depth) {
            return Ok(NextLeaf::End);
        }
        let top = PageId { tree, level: root.depth, index: 0 };
        self.next_leaf_under(top, root.pointer, None, from, reads)
    }

    fn next_leaf_under(
        &mut self,
        id: PageId,
        pointer: BlockPtr,
        parent: Option<usize>,
        from: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<NextLeaf, PageError> {
        if id.level == 0 {
            return Ok(NextLeaf::Found(id.index));
        }
        let Some(&at) = self.index.get(&id) else {
            self.begin_read(id, pointer, parent, reads)?;
            return Ok(NextLeaf::Missing);
        };
        let level = id.level - 1;
        let first = id.index * FANOUT as u64;
        let begin = (from / leaves_under(level)).max(first);
        for index in begin..first + FANOUT as u64 {
            let pointer = pointer_page::get(&self.frame(at).page, (index - first) as usize);
            if pointer.is_none() {
                continue;
            }
            let child = PageId { tree: id.tree, level, index };
            match self.next_leaf_under(child, pointer, Some(at), from, reads)? {
                NextLeaf::End => {}
                found => return Ok(found),
            }
        }
        Ok(NextLeaf::End)
    }

    /// Gives every dirty page of all trees but the catalog a block, children before parents, and
    /// returns what is to be written. The live pages go on changing.
    ///
    /// # Errors
    /// [`PageError::NoBlocks`] when the blocks run out, which reserves rule out.
    pub fn freeze_trees(&mut self, generation: u64) -> Result<Vec<PageWrite>, PageError> {
        self.blocks.begin_freeze();
        self.freeze_where(generation, |tree| tree != TreeId::CATALOG)
    }

    /// The same for the catalog, whose leaves now name the other trees' new roots. This ends the
    /// freeze.
    ///
    /// # Errors
    /// As [`PageStore::freeze_trees`].
    pub fn freeze_catalog(&mut self, generation: u64) -> Result<Vec<PageWrite>, PageError> {
        let writes = self.freeze_where(generation, |tree| tree == TreeId::CATALOG)?;
        self.blocks.end_freeze();
        Ok(writes)
    }

    fn freeze_where(
        &mut self,
        generation: u64,
        of: impl Fn(TreeId) -> bool,
    ) -> Result<Vec<PageWrite>, PageError> {
        let mut writes = Vec::new();
        for level in 0..=TreeRoot::DEPTH_MAX {
            let chosen = |frame: &Frame| frame.dirty && frame.id.level == level && of(frame.id.tree);
            let mut pages: Vec<(PageId, usize)> = self
                .dirtied
                .iter()
                .filter_map(|&(at, epoch)| self.dirty_frame(at, epoch))
                .filter(|&at| chosen(self.frame(at)))
                .map(|at| (self.frame(at).id, at))
                .collect();
            pages.sort_unstable();
            for (_, at) in pages {
                writes.push(self.relocate(at, generation)?);
            }
        }
        self.forget_clean();
        Ok(writes)
    }

    fn dirty_frame(&self, at: usize, epoch: u64) -> Option<usize> {
        let frame = self.frames.get(at)?.as_ref()?;
        (frame.epoch == epoch && frame.dirty).then_some(at)
    }

    fn forget_clean(&mut self) {
        let mut dirtied = std::mem::take(&mut self.dirtied);
        dirtied.retain(|&(at, epoch)| self.dirty_frame(at, epoch).is_some());
        self.dirtied = dirtied;
    }

    /// Gives a dirty page a fresh block.
    fn relocate(&mut self, at: usize, generation: u64) -> Result<PageWrite, PageError> {
        let id = self.frame(at).id;
        let block = self.blocks.allocate().ok_or(PageError::NoBlocks { id })?;
        let frame = self.frame_mut(at);
        let crc = Arc::make_mut(&mut frame.page).seal(generation);
        let page = Arc::clone(&frame.page);
        let old_block = std::mem::replace(&mut frame.block, block);
        frame.dirty = false;
        self.dirty -= 1;
        self.free_block(old_block);
        self.writing.insert(block);
        self.point_to(id, BlockPtr::new(block, crc));
        Ok(PageWrite { block, page })
    }

    /// Blocks that have been written.
    pub fn write_done(&mut self, blocks: &[u64]) {
        for block in blocks {
            self.writing.remove(block);
        }
    }

    /// The newest root is durable: what neither root slot names becomes free.
    pub fn checkpoint_durable(&mut self) {
        self.blocks.checkpoint_durable();
    }

    /// Gives up to `max` pages, those longest dirty first, blocks before their checkpoint, so that
    /// they can leave the cache. Pages with children in the cache stay.
    ///
    /// # Errors
    /// [`PageError::NoBlocks`] when the blocks run out.
    pub fn clean_batch(&mut self, max: usize, generation: u64) -> Result<Vec<PageWrite>, PageError> {
        let mut writes = Vec::new();
        let mut kept = VecDeque::new();
        for _ in 0..self.dirtied.len() {
            if writes.len() == max {
                break;
            }
            let Some((at, epoch)) = self.dirtied.pop_front() else { break };
            let Some(at) = self.dirty_frame(at, epoch) else { continue };
            let frame = self.frame(at);
            if frame.children > 0 || frame.pins > 0 {
                kept.push_back((at, epoch));
                continue;
            }
            writes.push(self.relocate(at, generation)?);
        }
        self.dirtied.append(&mut kept);
        writes.sort_unstable_by_key(|write| write.block);
        Ok(writes)
    }

    /// Drops cold clean pages until the cache has its size, or nothing can be dropped.
    pub fn shrink(&mut self) {
        for _ in 0..2 * self.frames.len() {
            if !self.over_budget() {
                return;
            }
            self.hand = if self.hand + 1 >= self.frames.len() { 0 } else { self.hand + 1 };
            self.drop_if_cold(self.hand);
        }
    }

    fn drop_if_cold(&mut self, at: usize) {
        let Some(Some(frame)) = self.frames.get(at) else { return };
        let held = frame.dirty || frame.pins > 0 || frame.children > 0;
        if held || self.writing.contains(&frame.block) || frame.referenced.replace(false) {
            return;
        }
        let id = frame.id;
        self.frames[at] = None;
        self.index.remove(&id);
        self.vacant.push(at);
        if let Some(parent) = self.parent_of(id) {
            self.frame_mut(parent).children -= 1;
        }
    }

    /// Whether the cache holds more pages than it should.
    #[must_use]
    pub fn over_budget(&self) -> bool {
        self.index.len() > self.options.cache_pages
    }

    /// Pages that have changed since they were last given a block.
    #[must_use]
    pub fn dirty_pages(&self) -> usize {
        self.dirty
    }

    /// Bytes of pages in the cache.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        (self.index.len() * format::BLOCK_BYTES) as u64
    }

    /// Blocks that can be allocated.
    #[must_use]
    pub fn free_blocks(&self) -> u64 {
        self.blocks.free_blocks()
    }

    /// Blocks that become free with coming checkpoints.
    #[must_use]
    pub fn quarantined_blocks(&self) -> u64 {
        self.blocks.quarantined_blocks()
    }

    /// Blocks in use, quarantined ones included.
    #[must_use]
    pub fn used_blocks(&self) -> u64 {
        self.options.tables_blocks - self.blocks.free_blocks()
    }
}

/// Leaves under one page of `level`.
fn leaves_under(level: u8) -> u64 {
    (FANOUT as u64).saturating_pow(u32::from(level))
}

/// Slot, in a page of `level`, on the way to leaf `index`.
fn slot_of(index: u64, level: u8) -> usize {
    (index / leaves_under(level - 1) % FANOUT as u64) as usize
}
