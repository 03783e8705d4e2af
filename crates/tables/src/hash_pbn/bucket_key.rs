//! Which bucket a fingerprint belongs to: a keyed hash and the shape of the table.
//!
//! Fingerprints are random bytes, but clients choose the content they come from and could look for
//! content whose fingerprints meet in one bucket. The key is the store's own, so they do not know
//! what to search for.

use format::root::HashShape;
use format::units::Fingerprint;

/// The store's key.
#[derive(Copy, Clone)]
pub(super) struct BucketKey(u64, u64);

const MIX: [u64; 4] =
    [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db, 0x8ebc_6af0_9c88_c6e3, 0x5899_65cc_7537_4cc3];

impl BucketKey {
    pub(super) fn new(seed: [u8; 16]) -> Self {
        let [low, high] = words(&seed);
        Self(fold(low ^ MIX[0], MIX[1]) ^ high, fold(high ^ MIX[2], MIX[3]) ^ low)
    }

    /// Two rounds of 128-bit multiplication over the 32 bytes.
    pub(super) fn hash(self, fingerprint: &Fingerprint) -> u64 {
        let [a, b, c, d] = words(&fingerprint.0);
        let Self(low, high) = self;
        let first = fold(a ^ low, b ^ high ^ MIX[0]);
        let second = fold(c ^ high ^ MIX[1], d ^ low ^ MIX[2]);
        fold(first ^ high ^ MIX[3], second ^ low)
    }
}

fn words<const WORDS: usize>(bytes: &[u8]) -> [u64; WORDS] {
    let mut words = [0; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// Number of buckets of a table of this shape.
pub(super) fn buckets(shape: &HashShape) -> u64 {
    (1 << shape.level) + shape.split
}

/// The bucket of a hash: its low bits, one more of them where the bucket is split already.
pub(super) fn bucket_of(shape: &HashShape, hash: u64) -> u64 {
    let bucket = hash & ((1 << shape.level) - 1);
    if bucket < shape.split { hash & ((2 << shape.level) - 1) } else { bucket }
}

#[cfg(test)]
mod tests {
    use format::root::HashShape;
    use format::units::Fingerprint;

    use super::{BucketKey, bucket_of, buckets};

    fn fingerprint(number: u64) -> Fingerprint {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Fingerprint(bytes)
    }

    /// Even consecutive numbers spread as if at random, and each key spreads them its own way.
    #[test]
    fn hashes_spread_over_the_buckets() {
        let (one, other) = (BucketKey::new([0; 16]), BucketKey::new([1; 16]));
        let mut counts = vec![0_u32; 1024];
        let mut same = 0;
        for number in 0..64 * 1024 {
            let hash = one.hash(&fingerprint(number));
            counts[(hash % 1024) as usize] += 1;
            same += u32::from(hash % 1024 == other.hash(&fingerprint(number)) % 1024);
        }
        let square = |&count: &u32| (f64::from(count) - 64.0).powi(2) / 64.0;
        let chi_square: f64 = counts.iter().map(square).sum();
        assert!((800.0..1250.0).contains(&chi_square), "chi square {chi_square} of 1023");
        assert!(same < 150, "{same} fell into the same bucket under another key");
    }

    #[test]
    fn every_bit_of_a_fingerprint_changes_half_of_its_hash() {
        let key = BucketKey::new([7; 16]);
        let base = Fingerprint([0x5a; 32]);
        for bit in 0..256 {
            let mut changed = base;
            changed.0[bit / 8] ^= 1 << (bit % 8);
            let differing = (key.hash(&base) ^ key.hash(&changed)).count_ones();
            assert!((12..=52).contains(&differing), "bit {bit} changes {differing}");
        }
    }

    #[test]
    fn a_split_moves_entries_only_to_the_new_bucket() {
        let shape = HashShape { level: 5, split: 11, entries: 0 };
        let after = HashShape { split: 12, ..shape };
        for hash in (0..10_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let (old, new) = (bucket_of(&shape, hash), bucket_of(&after, hash));
            assert!(old < buckets(&shape) && (old == new || (old == 11 && new == 32 + 11)));
        }
    }
}
