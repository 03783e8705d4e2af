//! Why a value could not be written, read or freed, by what the caller can do about it.

use std::ops::Range;

use format::FormatError;
use store::RequestError;

use crate::index::IndexError;

/// What went wrong with a value.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// The index did not answer.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The volume refused a request; [`RequestError`] says whether it may be tried again.
    #[error(transparent)]
    Volume(#[from] RequestError),
    /// Bytes of the value are lost; all others are served.
    #[error(
        "bytes {} to {} of the value are damaged: {reason}",
        .bytes.start,
        .bytes.end.saturating_sub(1)
    )]
    Damaged {
        /// The range of the value.
        bytes: Range<u64>,
        /// Why they could not be read.
        reason: Box<RequestError>,
    },
    /// A block that says where bytes of the value are is lost, and they with it.
    #[error(
        "bytes {} to {} of the value cannot be found: {reason}",
        .bytes.start,
        .bytes.end.saturating_sub(1)
    )]
    DamagedList {
        /// The range of the value.
        bytes: Range<u64>,
        /// What is wrong with the block.
        reason: FormatError,
    },
    /// An entry of the index that says what is free or shared is no such entry.
    #[error("the bucket's table of extents is damaged: {0}")]
    DamagedExtents(#[from] FormatError),
    /// Two entries of the index name the same chunks.
    #[error("chunks {} to {} of the bucket are in two states at once", .0.start, .0.end)]
    Overlap(Range<u64>),
    /// An entry of the index says that chunks are free which are no value's.
    #[error("chunks {} to {} are not in the bucket's value space", .0.start, .0.end)]
    OutsideSpace(Range<u64>),
    /// The value space has no run of free chunks left that is long enough.
    #[error("the bucket has no {chunks} consecutive free chunks left")]
    NoAddresses {
        /// As many were needed at least.
        chunks: u64,
    },
    /// The list of the value would have too many levels: its bytes are to be written again.
    #[error("the list of the value's segments is too deep: write its bytes again")]
    TooDeep,
    /// The value would be longer than an object may be.
    #[error("an object has at most 5 TiB")]
    TooLong,
}
