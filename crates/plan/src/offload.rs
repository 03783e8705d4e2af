//! Stages that an accelerator does instead of the cores, as FIDR's NIC and engines do.

use serde::Serialize;

/// What is done elsewhere.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Offload {
    /// Nothing.
    None,
    /// Fingerprints.
    Hashing,
    /// Compressing and expanding.
    Compression,
    /// Finding and fetching buckets: half of what the thread of the tables does.
    TableCache,
    /// All three.
    All,
}

/// Of the work of the thread that owns the tables, what finding and fetching buckets is. FIDR's
/// Table 2 has 69% of the table cache's part in it; maps and journal are beside that cache.
const BUCKETS_SHARE: f64 = 0.5;

impl Offload {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 5] =
        [Self::None, Self::Hashing, Self::Compression, Self::TableCache, Self::All];

    /// As tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Hashing => "hashing",
            Self::Compression => "compression",
            Self::TableCache => "table cache",
            Self::All => "all three",
        }
    }

    /// Whether fingerprints are made elsewhere.
    #[must_use]
    pub fn hashes(self) -> bool {
        matches!(self, Self::Hashing | Self::All)
    }

    /// Whether chunks are compressed and expanded elsewhere.
    #[must_use]
    pub fn compresses(self) -> bool {
        matches!(self, Self::Compression | Self::All)
    }

    /// Whether buckets are found elsewhere.
    #[must_use]
    pub fn finds_buckets(self) -> bool {
        matches!(self, Self::TableCache | Self::All)
    }

    /// Of the work of the thread that owns the tables, what is left.
    pub(crate) fn core_share(self) -> f64 {
        if self.finds_buckets() { 1.0 - BUCKETS_SHARE } else { 1.0 }
    }
}
