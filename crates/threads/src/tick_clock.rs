//! A clock that can be read a million times a second: the processor's time-stamp counter where
//! there is one, calibrated against the system's clock.
//!
//! `clock_gettime` takes some 25 ns and as many instructions; the counter a third of it. The
//! counter runs at one rate on every processor made since 2008 and is the same on all of them,
//! unless an ancient kernel or hypervisor breaks that: it measures what people read, and decides
//! nothing.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// The calibration takes at least this long: an error of a microsecond is a ten-thousandth of it.
const CALIBRATED: Duration = Duration::from_millis(10);

/// Readings of both clocks; the one that took least time counts.
const READINGS: u32 = 8;

static ORIGIN: OnceLock<Moment> = OnceLock::new();
static RATE: OnceLock<Rate> = OnceLock::new();

/// Both clocks at once.
struct Moment {
    at: Instant,
    ticks: u64,
}

/// Nanoseconds and ticks that passed together.
struct Rate {
    ns: u128,
    ticks: u128,
}

impl Moment {
    /// The thread may be preempted between the two clocks: the quickest of several readings counts.
    fn now() -> Self {
        let reading = || {
            let (first, at, last) = (read_ticks(), Instant::now(), read_ticks());
            (last.saturating_sub(first), Self { at, ticks: first })
        };
        let closer = |a: (u64, Self), b: (u64, Self)| if b.0 < a.0 { b } else { a };
        (1..READINGS).fold(reading(), |closest, _| closer(closest, reading())).1
    }
}

impl Rate {
    fn since(origin: &Moment) -> Self {
        thread::sleep(CALIBRATED.saturating_sub(origin.at.elapsed()));
        let now = Moment::now();
        let ticks = u128::from(now.ticks.saturating_sub(origin.ticks)).max(1);
        Self { ns: (now.at - origin.at).as_nanos(), ticks }
    }
}

/// Reads the clock, in ticks; only differences mean anything, through [`ticks_to_ns`].
#[inline]
#[must_use]
pub fn read_ticks() -> u64 {
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

/// Begins the calibration. The longer before the first [`ticks_to_ns`], the better it is.
pub fn calibrate_ticks() {
    ORIGIN.get_or_init(Moment::now);
}

/// Converts ticks to nanoseconds, by what passed of both between [`calibrate_ticks`] and the first
/// call of this function (a call within 10 ms of the calibration's begin waits for the rest). The
/// rate then stays: sums of ticks are shown as counters, which must never go back.
#[must_use]
pub fn ticks_to_ns(count: u64) -> u64 {
    let rate = RATE.get_or_init(|| Rate::since(ORIGIN.get_or_init(Moment::now)));
    (u128::from(count) * rate.ns / rate.ticks) as u64
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{calibrate_ticks, read_ticks, ticks_to_ns};

    #[test]
    fn ticks_are_as_long_as_the_clock_says() {
        calibrate_ticks();
        let (begun, first) = (Instant::now(), read_ticks());
        std::thread::sleep(Duration::from_millis(30));
        let (least, count) = (begun.elapsed(), read_ticks() - first);
        let most = begun.elapsed();
        // Both clocks are read one after the other: somebody may come between.
        let ns = u128::from(ticks_to_ns(count));
        assert!(ns > least.as_nanos() / 2 && ns < most.as_nanos() * 2, "{ns} {least:?} {most:?}");
    }

    #[test]
    fn the_same_ticks_are_as_long_whenever_one_asks() {
        const MANY: u64 = 1 << 50;
        let first = ticks_to_ns(MANY);
        for _ in 0..1000 {
            assert_eq!(ticks_to_ns(MANY), first);
        }
    }
}
