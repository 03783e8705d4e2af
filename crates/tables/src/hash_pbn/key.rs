//! The keyed hash of a fingerprint, and how buckets share the hashes.
//!
//! Fingerprints are random bytes, but clients choose the content they come from and could look for
//! content whose fingerprints meet in one bucket. The key is the store's own, so they do not know
//! what to search for.

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

/// The bucket of a hash in a turn of so many: they share the hashes evenly, in ascending order.
pub(super) fn bucket_of(hash: u64, buckets: u64) -> u64 {
    ((u128::from(hash) * u128::from(buckets)) >> 64) as u64
}

/// The least hash of a bucket; 2^64 for the one behind the last.
pub(super) fn start_of(bucket: u64, buckets: u64) -> u128 {
    (u128::from(bucket) << 64).div_ceil(u128::from(buckets))
}

#[cfg(test)]
mod tests {
    use format::units::Fingerprint;

    use super::{BucketKey, bucket_of, start_of};

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
    fn buckets_share_all_hashes_in_order() {
        for buckets in [1, 2, 3, 78, 1 << 20, (1 << 47) - 1] {
            assert_eq!((start_of(0, buckets), start_of(buckets, buckets)), (0, 1 << 64));
            for bucket in [0, 1, buckets / 3, buckets - 1].into_iter().filter(|&b| b < buckets) {
                let start = start_of(bucket, buckets) as u64;
                let last = (start_of(bucket + 1, buckets) - 1) as u64;
                assert_eq!([start, last].map(|hash| bucket_of(hash, buckets)), [bucket; 2]);
            }
        }
    }
}
