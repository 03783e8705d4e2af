//! The filter before the buckets: a Bloom filter in blocks, one block for each bucket.
//!
//! A block holds as many bits as the mean bucket has entries times the bits for an entry. It is
//! read in one or two cache lines, made again alone when its bucket is made again, and needs no
//! removal. This is `DedupCore`'s filter too (ETH 2023): one Bloom filter for each bucket.
//! Buckets with more entries than the mean say maybe more often, so it answers a little worse than
//! one filter over everything.

use serde::Serialize;

use crate::dice::mixed;

/// The filter of all buckets of a table.
pub(super) struct Filter {
    block_bits: u64,
    hashes: u64,
    words: Vec<u64>,
    words_per_block: usize,
}

impl Filter {
    /// None when there are no bits for an entry: then nothing is filtered.
    pub(super) fn new(bits_per_entry: u64, entries_per_block: u64, blocks: u64) -> Option<Self> {
        let block_bits = bits_per_entry * entries_per_block;
        let words_per_block = block_bits.div_ceil(64) as usize;
        let words = vec![0; words_per_block * blocks as usize];
        let hashes = hashes_best(bits_per_entry);
        (block_bits > 0).then_some(Self { block_bits, hashes, words, words_per_block })
    }

    /// Room for one bucket more.
    pub(super) fn push_block(&mut self) {
        self.words.resize(self.words.len() + self.words_per_block, 0);
    }

    pub(super) fn clear(&mut self, block: u64) {
        let first = block as usize * self.words_per_block;
        self.words[first..first + self.words_per_block].fill(0);
    }

    pub(super) fn insert(&mut self, block: u64, hash: u64) {
        let first = block as usize * self.words_per_block;
        let block_bits = self.block_bits;
        for bit in bits(hash, self.hashes, block_bits) {
            self.words[first + (bit / 64) as usize] |= 1 << (bit % 64);
        }
    }

    pub(super) fn may_hold(&self, block: u64, hash: u64) -> bool {
        let first = block as usize * self.words_per_block;
        bits(hash, self.hashes, self.block_bits)
            .all(|bit| self.words[first + (bit / 64) as usize] >> (bit % 64) & 1 == 1)
    }
}

/// One hash has enough in it for so many places in a block.
const PLACES_PER_HASH: u64 = 5;

/// Places in a block, as good as independent: a step of fixed width would in blocks this small be
/// wrong half as often again. The bucket was chosen by the same hash, so it is mixed once more.
fn bits(hash: u64, hashes: u64, block_bits: u64) -> impl Iterator<Item = u64> {
    let mut rest = 0;
    (0..hashes).map(move |number| {
        if number % PLACES_PER_HASH == 0 {
            rest = mixed(hash, number + 1);
        }
        let product = u128::from(rest) * u128::from(block_bits);
        rest = product as u64;
        (product >> 64) as u64
    })
}

fn hashes_best(bits_per_entry: u64) -> u64 {
    ((bits_per_entry as f64 * std::f64::consts::LN_2).round() as u64).max(1)
}

/// What a filter of so many bits answers wrongly, in percent of the fingerprints not stored.
#[derive(Clone, Debug, Serialize)]
pub struct FilterRow {
    /// Bits for an entry.
    pub bits: u64,
    /// Bits that are set for an entry, in the Bloom filters.
    pub hashes: u64,
    /// By trial.
    pub measured_percent: f64,
    /// Of the blocks, for buckets of chance size (formula).
    pub blocked_formula_percent: f64,
    /// One Bloom filter over everything (formula).
    pub bloom_formula_percent: f64,
    /// An xor filter, 1.23 times its fingerprints (formula: Graf and Lemire, arXiv:1912.08258).
    pub xor_formula_percent: f64,
    /// A ribbon filter, 1.05 times (formula: Dillinger and Walzer, arXiv:2103.02515).
    pub ribbon_formula_percent: f64,
}

/// What filters of these bits answer wrongly, for buckets of `mean` entries.
pub(super) fn trial(bits: u64, mean: u64, blocks: u64, probes: u64, seed: u64) -> FilterRow {
    let mut found = 0;
    if let Some(mut filter) = Filter::new(bits, mean, blocks) {
        let block_of = |hash: u64| ((u128::from(hash) * u128::from(blocks)) >> 64) as u64;
        for number in 0..blocks * mean {
            let hash = mixed(seed, number);
            filter.insert(block_of(hash), hash);
        }
        for number in 0..probes {
            let hash = mixed(seed, blocks * mean + number);
            found += u64::from(filter.may_hold(block_of(hash), hash));
        }
    } else {
        found = probes;
    }
    let hashes = if bits == 0 { 0 } else { hashes_best(bits) };
    let fuse = |overhead: f64| 100.0 * (-(bits as f64) / overhead).exp2();
    FilterRow {
        bits,
        hashes,
        measured_percent: found as f64 * 100.0 / probes as f64,
        blocked_formula_percent: 100.0 * blocked_formula(bits, hashes, mean),
        bloom_formula_percent: 100.0 * bloom_formula(bits, hashes),
        xor_formula_percent: fuse(1.23),
        ribbon_formula_percent: fuse(1.05),
    }
}

fn bloom_formula(bits: u64, hashes: u64) -> f64 {
    if bits == 0 {
        return 1.0;
    }
    (1.0 - (-(hashes as f64) / bits as f64).exp()).powi(hashes as i32)
}

/// Entries of a bucket are as many as a Poisson distribution says.
fn blocked_formula(bits: u64, hashes: u64, mean: u64) -> f64 {
    if bits == 0 {
        return 1.0;
    }
    let block_bits = (bits * mean) as f64;
    let mut chance = (-(mean as f64)).exp();
    let mut sum = 0.0;
    for entries in 0..4 * mean {
        let clear = (1.0 - 1.0 / block_bits).powf((hashes * entries) as f64);
        sum += chance * (1.0 - clear).powi(hashes as i32);
        chance *= mean as f64 / (entries + 1) as f64;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::{Filter, trial};
    use crate::dice::mixed;

    #[test]
    fn what_is_in_it_is_never_denied() {
        let mut filter = Filter::new(8, 62, 10).unwrap();
        (0..620).for_each(|number| filter.insert(number % 10, mixed(3, number)));
        filter.push_block();
        filter.insert(10, 7);
        assert!((0..620).all(|number| filter.may_hold(number % 10, mixed(3, number))));
        assert!(filter.may_hold(10, 7));
        filter.clear(10);
        assert!(!filter.may_hold(10, 7));
        assert!(Filter::new(0, 62, 10).is_none());
    }

    #[test]
    fn trials_give_what_the_formula_says() {
        for bits in [4, 8, 10, 16] {
            let row = trial(bits, 78, 2_000, 2_000_000, 1);
            let ratio = row.measured_percent / row.blocked_formula_percent;
            assert!((0.9..1.1).contains(&ratio), "{row:?}");
            assert!(row.blocked_formula_percent > row.bloom_formula_percent, "{row:?}");
        }
        assert_eq!(trial(0, 78, 10, 10, 1).measured_percent, 100.0);
    }
}
