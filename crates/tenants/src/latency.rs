//! How long operations took: counts by length, from which percentiles are told to a sixteenth.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Lengths in one doubling.
const PARTS: u64 = 16;
const PART_BITS: u32 = PARTS.ilog2();
/// Lengths from 2^40 ns on, some 18 minutes, are counted as one.
const DOUBLINGS: u32 = 40;
const PLACES: usize = ((DOUBLINGS - PART_BITS + 1) as usize) * PARTS as usize;

/// Counts of lengths; any number of threads add to it.
#[derive(Debug)]
pub(crate) struct Latencies {
    counts: Box<[AtomicU64]>,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: (0..PLACES).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl Latencies {
    pub(crate) fn add(&self, operations: u64, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[place_of(ns)].fetch_add(operations, Ordering::Relaxed);
    }

    /// How many were added.
    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// The length that `percent` of all do not exceed, rounded up to the next that is told apart;
    /// none where nothing was added.
    pub(crate) fn percentile_ns(&self, percent: u64) -> Option<u64> {
        let wanted = (self.count() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let place = self.counts.iter().position(|count| {
            seen += count.load(Ordering::Relaxed);
            seen >= wanted
        });
        place.map(longest_at)
    }
}

fn place_of(ns: u64) -> usize {
    if ns < PARTS {
        return ns as usize;
    }
    let doubling = ns.ilog2() - PART_BITS;
    let part = (ns >> doubling) - PARTS;
    let place = u64::from(doubling + 1) * PARTS + part;
    (place as usize).min(PLACES - 1)
}

/// The longest that is counted at a place.
fn longest_at(place: usize) -> u64 {
    let (doubling, part) = (place as u64 / PARTS, place as u64 % PARTS);
    match doubling {
        0 => part,
        _ => ((PARTS + part + 1) << (doubling - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::{Latencies, PLACES, longest_at, place_of};

    proptest! {
        /// Against a sorted list: what is told is no shorter, and longer by a sixteenth at most.
        #[test]
        fn percentiles_are_those_of_a_list(
            mut all in proptest::collection::vec(0u64..1 << 39, 1..200),
            percent in 1u64..100,
        ) {
            let latencies = Latencies::default();
            all.iter().for_each(|ns| latencies.add(1, Duration::from_nanos(*ns)));
            all.sort_unstable();
            let at = (all.len() as u64 * percent).div_ceil(100).max(1) as usize - 1;
            let told = latencies.percentile_ns(percent).unwrap();
            prop_assert!(told >= all[at] && told - all[at] <= all[at] / 16);
            prop_assert_eq!(latencies.count(), all.len() as u64);
        }
    }

    #[test]
    fn places_follow_one_another() {
        assert!((1..PLACES).all(|place| place_of(longest_at(place - 1) + 1) == place));
        assert_eq!(place_of(u64::MAX), PLACES - 1);
        assert_eq!(Latencies::default().percentile_ns(50), None);
    }
}
