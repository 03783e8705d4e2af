//! Ranges that batches have just released, for a trimmer that does not look for them in the index.
//!
//! Each of them is in `ToFree`; here is a hint of where. A cache whose items are written over
//! releases a range with each set, and a scan of `ToFree` passes over all that were freed since the
//! last merge. What the list has no room for, and all that is there at an opening, is found by
//! scans.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Mutex;

use super::space::lock;

/// Ranges in the list at most: a mebibyte of memory.
const RANGES_MAX: usize = 1 << 16;

#[derive(Default)]
pub(super) struct Released(Mutex<VecDeque<Range<u64>>>);

impl Released {
    /// Adds ranges whose batch was applied, as far as there is room.
    pub(super) fn add(&self, ranges: impl Iterator<Item = Range<u64>>) {
        let mut all = lock(&self.0);
        let room = RANGES_MAX.saturating_sub(all.len());
        all.extend(ranges.take(room));
    }

    /// Takes the oldest ones, up to `limit`.
    pub(super) fn take(&self, limit: usize) -> Vec<Range<u64>> {
        let mut all = lock(&self.0);
        let taken = limit.min(all.len());
        all.drain(..taken).collect()
    }

    pub(super) fn count(&self) -> usize {
        lock(&self.0).len()
    }
}

#[cfg(test)]
mod tests {
    use super::{RANGES_MAX, Released};

    #[test]
    fn the_oldest_come_first_and_no_more_are_kept_than_there_is_room_for() {
        let released = Released::default();
        released.add((0..RANGES_MAX as u64 + 5).map(|start| start..start + 1));
        assert_eq!(released.count(), RANGES_MAX);
        assert_eq!(released.take(2), [0..1, 1..2]);
        released.add(std::iter::once(7..9));
        assert_eq!(released.take(usize::MAX).last(), Some(&(7..9)));
        assert_eq!(released.take(1), []);
    }
}
