//! How long something took, many times over.

use std::time::Duration;

use serde::Serialize;

/// What half of the times are within, and all but a hundredth; in microseconds.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub(super) struct Latency {
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
}

impl Latency {
    /// Of these times; None of none.
    pub(super) fn of(mut times: Vec<Duration>) -> Option<Self> {
        times.sort_unstable();
        // The smallest time that so many of a hundred do not exceed.
        let within = |percent: usize| {
            let count = (times.len() * percent).div_ceil(100);
            let time = times.get(count.checked_sub(1)?)?;
            Some(time.as_secs_f64() * 1e6)
        };
        Some(Self { p50_us: within(50)?, p99_us: within(99)? })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Latency;

    fn of(times_us: impl IntoIterator<Item = u64>) -> Option<(f64, f64)> {
        let latency = Latency::of(times_us.into_iter().map(Duration::from_micros).collect())?;
        Some((latency.p50_us, latency.p99_us))
    }

    #[test]
    fn a_percentile_is_what_so_many_do_not_exceed() {
        assert_eq!(of((1..=200).rev()), Some((100.0, 198.0)));
        assert_eq!(of([7]), Some((7.0, 7.0)));
        assert_eq!(of([3, 1, 2]), Some((2.0, 3.0)));
        assert_eq!(of([]), None);
    }
}
