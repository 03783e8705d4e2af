//! What a look-up in the Hash-PBN table cost, and where fingerprints lie.

use crate::dice::mixed;

/// How a look-up was answered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// From memory, without a page: the filter, or the index, says that it is not there.
    Denied,
    /// By a page that was in memory.
    Hit,
    /// By a page that had to be read.
    Read,
}

impl Lookup {
    pub(super) fn of_page(was_held: bool) -> Self {
        if was_held { Self::Hit } else { Self::Read }
    }
}

/// The fingerprint of a chunk, as far as it says where its entry lies: anywhere.
pub(super) fn hash_of(seed: u64, chunk: u32) -> u64 {
    mixed(seed, u64::from(chunk))
}
