//! Walking over the leaves that exist, without touching them.
//!
//! Inner pages say which subtrees exist, so an empty volume of any size is walked in one look.

use format::pointer_page::FANOUT;
use format::units::TreeId;

use super::page_io::PageRead;
use super::page_store::PageStore;
use super::path::{
    Path, ancestor, child_slot, first_used, fits, index_above, index_below, leaf_id,
};
use super::pins::PinSet;
use crate::error::PageError;

/// What follows in a tree.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NextLeaf {
    /// The leaf of this index exists.
    Found(u64),
    /// No further leaf exists.
    End,
    /// A page has to be read first.
    Missing,
}

enum Step {
    /// On from this leaf index.
    From(u64),
    Is(NextLeaf),
}

impl PageStore {
    /// The first leaf that exists at `from` or behind it. Leaves themselves are not read.
    ///
    /// # Errors
    /// [`PageError`] when an inner page on the way is damaged.
    pub fn next_leaf(
        &mut self,
        tree: TreeId,
        from: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<NextLeaf, PageError> {
        self.walk_to_next_leaf(tree, from, None, reads)
    }

    /// As [`Self::next_leaf`], and the inner pages that it looked at are pinned: for who goes on
    /// from there, and begins anew when a page that was missing has come. In a small cache the
    /// pages on the way would push each other out.
    ///
    /// # Errors
    /// As of [`Self::next_leaf`].
    pub fn next_leaf_held(
        &mut self,
        pins: &mut PinSet,
        tree: TreeId,
        from: u64,
        reads: &mut Vec<PageRead>,
    ) -> Result<NextLeaf, PageError> {
        self.walk_to_next_leaf(tree, from, Some(pins), reads)
    }

    fn walk_to_next_leaf(
        &mut self,
        tree: TreeId,
        mut from: u64,
        mut pins: Option<&mut PinSet>,
        reads: &mut Vec<PageRead>,
    ) -> Result<NextLeaf, PageError> {
        loop {
            match self.next_step(tree, from, pins.as_deref_mut(), reads)? {
                Step::From(further) => from = further,
                Step::Is(next) => return Ok(next),
            }
        }
    }

    /// Goes down towards `from` until there is a leaf, a gap, or a page to be read.
    fn next_step(
        &mut self,
        tree: TreeId,
        from: u64,
        mut pins: Option<&mut PinSet>,
        reads: &mut Vec<PageRead>,
    ) -> Result<Step, PageError> {
        let root = self.tree_root(tree);
        if root.pointer.is_none() || !fits(root.depth, from) {
            return Ok(Step::Is(NextLeaf::End));
        }
        let leaf = leaf_id(tree, from);
        for level in (1..=root.depth).rev() {
            let page = match self.path_to(ancestor(leaf, level)) {
                Path::Here(slot) => slot,
                Path::Absent { .. } => return Ok(skip(from, level)),
                Path::Missing { read, parent } => {
                    return Ok(match self.fetch(read, parent, reads)? {
                        true => Step::From(from),
                        false => Step::Is(NextLeaf::Missing),
                    });
                }
            };
            self.frames.get(page).touch();
            if let Some(pins) = pins.as_deref_mut() {
                self.frames.pin(page, pins);
            }
            let wanted = child_slot(ancestor(leaf, level - 1));
            match first_used(self.page_at(page), wanted) {
                Some(found) if found == wanted => {}
                Some(found) => {
                    let child = index_above(from, level) * FANOUT as u64 + found as u64;
                    return Ok(at(index_below(child, level - 1)));
                }
                None => return Ok(skip(from, level)),
            }
        }
        Ok(Step::Is(NextLeaf::Found(from)))
    }
}

/// On behind the subtree of `level` that holds leaf `from`.
fn skip(from: u64, level: u8) -> Step {
    at(index_below(index_above(from, level) + 1, level))
}

fn at(leaf: Option<u64>) -> Step {
    leaf.map_or(Step::Is(NextLeaf::End), Step::From)
}
