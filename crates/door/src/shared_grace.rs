//! How long clients that stall may hold what others wait for: one grace for all of them.
//!
//! Who has credits of the write buffer and waits for its client's payload keeps them from everybody
//! else, and so does who has memory of reads and a client that takes no reply. If each had a grace
//! of its own, a hundred clients that stall would have a hundred, one behind the other, and who
//! waits would wait for all of them. So what one has taken is taken from one grace of all
//! connections, which comes back slowly; where it is spent each has the least that a client needs
//! which does not stall.
//!
//! A payload then has 5 ms, to copy what is here already; the rest of it is written piece by piece,
//! without credits in between. A client that takes not one byte of its reply for 250 ms is
//! disconnected.
//!
//! Invariant: what stalls holds what others wait for at most for the grace, a sixteenth of the time
//! that passes, and the least of each.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const PAYLOADS: Duration = Duration::from_secs(1);
const PAYLOAD_MIN: Duration = Duration::from_millis(5);
const REPLY_MIN: Duration = Duration::from_millis(250);
/// The part of all time that comes back.
const RETURNED_PART: u32 = 16;

/// The grace of all connections of a server.
#[derive(Debug)]
pub struct SharedGrace {
    whole: Duration,
    least: Duration,
    left: Mutex<Left>,
}

#[derive(Debug)]
struct Left {
    time: Duration,
    at: Instant,
}

impl SharedGrace {
    /// That of payloads that do not come.
    #[must_use]
    pub fn of_payloads() -> Self {
        Self::new(PAYLOADS, PAYLOAD_MIN)
    }

    /// That of replies that are not taken.
    #[must_use]
    pub fn of_replies(whole: Duration) -> Self {
        Self::new(whole, REPLY_MIN.min(whole))
    }

    fn new(whole: Duration, least: Duration) -> Self {
        Self { whole, least, left: Mutex::new(Left { time: whole, at: Instant::now() }) }
    }

    /// How long one that begins to stall at `now`, or has not ended by then, may hold something.
    pub(crate) fn time_max(&self, now: Instant) -> Duration {
        self.left_at(now).time.max(self.least)
    }

    /// One has held something for so long, until `now`.
    pub(crate) fn spend(&self, time: Duration, now: Instant) {
        let mut left = self.left_at(now);
        left.time = left.time.saturating_sub(time);
    }

    fn left_at(&self, now: Instant) -> MutexGuard<'_, Left> {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let returned = now.saturating_duration_since(left.at) / RETURNED_PART;
        left.time = left.time.saturating_add(returned).min(self.whole);
        left.at = left.at.max(now);
        left
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{PAYLOAD_MIN, PAYLOADS, REPLY_MIN, SharedGrace};

    #[test]
    fn all_that_stall_have_one_grace_and_it_comes_back() {
        let replies = Duration::from_secs(10);
        for (grace, whole, least) in [
            (SharedGrace::of_payloads(), PAYLOADS, PAYLOAD_MIN),
            (SharedGrace::of_replies(replies), replies, REPLY_MIN),
        ] {
            let begun = Instant::now();
            let mut now = begun;
            for _ in 0..100 {
                let time = grace.time_max(now);
                now += time;
                grace.spend(time, now);
            }
            // The grace, what came back meanwhile, and the least of each.
            let held_max = whole + (now - begun) / 16 + 100 * least;
            assert!(now - begun <= held_max, "{:?}", now - begun);
            now += 16 * whole;
            assert_eq!(grace.time_max(now), whole);
            // Of several that began at once each may have spent all.
            grace.spend(whole, now);
            grace.spend(whole, now);
            assert_eq!(grace.time_max(now), least);
            assert_eq!(grace.time_max(now + 8 * whole), whole / 2);
            assert_eq!(grace.time_max(now + 8 * whole - Duration::from_secs(1)), whole / 2);
        }
    }

    #[test]
    fn a_grace_may_be_for_ever_or_none() {
        let now = Instant::now();
        assert_eq!(SharedGrace::of_replies(Duration::MAX).time_max(now), Duration::MAX);
        assert_eq!(SharedGrace::of_replies(Duration::ZERO).time_max(now), Duration::ZERO);
    }
}
