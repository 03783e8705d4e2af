//! How fast work that goes in steps is done beside clients: a rate, kept by waiting between steps.

use std::thread;
use std::time::{Duration, Instant};

use crate::args::Rate;
use crate::error::CliError;
use crate::interrupt::Interrupt;

/// A wait is cut into these, so that a signal is heard.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// Of a store that is being served, unless asked for otherwise.
const RATE_SERVED: u64 = 100 << 20;

/// When the next step is due.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: Rate,
    due: Instant,
}

impl Pace {
    /// The rate that was asked for, or what suits a store that is being served or not.
    pub(crate) fn new(asked: Option<Rate>, is_served: bool) -> Self {
        let fitting = if is_served { Rate::BytesPerSecond(RATE_SERVED) } else { Rate::Unlimited };
        Self { rate: asked.unwrap_or(fitting), due: Instant::now() }
    }

    /// A step has done so much.
    pub(crate) fn spend(&mut self, bytes: u64) {
        if let Rate::BytesPerSecond(rate) = self.rate {
            let takes = Duration::from_secs_f64(bytes as f64 / rate as f64);
            // What could not be done in its time is not made up for by being faster later.
            self.due = self.due.max(Instant::now() - takes) + takes;
        }
    }

    /// Waits until the next step is due; an error when an end has been asked for.
    pub(crate) fn wait(&self, interrupt: &Interrupt) -> Result<(), CliError> {
        loop {
            interrupt.check()?;
            let left = self.due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(WAIT_MAX));
        }
    }
}
