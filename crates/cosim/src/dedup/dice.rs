//! Chance that follows from a seed (xorshift64*).

/// A generator.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// One that follows from `seed`.
    pub fn new(seed: u64) -> Self {
        // Any odd factor spreads small seeds; zero is the one state that never changes.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Any number.
    pub fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.roll() >> 16) % end
    }

    /// True once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
