//! A clock that may be read a million times a second: the processor's own counter where there is
//! one, and how long its ticks are.
//!
//! `clock_gettime` takes some 25 ns and as many instructions; the counter a third of it. It runs at
//! one rate on every processor made since 2008 and is the same on all of them, but for what an
//! ancient kernel or hypervisor does: what is measured with it is for people to read, and nothing
//! is decided by it.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// What must have passed before it is said how long a tick is: an error of a microsecond is a
/// ten-thousandth of it.
const MEASURED: Duration = Duration::from_millis(10);

/// Readings of both clocks, of which the closest counts.
const READINGS: u32 = 8;

static ORIGIN: OnceLock<Moment> = OnceLock::new();
static RATE: OnceLock<Rate> = OnceLock::new();

/// Both clocks at once.
struct Moment {
    at: Instant,
    ticks: u64,
}

/// So many ticks are so many nanoseconds.
struct Rate {
    ns: u128,
    ticks: u128,
}

impl Moment {
    /// Somebody may come between reading one and the other: of several readings the closest.
    fn now() -> Self {
        let reading = || {
            let (first, at, last) = (ticks(), Instant::now(), ticks());
            (last.saturating_sub(first), Self { at, ticks: first })
        };
        let closer = |a: (u64, Self), b: (u64, Self)| if b.0 < a.0 { b } else { a };
        (1..READINGS).fold(reading(), |closest, _| closer(closest, reading())).1
    }
}

impl Rate {
    fn since(origin: &Moment) -> Self {
        thread::sleep(MEASURED.saturating_sub(origin.at.elapsed()));
        let now = Moment::now();
        let ticks = u128::from(now.ticks.saturating_sub(origin.ticks)).max(1);
        Self { ns: (now.at - origin.at).as_nanos(), ticks }
    }
}

/// Ticks of the clock; only differences mean anything, by [`ticks_in_ns`].
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: reads a counter that all processors of this kind have, and touches nothing.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static BEGUN: OnceLock<Instant> = OnceLock::new();
        BEGUN.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Begins to measure how long a tick is. The longer before the first [`ticks_in_ns`], the better it
/// is known.
pub fn keep_ticks() {
    ORIGIN.get_or_init(Moment::now);
}

/// So many ticks in nanoseconds, by what passed of both from [`keep_ticks`] to the first time this
/// was asked (at least 10 ms: who asks earlier waits). The same for ever after: sums of ticks are
/// shown as counters, which must never go back.
#[must_use]
pub fn ticks_in_ns(count: u64) -> u64 {
    let rate = RATE.get_or_init(|| Rate::since(ORIGIN.get_or_init(Moment::now)));
    (u128::from(count) * rate.ns / rate.ticks) as u64
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{keep_ticks, ticks, ticks_in_ns};

    #[test]
    fn ticks_are_as_long_as_the_clock_says() {
        keep_ticks();
        let (begun, first) = (Instant::now(), ticks());
        std::thread::sleep(Duration::from_millis(30));
        let (least, count) = (begun.elapsed(), ticks() - first);
        let most = begun.elapsed();
        // Both clocks are read one after the other: somebody may come between.
        let ns = u128::from(ticks_in_ns(count));
        assert!(ns > least.as_nanos() / 2 && ns < most.as_nanos() * 2, "{ns} {least:?} {most:?}");
    }

    #[test]
    fn the_same_ticks_are_as_long_whenever_one_asks() {
        const MANY: u64 = 1 << 50;
        let first = ticks_in_ns(MANY);
        for _ in 0..1000 {
            assert_eq!(ticks_in_ns(MANY), first);
        }
    }
}
