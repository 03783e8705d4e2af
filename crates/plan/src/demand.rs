//! What clients want of a store.

use serde::Serialize;

use crate::costs::CHUNK_BYTES;

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
    /// Of an average request.
    pub request_bytes: f64,
    /// What clients see of the store when it is full.
    pub capacity_bytes: f64,
}

impl Demand {
    /// Of all bytes, those that are written.
    #[must_use]
    pub fn write_share(&self) -> f64 {
        1.0 - self.read_share
    }

    /// Requests for each chunk: a request has one at least.
    #[must_use]
    pub fn requests_per_chunk(&self) -> f64 {
        (CHUNK_BYTES / self.request_bytes).min(1.0)
    }

    /// Operations of a device for each chunk that is read: one for a request, and one for each
    /// duplicate within it, whose frame lies elsewhere.
    #[must_use]
    pub fn fetches_per_read(&self) -> f64 {
        let requests = self.requests_per_chunk();
        requests + self.duplicate_share * (1.0 - requests)
    }

    /// Of all bytes, those that are written and new.
    #[must_use]
    pub fn unique_share(&self) -> f64 {
        self.write_share() * (1.0 - self.duplicate_share)
    }
}
