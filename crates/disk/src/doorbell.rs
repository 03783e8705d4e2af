//! The one thing the core sleeps on: clients, workers and the disk all ring it.
//!
//! An eventfd, because io_uring can write to one by itself when operations complete. Ringing a bell
//! that rings already is one atomic operation and no system call, which is the common case when the
//! core is busy.
//!
//! No ring is lost. A ringer queues its work first and then raises `rung`; the sleeper empties the
//! eventfd first, then lowers `rung`, then looks at its queues. If the ringer found `rung` raised,
//! it was before the sleeper lowered it, so that the sleeper's look comes after the work was queued
//! (the two swaps on `rung` order them). If the ringer found it lowered, it writes to the eventfd,
//! and the next wait returns at once. A wait may return true with nothing to do, never the reverse.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{read, retry_on_intr, write};

use crate::error::OpenError;

/// Wakes the one thread that waits on it; any thread may ring. Clones are the same bell.
#[derive(Clone, Debug)]
pub struct Doorbell {
    bell: Arc<Bell>,
}

#[derive(Debug)]
struct Bell {
    eventfd: OwnedFd,
    rung: AtomicBool,
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
        Ok(Self { bell: Arc::new(Bell { eventfd, rung: AtomicBool::new(false) }) })
    }

    /// Wakes the waiter, now or when it next waits. Call it after queueing what it is to find.
    pub fn ring(&self) {
        if !self.bell.rung.swap(true, Ordering::AcqRel) {
            // Fails only when the counter is full, and then the bell rings already.
            let _ = retry_on_intr(|| write(&self.bell.eventfd, &1_u64.to_ne_bytes()));
        }
    }

    /// Waits until the bell rings, at most `timeout_ms` (`None`: for ever); false when it did not.
    /// A bell rung since the last wait returns at once.
    #[must_use]
    pub fn wait(&self, timeout_ms: Option<u32>) -> bool {
        let deadline = timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms.into()));
        while !self.silence() {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return false;
            }
            self.sleep(left);
        }
        true
    }

    /// Takes back a ring; false when there was none.
    fn silence(&self) -> bool {
        let mut counter = [0; 8];
        let rang = retry_on_intr(|| read(&self.bell.eventfd, &mut counter)).is_ok();
        if rang {
            self.bell.rung.swap(false, Ordering::AcqRel);
        }
        rang
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
        let mut taken = 0;
        while taken < 3 * RINGS {
            assert!(bell.wait(Some(10_000)), "a ring was lost");
            taken += queued.swap(0, Ordering::Relaxed);
        }
        for ringer in ringers {
            ringer.join().unwrap();
        }
    }
}
