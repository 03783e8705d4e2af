//! A clock that may be read a million times a second: the processor's own counter where there is
//! one, and how long its ticks are.
//!
//! `clock_gettime` takes some 25 ns and as many instructions; the counter a third of it. It runs at
//! one rate on every processor made since 2008 and is the same on all of them, but for what an
//! ancient kernel or hypervisor does: what is measured with it is for people to read, and nothing
//! is decided by it.

use std::sync::OnceLock;
use std::time::Instant;

static ORIGIN: OnceLock<(Instant, u64)> = OnceLock::new();

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
        ORIGIN.get_or_init(|| (Instant::now(), 0)).0.elapsed().as_nanos() as u64
    }
}

/// Begins to measure how long a tick is. The longer ago, the better it is known.
pub fn keep_ticks() {
    ORIGIN.get_or_init(|| (Instant::now(), ticks()));
}

/// So many ticks in nanoseconds, by what passed of both since [`keep_ticks`].
#[must_use]
pub fn ticks_in_ns(count: u64) -> u64 {
    let (begun, first) = ORIGIN.get_or_init(|| (Instant::now(), ticks()));
    let passed = ticks().saturating_sub(*first).max(1);
    (u128::from(count) * begun.elapsed().as_nanos() / u128::from(passed)) as u64
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
}
