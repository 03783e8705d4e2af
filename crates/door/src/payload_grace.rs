//! How long writers may hold the write buffer for payloads that do not come: one grace for all.
//!
//! Who has credits and waits for its client keeps them from everybody else. If each had a grace of
//! its own, a hundred clients that stall would have a hundred, one behind the other, and who waits
//! for credits would wait for all of them. So what a payload that did not come has taken is taken
//! from one grace of all connections, which comes back slowly. Where it is spent a payload has what
//! it takes to copy what is here already; the rest of it is written piece by piece, without credits
//! in between, which is slower for its client and for nobody else.
//!
//! Invariant: payloads that do not come hold credits for at most the grace, a sixteenth of the time
//! that passes, and [`TIME_MIN`] each.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What there is for payloads that do not come.
const GRACE: Duration = Duration::from_secs(1);
/// The part of all time that comes back.
const RETURNED_PART: u32 = 16;
/// What every payload has: a client that sends needs less than that for what its socket holds.
const TIME_MIN: Duration = Duration::from_millis(5);

/// The grace of all connections of a server.
#[derive(Debug)]
pub struct PayloadGrace {
    left: Mutex<Left>,
}

#[derive(Debug)]
struct Left {
    time: Duration,
    at: Instant,
}

impl Default for PayloadGrace {
    fn default() -> Self {
        Self { left: Mutex::new(Left { time: GRACE, at: Instant::now() }) }
    }
}

impl PayloadGrace {
    /// How long a payload that is waited for from `now` on may take.
    pub(crate) fn time_max(&self, now: Instant) -> Duration {
        self.left_at(now).time.max(TIME_MIN)
    }

    /// A payload did not come for so long, until `now`.
    pub(crate) fn spend(&self, time: Duration, now: Instant) {
        let mut left = self.left_at(now);
        left.time = left.time.saturating_sub(time);
    }

    fn left_at(&self, now: Instant) -> MutexGuard<'_, Left> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let returned = now.saturating_duration_since(left.at) / RETURNED_PART;
        left.time = (left.time + returned).min(GRACE);
        left.at = left.at.max(now);
        left
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{GRACE, PayloadGrace, TIME_MIN};

    #[test]
    fn all_payloads_that_do_not_come_have_one_grace_and_it_comes_back() {
        let (grace, begun) = (PayloadGrace::default(), Instant::now());
        let mut now = begun;
        for _ in 0..100 {
            let time = grace.time_max(now);
            now += time;
            grace.spend(time, now);
        }
        // The grace, what came back meanwhile, and the least of each.
        let held_max = GRACE + (now - begun) / 16 + 100 * TIME_MIN;
        assert!(now - begun <= held_max, "{:?}", now - begun);
        now += 16 * GRACE;
        assert_eq!(grace.time_max(now), GRACE);
        // Of several that began at once each may have spent all.
        grace.spend(GRACE, now);
        grace.spend(GRACE, now);
        assert_eq!(grace.time_max(now), TIME_MIN);
        assert_eq!(grace.time_max(now + 8 * GRACE), GRACE / 2);
        assert_eq!(grace.time_max(now + 8 * GRACE - Duration::from_secs(1)), GRACE / 2);
    }
}
