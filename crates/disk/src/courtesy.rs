//! Threads that let whoever wakes them go on.
//!
//! A client that keeps many requests under way sends them one by one, and each wakes the thread
//! that receives them. Where both share a processor the kernel lets a thread that wakes run at
//! once, in place of the one that woke it: it finds a request or two, falls asleep, and every
//! request costs two changes of the running thread. A *courteous* thread (`SCHED_BATCH`) never
//! takes a processor from the one that runs there, so it finds what the client could send until it
//! had to wait.
//!
//! A thread is courteous while its last waits brought more than one request each; a client that
//! waits for every answer has none to send meanwhile, and beside programs that never sleep it would
//! wait for their turn to end. No thread of another kind is touched: who gave it real-time priority
//! knows why.

/// Waits after which it is judged anew.
const JUDGED_WAITS: u32 = 64;
/// Requests in so many waits from which on they come together. One at a time they are as many as
/// the waits, or fewer where each is long.
const TOGETHER_MIN: u32 = JUDGED_WAITS * 5 / 4;

/// What a thread knows of how its work comes. For the one thread that made it.
#[derive(Debug, Default)]
pub struct Courtesy {
    waits: u32,
    found: u32,
    is_courteous: bool,
}

impl Courtesy {
    /// One request was found.
    #[inline]
    pub fn found(&mut self) {
        self.found += 1;
    }

    /// The thread looks for more, and waits if there is none.
    #[inline]
    pub fn waits(&mut self) {
        self.waits += 1;
        if self.waits == JUDGED_WAITS {
            self.judge();
        }
    }

    fn judge(&mut self) {
        let shall_be = self.found >= TOGETHER_MIN;
        (self.waits, self.found) = (0, 0);
        if shall_be != self.is_courteous && be_courteous(shall_be) {
            self.is_courteous = shall_be;
        }
    }
}

/// Whether the calling thread is now as it is to be.
#[cfg(target_os = "linux")]
fn be_courteous(shall_be: bool) -> bool {
    let (from, to) = match shall_be {
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
fn be_courteous(_: bool) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{Courtesy, JUDGED_WAITS, be_courteous};

    fn policy() -> i32 {
        // SAFETY: 0 is the calling thread.
        unsafe { libc::sched_getscheduler(0) }
    }

    /// So many requests for each of two waits.
    fn come(courtesy: &mut Courtesy, requests: [u32; 2]) {
        for wait in 0..JUDGED_WAITS {
            (0..requests[wait as usize % 2]).for_each(|_| courtesy.found());
            courtesy.waits();
        }
    }

    #[test]
    fn a_thread_is_courteous_while_requests_come_together() {
        // A thread of its own: others of this process keep theirs.
        let other = std::thread::spawn(|| {
            let mut courtesy = Courtesy::default();
            let before = policy();
            if before != libc::SCHED_OTHER {
                // Somebody has chosen for all of us.
                come(&mut courtesy, [32, 32]);
                assert_eq!(policy(), before);
                return;
            }
            for (requests, courteous) in [
                ([1, 1], false),
                ([1, 2], true),
                ([32, 32], true),
                ([1, 1], false),
                ([0, 1], false),
                ([3, 0], true),
            ] {
                come(&mut courtesy, requests);
                let policies = [libc::SCHED_OTHER, libc::SCHED_BATCH];
                assert_eq!(policy(), policies[usize::from(courteous)], "{requests:?}");
            }
        });
        other.join().unwrap();
        assert_ne!(policy(), libc::SCHED_BATCH);
    }

    #[test]
    fn a_thread_of_another_kind_stays_as_it_is() {
        std::thread::spawn(|| {
            let parameters = libc::sched_param { sched_priority: 0 };
            // SAFETY: as above.
            let set = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameters) };
            assert_eq!(set, 0);
            assert!(!be_courteous(true) && !be_courteous(false));
            assert_eq!(policy(), libc::SCHED_IDLE);
        })
        .join()
        .unwrap();
    }
}
