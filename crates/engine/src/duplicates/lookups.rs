//! What looked-up groups have taken ahead, until they are applied.

use crate::duplicates::pending::PendingChunks;

/// What looked-up groups have taken ahead.
#[derive(Default)]
pub(crate) struct Lookups {
    /// New chunks that are not in the Hash-PBN table yet, and will be.
    pub(crate) pending: PendingChunks,
    /// Hashes of the fingerprints of the group that is looked up.
    pub(crate) hashes: Vec<u64>,
    /// Free PBNs taken from the queue's head ahead of its pops.
    pub(crate) popped_ahead: u64,
    /// Fresh PBNs taken ahead of `next_pbn`.
    pub(crate) fresh_ahead: u64,
    /// Of groups before this one it is chosen which chunks are looked for.
    pub(crate) chosen: u64,
    /// Groups before this one have asked for the pages that their look-ups miss.
    pub(crate) asked_ahead: u64,
}
