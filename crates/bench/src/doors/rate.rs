//! How long a run goes on, and what it came to.

use std::time::{Duration, Instant};

use super::load::Load;
use crate::failure::Failure;

/// When a run ends, and how closely it looks.
#[derive(Copy, Clone, Debug)]
pub(super) struct Limit {
    pub(super) volume_bytes: u64,
    pub(super) time: Duration,
    /// Of all connections together.
    pub(super) bytes_max: u64,
    /// Is all that is read compared with what was written.
    pub(super) verifies: bool,
}

impl Limit {
    /// Whether a connection that has done so many operations asks for no more.
    pub(super) fn is_over(&self, begun: Instant, done: u64, load: &Load) -> bool {
        let bytes_max = self.bytes_max / load.connections;
        done * u64::from(load.block_bytes) >= bytes_max || begun.elapsed() >= self.time
    }
}

/// What a connection, or all of them, did.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(super) struct Rate {
    pub(super) operations: u64,
    pub(super) seconds: f64,
}

impl Rate {
    pub(super) fn per_second(self) -> f64 {
        self.operations as f64 / self.seconds
    }
}

/// All operations in the time of the slowest connection; the first failure if there is one.
pub(super) fn together(
    rates: impl IntoIterator<Item = Result<Rate, Failure>>,
) -> Result<Rate, Failure> {
    rates.into_iter().try_fold(Rate::default(), |sum, rate| {
        let rate = rate?;
        Ok(Rate {
            operations: sum.operations + rate.operations,
            seconds: sum.seconds.max(rate.seconds),
        })
    })
}
