//! SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): every
//! random bit of [`crate::MemoryDisk`] comes from here, so that a seed tells the whole run.

/// A stream of numbers that a seed determines.
#[derive(Clone, Debug)]
pub(crate) struct SplitMix(u64);

impl SplitMix {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0. The bias of the remainder is harmless here.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix;

    /// The first numbers that the reference implementation gives for this seed.
    #[test]
    fn matches_the_reference() {
        let mut prng = SplitMix::new(1_234_567);
        assert_eq!(prng.next(), 6_457_827_717_110_365_317);
        assert_eq!(prng.next(), 3_203_168_211_198_807_973);
    }
}
