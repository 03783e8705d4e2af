//! The ways to find a duplicate that are compared.

use serde::Serialize;

use super::latency::Latency;

/// How a write finds out whether its chunk is stored.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Not at all.
    None,
    /// By its SHA-1.
    Sha1,
    /// By its SHA-256.
    Sha256,
    /// By its BLAKE2.
    Blake2,
    /// CA-FTL's: by its SHA-1, but only chunks whose first four bytes have been seen are hashed.
    /// The first chunk of each content is not, so the second is not found: one duplicate of each
    /// content is lost, which is all of them where contents come in pairs.
    Sampling,
    /// By its error-correcting code, and a comparison.
    Ead,
}

impl Strategy {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Sha1, Self::Sha256, Self::Blake2, Self::Sampling, Self::Ead];

    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Blake2 => "blake2",
            Self::Sampling => "sampling",
            Self::Ead => "ead",
        }
    }

    /// What hashing a chunk takes.
    pub(super) fn hash_ns(self, latency: &Latency) -> u64 {
        match self {
            Self::None | Self::Ead => 0,
            Self::Sha1 | Self::Sampling => latency.sha1_ns,
            Self::Sha256 => latency.sha256_ns,
            Self::Blake2 => latency.blake2_ns,
        }
    }
}
