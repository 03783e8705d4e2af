//! The tree of FIDR's cache engine (sections 5.5 and 6.3). On the chip are levels of nodes with two
//! keys and three children, off it one level of leaves with 16 keys. A key leads to a line of the
//! table cache.
//!
//! The paper gives sizes of caches and numbers of levels only. Ternary levels above leaves of 16
//! keys give its sizes to the megabyte, and its blocks of URAM to the block.

use crate::units::Bytes;

const CHILDREN: u64 = 3;
const LEAF_KEYS: u64 = 16;
const LINE_BYTES: u64 = 4096;
/// A block of URAM on the VU9P has 4096 words of 72 bits.
const URAM_WORDS: u64 = 4096;
const URAM_BITS: u64 = 72;
/// Bits of a node: between 216 and 288, since four blocks wide fit the paper's count and three do
/// not.
const NODE_BITS: u64 = 288;
/// Levels of the large tree that lie in URAM, from the lowest up; those above fit in BRAM.
const URAM_LEVELS: u32 = 3;
/// A leaf splits or merges once in this number of updates: half of its keys.
const UPDATES_PER_SPLIT: f64 = 8.0;
/// A node above splits once in this number of splits below it.
const SPLITS_PER_SPLIT: f64 = 2.0;

/// A tree of this number of levels on the chip.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Levels without leaves.
    pub on_chip_levels: u32,
}

/// For 410 MB of cache (Table 5).
pub const MEDIUM: Tree = Tree { on_chip_levels: 8 };
/// For 99,645 MB of cache (Table 5).
pub const LARGE: Tree = Tree { on_chip_levels: 13 };

impl Tree {
    /// Leaves of a full tree.
    #[must_use]
    pub fn leaves(self) -> u64 {
        CHILDREN.pow(self.on_chip_levels)
    }

    /// Nodes above the leaves.
    #[must_use]
    pub fn nodes_on_chip(self) -> u64 {
        (0..self.on_chip_levels).map(|level| CHILDREN.pow(level)).sum()
    }

    /// Lines of the cache that it finds.
    #[must_use]
    pub fn lines(self) -> u64 {
        self.leaves() * LEAF_KEYS
    }

    /// The cache that it finds.
    #[must_use]
    pub fn cache(self) -> Bytes {
        Bytes(self.lines() * LINE_BYTES)
    }

    /// Blocks of URAM for the lowest levels on the chip.
    #[must_use]
    pub fn uram_blocks(self) -> u64 {
        let wide = NODE_BITS.div_ceil(URAM_BITS);
        let first = self.on_chip_levels.saturating_sub(URAM_LEVELS);
        let deep = (first..self.on_chip_levels).map(|level| CHILDREN.pow(level));
        deep.map(|nodes| wide * nodes.div_ceil(URAM_WORDS)).sum()
    }

    /// Of a hundred updates at random places, how many find a node or its neighbour changed by one
    /// of the others that are under way, and are done again (Algorithm 1).
    #[must_use]
    pub fn replayed_percent(self, under_way: u32) -> f64 {
        let others = f64::from(under_way.saturating_sub(1));
        let mut changes = 1.0;
        let mut chance = 0.0;
        for level in (0..=self.on_chip_levels).rev() {
            let nodes = CHILDREN.pow(level) as f64;
            chance += others * changes * changes * (2.0 / nodes).min(1.0);
            let fewer =
                if level == self.on_chip_levels { UPDATES_PER_SPLIT } else { SPLITS_PER_SPLIT };
            changes /= fewer;
        }
        100.0 * chance
    }
}

#[cfg(test)]
mod tests {
    use super::{LARGE, MEDIUM, Tree};

    #[test]
    fn geometry_is_the_papers_to_the_node() {
        assert_eq!((MEDIUM.nodes_on_chip(), LARGE.nodes_on_chip()), (3_280, 797_161));
        assert_eq!(LARGE.lines(), 25_509_168);
        assert_eq!(LARGE.uram_blocks(), 60 + 176 + 520);
    }

    #[test]
    fn small_trees_replay_more() {
        let small = Tree { on_chip_levels: 4 };
        assert!(small.replayed_percent(4) > 1.0);
        assert!(MEDIUM.replayed_percent(4) > LARGE.replayed_percent(4));
        assert!((LARGE.replayed_percent(1)).abs() < 1e-12);
    }
}
