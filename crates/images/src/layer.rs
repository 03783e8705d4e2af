//! What a layer says of a stretch of its disk.

/// Where the bytes of a stretch are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nowhere: they read as zeros.
    Zeros,
    /// In the layer below; zeros when there is none.
    Below,
    /// In the layer's own file, from this offset on.
    Host(u64),
    /// In a compressed cluster of the layer's own file.
    Compressed(CompressedCluster),
}

/// A compressed cluster, and where in it a stretch begins.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompressedCluster {
    /// Where its compressed bytes begin in the file.
    pub(crate) offset_bytes: u64,
    /// Length of the compressed bytes at most: the sectors that they end in are counted whole.
    pub(crate) length_bytes: u64,
    /// Bytes of the cluster, once it is expanded, in front of the stretch.
    pub(crate) skip_bytes: u64,
}

/// A stretch from the offset that was asked for to this end, all of it in one place.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// In the disk, not in the file.
    pub(crate) end_bytes: u64,
    pub(crate) place: Place,
}
