//! Random choices that a printed number can repeat.

use std::time::{SystemTime, UNIX_EPOCH};

/// A small generator (SplitMix64): good enough to choose moments and sizes.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    state: u64,
}

impl Dice {
    /// Repeats itself for the same `seed`.
    pub(crate) fn new(seed: u64) -> Dice {
        Dice { state: seed }
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` up to, but not including, `high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low).max(1)
    }
}

/// A seed nobody has thrown yet; short, so that it can be typed again.
pub(crate) fn fresh() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::from(since.subsec_nanos()) ^ since.as_secs() & 0xffff_ffff
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn a_seed_repeats_its_throws_within_their_bounds() {
        let (mut first, mut second) = (Dice::new(7), Dice::new(7));
        for _ in 0..100 {
            let thrown = first.between(10, 20);
            assert_eq!(thrown, second.between(10, 20));
            assert!((10..20).contains(&thrown));
        }
    }
}
