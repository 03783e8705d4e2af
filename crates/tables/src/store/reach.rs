//! Opening: which blocks the roots name.
//!
//! The walker goes down from the roots of all trees and marks every block it meets. It reads inner
//! pages only; of a leaf only the block is marked. The leaves of the catalog are handed to the
//! engine, which reads them and adds the volumes' maps while the walk goes on.
//!
//! First everything the newest root names is walked, then what the older one names. A page never
//! changes in its block, so what lies below a block that was met already has been met too: the
//! older root costs only what differs. Blocks that only it names are kept until the next checkpoint
//! takes its slot.

use std::collections::BTreeMap;

use format::pointer_page::{self, FANOUT};
use format::units::{BlockPtr, PageId, TreeId, TreeRoot};
use hashbrown::HashSet;

use super::page_io::{PageRead, checked_page};
use super::page_store::PageStore;
use crate::error::PageError;

const WORD_BLOCKS: u64 = 64;

/// Walks trees without a cache and without I/O of its own.
pub struct ReachWalker {
    pub(super) tables_blocks: u64,
    /// Bit set: met.
    words: Vec<u64>,
    /// Met only from the older root.
    older_blocks: Vec<u64>,
    is_older: bool,
    pending: Vec<PageRead>,
    catalog_leaves: Vec<PageRead>,
    shared: HashSet<u64>,
    /// Pointers beyond the first to pages of maps, from the newest root.
    further: BTreeMap<u64, u32>,
    generation: u64,
}

impl ReachWalker {
    /// A walker over a zone of so many blocks, that walks from the newest root.
    #[must_use]
    pub fn new(tables_blocks: u64) -> Self {
        Self {
            tables_blocks,
            words: vec![0; tables_blocks.div_ceil(WORD_BLOCKS) as usize],
            older_blocks: Vec::new(),
            is_older: false,
            pending: Vec::new(),
            catalog_leaves: Vec::new(),
            shared: HashSet::new(),
            further: BTreeMap::new(),
            generation: 0,
        }
    }

    /// From now on trees of the older root are added; the walk from the newest has ended.
    pub fn begin_older(&mut self) {
        self.is_older = true;
        self.pending.clear();
        self.catalog_leaves.clear();
    }

    /// Adds a tree of the root that is being walked, each once.
    ///
    /// # Errors
    /// [`PageError::OutOfRange`] when its root points out of the zone.
    pub fn add_tree(&mut self, tree: TreeId, root: TreeRoot) -> Result<(), PageError> {
        if root.pointer.is_none() {
            return Ok(());
        }
        let id = PageId { tree, level: root.depth, index: 0 };
        self.follow(id, root.pointer)
    }

    /// The next pages to be read and fed, at most `reads_max`; none when the walk has ended.
    #[must_use]
    pub fn next_reads(&mut self, reads_max: usize) -> Vec<PageRead> {
        let kept = self.pending.len().saturating_sub(reads_max);
        self.pending.split_off(kept)
    }

    /// Takes the bytes of an inner page.
    ///
    /// # Errors
    /// [`PageError`] when they are not that page: what lies below it is unknown.
    pub fn feed(&mut self, read: &PageRead, bytes: &[u8]) -> Result<(), PageError> {
        let page = checked_page(read, Ok(bytes))?;
        self.generation = self.generation.max(page.generation());
        let PageId { tree, level, index } = read.id;
        for slot in 0..FANOUT {
            let pointer = pointer_page::get(&page, slot);
            if pointer.is_none() {
                continue;
            }
            let index = index.saturating_mul(FANOUT as u64).saturating_add(slot as u64);
            let child = PageId { tree, level: level - 1, index };
            self.follow(child, pointer)?;
        }
        Ok(())
    }

    /// Meets the page that a pointer leads to, and counts those to which several lead: versions of
    /// a volume share pages of their maps, and nothing else is shared.
    fn follow(&mut self, id: PageId, pointer: BlockPtr) -> Result<(), PageError> {
        let again = !self.meet(id, pointer)? && !self.is_older;
        if again && id.tree.is_map() {
            *self.further.entry(pointer.block()).or_default() += 1;
        } else if again {
            self.shared.insert(pointer.block());
        }
        Ok(())
    }

    /// Marks a block, and plans to read it if there is something below it; false when it had been
    /// met before.
    fn meet(&mut self, id: PageId, pointer: BlockPtr) -> Result<bool, PageError> {
        let block = pointer.block();
        if block >= self.tables_blocks {
            let tables_blocks = self.tables_blocks;
            return Err(PageError::OutOfRange { id, block, tables_blocks });
        }
        if !self.mark(block) {
            return Ok(false);
        }
        let read = PageRead { id, pointer };
        if id.level > 0 {
            self.pending.push(read);
        } else if id.tree == TreeId::CATALOG {
            self.catalog_leaves.push(read);
        }
        Ok(true)
    }

    /// Marks a block of the zone; false when it had been met before.
    pub(super) fn mark(&mut self, block: u64) -> bool {
        let (word, bit) = ((block / WORD_BLOCKS) as usize, 1 << (block % WORD_BLOCKS));
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        if is_new && self.is_older {
            self.older_blocks.push(block);
        }
        is_new
    }

    /// The catalog's leaves that were met since the last call: the volumes in them are to be added.
    /// Leaves that both roots name are met once.
    #[must_use]
    pub fn take_catalog_leaves(&mut self) -> Vec<PageRead> {
        std::mem::take(&mut self.catalog_leaves)
    }

    /// Blocks, other than those of maps, to which two pages of the newest root point: there is none
    /// in a sound store.
    #[must_use]
    pub fn shared_blocks(&self) -> usize {
        self.shared.len()
    }

    /// Blocks that the roots name.
    #[must_use]
    pub fn reached_blocks(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    fn reached(&self) -> impl Iterator<Item = u64> {
        (0..self.tables_blocks).filter(|&block| {
            self.words[(block / WORD_BLOCKS) as usize] >> (block % WORD_BLOCKS) & 1 == 1
        })
    }
}

impl PageStore {
    /// Takes over which blocks are in use. The store must be new.
    pub fn adopt_reach(&mut self, walker: ReachWalker) {
        for &block in &walker.older_blocks {
            self.space.mark_aged(block);
        }
        for block in walker.reached() {
            self.space.mark_used(block);
        }
        for (&block, &further) in &walker.further {
            self.space.mark_shared(block, further);
        }
        self.generation_next = self.generation_next.max(walker.generation + 1);
    }
}
