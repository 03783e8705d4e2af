//! How a connection in the background gives way to clients.
//!
//! Before each of its requests it looks at what clients have asked for since the last look. While
//! they ask for nothing, it goes on at once. While they do, all connections in the background
//! together begin one request in [`PAUSE_MAX`], or sooner when clients pause for [`LOOK_TIME`]. So
//! the work of the background never stalls, and it never takes more of a busy store than one
//! request at a time.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a request waits at most, while clients go on asking.
const PAUSE_MAX: Duration = Duration::from_millis(10);
/// How long clients must have asked for nothing before they count as idle.
const LOOK_TIME: Duration = Duration::from_micros(500);
/// Looks within a pause.
const LOOKS: u128 = PAUSE_MAX.as_micros() / LOOK_TIME.as_micros();

/// What a connection in the background asks before each request.
pub(crate) trait BackgroundRate: Sync {
    /// Returns when its next request may begin.
    fn await_turn(&self);
}

/// What a reader does around each request, beside serving it.
#[derive(Copy, Clone)]
pub(crate) struct Turns<'a> {
    /// Requests that have come over its connection.
    pub(crate) requests: &'a AtomicU64,
    /// Asked before each request, where the connection is in the background.
    pub(crate) background_rate: Option<&'a dyn BackgroundRate>,
}

impl Turns<'_> {
    /// One more request has come.
    pub(crate) fn count(&self) {
        // Nobody else writes it.
        self.requests.store(self.requests.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// What the clients of a server do.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    /// Requests that have come from those that are connected.
    pub(crate) requests: u64,
    /// Whether one of them waits for an answer.
    pub(crate) is_busy: bool,
}

/// Where all connections in the background wait, one behind another.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Requests of clients at the last look.
    seen: Mutex<u64>,
}

impl Gate {
    /// Returns when clients are idle by what `look` says, or when they have been waited for long
    /// enough.
    pub(crate) fn await_turn(&self, look: impl Fn() -> Activity) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..LOOKS {
            let Activity { requests, is_busy } = look();
            let is_idle = requests == *seen && !is_busy;
            *seen = requests;
            if is_idle {
                return;
            }
            thread::sleep(LOOK_TIME);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::{Activity, Gate, LOOKS};

    fn looks(gate: &Gate, activity: impl Fn(u64) -> Activity) -> u64 {
        let looks = Cell::new(0);
        gate.await_turn(|| {
            looks.set(looks.get() + 1);
            activity(looks.get())
        });
        looks.get()
    }

    #[test]
    fn nobody_waits_for_clients_that_ask_for_nothing() {
        let gate = Gate::default();
        assert_eq!(looks(&gate, |_| Activity::default()), 1);
        // Four requests have come and been answered since; then no more.
        let four = Activity { requests: 4, is_busy: false };
        assert_eq!(looks(&gate, |_| four), 2);
        assert_eq!(looks(&gate, |_| four), 1);
    }

    #[test]
    fn clients_that_ask_on_are_waited_for_but_not_for_ever() {
        let gate = Gate::default();
        let asking = |look| Activity { requests: look * 10, is_busy: false };
        assert_eq!(u128::from(looks(&gate, asking)), LOOKS);
        let waiting = Activity { requests: 200, is_busy: true };
        assert_eq!(u128::from(looks(&gate, |_| waiting)), LOOKS);
        let pausing = |look| Activity { requests: 200, is_busy: look < 4 };
        assert_eq!(looks(&gate, pausing), 4);
    }
}
