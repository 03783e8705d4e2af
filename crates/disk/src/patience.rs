//! Looking again and again before falling asleep.
//!
//! To be woken takes a thread 20 to 50 us, in a virtual machine most of all: as long as a flash
//! device takes for a write. A thread that expects something sooner than that does better to look
//! for it a little while before it sleeps. What that costs is the processor meanwhile; so it is
//! done only where it has paid: each wait is remembered as *short* (over within the patience,
//! asleep or not) or long, and a thread looks again only if enough of its last waits were short.
//! One whose next request comes seldom sleeps at once; so does one without any patience.
//!
//! While it looks it gives the processor to whoever else wants it (`sched_yield`).

use std::time::{Duration, Instant};

/// Waits that are remembered.
const REMEMBERED: u32 = 16;
/// So many of them have to be short.
const SHORT_MIN: u32 = 4;
/// Looks between two that yield the processor and read the clock.
const LOOKS_PER_YIELD: u32 = 8;

/// How long one thread looks before it sleeps, and how that went.
#[derive(Clone, Debug)]
pub struct Patience {
    at_most: Duration,
    /// A bit for each of the last waits: it was short.
    short: u16,
}

/// One wait; it is over when dropped.
pub struct Wait<'a> {
    patience: &'a mut Patience,
    /// None where there is no patience at all.
    begun: Option<Instant>,
    looks: bool,
    count: u32,
}

impl Patience {
    /// Of so many microseconds at most; 0: never looks, and reads no clock.
    #[must_use]
    pub fn of_us(at_most_us: u32) -> Self {
        Self { at_most: Duration::from_micros(at_most_us.into()), short: 0 }
    }

    /// Something is waited for from now on.
    pub fn wait(&mut self) -> Wait<'_> {
        let begun = (!self.at_most.is_zero()).then(Instant::now);
        let looks = begun.is_some() && self.short.count_ones() >= SHORT_MIN;
        Wait { patience: self, begun, looks, count: 0 }
    }

    fn remember(&mut self, took: Duration) {
        const _: () = assert!(REMEMBERED == u16::BITS);
        self.short = self.short << 1 | u16::from(took <= self.at_most);
    }
}

impl Wait<'_> {
    /// Whether to look once more rather than sleep.
    pub fn looks_again(&mut self) -> bool {
        let Some(begun) = self.begun.filter(|_| self.looks) else { return false };
        self.count += 1;
        if self.count.is_multiple_of(LOOKS_PER_YIELD) {
            std::thread::yield_now();
            self.looks = begun.elapsed() <= self.patience.at_most;
        } else {
            std::hint::spin_loop();
        }
        self.looks
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        if let Some(begun) = self.begun {
            self.patience.remember(begun.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Patience, SHORT_MIN};

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
}
