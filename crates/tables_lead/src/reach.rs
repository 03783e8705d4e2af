//! Walks trees from their roots to learn which blocks are in use; reads only inner pages.
//!
//! The newest root's trees are walked first. Then, after [`ReachWalker::begin_older`], the older
//! root's: subtrees that both share are passed over, and what only the older one names is kept
//! apart, to become free with the next checkpoint.

use std::collections::VecDeque;

use format::page::Page;
use format::pointer_page::{self, FANOUT};
use format::units::{PageId, TreeId, TreeRoot};

use crate::blocks::ReachedBlocks;
use crate::error::PageError;
use crate::page_store::PageRead;

/// A walk under way. Feed it what [`ReachWalker::next_reads`] asks for.
#[derive(Default)]
pub struct ReachWalker {
    reached: ReachedBlocks,
    older: bool,
    to_read: VecDeque<PageRead>,
    catalog_leaves: Vec<PageRead>,
}

impl ReachWalker {
    /// A walk that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tree.
    pub fn add_tree(&mut self, tree: TreeId, root: TreeRoot) {
        let id = PageId { tree, level: root.depth, index: 0 };
        self.visit(PageRead { id, pointer: root.pointer });
    }

    /// The trees added from now on are the older root's.
    pub fn begin_older(&mut self) {
        self.older = true;
        self.to_read.clear();
        self.catalog_leaves.clear();
    }

    fn visit(&mut self, found: PageRead) {
        if found.pointer.is_none() || !self.reached.used.insert(found.pointer.block()) {
            return;
        }
        if self.older {
            self.reached.older_only.push(found.pointer.block());
        }
        if found.id.level > 0 {
            self.to_read.push_back(found);
        } else if found.id.tree == TreeId::CATALOG {
            self.catalog_leaves.push(found);
        }
    }

    /// Inner pages to be read next, at most `max`; none when the walk is done.
    pub fn next_reads(&mut self, max: usize) -> Vec<PageRead> {
        let count = max.min(self.to_read.len());
        self.to_read.drain(..count).collect()
    }

    /// The bytes of an inner page that was asked for.
    ///
    /// # Errors
    /// [`PageError`] when it is damaged: what is below it is not reached.
    pub fn feed(&mut self, read: &PageRead, bytes: &[u8]) -> Result<(), PageError> {
        let PageRead { id, pointer } = *read;
        let damaged = |source| PageError::new(id, pointer.block(), Some(source));
        let page = Page::from_bytes(bytes).map_err(damaged)?;
        page.check(id, pointer.tag()).map_err(damaged)?;
        for slot in 0..FANOUT {
            let index = id.index * FANOUT as u64 + slot as u64;
            let child = PageId { tree: id.tree, level: id.level - 1, index };
            self.visit(PageRead { id: child, pointer: pointer_page::get(&page, slot) });
        }
        Ok(())
    }

    /// Leaves of the catalog reached since this was last asked: they name the volumes' trees.
    pub fn take_catalog_leaves(&mut self) -> Vec<PageRead> {
        std::mem::take(&mut self.catalog_leaves)
    }

    pub(crate) fn into_blocks(self) -> ReachedBlocks {
        self.reached
    }
}
