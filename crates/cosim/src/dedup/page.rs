//! Pages with their digests, the true ones and others.

use sha3::Digest as _;

use super::dice::Dice;
use super::ports::{Digest, PAGE_BYTES};

/// A page on its way to the core.
#[derive(Clone, Debug)]
pub struct Page {
    /// What a stubbed hash group is told; a real one looks at the bytes alone.
    pub digest: Digest,
    /// All of its bytes.
    pub bytes: Vec<u8>,
}

impl Page {
    /// A page with its SHA3-256, for a core of either kind.
    pub fn hashed(bytes: Vec<u8>) -> Self {
        Self { digest: sha3::Sha3_256::digest(&bytes).into(), bytes }
    }

    /// A page for a stubbed core, with any digest that a test wants.
    pub fn told(digest: Digest) -> Self {
        Self { digest, bytes: page_of(&digest) }
    }
}

/// The bytes that tests give a page of this digest.
pub fn page_of(digest: &Digest) -> Vec<u8> {
    let mut dice = Dice::new(u64::from_le_bytes(digest[8..16].try_into().unwrap_or_default()));
    let mut bytes = vec![0; PAGE_BYTES];
    for place in bytes.chunks_exact_mut(8) {
        place.copy_from_slice(&dice.roll().to_le_bytes());
    }
    bytes
}
