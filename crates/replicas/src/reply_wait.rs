//! How an answer waits for the replica: until something changes, and no longer than a bound.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use replication::ReplyWait;

/// Of one bucket.
pub(crate) struct Clocked {
    begun: Instant,
    wait_max: Duration,
    mark: Mutex<u64>,
    changed: Condvar,
}

impl Clocked {
    pub(crate) fn new(wait_max: Duration) -> Self {
        let (mark, changed) = (Mutex::new(0), Condvar::new());
        Self { begun: Instant::now(), wait_max, mark, changed }
    }

    /// Waits up to `time` for another mark.
    pub(crate) fn wait_for(&self, mark: u64, time: Duration) {
        let held = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.changed.wait_timeout_while(held, time, |now| *now == mark));
    }
}

impl ReplyWait for Clocked {
    fn mark(&self) -> u64 {
        *self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn wait(&self, mark: u64, since: u64) -> bool {
        let waited = Duration::from_millis(self.now().saturating_sub(since));
        let Some(left) = self.wait_max.checked_sub(waited).filter(|left| !left.is_zero()) else {
            return false;
        };
        self.wait_for(mark, left);
        true
    }

    fn wake(&self) {
        *self.mark.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.changed.notify_all();
    }
}
