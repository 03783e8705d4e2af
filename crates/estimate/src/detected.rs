//! What one way to find a duplicate found in memory, and what it took.

use std::time::{Duration, Instant};

use serde::Serialize;

/// Chunks that a worker gets at a time.
pub(crate) const BATCH_CHUNKS: usize = 64;
/// A chunk's number in an index: a PBN has 48 bits.
pub(crate) const NUMBER_BYTES: usize = 6;

/// What was found in a batch.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) duplicates: u64,
    pub(crate) collisions: u64,
}

/// What one way found, and what it took of a core, in nanoseconds per chunk that is not zeros.
#[derive(Clone, Debug, Serialize)]
pub struct DetectedBy {
    /// Its name: that of a kind, `auto` or `sampling`.
    pub kind: &'static str,
    /// Whether it is believed without a look at the bytes; the others' are compared.
    pub strong: bool,
    /// Chunks that were there already.
    pub duplicates: u64,
    /// Chunks that were there already and were not found.
    pub lost: u64,
    /// Chunks whose fingerprint was that of other bytes.
    pub collisions: u64,
    /// Chunks that were fingerprinted: all, but for `auto` and sampling.
    pub hashes: u64,
    /// Bytes of an index in memory for each chunk that is not zeros: key and number of what is
    /// entered, without slack.
    pub index_bytes_per_chunk: f64,
    /// Making the fingerprint.
    pub fingerprint_ns: f64,
    /// Looking it up, or entering it.
    pub lookup_ns: f64,
    /// Comparing, where there was something to compare with; from memory.
    pub compare_ns: f64,
    /// All three.
    pub total_ns: f64,
}

/// What was counted while one way went through the chunks.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) duplicates: u64,
    pub(crate) collisions: u64,
    pub(crate) hashes: u64,
    pub(crate) index_bytes: u64,
}

impl Counted {
    /// Adds what was found among `hashes` chunks.
    pub(crate) fn add(&mut self, hashes: usize, found: Found) {
        self.hashes += hashes as u64;
        self.duplicates += found.duplicates;
        self.collisions += found.collisions;
    }
}

impl DetectedBy {
    /// Of `times` for fingerprinting, looking up and comparing `chunks` chunks.
    pub(crate) fn new(
        kind: &'static str,
        strong: bool,
        chunks: usize,
        counted: Counted,
        times: [Duration; 3],
    ) -> Self {
        let chunks = (chunks as f64).max(1.0);
        let [fingerprint_ns, lookup_ns, compare_ns] =
            times.map(|time| time.as_nanos() as f64 / chunks);
        let Counted { duplicates, collisions, hashes, index_bytes } = counted;
        Self {
            kind,
            strong,
            duplicates,
            lost: 0,
            collisions,
            hashes,
            index_bytes_per_chunk: index_bytes as f64 / chunks,
            fingerprint_ns,
            lookup_ns,
            compare_ns,
            total_ns: fingerprint_ns + lookup_ns + compare_ns,
        }
    }
}

pub(crate) fn timed<T>(sum: &mut Duration, work: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let result = work();
    *sum += begun.elapsed();
    result
}
