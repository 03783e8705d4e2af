//! Growths of a store in a workload.

use crate::dice::Dice;
use crate::script::{Life, Request, Verb};

/// The store grows now and then: of dice of its own, so that all else is as it was without.
pub(super) fn grow(dice: &mut Dice, lives: &mut [Life]) {
    for life in lives {
        for _ in 0..dice.below(3) {
            let at = dice.below(1 + life.requests.len() as u64) as usize;
            let verb = Verb::Grow { further: dice.once_in(2) };
            life.requests.insert(at, Request { verb, steps: dice.below(8) as u32 });
        }
    }
}
