//! Rings a doorbell at a time to come, for disks that hold operations back.
//!
//! One alarm is set at a time, the earliest asked for; when it rang, its owner polls and sets the
//! next. The thread that waits for it starts with the first. Where the system refuses a thread, the
//! bell rings at once instead: the owner then polls again and again until the time has come.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use crate::doorbell::Doorbell;

pub(crate) struct Alarm {
    shared: Arc<Shared>,
    /// None before the first alarm, and where the system refuses a thread.
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    doorbell: Doorbell,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    at: Option<Instant>,
    closing: bool,
}

impl Alarm {
    pub(crate) fn new(doorbell: &Doorbell) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let doorbell = doorbell.clone();
        Self { shared: Arc::new(Shared { doorbell, state, changed }), thread: None }
    }

    /// Rings at this time, or earlier if an earlier alarm is set.
    pub(crate) fn ring_at(&mut self, at: Instant) {
        if self.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let name = "disk-alarm".to_owned();
            self.thread = Builder::new().name(name).spawn(move || shared.work()).ok();
        }
        if self.thread.is_none() {
            return self.shared.doorbell.ring();
        }
        let mut state = self.shared.lock();
        if state.at.is_none_or(|earlier| at < earlier) {
            state.at = Some(at);
            self.shared.changed.notify_one();
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.lock();
        while !state.closing {
            let left = state.at.map(|at| at.saturating_duration_since(Instant::now()));
            state = match left {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) if left.is_zero() => {
                    state.at = None;
                    self.doorbell.ring();
                    state
                }
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Alarm;
    use crate::doorbell::Doorbell;

    #[test]
    fn the_earliest_alarm_rings_and_not_before_its_time() {
        let doorbell = Doorbell::new().unwrap();
        let mut alarm = Alarm::new(&doorbell);
        let soon = Instant::now() + Duration::from_millis(20);
        alarm.ring_at(Instant::now() + Duration::from_secs(3600));
        alarm.ring_at(soon);
        assert!(doorbell.wait(Some(60_000)));
        assert!(Instant::now() >= soon);
    }
}
