//! What each stage takes for a byte or a chunk.

use serde::Serialize;

/// Bytes of a chunk.
pub(crate) const CHUNK_BYTES: f64 = 4096.0;

/// Nanoseconds of one core.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct StageCosts {
    /// Taking a written chunk from a client, or giving a read one: copies, sockets, system calls.
    #[serde(rename = "door_chunk_ns")]
    pub door_ns: f64,
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
}

impl StageCosts {
    /// Where nothing was measured: the thread of the tables by the design's budget of 0.4 us a
    /// chunk, the others of a core at 3 GHz with AVX2, rounded up.
    pub const BUDGET: Self = Self {
        door_ns: 1500.0,
        fingerprint_ns: 1000.0,
        compress_ns: 5000.0,
        expand_ns: 1500.0,
        core_ns: 400.0,
    };
}
