//! Data zones that leave a store in a workload.

use super::Plan;
use crate::dice::Dice;
use crate::script::{Life, Request, Shape, Verb};

/// Data zones of the store, and containers of each.
const ZONES: u16 = 3;
const CONTAINERS: u32 = 6;
/// Steps of an evacuation at most.
const STEPS_MAX: u64 = 2 * CONTAINERS as u64;

impl Plan {
    /// The same with a store of several data zones, which are emptied and taken out.
    #[must_use]
    pub fn removing(self) -> Self {
        let shape = Shape {
            zones: ZONES,
            containers: CONTAINERS,
            tables_bytes: 6 << 20,
            contents: 3000,
            tight: true,
            ..self.shape
        };
        Self { shape, removes: true, ..self }
    }
}

/// Zones are emptied now and then, some of them whole.
pub(super) fn evacuate(dice: &mut Dice, lives: &mut [Life]) {
    for life in lives {
        for _ in 0..dice.below(4) {
            let at = dice.below(1 + life.requests.len() as u64) as usize;
            let (zone, more) = (dice.below(ZONES.into()) as u16, dice.below(STEPS_MAX) as u32);
            let verb = Verb::Evacuate { zone, more };
            life.requests.insert(at, Request { verb, steps: dice.below(8) as u32 });
        }
    }
}
