//! Bytes over PCIe for a byte of a client (FIDR, section 5.6): through the root complex, each way,
//! and inside a group of NIC, compression engine and data SSDs under one switch.

use crate::units::{BytesPerByte, CHUNK_BYTES};

use super::design::Design;
use super::workload::Workload;

/// A fingerprint to the host, and the index of a bucket to the engine.
const FINGERPRINT_BYTES: f64 = 32.0;
const INDEX_BYTES: f64 = 8.0;

/// By where.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct PcieTraffic {
    /// Into the host's memory.
    pub to_host: BytesPerByte,
    /// Out of it.
    pub from_host: BytesPerByte,
    /// From device to device, past the root complex.
    pub peer_to_peer: BytesPerByte,
}

/// Of a design under a workload; each miss fetches a bucket and flushes one.
#[must_use]
pub fn pcie_traffic(design: Design, workload: &Workload) -> PcieTraffic {
    let (write, read) = (workload.write_share, workload.read_share());
    let buckets = write * workload.miss_share();
    let fingerprints = write * FINGERPRINT_BYTES / CHUNK_BYTES as f64;
    let indices = write * INDEX_BYTES / CHUNK_BYTES as f64;
    let expanded = read * workload.compressed_share;
    let sum = BytesPerByte;
    if design.hashes_in_nic() {
        return PcieTraffic {
            to_host: sum(fingerprints + buckets),
            from_host: sum(indices + buckets),
            peer_to_peer: sum(workload.unique_share() + workload.stored_share() + expanded + read),
        };
    }
    PcieTraffic {
        to_host: sum(write + workload.stored_share() + fingerprints + buckets + expanded + read),
        from_host: sum(write + workload.stored_share() + buckets + expanded + read),
        peer_to_peer: sum(0.0),
    }
}
