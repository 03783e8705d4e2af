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
}

/// A stretch from the offset that was asked for to this end, all of it in one place.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// In the disk, not in the file.
    pub(crate) end_bytes: u64,
    pub(crate) place: Place,
}
