//! The one thing the core sleeps on: clients, workers and the disk all ring it.
//!
//! An eventfd, because io_uring can write to one by itself when operations complete. Ringing is one
//! atomic operation, and a system call only if the core sleeps.
//!
//! No ring is lost. A ringer queues its work first and then makes the bell *rung*; if the core
//! slept (it was *asleep*), he writes to the eventfd as well. The core takes a ring back (*awake*)
//! before it looks at its queues, and falls asleep only from *awake*, in one step: a ring that came
//! before that step is seen by it, and one that comes after it finds the core asleep. The eventfd
//! is emptied after a sleep; what rings between is in the state, too. A wait may return true with
//! nothing to do, never the reverse.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{read, retry_on_intr, write};
use threads::AdaptiveSpin;

use crate::error::OpenError;

/// Wakes the one thread that waits on it; any thread may ring. Clones are the same bell.
#[derive(Clone, Debug)]
pub struct Doorbell {
    bell: Arc<Bell>,
}

/// The core works, or is about to look at its queues.
const AWAKE: u8 = 0;
/// Somebody rang since the core last looked.
const RUNG: u8 = 1;
/// The core sleeps, or is about to.
const ASLEEP: u8 = 2;

#[derive(Debug)]
struct Bell {
    eventfd: OwnedFd,
    state: AtomicU8,
}

impl Doorbell {
    /// A bell that has not been rung.
    ///
    /// # Errors
    /// [`OpenError::Process`] when the process has no descriptors left.
    pub fn new() -> Result<Self, OpenError> {
        let eventfd =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|source| {
                OpenError::Process { action: "make an eventfd", source: source.into() }
            })?;
        Ok(Self { bell: Arc::new(Bell { eventfd, state: AtomicU8::new(AWAKE) }) })
    }

    /// Wakes the waiter, now or when it next waits. Call it after queueing what it is to find.
    pub fn ring(&self) {
        if self.bell.state.swap(RUNG, Ordering::AcqRel) == ASLEEP {
            // Fails only when the counter is full, and then the bell rings already.
            let _ = retry_on_intr(|| write(&self.bell.eventfd, &1_u64.to_ne_bytes()));
        }
    }

    /// Waits until the bell rings, at most `timeout_ms` (`None`: for ever); false when it did not.
    /// A bell rung since the last wait returns at once.
    #[must_use]
    pub fn wait(&self, timeout_ms: Option<u32>) -> bool {
        let deadline = timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms.into()));
        while self.fall_asleep() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let is_over = left.is_some_and(|left| left.is_zero());
            if !is_over {
                self.sleep(left);
            }
            let completed = self.empty();
            let rung = self.bell.state.swap(AWAKE, Ordering::AcqRel) == RUNG;
            if completed || rung || is_over {
                return completed || rung;
            }
        }
        true
    }

    /// As [`Doorbell::wait`], but polls for a while before it sleeps, and ends as well when
    /// `has_ended` says so.
    #[must_use]
    pub fn spin_then_wait(
        &self,
        spin: &mut AdaptiveSpin,
        timeout_ms: u32,
        mut has_ended: impl FnMut() -> bool,
    ) -> bool {
        let mut wait = spin.begin_wait();
        while wait.should_poll() {
            if self.bell.state.load(Ordering::Acquire) == RUNG || has_ended() {
                self.bell.state.swap(AWAKE, Ordering::AcqRel);
                return true;
            }
        }
        self.wait(Some(timeout_ms))
    }

    /// Goes from awake to asleep; false when somebody rang, which is taken back.
    fn fall_asleep(&self) -> bool {
        let state = &self.bell.state;
        let slept = state.compare_exchange(AWAKE, ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        if slept.is_err() {
            state.swap(AWAKE, Ordering::AcqRel);
        }
        slept.is_ok()
    }

    /// Takes what was written to the eventfd; false when nothing was.
    fn empty(&self) -> bool {
        let mut counter = [0; 8];
        retry_on_intr(|| read(&self.bell.eventfd, &mut counter)).is_ok()
    }

    /// Returns when the eventfd has something, when the time is over, or at a signal.
    fn sleep(&self, at_most: Option<Duration>) {
        let timeout = at_most.map(|at_most| Timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: at_most.subsec_nanos().into(),
        });
        let mut fds = [PollFd::new(&self.bell.eventfd, PollFlags::IN)];
        let _ = poll(&mut fds, timeout.as_ref());
    }
}

impl AsFd for Doorbell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.eventfd.as_fd()
    }
}

impl AsRawFd for Doorbell {
    fn as_raw_fd(&self) -> RawFd {
        self.bell.eventfd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::thread;

    use super::*;

    #[test]
    fn rings_are_heard_once() {
        let bell = Doorbell::new().unwrap();
        assert!(!bell.wait(Some(0)));
        bell.ring();
        bell.clone().ring();
        assert!(bell.wait(None));
        assert!(!bell.wait(Some(1)));
        bell.ring();
        assert!(bell.wait(Some(0)));
    }

    #[test]
    fn no_ring_is_lost_between_threads() {
        const RINGS: u64 = 20_000;
        let bell = Doorbell::new().unwrap();
        let queued = Arc::new(AtomicU64::new(0));
        let ringers: Vec<_> = (0..3)
            .map(|_| {
                let (bell, queued) = (bell.clone(), Arc::clone(&queued));
                thread::spawn(move || {
                    for _ in 0..RINGS {
                        queued.fetch_add(1, Ordering::Relaxed);
                        bell.ring();
                    }
                })
            })
            .collect();
        let mut spin = AdaptiveSpin::up_to_us(50);
        let (mut taken, mut spins) = (0, false);
        while taken < 3 * RINGS {
            spins = !spins;
            let rung = match spins {
                true => bell.spin_then_wait(&mut spin, 10_000, || false),
                false => bell.wait(Some(10_000)),
            };
            assert!(rung, "a ring was lost");
            taken += queued.swap(0, Ordering::Relaxed);
        }
        for ringer in ringers {
            ringer.join().unwrap();
        }
    }
}
