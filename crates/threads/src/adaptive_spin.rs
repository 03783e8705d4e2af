//! Adaptive spin: polling for a short time before sleeping.
//!
//! Waking a thread takes 20 to 50 us, in a virtual machine most of all: as long as a flash device
//! takes for a write. A thread that expects something sooner than that does better to poll for a
//! while before it sleeps. Polling costs processor time; so a thread polls only where it has paid:
//! each wait is remembered as *short* (over within the spin limit, asleep or not) or long, and the
//! thread polls only if enough of its last waits were short. A thread whose requests come seldom
//! sleeps at once; so does one with a limit of 0.
//!
//! A polling thread yields the processor to other runnable threads (`sched_yield`). When a yield
//! took long, others have work for this processor: the thread *backs off* then, sleeping at once
//! for a number of waits, and for twice as many each time that this happens again soon. A thread
//! that spins uses up its share of a busy processor and waits for the next; one that sleeps is
//! scheduled when it wakes.
//!
//! Several threads that wait alike, as the readers of connections do, share a [`SpinBudget`]: one
//! of them polls only while few others are busy. The processors are for threads that work, and a
//! thread that sleeps finds several requests together when it wakes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Waits that are remembered.
const REMEMBERED_WAITS: u32 = 16;
/// Remembered waits that have to be short before a thread polls.
const SHORT_WAITS_MIN: u32 = 4;
/// Polls between two that yield the processor and read the clock.
const POLLS_PER_YIELD: u32 = 8;
/// A yield that took longer than this displaced the work of others: longer than a client takes for
/// its next request, shorter than the kernel's time slices.
const DISPLACED_MIN: Duration = Duration::from_micros(200);
/// Waits without polls after that, the first time and at most.
const BACK_OFF_WAITS: u32 = 32;
const BACK_OFF_WAITS_MAX: u32 = 2048;
/// A thread that displaced nobody for this long begins with the first back-off again.
const BACK_OFF_FORGOTTEN: Duration = Duration::from_millis(250);

/// Own waits of a thread over which it counts the waits of all.
const COUNTED_WAITS: u64 = 64;
/// Waits that a thread adds to the shared counter at once: a contended counter is slow.
const ADDED_WAITS: u64 = 8;
const _: () = assert!(COUNTED_WAITS.is_multiple_of(ADDED_WAITS));

/// How many of several threads may spin at once, judged by how often they wait: one of them spins
/// while all together wait no more often than the budget's number of threads like itself would.
/// Threads that wait seldom use up little of it.
#[derive(Debug)]
pub struct SpinBudget {
    spinning_max: u64,
    /// Of all threads.
    waits: AtomicU64,
}

impl SpinBudget {
    /// A budget for this many busy threads.
    #[must_use]
    pub fn new(spinning_max: usize) -> Self {
        Self { spinning_max: spinning_max as u64, waits: AtomicU64::new(0) }
    }
}

/// What one thread knows of a [`SpinBudget`].
#[derive(Clone, Debug)]
struct Share {
    budget: Arc<SpinBudget>,
    /// Its waits since it last began to count.
    own_waits: u64,
    /// The waits of all at that time.
    waits_before: u64,
    may_spin: bool,
}

impl Share {
    /// Counts one more wait of this thread; whether it may spin.
    fn count_wait(&mut self) -> bool {
        if self.own_waits == 0 {
            self.waits_before = self.budget.waits.load(Ordering::Relaxed);
        }
        self.own_waits += 1;
        if self.own_waits.is_multiple_of(ADDED_WAITS) {
            self.budget.waits.fetch_add(ADDED_WAITS, Ordering::Relaxed);
        }
        if self.own_waits == COUNTED_WAITS {
            let waits = self.budget.waits.load(Ordering::Relaxed);
            // Half of one more, for threads that wait seldom.
            let waits_max = COUNTED_WAITS * self.budget.spinning_max * 3 / 2;
            self.may_spin = waits.wrapping_sub(self.waits_before) <= waits_max;
            self.own_waits = 0;
        }
        self.may_spin
    }
}

/// How long one thread polls before it sleeps, and how that went.
///
/// ```
/// use threads::AdaptiveSpin;
///
/// let mut spin = AdaptiveSpin::up_to_us(50);
/// let mut wait = spin.begin_wait();
/// while wait.should_poll() {
///     // look whether the request has come; break if so
/// }
/// // sleep until it comes; the wait ends when it is dropped
/// ```
#[derive(Clone, Debug)]
pub struct AdaptiveSpin {
    limit: Duration,
    /// None: it spins whatever other threads do.
    share: Option<Share>,
    /// A bit for each of the last waits: it was short.
    short_waits: u16,
    /// Waits that are left of a back-off.
    backing_off: u32,
    /// The waits of the last back-off, and when it began.
    back_off: Option<(u32, Instant)>,
}

/// One wait; it ends when it is dropped.
pub struct SpinWait<'a> {
    spin: &'a mut AdaptiveSpin,
    /// None where the limit is 0.
    begun: Option<Instant>,
    /// When the clock was last read.
    last_read: Option<Instant>,
    polls: bool,
    count: u32,
}

impl AdaptiveSpin {
    /// Spins for this many microseconds at most. With 0 it never spins and reads no clock.
    #[must_use]
    pub fn up_to_us(limit_us: u32) -> Self {
        let limit = Duration::from_micros(limit_us.into());
        Self { limit, share: None, short_waits: 0, backing_off: 0, back_off: None }
    }

    /// The same for one of several threads that share a budget.
    #[must_use]
    pub fn sharing(self, budget: Arc<SpinBudget>) -> Self {
        let share = Share { budget, own_waits: 0, waits_before: 0, may_spin: true };
        Self { share: Some(share), ..self }
    }

    /// The thread begins to wait for something.
    pub fn begin_wait(&mut self) -> SpinWait<'_> {
        let begun = (!self.limit.is_zero()).then(Instant::now);
        let may_spin = begun.is_some() && self.share.as_mut().is_none_or(Share::count_wait);
        let has_paid = self.short_waits.count_ones() >= SHORT_WAITS_MIN;
        let polls = may_spin && self.backing_off == 0 && has_paid;
        self.backing_off = self.backing_off.saturating_sub(1);
        SpinWait { spin: self, begun, last_read: begun, polls, count: 0 }
    }

    fn begin_back_off(&mut self, now: Instant) {
        self.backing_off = match self.back_off {
            Some((waits, begun)) if now - begun < BACK_OFF_FORGOTTEN => {
                (waits * 2).min(BACK_OFF_WAITS_MAX)
            }
            _ => BACK_OFF_WAITS,
        };
        self.back_off = Some((self.backing_off, now));
    }

    fn remember(&mut self, took: Duration) {
        const _: () = assert!(REMEMBERED_WAITS == u16::BITS);
        self.short_waits = self.short_waits << 1 | u16::from(took <= self.limit);
    }
}

impl SpinWait<'_> {
    /// Whether the thread should poll once more rather than sleep.
    pub fn should_poll(&mut self) -> bool {
        if !self.polls {
            return false;
        }
        self.count += 1;
        if self.count.is_multiple_of(POLLS_PER_YIELD) {
            std::thread::yield_now();
            self.note_time(Instant::now());
        } else {
            std::hint::spin_loop();
        }
        self.polls
    }

    /// Decides after a yield that ended `now` whether to go on.
    fn note_time(&mut self, now: Instant) {
        let Some((begun, last_read)) = self.begun.zip(self.last_read.replace(now)) else { return };
        let was_displaced = now - last_read > DISPLACED_MIN;
        if was_displaced {
            self.spin.begin_back_off(now);
        }
        self.polls = !was_displaced && now - begun <= self.spin.limit;
    }
}

impl Drop for SpinWait<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun {
            self.spin.remember(begun.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        AdaptiveSpin, Arc, BACK_OFF_FORGOTTEN, BACK_OFF_WAITS, BACK_OFF_WAITS_MAX, COUNTED_WAITS,
        DISPLACED_MIN, Duration, Instant, SHORT_WAITS_MIN, SpinBudget,
    };

    const LONG_US: u32 = 3_600_000_000;
    const LONGER: Duration = Duration::from_secs(7200);

    #[test]
    fn a_limit_of_zero_never_polls() {
        let mut spin = AdaptiveSpin::up_to_us(0);
        (0..40).for_each(|_| drop(spin.begin_wait()));
        assert!(!spin.begin_wait().should_poll());
    }

    #[test]
    fn a_thread_polls_after_short_waits_and_not_after_long_ones() {
        let mut spin = AdaptiveSpin::up_to_us(LONG_US);
        for short in 0..40 {
            assert_eq!(spin.begin_wait().should_poll(), short >= SHORT_WAITS_MIN, "after {short}");
        }
        (0..12).for_each(|_| spin.remember(LONGER));
        assert!(spin.begin_wait().should_poll());
        (0..12).for_each(|_| spin.remember(LONGER));
        assert!(!spin.begin_wait().should_poll());
    }

    #[test]
    fn polling_ends() {
        let mut spin = AdaptiveSpin::up_to_us(1);
        spin.short_waits = u16::MAX;
        let mut wait = spin.begin_wait();
        while wait.should_poll() {}
        assert!(!wait.should_poll());
        drop(wait);
        assert_eq!(spin.short_waits, u16::MAX - 1);
    }

    /// One that would spin for an hour.
    fn long() -> AdaptiveSpin {
        AdaptiveSpin { short_waits: u16::MAX, ..AdaptiveSpin::up_to_us(LONG_US) }
    }

    /// A wait in which the processor is gone until `back`, for longer than it may be.
    fn be_displaced(spin: &mut AdaptiveSpin, back: Instant) {
        spin.backing_off = 0;
        let mut wait = spin.begin_wait();
        assert!(wait.should_poll());
        wait.note_time(back);
        assert!(!wait.should_poll());
    }

    fn waits_until_it_polls(spin: &mut AdaptiveSpin) -> u32 {
        (0..).find(|_| spin.begin_wait().should_poll()).unwrap()
    }

    #[test]
    fn a_thread_that_displaces_others_backs_off_for_longer_each_time() {
        let mut spin = long();
        // Far ahead, so that it does not matter how long the test takes.
        let begun = Instant::now() + LONGER;
        be_displaced(&mut spin, begun);
        assert_eq!(waits_until_it_polls(&mut spin), BACK_OFF_WAITS);
        be_displaced(&mut spin, begun + DISPLACED_MIN);
        assert_eq!(waits_until_it_polls(&mut spin), 2 * BACK_OFF_WAITS);
        (0..20).for_each(|_| be_displaced(&mut spin, begun + DISPLACED_MIN));
        assert_eq!(spin.backing_off, BACK_OFF_WAITS_MAX);
        be_displaced(&mut spin, begun + DISPLACED_MIN + BACK_OFF_FORGOTTEN);
        assert_eq!(spin.backing_off, BACK_OFF_WAITS, "it had displaced nobody for long");
    }

    fn polls(one: &mut AdaptiveSpin) -> bool {
        one.begin_wait().should_poll()
    }

    /// How many of them poll when all have waited in turn for a while.
    fn how_many_poll(all: &mut [AdaptiveSpin]) -> usize {
        for _ in 0..4 * COUNTED_WAITS {
            all.iter_mut().for_each(|one| drop(one.begin_wait()));
        }
        all.iter_mut().filter_map(|one| polls(one).then_some(())).count()
    }

    #[test]
    fn no_thread_polls_while_more_are_busy_than_the_budget_has() {
        let budget = Arc::new(SpinBudget::new(2));
        let mut all = [(); 4].map(|()| long().sharing(Arc::clone(&budget)));
        assert_eq!(how_many_poll(&mut all), 0, "four are busy");
        assert_eq!(how_many_poll(&mut all[..1]), 1, "the others have ceased to wait");
        assert_eq!(how_many_poll(&mut all[..2]), 2);
        assert_eq!(how_many_poll(&mut all[..3]), 3, "half of one more is allowed");
        assert_eq!(how_many_poll(&mut all), 0);
        assert!(polls(&mut long().sharing(budget)), "a new one is given the chance");
    }

    #[test]
    fn a_thread_that_waits_seldom_keeps_no_other_from_polling() {
        let budget = Arc::new(SpinBudget::new(1));
        let (mut often, mut seldom) = (long().sharing(Arc::clone(&budget)), long().sharing(budget));
        for _ in 0..4 * COUNTED_WAITS {
            (0..4).for_each(|_| drop(often.begin_wait()));
            drop(seldom.begin_wait());
        }
        assert!(polls(&mut often) && !polls(&mut seldom));
    }
}
