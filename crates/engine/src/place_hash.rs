//! A hash for maps by place: chunks that are neighbours stand beside each other in the map.
//!
//! Clients mostly write runs of chunks, and a map of all that is in the write buffer is larger than
//! the nearest caches of a processor. With a hash that scatters, each chunk of a run waits for
//! memory of its own; with this one a run of 64 shares a few cache lines. Runs themselves are
//! scattered by a multiplication whose halves are folded, so that strides of a power of two, which
//! file systems like, do not meet. The seven top bits, by which `hashbrown` tells apart what
//! stands side by side, differ among the neighbours.

use std::hash::{BuildHasherDefault, Hasher};

use hashbrown::HashMap;

/// A map by a place: a volume and an LBA, or a PBN.
pub(crate) type PlaceMap<K, V> = HashMap<K, V, BuildHasherDefault<PlaceHasher>>;

/// Chunks of a run that stand side by side.
const RUN_BITS: u32 = 6;
const TOP_BITS_AT: u32 = 57;

/// See the head of this file; made for a few words and a number at the end.
#[derive(Default)]
pub(crate) struct PlaceHasher {
    before: u64,
    number: u64,
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for PlaceHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.before = self.before.rotate_left(25) ^ self.number;
        self.number = value;
    }

    fn finish(&self) -> u64 {
        let run = (self.number >> RUN_BITS) ^ self.before.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let base =
            fold(fold(run ^ 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db), 0x8ebc_6af0_9c88_c6e3);
        let place = base.wrapping_add(self.number & ((1 << RUN_BITS) - 1));
        place ^ self.number << TOP_BITS_AT
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::hash::BuildHasher;

    use format::units::{Lba, VolumeId};

    use super::*;

    fn hash(volume: u32, lba: u64) -> u64 {
        BuildHasherDefault::<PlaceHasher>::default().hash_one((VolumeId(volume), Lba(lba)))
    }

    #[test]
    fn a_run_stands_side_by_side_and_is_told_apart() {
        for first in [0, 64, 1 << 20, 77 << 30] {
            let hashes: Vec<u64> = (first..first + 64).map(|lba| hash(3, lba)).collect();
            for (at, pair) in hashes.windows(2).enumerate() {
                let step = (pair[1].wrapping_sub(pair[0])) << 7 >> 7;
                assert_eq!(step, 1, "chunk {at} of the run at {first}");
            }
            let tops: BTreeSet<u64> = hashes.iter().map(|hash| hash >> TOP_BITS_AT).collect();
            assert!(tops.len() >= 60);
        }
    }

    /// Chi square over 1024 places, for strides of every power of two and several volumes.
    #[test]
    fn runs_are_scattered_whatever_their_stride() {
        for shift in 6..48 {
            for volume in [1, 2, 1000] {
                let mut counts = vec![0_u32; 1024];
                for n in 0..16_384_u64 {
                    counts[hash(volume, n << shift) as usize % 1024] += 1;
                }
                let square = |&count: &u32| (f64::from(count) - 16.0).powi(2) / 16.0;
                let chi_square: f64 = counts.iter().map(square).sum();
                assert!(chi_square < 1500.0, "stride 2^{shift}, volume {volume}: {chi_square}");
            }
        }
    }
}
