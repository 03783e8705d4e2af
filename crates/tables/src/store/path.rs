//! Arithmetic of the trees: who is above and below whom.

use format::page::Page;
use format::pointer_page::{self, FANOUT};
use format::units::{BlockPtr, PageId, TreeId};

use super::page_io::PageRead;
use super::slot::Slot;

/// Stands for the block of a page that has none yet.
pub(super) const UNWRITTEN: BlockPtr = BlockPtr::new(BlockPtr::BLOCKS_MAX - 1, 0);

/// How far the way to a page is resident.
pub(super) enum Path {
    /// To the page itself.
    Here(Slot),
    /// To where a pointer says that there is nothing; none when the tree has no place for it.
    Absent { above: Option<Slot> },
    /// To `parent`; the page below it, or the topmost, has to be read.
    Missing { read: PageRead, parent: Option<Slot> },
}

pub(super) fn leaf_id(tree: TreeId, index: u64) -> PageId {
    PageId { tree, level: 0, index }
}

/// The page of `level` above or at `page`.
pub(super) fn ancestor(page: PageId, level: u8) -> PageId {
    PageId { level, index: index_above(page.index, level - page.level), ..page }
}

/// Index of the ancestor `levels` above.
pub(super) fn index_above(index: u64, levels: u8) -> u64 {
    (0..levels).fold(index, |index, _| index / FANOUT as u64)
}

/// First descendant, `levels` below; none when 64 bits cannot number it.
pub(super) fn index_below(index: u64, levels: u8) -> Option<u64> {
    (0..levels).try_fold(index, |index, _| index.checked_mul(FANOUT as u64))
}

/// A page's place in its parent.
pub(super) fn child_slot(page: PageId) -> usize {
    (page.index % FANOUT as u64) as usize
}

/// Whether a tree of `depth` has a place for leaf `index`.
pub(super) fn fits(depth: u8, index: u64) -> bool {
    index_above(index, depth) == 0
}

/// Depth that a new tree needs for leaf `index`.
pub(super) fn depth_for(index: u64) -> u8 {
    let mut depth = 1;
    while !fits(depth, index) {
        depth += 1;
    }
    depth
}

/// The first pointer from `slot` on that is not none.
pub(super) fn first_used(page: &Page, slot: usize) -> Option<usize> {
    (slot..FANOUT).find(|&slot| !pointer_page::get(page, slot).is_none())
}

#[cfg(test)]
mod tests {
    use super::{depth_for, fits, index_above, index_below};

    #[test]
    fn every_leaf_fits_a_tree_of_eight_levels() {
        for index in [0, 1, 507, 508, 508 * 508 - 1, 508 * 508, u64::MAX] {
            let depth = depth_for(index);
            assert!(depth <= format::units::TreeRoot::DEPTH_MAX && fits(depth, index));
            assert!(depth == 1 || !fits(depth - 1, index));
        }
        assert_eq!((depth_for(507), depth_for(508), depth_for(u64::MAX)), (1, 2, 8));
    }

    #[test]
    fn first_descendants_are_below_their_ancestors() {
        assert_eq!(index_below(3, 2), Some(3 * 508 * 508));
        assert_eq!(index_above(3 * 508 * 508 + 508 * 508 - 1, 2), 3);
        assert_eq!(index_below(u64::MAX / 2, 1), None);
    }
}
