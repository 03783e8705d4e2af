//! What each stage takes for a byte or a chunk.

use serde::Serialize;

/// Bytes of a chunk.
pub(crate) const CHUNK_BYTES: f64 = 4096.0;

/// Nanoseconds of one core.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct StageCosts {
    /// Taking a request and answering it: system calls, wake-ups, its way through the queues.
    pub request_ns: f64,
    /// Taking a written chunk from a client, or giving a read one: copies and sockets.
    #[serde(rename = "door_chunk_ns")]
    pub door_ns: f64,
    /// Fetching frames that lie together for a read, by one operation of a device.
    pub fetch_ns: f64,
    /// A chunk's fingerprint.
    #[serde(rename = "fingerprint_chunk_ns")]
    pub fingerprint_ns: f64,
    /// A chunk compressed.
    #[serde(rename = "compress_chunk_ns")]
    pub compress_ns: f64,
    /// A chunk expanded.
    #[serde(rename = "expand_chunk_ns")]
    pub expand_ns: f64,
    /// What the one thread that owns the tables does for a chunk.
    #[serde(rename = "core_chunk_ns")]
    pub core_ns: f64,
    /// What it does besides for a chunk that is new: an entry of each table, a place, a record.
    #[serde(rename = "core_new_chunk_ns")]
    pub core_new_ns: f64,
}

impl StageCosts {
    /// Where nothing was measured: what a chunk took of a server, user and system, under five
    /// workloads over NBD on a quiet machine (docs/measurements/056); of that, the thread of the
    /// tables as `bench cores` finds it (docs/measurements/018).
    pub const CALIBRATED: Self = Self {
        request_ns: 7700.0,
        door_ns: 2100.0,
        fetch_ns: 7300.0,
        fingerprint_ns: 1000.0,
        compress_ns: 2500.0,
        expand_ns: 850.0,
        core_ns: 650.0,
        core_new_ns: 1050.0,
    };
}
