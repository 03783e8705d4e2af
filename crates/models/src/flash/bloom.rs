//! EaD's Bloom filter, really built. The paper leaves its size and its number of functions open;
//! two functions and 2 x 10^8 bits fit its Table 4 best, and are what we take.

use crate::dice::mixed;

/// Bits that are set for a code.
const FUNCTIONS: u64 = 2;
/// Bits for a whole data set; a shorter trace has the same share of them.
pub const BLOOM_BITS: f64 = 2e8;

pub(super) struct Bloom {
    words: Vec<u64>,
    bits: u64,
}

impl Bloom {
    pub(super) fn new(bits: u64) -> Self {
        let bits = bits.max(64);
        Self { words: vec![0; bits.div_ceil(64) as usize], bits }
    }

    /// Whether the code may have been there before; it is from now on.
    pub(super) fn insert(&mut self, code: u32) -> bool {
        let mut was_there = true;
        for function in 0..FUNCTIONS {
            let bit = mixed(u64::from(code), function) % self.bits;
            let word = &mut self.words[(bit / 64) as usize];
            was_there &= *word >> (bit % 64) & 1 == 1;
            *word |= 1 << (bit % 64);
        }
        was_there
    }
}

#[cfg(test)]
mod tests {
    use super::Bloom;

    #[test]
    fn what_was_there_is_found_and_little_else() {
        let mut bloom = Bloom::new(200_000);
        let wrong = (0..40_000).filter(|&code| bloom.insert(code)).count();
        assert!((0..40_000).all(|code| bloom.insert(code)));
        // The mean over n of (1 - exp(-2n/m))^2 up to n = 0.2 m: 3.9%.
        assert!((1_300..1_900).contains(&wrong), "{wrong}");
    }
}
