//! Where versions of a volume differ: found from their roots down, past all that they share.
//!
//! Equal pointers lead to the same page, and so to equal leaves. The converse does not hold: a page
//! that has been made two may still, or again, hold the same. So a difference found here is a leaf
//! to be looked at.

use std::ops::Range;

use format::pointer_page;
use format::units::{BlockPtr, PageId, TreeId};

use super::leaf_walk::NextLeaf;
use super::page_io::PageRead;
use super::page_store::PageStore;
use super::path::{Path, UNWRITTEN, child_slot, fits, index_above, index_below};
use crate::error::PageError;

/// Whether two pointers are known to lead to the same.
#[must_use]
pub(super) fn same(one: BlockPtr, other: BlockPtr) -> bool {
    one == other && one != UNWRITTEN
}

/// Pointers of several trees to their pages at one place.
#[derive(Clone, Debug)]
pub struct Pointers<'a>(&'a [BlockPtr]);

impl Pointers<'_> {
    /// Whether two of the trees are known to hold the same below this place.
    #[must_use]
    pub fn same(&self, one: usize, other: usize) -> bool {
        same(self.0[one], self.0[other])
    }

    /// Whether a tree holds nothing below this place.
    #[must_use]
    pub fn is_absent(&self, tree: usize) -> bool {
        self.0[tree].is_none()
    }
}

impl PageStore {
    /// The first leaf at `from` or behind it that `skip` does not pass over. `skip` is asked for
    /// whole subtrees first, with the pointers of all `trees` to them and the leaves below those;
    /// leaves are not read.
    ///
    /// # Errors
    /// [`PageError`] when an inner page on the way is damaged.
    pub fn next_difference(
        &mut self,
        trees: &[TreeId],
        from: u64,
        skip: impl Fn(&Pointers<'_>, &Range<u64>) -> bool,
        reads: &mut Vec<PageRead>,
    ) -> Result<NextLeaf, PageError> {
        let depth = trees.iter().map(|&tree| self.tree_root(tree).depth).max().unwrap_or(0);
        let mut pointers = vec![BlockPtr::NONE; trees.len()];
        let (mut from, mut level) = (from, depth);
        loop {
            if !fits(depth, from) {
                return Ok(NextLeaf::End);
            }
            let index = index_above(from, level);
            let mut missing = false;
            for (pointer, &tree) in pointers.iter_mut().zip(trees) {
                match self.pointer_to(PageId { tree, level, index }, reads)? {
                    Some(found) => *pointer = found,
                    None => missing = true,
                }
            }
            if missing {
                return Ok(NextLeaf::Missing);
            }
            let next = index_below(index + 1, level);
            let leaves = index_below(index, level).unwrap_or(from)..next.unwrap_or(u64::MAX);
            if !skip(&Pointers(&pointers), &leaves) {
                if level == 0 {
                    return Ok(NextLeaf::Found(from));
                }
                level -= 1;
                continue;
            }
            let Some(next) = next else { return Ok(NextLeaf::End) };
            from = next;
            if (index + 1).is_multiple_of(pointer_page::FANOUT as u64) {
                level = depth;
            }
        }
    }

    /// Whether two trees are known to hold the same in a leaf, which is not read; none while a page
    /// that says so is not resident.
    ///
    /// # Errors
    /// [`PageError`] when an inner page on the way is damaged.
    pub fn shares_leaf(
        &mut self,
        (one, other): (TreeId, TreeId),
        leaf: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<Option<bool>, PageError> {
        let depth = self.tree_root(one).depth.max(self.tree_root(other).depth);
        for level in (0..=depth).rev() {
            let index = index_above(leaf, level);
            let of_one = self.pointer_to(PageId { tree: one, level, index }, reads)?;
            let of_other = self.pointer_to(PageId { tree: other, level, index }, reads)?;
            let (Some(of_one), Some(of_other)) = (of_one, of_other) else { return Ok(None) };
            if same(of_one, of_other) {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// What points to a page; none while the page that says so is not resident.
    fn pointer_to(
        &mut self,
        page: PageId,
        reads: &mut Vec<PageRead>,
    ) -> Result<Option<BlockPtr>, PageError> {
        let root = self.tree_root(page.tree);
        if root.pointer.is_none() || (page.level >= root.depth && page.index > 0) {
            return Ok(Some(BlockPtr::NONE));
        }
        if page.level == root.depth {
            return Ok(Some(root.pointer));
        }
        if page.level > root.depth {
            // The tree is lower than others: it has no page here, but something below.
            return Ok(Some(UNWRITTEN));
        }
        let above =
            PageId { level: page.level + 1, index: index_above(page.index, 1), tree: page.tree };
        loop {
            match self.path_to(above) {
                Path::Here(slot) => {
                    self.frames.get(slot).touch();
                    return Ok(Some(pointer_page::get(self.page_at(slot), child_slot(page))));
                }
                Path::Absent { .. } => return Ok(Some(BlockPtr::NONE)),
                Path::Missing { read, parent } => {
                    if !self.fetch(read, parent, reads)? {
                        return Ok(None);
                    }
                }
            }
        }
    }
}
