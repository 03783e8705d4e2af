//! What clients do to a server: FIDR's four workloads (Table 3) and the two that it profiled
//! (section 3.2), whose rate of hits it does not say.

use crate::parameter::Parameter;

/// How often a bucket was in the table cache in the profiled workloads.
pub(super) static PROFILED_HITS: Parameter = Parameter::fitted(
    "hits of the table cache in the profiled workloads",
    0.725,
    "of look-ups",
    "on Figure 12: what hardware caching saves, Write-L",
);

/// What clients do.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Workload {
    /// As the paper calls it.
    pub name: &'static str,
    /// Of the bytes, those that are written.
    pub write_share: f64,
    /// Of the written, those that are stored already.
    pub duplicate_share: f64,
    /// Of a unique chunk's bytes, those that are left.
    pub compressed_share: f64,
    /// Of the look-ups, those whose bucket is cached.
    pub hit_share: f64,
}

const COMPRESSED_SHARE: f64 = 0.5;

/// Table 3.
pub const WRITE_H: Workload = Workload::writes("Write-H", 0.88, 0.90);
/// Table 3.
pub const WRITE_M: Workload = Workload::writes("Write-M", 0.84, 0.81);
/// Table 3.
pub const WRITE_L: Workload = Workload::writes("Write-L", 0.431, 0.45);
/// Table 3: half reads, half Write-H.
pub const READ_MIXED: Workload = Workload { name: "Read-Mixed", write_share: 0.5, ..WRITE_H };
/// Section 3.2, "Write-only".
pub static WRITES_PROFILED: Workload =
    Workload::writes("profiled, writes", 0.5, PROFILED_HITS.value);
/// Section 3.2, "Mixed read/write".
pub static MIXED_PROFILED: Workload = Workload {
    name: "profiled, mixed",
    write_share: 0.5,
    ..Workload::writes("", 0.5, PROFILED_HITS.value)
};

impl Workload {
    const fn writes(name: &'static str, duplicate_share: f64, hit_share: f64) -> Self {
        let compressed_share = COMPRESSED_SHARE;
        Self { name, write_share: 1.0, duplicate_share, compressed_share, hit_share }
    }

    /// Of a client's bytes, those that are new.
    #[must_use]
    pub fn unique_share(&self) -> f64 {
        self.write_share * (1.0 - self.duplicate_share)
    }

    /// Of a client's bytes, those that are written to data SSDs.
    #[must_use]
    pub fn stored_share(&self) -> f64 {
        self.unique_share() * self.compressed_share
    }

    /// Of a client's bytes, those that are read.
    #[must_use]
    pub fn read_share(&self) -> f64 {
        1.0 - self.write_share
    }

    /// Of the look-ups, those whose bucket has to be fetched.
    #[must_use]
    pub fn miss_share(&self) -> f64 {
        1.0 - self.hit_share
    }
}
