//! The trees of a store, as far as the study tells their pages apart.

/// Whose page it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Tree {
    /// Buckets of the Hash-PBN table.
    Bucket,
    /// Young entries of it.
    Young,
    /// The PBN-PBA table.
    Pba,
    /// The LBA-PBN map.
    Map,
    /// Directories of containers.
    Directory,
}

pub(super) const TREES: usize = 5;

/// How many pages each tree has at most, in the order of [`Tree`].
pub(super) type TreeSizes = [u64; TREES];
