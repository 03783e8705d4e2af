//! What one pass over a mebibyte of chunks takes: how `codecs` and `kinds` time a function.

use std::time::Instant;

use crate::source::REQUEST_CHUNKS;

/// Nanoseconds a chunk of `work`, which goes through a request's chunks: over so many passes, after
/// one that brings them into the caches and does not count.
pub(crate) fn ns_per_chunk(passes: usize, mut work: impl FnMut()) -> f64 {
    work();
    let begun = Instant::now();
    (0..passes).for_each(|_| work());
    begun.elapsed().as_nanos() as f64 / (passes * REQUEST_CHUNKS) as f64
}
