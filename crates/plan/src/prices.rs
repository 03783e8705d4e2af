//! Dollars. What nobody says otherwise is FIDR's (section 7.8), of 2019: put your own into a file.

use serde::{Deserialize, Serialize};

/// Prices, each with its unit in its name; a file may have some of them.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// Data and table devices.
    pub ssd_dollars_per_gb: f64,
    /// Memory.
    pub dram_dollars_per_gb: f64,
    /// One core of a processor.
    pub core_dollars: f64,
    /// An accelerator that hashes, for what it hashes.
    pub hashing_dollars_per_gb_per_second: f64,
    /// An accelerator that compresses, for what clients read and write.
    pub compression_dollars_per_gb_per_second: f64,
    /// An engine that finds buckets.
    pub table_cache_dollars: f64,
}

impl Default for Prices {
    /// FIDR's: a processor of 22 cores for $7000; an FPGA for $7000, of which 70% can be used; of
    /// it the NIC's hashing takes 10.7% for 8 GB/s and the cache engine 78.8%. Compression is our
    /// fit of the paper's savings (`docs/reproduction.md`).
    fn default() -> Self {
        Self {
            ssd_dollars_per_gb: 0.5,
            dram_dollars_per_gb: 5.5,
            core_dollars: 7000.0 / 22.0,
            hashing_dollars_per_gb_per_second: 7000.0 * 0.107 / 0.7 / 8.0,
            compression_dollars_per_gb_per_second: 190.0,
            table_cache_dollars: 7000.0 * 0.788 / 0.7,
        }
    }
}

impl Prices {
    /// Whether each can be paid: a finite number that is not negative.
    #[must_use]
    pub fn are_payable(&self) -> bool {
        let all = [
            self.ssd_dollars_per_gb,
            self.dram_dollars_per_gb,
            self.core_dollars,
            self.hashing_dollars_per_gb_per_second,
            self.compression_dollars_per_gb_per_second,
            self.table_cache_dollars,
        ];
        all.into_iter().all(|price| price.is_finite() && price >= 0.0)
    }
}
