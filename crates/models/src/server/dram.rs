//! Bytes of DRAM traffic for a byte of a client, path by path as in FIDR's Table 1.
//!
//! Whatever crosses the host's memory is counted once where a device writes it and once where the
//! next one reads it, on the path of each. One thing departs from that count: compressed chunks on
//! their way from the FPGA to the SSD mostly stay in the last-level cache, and how much of them is
//! the one fitted parameter. The same share serves both paths, writes and mixed: four rows of
//! Table 1, and two of Figure 4.

use crate::parameter::Parameter;
use crate::units::BytesPerByte;

use super::design::Design;
use super::workload::Workload;

/// Of compressed chunks on their way to the SSD, what goes through DRAM.
pub(super) static THROUGH_DRAM: Parameter = Parameter::fitted(
    "compressed chunks that leave the last-level cache on their way to the SSD",
    0.29,
    "of their bytes",
    "on Table 1: FPGA and SSD, writes",
);
/// How full a bucket is that is scanned: F13.
pub(super) static BUCKET_FILL: Parameter =
    Parameter::derived("bytes of a bucket that are scanned", 0.604, "of 4 KiB", "F13");
/// A miss fetches a bucket, and another one is flushed for it.
pub(super) static BUCKETS_PER_MISS: Parameter =
    Parameter::derived("buckets moved by a miss", 2.0, "", "section 5.5: fetch and flush");

/// By path.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct DramTraffic {
    /// NIC and host memory.
    pub nic: BytesPerByte,
    /// The predictor of unique chunks.
    pub prediction: BytesPerByte,
    /// Host memory and FPGAs.
    pub accelerator: BytesPerByte,
    /// Buckets of the Hash-PBN table.
    pub table_cache: BytesPerByte,
    /// Host memory and data SSDs.
    pub data_ssd: BytesPerByte,
}

/// Of a design under a workload.
#[must_use]
pub fn dram_traffic(design: Design, workload: &Workload) -> DramTraffic {
    let buckets = BUCKET_FILL.value + BUCKETS_PER_MISS.value * workload.miss_share();
    let table_cache = BytesPerByte(workload.write_share * buckets);
    if design.hashes_in_nic() {
        let none = BytesPerByte(0.0);
        return DramTraffic {
            nic: none,
            prediction: none,
            accelerator: none,
            table_cache,
            data_ssd: none,
        };
    }
    let compressed = workload.stored_share() * THROUGH_DRAM.value;
    let read = workload.read_share();
    let expanded = read * workload.compressed_share;
    DramTraffic {
        nic: BytesPerByte(1.0),
        prediction: BytesPerByte(workload.write_share),
        accelerator: BytesPerByte(workload.write_share + compressed + expanded + read),
        table_cache,
        data_ssd: BytesPerByte(compressed + expanded),
    }
}

impl DramTraffic {
    /// Of all paths.
    #[must_use]
    pub fn total(&self) -> BytesPerByte {
        self.nic + self.prediction + self.accelerator + self.table_cache + self.data_ssd
    }
}
