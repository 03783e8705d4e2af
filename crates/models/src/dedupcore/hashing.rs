//! DedupCore's hashing beside its input, and the Bloom filter of a bucket (chapter 4).

use crate::units::CHUNK_BYTES;

/// Of the input, each cycle.
const INPUT_BYTES: u64 = 64;
/// Of one core, each page.
const CORE_CYCLES: u64 = 3360;
const CORES: u64 = 64;
const BLOOM_BITS: f64 = 32.0;
const BLOOM_FUNCTIONS: i32 = 3;

/// Cycles in which a page comes in.
#[must_use]
pub fn input_cycles_per_page() -> f64 {
    (CHUNK_BYTES / INPUT_BYTES) as f64
}

/// Cycles in which the cores together hash a page.
#[must_use]
pub fn hash_cycles_per_page() -> f64 {
    CORE_CYCLES as f64 / CORES as f64
}

/// Of a hundred new pages, how many the filter of a bucket with this number of entries takes for
/// known.
#[must_use]
pub fn bloom_false_percent(entries: u32) -> f64 {
    let bits = BLOOM_FUNCTIONS * entries as i32;
    let is_set = 1.0 - (1.0 - 1.0 / BLOOM_BITS).powi(bits);
    100.0 * is_set.powi(BLOOM_FUNCTIONS)
}

/// The same over all buckets, whose entries are Poisson's with this mean.
#[must_use]
pub fn bloom_false_percent_poisson(mean: f64) -> f64 {
    let mut chance = (-mean).exp();
    let mut sum = 0.0;
    for entries in 0..100_u32 {
        sum += chance * bloom_false_percent(entries);
        chance *= mean / f64::from(entries + 1);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::{bloom_false_percent, bloom_false_percent_poisson};

    #[test]
    fn an_empty_filter_takes_nothing_for_known_and_a_full_one_everything() {
        assert!(bloom_false_percent(0).abs() < 1e-12);
        assert!(bloom_false_percent(1_000) > 99.9);
        assert!(bloom_false_percent_poisson(8.0) > bloom_false_percent(8));
    }
}
