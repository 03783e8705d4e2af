//! The short-term scheduler: requests are put off, within a bound, until the cores that they want
//! are idle.
//!
//! CIDR's rule is not in the texts. Ours: time goes in slots. Without a scheduler a slot's requests
//! go to the device as one batch, and the batch takes as long as its busiest kind of cores. With
//! one, the requests of several slots are given to the device together, mixed, so that one kind's
//! rush meets another's calm; nothing waits longer than those slots.

use crate::dice::Dice;

use super::fpga::Mix;

/// Requests of one slot, in kinds of cores that they want.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// To be hashed.
    pub hash: u64,
    /// To be compressed.
    pub compress: u64,
    /// To be expanded.
    pub expand: u64,
}

/// Loads of a mix on average, of this number of requests a slot, that change from slot to slot:
/// half of them have twice the mix's reads or writes.
#[must_use]
pub fn made_loads(mix: &Mix, slots: usize, requests: u64, seed: u64) -> Vec<Load> {
    let mut dice = Dice::new(seed);
    let unique = if mix.hashed > 0.0 { mix.compressed / mix.hashed } else { 0.0 };
    let mut is_true = |share: f64| (dice.below(1 << 32) as f64) < share * (1_u64 << 32) as f64;
    let mut slot = |_| {
        let rush = if is_true(0.5) { (2.0 * mix.hashed).min(1.0) } else { mix.hashed };
        let writes = if is_true(0.5) { rush } else { (2.0 * mix.hashed - rush).max(0.0) };
        let mut load = Load::default();
        for _ in 0..requests {
            if is_true(writes) {
                load.hash += 1;
                load.compress += u64::from(is_true(unique));
            } else {
                load.expand += 1;
            }
        }
        load
    };
    (0..slots).map(&mut slot).collect()
}

/// Rounds of the device for all loads, if this number of slots is scheduled together. A round is
/// what cores laid out for `mix` do of it.
#[must_use]
pub fn rounds(mix: &Mix, loads: &[Load], slots_together: usize) -> f64 {
    let busiest = |loads: &[Load]| {
        let sum = |of: fn(&Load) -> u64| loads.iter().map(of).sum::<u64>() as f64;
        let kinds = [
            sum(|load| load.hash) / mix.hashed,
            sum(|load| load.compress) / mix.compressed,
            sum(|load| load.expand) / mix.expanded,
        ];
        kinds.into_iter().filter(|kind| kind.is_finite()).fold(0.0, f64::max)
    };
    loads.chunks(slots_together.max(1)).map(busiest).sum()
}

#[cfg(test)]
mod tests {
    use super::{Load, Mix, made_loads, rounds};

    #[test]
    fn one_rush_meets_the_others_calm() {
        let mix = Mix { hashed: 0.5, compressed: 0.5, expanded: 0.5 };
        let writes = Load { hash: 10, compress: 10, expand: 0 };
        let reads = Load { hash: 0, compress: 0, expand: 10 };
        let loads = [writes, reads];
        assert!((rounds(&mix, &loads, 1) - 2.0 * rounds(&mix, &loads, 2)).abs() < 1e-9);
    }

    #[test]
    fn more_slots_together_never_take_longer() {
        let mix = Mix::of(0.5, 0.3);
        let loads = made_loads(&mix, 256, 64, 1);
        let taken = [1, 2, 4, 8, 16, 256].map(|slots| rounds(&mix, &loads, slots));
        assert!(taken.windows(2).all(|pair| pair[1] <= pair[0] + 1e-9), "{taken:?}");
    }
}
