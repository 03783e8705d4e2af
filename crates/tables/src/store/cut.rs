//! Cutting: a range of leaves leaves a tree, whole subtrees at a time.
//!
//! What other versions of the volume share loses one pointer, which is one step however large it
//! is. What only this tree has is let go page by page; inner pages of that kind must be resident,
//! because only they know what is below them. Nothing is said of what the leaves hold: the caller
//! has seen to the references, or knows that another version still has them.

use std::ops::Range;

use format::pointer_page::{self, FANOUT};
use format::units::{BlockPtr, PageId, TreeId, TreeRoot};

use super::page_io::PageRead;
use super::page_store::PageStore;
use super::path::{Path, ancestor, index_below, leaf_id};
use super::pins::PinSet;
use super::sharing::is_written;
use crate::error::PageError;

/// The leaves at or below a page.
fn leaves_below(page: PageId) -> Range<u64> {
    let start = index_below(page.index, page.level).unwrap_or(u64::MAX);
    let end = index_below(page.index.saturating_add(1), page.level).unwrap_or(u64::MAX);
    start..end
}

fn covers(leaves: &Range<u64>, page: PageId) -> bool {
    let below = leaves_below(page);
    leaves.start <= below.start && below.end <= leaves.end
}

fn touches(leaves: &Range<u64>, page: PageId) -> bool {
    let below = leaves_below(page);
    leaves.start < below.end && below.start < leaves.end
}

/// A child of an inner page.
fn child(page: PageId, slot: usize) -> PageId {
    let index = page.index.saturating_mul(FANOUT as u64).saturating_add(slot as u64);
    PageId { level: page.level - 1, index, ..page }
}

impl PageStore {
    /// Asks for the inner pages that [`Self::cut`] needs; those at the edges only if the tree has
    /// just been, or is about to be, copied: then all else is shared.
    ///
    /// # Errors
    /// [`PageError`] when one is damaged.
    pub fn want_cut(
        &mut self,
        pins: &mut PinSet,
        tree: TreeId,
        leaves: &Range<u64>,
        edges_only: bool,
        reads: &mut Vec<PageRead>,
    ) -> Result<bool, PageError> {
        let root = self.tree_root(tree);
        let top = PageId { tree, level: root.depth, index: 0 };
        let mut here = true;
        let mut pending = vec![(top, root.pointer)];
        while let Some((page, pointer)) = pending.pop() {
            let is_shared = is_written(pointer) && self.space.is_shared(pointer.block());
            let whole = covers(leaves, page) && (edges_only || is_shared);
            if pointer.is_none() || page.level == 0 || whole || !touches(leaves, page) {
                continue;
            }
            match self.path_to(page) {
                Path::Here(slot) => {
                    self.frames.pin(slot, pins);
                    let inner = self.page_at(slot);
                    let used =
                        (0..FANOUT).map(|slot| (child(page, slot), pointer_page::get(inner, slot)));
                    pending.extend(used.filter(|(_, pointer)| !pointer.is_none()));
                }
                Path::Missing { read, parent } => {
                    if self.fetch(read, parent, reads)? {
                        pending.push((page, pointer));
                    } else {
                        here = false;
                    }
                }
                Path::Absent { .. } => {}
            }
        }
        Ok(here)
    }

    /// Removes the leaves of a range and what is empty then. Must have been wanted.
    pub fn cut(&mut self, tree: TreeId, leaves: &Range<u64>) {
        let root = self.tree_root(tree);
        if root.pointer.is_none() {
            return;
        }
        let top = PageId { tree, level: root.depth, index: 0 };
        if covers(leaves, top) {
            self.let_go(top, root.pointer);
            self.trees.insert(tree, TreeRoot::default());
        } else {
            self.cut_inside(top, leaves);
        }
        self.forget_pages(top, leaves);
        for edge in [leaves.start, leaves.end] {
            self.prune(tree, edge);
        }
    }

    /// Cuts below a page of which the range covers a part.
    fn cut_inside(&mut self, page: PageId, leaves: &Range<u64>) {
        let Some(slot) = self.frames.find(page) else { return };
        for place in 0..FANOUT {
            let pointer = pointer_page::get(self.page_at(slot), place);
            let below = child(page, place);
            if pointer.is_none() || !touches(leaves, below) {
                continue;
            }
            if !covers(leaves, below) {
                self.cut_inside(below, leaves);
                continue;
            }
            self.own(slot);
            let pointer = pointer_page::get(self.page_at(slot), place);
            self.let_go(below, pointer);
            pointer_page::set(self.frames.change(slot), place, BlockPtr::NONE);
        }
    }

    /// A pointer of this tree to `page` goes, and with it what only this tree has below.
    fn let_go(&mut self, page: PageId, pointer: BlockPtr) {
        let resident = self.frames.find(page);
        let is_own = !is_written(pointer) || !self.space.is_shared(pointer.block());
        if page.level > 0
            && is_own
            && let Some(slot) = resident
        {
            for place in 0..FANOUT {
                let pointer = pointer_page::get(self.page_at(slot), place);
                if !pointer.is_none() {
                    self.let_go(child(page, place), pointer);
                }
            }
        }
        debug_assert!(page.level == 0 || !is_own || resident.is_some(), "{page} was not wanted");
        if is_written(pointer) {
            self.space.free(pointer.block());
        }
    }

    /// Drops from the cache what a cut has removed.
    fn forget_pages(&mut self, top: PageId, leaves: &Range<u64>) {
        let tree = top.tree;
        let gone = |id: PageId| id.tree == tree && covers(leaves, id);
        let slots = if leaves.end - leaves.start < self.frames.places() as u64 {
            let mut slots = Vec::new();
            for level in 0..=top.level {
                let edge = |leaf: u64| ancestor(leaf_id(tree, leaf), level).index;
                let pages = (edge(leaves.start)..=edge(leaves.end)).map(|index| PageId {
                    tree,
                    level,
                    index,
                });
                slots.extend(pages.filter(|&id| gone(id)).filter_map(|id| self.frames.find(id)));
            }
            slots
        } else {
            self.frames.all(gone)
        };
        let late: Vec<PageId> = self.arriving.keys().copied().filter(|&id| gone(id)).collect();
        let above: Vec<_> = late
            .iter()
            .filter_map(|id| self.arriving.remove(id)?.parent)
            .chain(slots.iter().filter_map(|&slot| self.frames.get(slot).parent))
            .collect();
        above.into_iter().for_each(|parent| self.frames.get_mut(parent).children -= 1);
        for slot in slots {
            let frame = self.frames.remove(slot);
            self.frames.spares.put(frame.page);
        }
        self.damaged.retain(|&id, _| !gone(id));
    }

    /// Removes inner pages above a leaf's place that point to nothing any more.
    fn prune(&mut self, tree: TreeId, leaf: u64) {
        for level in 1..=self.tree_root(tree).depth {
            let id = ancestor(leaf_id(tree, leaf), level);
            let Some(slot) = self.frames.find(id) else { continue };
            if !self.points_to_nothing(slot) {
                return;
            }
            self.take_out(slot);
        }
    }
}
