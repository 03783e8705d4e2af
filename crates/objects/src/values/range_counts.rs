//! How many hold each chunk, in memory.
//!
//! Invariant: the ranges are disjoint and have counts of one and more; what is in none has a count
//! of zero. Memory is bounded by what is held, not by what there is.

use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Debug, Default)]
pub(super) struct RangeCounts {
    /// First chunk: chunk behind the range, and count.
    ranges: BTreeMap<u64, (u64, u64)>,
}

impl RangeCounts {
    /// Whether any chunk of `range` is held.
    pub(super) fn overlaps(&self, range: &Range<u64>) -> bool {
        let before = self.ranges.range(..range.end).next_back();
        before.is_some_and(|(_, &(end, _))| end > range.start)
    }

    /// Holds each chunk of `range` once more.
    pub(super) fn add(&mut self, range: &Range<u64>) {
        self.split_at(range.start);
        self.split_at(range.end);
        let inside: Vec<(u64, u64)> =
            self.ranges.range(range.clone()).map(|(&start, &(end, _))| (start, end)).collect();
        let mut at = range.start;
        for (start, end) in inside {
            if at < start {
                self.ranges.insert(at, (start, 1));
            }
            if let Some((_, count)) = self.ranges.get_mut(&start) {
                *count += 1;
            }
            at = end;
        }
        if at < range.end {
            self.ranges.insert(at, (range.end, 1));
        }
    }

    /// Holds each chunk of `range` once less.
    ///
    /// # Panics
    /// When one is not held.
    pub(super) fn remove(&mut self, range: &Range<u64>) {
        self.split_at(range.start);
        self.split_at(range.end);
        let mut at = range.start;
        while at < range.end {
            let Some((end, count)) = self.ranges.get_mut(&at) else {
                panic!("chunk {at} of {range:?} is held by nobody");
            };
            *count -= 1;
            let (end, is_free) = (*end, *count == 0);
            if is_free {
                self.ranges.remove(&at);
            }
            at = end;
        }
    }

    fn split_at(&mut self, at: u64) {
        let Some((_, (end, count))) = self.ranges.range_mut(..at).next_back() else {
            return; // Nothing begins before it.
        };
        if *end > at {
            let behind = (*end, *count);
            *end = at;
            self.ranges.insert(at, behind);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::RangeCounts;

    proptest! {
        #[test]
        fn counts_are_those_of_each_chunk(
            steps in vec((0..40_u64, 1..12_u64, any::<bool>()), 1..60),
        ) {
            let mut counts = RangeCounts::default();
            let (mut plain, mut held) = ([0; 64], Vec::new());
            for (start, length, adds) in steps {
                let range = if adds || held.is_empty() {
                    let range = start..start + length;
                    counts.add(&range);
                    held.push(range.clone());
                    range.clone().for_each(|chunk| plain[chunk as usize] += 1);
                    range
                } else {
                    let range = held.swap_remove(start as usize % held.len());
                    counts.remove(&range);
                    range.clone().for_each(|chunk| plain[chunk as usize] -= 1);
                    range
                };
                for chunk in 0..63 {
                    let is_held = plain[chunk as usize] > 0;
                    prop_assert_eq!(counts.overlaps(&(chunk..chunk + 1)), is_held, "{:?}", &range);
                }
            }
            held.iter().for_each(|range| counts.remove(range));
            prop_assert!(counts.is_empty());
        }
    }
}
