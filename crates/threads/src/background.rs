//! Background threads: the lowest priority, and a yield between two pieces of work.
//!
//! A time slice takes milliseconds, and a scheduler lets the running thread use it up, even at the
//! lowest priority: a thread that answers clients would wait for that (measurements/023). A yield
//! costs nothing while others come and go. But Linux 6.18 takes a whole share of the processor,
//! unused, from a thread that yields: beside a thread that never sleeps, a thread of the lowest
//! priority that yields gets three turns of a hundred that it had (measurements/033). A thread
//! whose yield took long therefore sleeps for a moment now and then instead, and tries a yield
//! again after a while.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

/// A yield that took longer than this went to a thread that does not sleep.
const CONTENDED: Duration = Duration::from_millis(1);
/// After it there is no yield for this long.
const NO_YIELD: Duration = Duration::from_secs(5);
/// Work between two pauses meanwhile.
const WORK: Duration = Duration::from_micros(200);
/// A pause. The kernel makes some 50 us of it, by its timers' slack.
const PAUSE: Duration = Duration::from_micros(1);

/// What a thread knows of the contention for its processor.
#[derive(Copy, Clone)]
struct Contention {
    no_yield_until: Instant,
    /// When its last pause ended.
    paused: Instant,
}

thread_local! {
    /// None before its first yield took long.
    static CONTENTION: Cell<Option<Contention>> = const { Cell::new(None) };
}

/// Offers the processor to other threads for a moment. Background work calls it between two pieces
/// of some dozens of microseconds each.
pub fn yield_processor() {
    let now = Instant::now();
    match CONTENTION.get() {
        Some(known) if now < known.no_yield_until => {
            if now - known.paused >= WORK {
                thread::sleep(PAUSE);
                CONTENTION.set(Some(Contention { paused: Instant::now(), ..known }));
            }
        }
        _ => {
            thread::yield_now();
            let back = Instant::now();
            if back - now > CONTENDED {
                let no_yield_until = back + NO_YIELD;
                CONTENTION.set(Some(Contention { no_yield_until, paused: back }));
            }
        }
    }
}

/// Gives the calling thread the lowest priority, for good: an ordinary user cannot raise it again.
/// Where the system has no priorities of threads, nothing changes.
pub fn lower_priority() {
    #[cfg(target_os = "linux")]
    {
        // A refusal costs some of the other threads' time and nothing else.
        let _ = rustix::process::setpriority_process(None, LOWEST);
    }
}

#[cfg(target_os = "linux")]
const LOWEST: i32 = 19;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{CONTENTION, Contention, WORK, yield_processor};

    const LONG: Duration = Duration::from_secs(3600);

    /// What is remembered after a yield, given what was remembered before.
    fn after(known: Contention) -> Contention {
        CONTENTION.set(Some(known));
        yield_processor();
        CONTENTION.get().unwrap()
    }

    #[test]
    fn a_thread_beside_one_that_never_sleeps_pauses_now_and_then() {
        let now = Instant::now();
        std::thread::sleep(WORK);
        let worked = Contention { no_yield_until: now + LONG, paused: now };
        let paused = after(worked).paused;
        assert!(paused > now);
        let just_now = Contention { paused: now + LONG, ..worked };
        assert_eq!(after(just_now).paused, just_now.paused);
        let over = Contention { no_yield_until: now, ..worked };
        let Contention { no_yield_until, paused } = after(over);
        assert!(paused == over.paused || no_yield_until > now, "it yields and does not pause");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_calling_thread_gets_the_lowest_priority() {
        use super::{LOWEST, lower_priority};
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let before = priority();
        std::thread::spawn(move || {
            lower_priority();
            assert_eq!(priority(), LOWEST);
        })
        .join()
        .unwrap();
        assert_eq!(priority(), before);
    }
}
