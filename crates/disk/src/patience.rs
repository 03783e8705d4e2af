//! Looking again and again before falling asleep.
//!
//! To be woken takes a thread 20 to 50 us, in a virtual machine most of all: as long as a flash
//! device takes for a write. A thread that expects something sooner than that does better to look
//! for it a little while before it sleeps. What that costs is the processor meanwhile; so it is
//! done only where it has paid: each wait is remembered as *short* (over within the patience,
//! asleep or not) or long, and a thread looks again only if enough of its last waits were short.
//! One whose next request comes seldom sleeps at once; so does one without any patience.
//!
//! While it looks it gives the processor to whoever else wants it (`sched_yield`). When that took
//! long, others have work for this processor: the thread *rests* then, sleeping at once for some
//! waits, and for twice as many each time that it happens again soon. A thread that looks uses up
//! its share of a busy processor and has to wait for the next; one that sleeps is let in when it
//! wakes.
//!
//! Of many threads that wait alike, as the readers of connections do, only so many look at a time
//! as there are *seats*: the processors are for those who work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Waits that are remembered.
const REMEMBERED: u32 = 16;
/// So many of them have to be short.
const SHORT_MIN: u32 = 4;
/// Looks between two that yield the processor and read the clock.
const LOOKS_PER_YIELD: u32 = 8;
/// Whoever gets the processor back later than this was in the way of somebody else's work: longer
/// than a client takes for its next request, shorter than the kernel's shares of a processor.
const DISPLACED_MIN: Duration = Duration::from_micros(200);
/// Waits without a look after that, the first time and at most.
const REST_WAITS: u32 = 32;
const REST_WAITS_MAX: u32 = 2048;
/// Whoever is in nobody's way for so long begins with the first again.
const RESTED: Duration = Duration::from_millis(250);

/// How many threads may look at a time.
#[derive(Debug)]
pub struct Seats {
    free: AtomicUsize,
}

impl Seats {
    /// For so many threads.
    #[must_use]
    pub fn new(seats: usize) -> Self {
        Self { free: AtomicUsize::new(seats) }
    }

    fn take(&self) -> bool {
        let one_less = |free: usize| free.checked_sub(1);
        self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    fn give_back(&self) {
        self.free.fetch_add(1, Ordering::Relaxed);
    }
}

/// How long one thread looks before it sleeps, and how that went.
#[derive(Clone, Debug)]
pub struct Patience {
    at_most: Duration,
    /// None: it looks whoever else does.
    seats: Option<Arc<Seats>>,
    /// A bit for each of the last waits: it was short.
    short: u16,
    /// Waits that are left of a rest.
    resting: u32,
    /// The waits of the last rest, and when it began.
    rest: Option<(u32, Instant)>,
}

/// One wait; it is over when dropped.
pub struct Wait<'a> {
    patience: &'a mut Patience,
    /// None where there is no patience at all.
    begun: Option<Instant>,
    /// When the clock was last read.
    read: Option<Instant>,
    /// Meanwhile it has a seat, if there are seats.
    looks: bool,
    count: u32,
}

impl Patience {
    /// Of so many microseconds at most; 0: never looks, and reads no clock.
    #[must_use]
    pub fn of_us(at_most_us: u32) -> Self {
        let at_most = Duration::from_micros(at_most_us.into());
        Self { at_most, seats: None, short: 0, resting: 0, rest: None }
    }

    /// The same for one of several threads, of which no more look at a time than there are seats.
    #[must_use]
    pub fn seated(self, seats: Arc<Seats>) -> Self {
        Self { seats: Some(seats), ..self }
    }

    /// Something is waited for from now on.
    pub fn wait(&mut self) -> Wait<'_> {
        let begun = (!self.at_most.is_zero()).then(Instant::now);
        let may_look = begun.is_some() && self.resting == 0 && self.short.count_ones() >= SHORT_MIN;
        self.resting = self.resting.saturating_sub(1);
        let looks = may_look && self.seats.as_ref().is_none_or(|seats| seats.take());
        Wait { patience: self, begun, read: begun, looks, count: 0 }
    }

    fn rest(&mut self, now: Instant) {
        self.resting = match self.rest {
            Some((waits, begun)) if now - begun < RESTED => (waits * 2).min(REST_WAITS_MAX),
            _ => REST_WAITS,
        };
        self.rest = Some((self.resting, now));
    }

    fn remember(&mut self, took: Duration) {
        const _: () = assert!(REMEMBERED == u16::BITS);
        self.short = self.short << 1 | u16::from(took <= self.at_most);
    }
}

impl Wait<'_> {
    /// Whether to look once more rather than sleep.
    pub fn looks_again(&mut self) -> bool {
        if !self.looks {
            return false;
        }
        self.count += 1;
        if self.count.is_multiple_of(LOOKS_PER_YIELD) {
            std::thread::yield_now();
            self.note_time(Instant::now());
        } else {
            std::hint::spin_loop();
        }
        self.looks
    }

    /// It is `now`, after a yield: is this still worth it?
    fn note_time(&mut self, now: Instant) {
        let Some((begun, read)) = self.begun.zip(self.read.replace(now)) else { return };
        let was_displaced = now - read > DISPLACED_MIN;
        if was_displaced {
            self.patience.rest(now);
        }
        if was_displaced || now - begun > self.patience.at_most {
            self.stop_looking();
        }
    }

    fn stop_looking(&mut self) {
        let looked = std::mem::take(&mut self.looks);
        if let Some(seats) = self.patience.seats.as_ref().filter(|_| looked) {
            seats.give_back();
        }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.stop_looking();
        if let Some(begun) = self.begun {
            self.patience.remember(begun.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Arc, DISPLACED_MIN, Duration, Instant, Patience, REST_WAITS, REST_WAITS_MAX, RESTED,
        SHORT_MIN, Seats,
    };

    const LONG_US: u32 = 3_600_000_000;
    const LONGER: Duration = Duration::from_secs(7200);

    #[test]
    fn who_has_none_never_looks() {
        let mut patience = Patience::of_us(0);
        (0..40).for_each(|_| drop(patience.wait()));
        assert!(!patience.wait().looks_again());
    }

    #[test]
    fn one_looks_again_after_short_waits_and_not_after_long_ones() {
        let mut patience = Patience::of_us(LONG_US);
        for short in 0..40 {
            assert_eq!(patience.wait().looks_again(), short >= SHORT_MIN, "after {short}");
        }
        (0..12).for_each(|_| patience.remember(LONGER));
        assert!(patience.wait().looks_again());
        (0..12).for_each(|_| patience.remember(LONGER));
        assert!(!patience.wait().looks_again());
    }

    #[test]
    fn looking_ends() {
        let mut patience = Patience::of_us(1);
        patience.short = u16::MAX;
        let mut wait = patience.wait();
        while wait.looks_again() {}
        assert!(!wait.looks_again());
        drop(wait);
        assert_eq!(patience.short, u16::MAX - 1);
    }

    /// One that would look for an hour.
    fn long() -> Patience {
        Patience { short: u16::MAX, ..Patience::of_us(LONG_US) }
    }

    /// A wait in which the processor is gone until `back`, for longer than it may be.
    fn be_displaced(patience: &mut Patience, back: Instant) {
        patience.resting = 0;
        let mut wait = patience.wait();
        assert!(wait.looks_again());
        wait.note_time(back);
        assert!(!wait.looks_again());
    }

    fn waits_until_it_looks(patience: &mut Patience) -> u32 {
        (0..).find(|_| patience.wait().looks_again()).unwrap()
    }

    #[test]
    fn whoever_is_in_the_way_rests_and_longer_the_next_time() {
        let mut patience = long();
        // Far ahead, so that it does not matter how long the test takes.
        let begun = Instant::now() + LONGER;
        be_displaced(&mut patience, begun);
        assert_eq!(waits_until_it_looks(&mut patience), REST_WAITS);
        be_displaced(&mut patience, begun + DISPLACED_MIN);
        assert_eq!(waits_until_it_looks(&mut patience), 2 * REST_WAITS);
        (0..20).for_each(|_| be_displaced(&mut patience, begun + DISPLACED_MIN));
        assert_eq!(patience.resting, REST_WAITS_MAX);
        be_displaced(&mut patience, begun + DISPLACED_MIN + RESTED);
        assert_eq!(patience.resting, REST_WAITS, "it had been in nobody's way");
    }

    #[test]
    fn no_more_look_than_there_are_seats() {
        let seats = Arc::new(Seats::new(1));
        let (mut one, mut other) = (long().seated(Arc::clone(&seats)), long().seated(seats));
        let mut wait = one.wait();
        assert!(wait.looks_again() && !other.wait().looks_again());
        wait.note_time(Instant::now() + LONGER);
        assert!(other.wait().looks_again(), "who sleeps needs no seat");
        drop(wait);
        let found = other.wait();
        assert!(found.looks && !long().seated(Arc::new(Seats::new(0))).wait().looks);
        drop(found);
        one.resting = 0;
        assert!(one.wait().looks_again());
    }
}
