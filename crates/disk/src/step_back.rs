//! Threads that take what others leave of the processors: they have the lowest priority, and let
//! others in between two pieces of their work.
//!
//! A slice of a processor takes milliseconds, and a scheduler lets whoever works go on for as long,
//! even at the lowest priority: whoever answers clients would wait for that (measurements/023). To
//! yield costs nothing while others come and go. But Linux 6.18 takes a whole share of the
//! processor, unused, from who yields: where somebody never sleeps, a thread of the lowest priority
//! that yields has three turns of a hundred that it had (measurements/033). A thread whose yield
//! took long sleeps for a moment now and then instead, and tries again after a while.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

/// A yield that took so long was one to somebody who does not sleep.
const CROWDED: Duration = Duration::from_millis(1);
/// There is no yield for so long after it.
const NO_YIELD: Duration = Duration::from_secs(5);
/// Work between two pauses then.
const WORK: Duration = Duration::from_micros(200);
/// A pause. The kernel makes some 50 us of it, its timers' slack.
const PAUSE: Duration = Duration::from_micros(1);

/// What a thread knows of those it shares its processor with.
#[derive(Copy, Clone)]
struct Neighbours {
    no_yield_until: Instant,
    /// When its last pause ended.
    paused: Instant,
}

thread_local! {
    /// None before its first yield took long.
    static NEIGHBOURS: Cell<Option<Neighbours>> = const { Cell::new(None) };
}

/// Lets others have the processor for a moment, if they want it. To be called between two pieces
/// of work of some dozens of microseconds that nobody waits for.
pub fn give_way() {
    let now = Instant::now();
    match NEIGHBOURS.get() {
        Some(known) if now < known.no_yield_until => {
            if now - known.paused >= WORK {
                thread::sleep(PAUSE);
                NEIGHBOURS.set(Some(Neighbours { paused: Instant::now(), ..known }));
            }
        }
        _ => {
            thread::yield_now();
            let back = Instant::now();
            if back - now > CROWDED {
                NEIGHBOURS.set(Some(Neighbours { no_yield_until: back + NO_YIELD, paused: back }));
            }
        }
    }
}

/// From now on the calling thread has the lowest priority of all, for good: an ordinary user cannot
/// take that back. Where the system knows no priorities of threads it stays as it is.
pub fn step_back() {
    #[cfg(target_os = "linux")]
    {
        // Nothing is lost where it is refused but some of the others' time.
        let _ = rustix::process::setpriority_process(None, LOWEST);
    }
}

#[cfg(target_os = "linux")]
const LOWEST: i32 = 19;

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{NEIGHBOURS, Neighbours, WORK, give_way};

    const LONG: Duration = Duration::from_secs(3600);

    /// What is remembered after this, if that is what was.
    fn after(known: Neighbours) -> Neighbours {
        NEIGHBOURS.set(Some(known));
        give_way();
        NEIGHBOURS.get().unwrap()
    }

    #[test]
    fn who_shares_with_one_that_never_sleeps_pauses_now_and_then() {
        let now = Instant::now();
        std::thread::sleep(WORK);
        let worked = Neighbours { no_yield_until: now + LONG, paused: now };
        let paused = after(worked).paused;
        assert!(paused > now);
        let just_now = Neighbours { paused: now + LONG, ..worked };
        assert_eq!(after(just_now).paused, just_now.paused);
        let over = Neighbours { no_yield_until: now, ..worked };
        let Neighbours { no_yield_until, paused } = after(over);
        assert!(paused == over.paused || no_yield_until > now, "it yields and does not pause");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_the_thread_that_calls_steps_back() {
        use super::{LOWEST, step_back};
        let priority = || rustix::process::getpriority_process(None).unwrap();
        let before = priority();
        std::thread::spawn(move || {
            step_back();
            assert_eq!(priority(), LOWEST);
        })
        .join()
        .unwrap();
        assert_eq!(priority(), before);
    }
}
