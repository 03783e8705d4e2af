//! Operations that failed for a passing reason are tried again, with back-off.
//!
//! ```text
//! submit -> disk below -> done
//!             ^    | transient
//!             |    v
//!             +- held until its time: a delay that doubles with each attempt
//! ```
//!
//! An operation that is held is in flight for its owner: a disk promises no order among operations
//! in flight, so one that takes several attempts is one that takes long. What makes that sound is
//! the promise of [`ErrorClass::Transient`]: the attempt that failed takes no effect any more, so
//! that none can undo what is written to its place later. The attempts are bounded; the error of
//! the last is permanent. Other classes pass through.
//!
//! As long as nothing fails this costs a look at each completion's result.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use format::units::Zone;
use hashbrown::HashMap;

use crate::ahead::AllocationAhead;
use crate::alarm::Alarm;
use crate::doorbell::Doorbell;
use crate::due::Due;
use crate::error::{ErrorClass, IoError};
use crate::growth::{ForeignGrowth, ZoneGrowth};
use crate::io::{Completion, Disk, Io};

/// How often an operation is tried, and how long after each failure.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    pub attempts_max: u32,
    /// Pause after the first failure; each further one is twice as long.
    pub first_delay_ms: u64,
    /// The longest pause.
    pub delay_ms_max: u64,
}

impl Default for RetryPolicy {
    /// Twenty attempts within half a minute: a path to a device that fails over comes back by then.
    fn default() -> Self {
        Self { attempts_max: 20, first_delay_ms: 10, delay_ms_max: 2_500 }
    }
}

impl RetryPolicy {
    fn delay_after(&self, failures: u32) -> Duration {
        let doubled = 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
        let delay_ms = self.first_delay_ms.saturating_mul(doubled).min(self.delay_ms_max);
        Duration::from_millis(delay_ms)
    }
}

/// A disk that tries operations again that failed for a passing reason.
pub struct RetryingDisk {
    below: Box<dyn Disk>,
    policy: RetryPolicy,
    held: BinaryHeap<Reverse<Due<Io>>>,
    /// Failures so far of operations in flight that have failed, by their tags.
    failures: HashMap<u64, u32>,
    alarm: Alarm,
}

impl RetryingDisk {
    /// Tries operations of `below` again, as `policy` says. `doorbell` is the one that `below`
    /// rings.
    #[must_use]
    pub fn new(below: Box<dyn Disk>, policy: RetryPolicy, doorbell: &Doorbell) -> Self {
        let alarm = Alarm::new(doorbell);
        Self { below, policy, held: BinaryHeap::new(), failures: HashMap::new(), alarm }
    }

    /// Holds what is to be tried again of the completions from `start` on.
    fn hold_failed(&mut self, done: &mut Vec<Completion>, start: usize) {
        let mut at = start;
        while let Some(completion) = done.get_mut(at) {
            let is_passing = completion.result.as_ref().is_err_and(is_transient);
            let Some(io) = completion.failed.take_if(|_| is_passing) else {
                if !self.failures.is_empty() {
                    self.failures.remove(&completion.tag);
                }
                at += 1;
                continue;
            };
            let failures = self.failures.entry(io.tag).or_default();
            *failures += 1;
            if *failures >= self.policy.attempts_max {
                let result = std::mem::replace(&mut completion.result, Ok(()));
                let attempts = *failures;
                self.failures.remove(&io.tag);
                completion.result = result.map_err(|error| error.given_up(attempts));
                completion.failed = Some(io);
                at += 1;
                continue;
            }
            let due = Instant::now() + self.policy.delay_after(*failures);
            self.held.push(Reverse(Due { due, item: *io }));
            // Completions are in no order.
            done.swap_remove(at);
        }
    }

    /// Submits what is due again, and sees to it that somebody polls when the next is.
    fn submit_due(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(Reverse(first)) = self.held.peek() {
            if first.due > now {
                return self.alarm.ring_at(first.due);
            }
            if let Some(Reverse(held)) = self.held.pop() {
                self.below.submit(held.item);
            }
        }
    }
}

fn is_transient(error: &IoError) -> bool {
    error.class() == ErrorClass::Transient
}

impl Disk for RetryingDisk {
    fn submit(&mut self, io: Io) {
        self.below.submit(io);
    }

    fn poll(&mut self, done: &mut Vec<Completion>) {
        let start = done.len();
        self.submit_due();
        self.below.poll(done);
        self.hold_failed(done, start);
        self.submit_due();
    }

    fn has_ended(&mut self) -> bool {
        self.below.has_ended()
    }

    fn wait(&mut self, done: &mut Vec<Completion>) {
        let start = done.len();
        self.poll(done);
        while done.len() == start && self.in_flight() > 0 {
            if self.below.in_flight() > 0 {
                self.below.wait(done);
            } else if let Some(Reverse(first)) = self.held.peek() {
                std::thread::sleep(first.due.saturating_duration_since(Instant::now()));
            }
            self.hold_failed(done, start);
            self.submit_due();
        }
    }

    fn in_flight(&self) -> usize {
        self.below.in_flight() + self.held.len()
    }

    fn grow(&mut self, growth: ZoneGrowth) -> Result<(), ForeignGrowth> {
        self.below.grow(growth)
    }

    fn release_data_zones(&mut self, data_zones: usize) {
        self.below.release_data_zones(data_zones);
    }

    fn degradation(&self) -> Option<&str> {
        self.below.degradation()
    }

    fn size_bytes(&self, zone: Zone) -> u64 {
        self.below.size_bytes(zone)
    }

    fn allocation_ahead(&self) -> Option<&AllocationAhead> {
        self.below.allocation_ahead()
    }
}

#[cfg(test)]
mod tests;
