//! A failing script made short: requests are left out as long as it still fails in the same way.
//!
//! Delta debugging: halves, quarters and so on down to single requests are tried without. What is
//! left out may move the writes behind it, and with them the crashes looked at aside; enough of
//! them are looked at that the failure is mostly found again.

use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::script::{End, Script};
use crate::simulation::{Look, Simulation};

/// A script that fails, and how.
pub struct Shrunk {
    /// The script.
    pub script: Script,
    /// How it fails.
    pub failure: Failure,
    /// Runs that were tried.
    pub tries: u64,
}

/// Makes a script that fails short, within about `time_max`.
#[must_use]
pub fn shrink(script: Script, failure: Failure, time_max: Duration) -> Shrunk {
    let begun = Instant::now();
    let mut shrunk = Shrunk { script, failure, tries: 0 };
    shrunk.cut_the_rest();
    let mut size = shrunk.requests().div_ceil(2);
    while size > 0 && begun.elapsed() < time_max {
        let mut at = 0;
        let mut shorter = false;
        while at < shrunk.requests() && begun.elapsed() < time_max {
            if shrunk.leave_out(at, size) {
                shorter = true;
            } else {
                at += size;
            }
        }
        size = if size == 1 && shorter { 1 } else { size / 2 };
    }
    shrunk.leave_out_lives();
    shrunk
}

impl Shrunk {
    fn requests(&self) -> usize {
        self.script.lives.iter().map(|life| life.requests.len()).sum()
    }

    /// Lives after the one that failed.
    fn cut_the_rest(&mut self) {
        let mut script = self.script.clone();
        script.lives.truncate(self.failure.life);
        if self.failure.life == script.lives.len()
            && let Some(last) = script.lives.last_mut()
        {
            last.requests.truncate(self.failure.request);
        }
        self.try_script(script);
    }

    fn leave_out(&mut self, at: usize, size: usize) -> bool {
        let mut script = self.script.clone();
        let mut number = 0;
        for life in &mut script.lives {
            life.requests.retain(|_| {
                number += 1;
                !(at + 1..=at + size).contains(&number)
            });
        }
        self.try_script(script)
    }

    /// Lives in which nothing is asked any more, and crashes that may as well be closes.
    fn leave_out_lives(&mut self) {
        let mut at = 0;
        while at < self.script.lives.len() {
            let mut script = self.script.clone();
            let empty = script.lives[at].requests.is_empty();
            if empty {
                script.lives.remove(at);
            } else {
                script.lives[at].end = End::Close;
            }
            at += usize::from(!(self.try_script(script) && empty));
        }
    }

    /// Takes a shorter script if it fails in the same way.
    fn try_script(&mut self, script: Script) -> bool {
        self.tries += 1;
        let look = if self.failure.aside.is_some() { Look::LastLife } else { Look::Nowhere };
        let run = Simulation::of_script(script.clone(), look).and_then(Simulation::run);
        match run {
            Err(failure) if failure.broken.is_like(&self.failure.broken) => {
                (self.script, self.failure) = (script, failure);
                true
            }
            _ => false,
        }
    }
}
