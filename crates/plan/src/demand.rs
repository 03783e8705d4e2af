//! What clients want of a store.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

/// What clients want. Shares are between 0 and 1.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Demand {
    /// Read and written together, each second.
    pub bytes_per_second: f64,
    /// Of those, what is read.
    #[serde(rename = "read_ratio")]
    pub read_share: f64,
    /// Of the written chunks, those that are stored already.
    #[serde(rename = "duplicate_ratio")]
    pub duplicate_share: f64,
    /// Of a unique chunk's bytes, those that are left.
    #[serde(rename = "compressed_ratio")]
    pub compressed_share: f64,
    /// What clients see of the store when it is full.
    pub capacity_bytes: f64,
}

/// A demand that makes no sense, and which part of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum DemandError {
    /// Nothing is asked for.
    NoThroughput,
    /// A share is not between 0 and 1.
    NoShare(&'static str),
}

impl std::error::Error for DemandError {}

impl Display for DemandError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoThroughput => write!(f, "a plan is for more than no bytes a second"),
            Self::NoShare(what) => write!(f, "{what} are between 0 and 100 percent"),
        }
    }
}

impl Demand {
    /// The same, if it makes sense.
    ///
    /// # Errors
    /// [`DemandError`] names the part that does not.
    pub fn checked(self) -> Result<Self, DemandError> {
        if !self.bytes_per_second.is_finite() || self.bytes_per_second <= 0.0 {
            return Err(DemandError::NoThroughput);
        }
        let shares = [
            ("reads", self.read_share),
            ("duplicates", self.duplicate_share),
            ("compressed bytes", self.compressed_share),
        ];
        match shares.into_iter().find(|(_, share)| !(0.0..=1.0).contains(share)) {
            Some((what, _)) => Err(DemandError::NoShare(what)),
            None => Ok(self),
        }
    }

    /// Of all bytes, those that are written.
    #[must_use]
    pub fn write_share(&self) -> f64 {
        1.0 - self.read_share
    }

    /// Of all bytes, those that are written and new.
    #[must_use]
    pub fn unique_share(&self) -> f64 {
        self.write_share() * (1.0 - self.duplicate_share)
    }
}
