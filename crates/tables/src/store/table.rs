//! The three tables that the trees make up, as an operator and the cache's priorities know them.

use format::units::TreeId;

/// Bits of a leaf's name that its volume is not in: no volume has more leaves.
const LEAF_BITS: u32 = 40;

/// What a tree belongs to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// Fingerprints to chunks: buckets, young entries, filters.
    HashPbn,
    /// Chunks to places.
    PbnPba,
    /// Addresses of all volumes to chunks.
    Maps,
    /// The rest: catalog, containers, free PBNs.
    Others,
}

impl TableKind {
    /// How many there are.
    pub(super) const COUNT: usize = 4;

    /// The table of a tree.
    #[must_use]
    pub fn of(tree: TreeId) -> Self {
        match tree {
            TreeId::HASH_PBN | TreeId::YOUNG | TreeId::HASH_FILTER => Self::HashPbn,
            TreeId::PBN_PBA => Self::PbnPba,
            tree if tree.is_map() => Self::Maps,
            _ => Self::Others,
        }
    }
}

/// A leaf as the heat of its table knows it: one number for all trees of a table.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct HeatName(pub u64);

impl HeatName {
    /// The name of a leaf.
    #[must_use]
    pub fn of(tree: TreeId, leaf: u64) -> Self {
        match tree {
            TreeId::HASH_PBN => Self(2 * leaf),
            TreeId::YOUNG => Self(2 * leaf + 1),
            tree if tree.is_map() => Self(leaf ^ u64::from(tree.0) << LEAF_BITS),
            _ => Self(leaf),
        }
    }

    /// Tree and leaf of a page of the Hash-PBN table.
    #[must_use]
    pub fn hash_leaf(self) -> (TreeId, u64) {
        let tree = if self.0.is_multiple_of(2) { TreeId::HASH_PBN } else { TreeId::YOUNG };
        (tree, self.0 / 2)
    }
}

#[cfg(test)]
mod tests {
    use format::units::{TreeId, VolumeId};

    use super::{HeatName, TableKind};

    #[test]
    fn leaves_of_one_table_have_different_names() {
        let hash = [(TreeId::HASH_PBN, 7), (TreeId::YOUNG, 7), (TreeId::HASH_PBN, 8)];
        for (tree, leaf) in hash {
            assert_eq!(HeatName::of(tree, leaf).hash_leaf(), (tree, leaf));
            assert_eq!(TableKind::of(tree), TableKind::HashPbn);
        }
        let map = |volume, leaf| HeatName::of(TreeId::volume(VolumeId(volume)), leaf);
        assert_ne!(map(1, 5), map(2, 5));
        assert_ne!(map(1, 5), map(1, 6));
        assert_eq!(TableKind::of(TreeId::volume(VolumeId(3))), TableKind::Maps);
        assert_eq!(TableKind::of(TreeId::CATALOG), TableKind::Others);
    }
}
