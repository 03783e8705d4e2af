//! `SCHED_BATCH` for threads that receive requests in batches.
//!
//! A client that keeps many requests in flight sends them one by one, and each wakes the thread
//! that receives them. Where both share a processor the kernel lets the woken thread preempt the
//! client at once: it finds a request or two and sleeps, and every request costs two context
//! switches. A thread under `SCHED_BATCH` does not preempt when it wakes, so it finds all that the
//! client could send before it had to wait.
//!
//! A thread keeps that policy while its last waits brought more than one request each. A client
//! that waits for every answer has nothing to send meanwhile, and beside programs that never sleep
//! its reader would wait for their time slice to end. A thread under another policy keeps it:
//! an operator chose that.

/// Waits after which the policy is decided anew.
const DECISION_WAITS: u32 = 64;
/// Requests in that many waits from which on they count as batches. Without batches the requests
/// are as many as the waits, or fewer where each wait is long.
const BATCH_REQUESTS_MIN: u32 = DECISION_WAITS * 5 / 4;

/// Chooses the scheduling policy of the one thread that made it by how its requests arrive.
///
/// ```
/// let mut policy = threads::BatchPolicy::default();
/// for _request in 0..3 {
///     policy.request_received(); // for each request that was found
/// }
/// policy.before_wait(); // and now the thread waits for more
/// ```
#[derive(Debug, Default)]
pub struct BatchPolicy {
    waits: u32,
    requests: u32,
    is_batch: bool,
}

impl BatchPolicy {
    /// The thread found one request.
    #[inline]
    pub fn request_received(&mut self) {
        self.requests += 1;
    }

    /// The thread looks for more requests, and waits if there are none.
    #[inline]
    pub fn before_wait(&mut self) {
        self.waits += 1;
        if self.waits == DECISION_WAITS {
            self.decide();
        }
    }

    fn decide(&mut self) {
        let batch = self.requests >= BATCH_REQUESTS_MIN;
        (self.waits, self.requests) = (0, 0);
        if batch != self.is_batch && set_batch(batch) {
            self.is_batch = batch;
        }
    }
}

/// Sets the policy of the calling thread; false where it runs under a policy that is not ours.
#[cfg(target_os = "linux")]
fn set_batch(batch: bool) -> bool {
    let (from, to) = match batch {
        true => (libc::SCHED_OTHER, libc::SCHED_BATCH),
        false => (libc::SCHED_BATCH, libc::SCHED_OTHER),
    };
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is the calling thread; the parameters are read during the call only.
    unsafe {
        libc::sched_getscheduler(0) == from && libc::sched_setscheduler(0, to, &parameters) == 0
    }
}

#[cfg(not(target_os = "linux"))]
fn set_batch(_: bool) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{BatchPolicy, DECISION_WAITS, set_batch};

    fn current() -> i32 {
        // SAFETY: 0 is the calling thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    /// Even waits bring the first number of requests, odd waits the second.
    fn receive(policy: &mut BatchPolicy, requests: [u32; 2]) {
        for wait in 0..DECISION_WAITS {
            (0..requests[wait as usize % 2]).for_each(|_| policy.request_received());
            policy.before_wait();
        }
    }

    #[test]
    fn a_thread_runs_as_batch_while_requests_arrive_in_batches() {
        // A thread of its own: others of this process keep their policy.
        let other = std::thread::spawn(|| {
            let mut policy = BatchPolicy::default();
            let before = current();
            if before != libc::SCHED_OTHER {
                // An operator has chosen for the whole process.
                receive(&mut policy, [32, 32]);
                assert_eq!(current(), before);
                return;
            }
            for (requests, batch) in [
                ([1, 1], false),
                ([1, 2], true),
                ([32, 32], true),
                ([1, 1], false),
                ([0, 1], false),
                ([3, 0], true),
            ] {
                receive(&mut policy, requests);
                let policies = [libc::SCHED_OTHER, libc::SCHED_BATCH];
                assert_eq!(current(), policies[usize::from(batch)], "{requests:?}");
            }
        });
        other.join().unwrap();
        assert_ne!(current(), libc::SCHED_BATCH);
    }

    #[test]
    fn a_thread_under_another_policy_keeps_it() {
        std::thread::spawn(|| {
            let parameters = libc::sched_param { sched_priority: 0 };
            // SAFETY: as above.
            let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameters) };
            assert_eq!(set, 0);
            assert!(!set_batch(true) && !set_batch(false));
            assert_eq!(current(), libc::SCHED_IDLE);
        })
        .join()
        .unwrap();
    }
}
