//! How long a soak goes on, and where its kills fall.

use std::time::{Duration, Instant};

use crate::acceptance::{Dice, Setting};

const ROUNDS_MIN: u64 = 3;
const ROUNDS_SHORT: u64 = 2;
/// How far behind the line that it waits for a kill may come.
const PAUSE_MICROSECONDS_MAX: u64 = 50_000;

/// The rounds of one scenario, with the dice for them.
pub(crate) struct Rounds {
    begun: Instant,
    lasts: Duration,
    rounds_min: u64,
    short: bool,
    done: u64,
    pub(crate) dice: Dice,
}

impl Rounds {
    /// None done yet.
    pub(crate) fn new(setting: &Setting) -> Rounds {
        println!("seed {}", setting.seed);
        Rounds {
            begun: Instant::now(),
            lasts: Duration::from_secs(60 * setting.minutes.unwrap_or(0)),
            rounds_min: if setting.short { ROUNDS_SHORT } else { ROUNDS_MIN },
            short: setting.short,
            done: 0,
            dice: Dice::new(setting.seed),
        }
    }

    /// The number of the next round, from 1 on; None when there have been enough.
    pub(crate) fn next(&mut self) -> Option<u64> {
        let goes_on = self.done < self.rounds_min || self.begun.elapsed() < self.lasts;
        goes_on.then(|| {
            self.done += 1;
            self.done
        })
    }

    /// A kill for the next round: after so many lines of the program's report, and a little later.
    pub(crate) fn kill_within(&mut self, lines_min: u64, lines_max: u64) -> KillAt {
        let lines_max =
            if self.short { lines_max.div_ceil(4).max(lines_min + 1) } else { lines_max };
        KillAt {
            lines: self.dice.between(lines_min, lines_max),
            pause: Duration::from_micros(self.dice.between(0, PAUSE_MICROSECONDS_MAX)),
        }
    }
}

/// The moment of a kill.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KillAt {
    pub(crate) lines: u64,
    pub(crate) pause: Duration,
}
