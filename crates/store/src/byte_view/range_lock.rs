//! Locks on ranges of sectors: writers whose ranges overlap go one after the other, all others side
//! by side.
//!
//! Invariant: no two ranges that are held overlap. A thread holds one range at a time, so nobody
//! waits in a circle.

use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The ranges that are held.
#[derive(Default)]
pub(crate) struct RangeLock {
    state: Mutex<Held>,
    freed: Condvar,
}

#[derive(Default)]
struct Held {
    /// As many as there are writers at a time: few.
    ranges: Vec<Range<u64>>,
    waiting: usize,
}

/// A range that is held until this is dropped.
pub(crate) struct RangeGuard<'a> {
    lock: &'a RangeLock,
    range: Range<u64>,
}

impl RangeLock {
    /// Waits until nothing that overlaps `range` is held, and holds it.
    pub(crate) fn lock(&self, range: Range<u64>) -> RangeGuard<'_> {
        let mut held = self.held();
        while held.ranges.iter().any(|other| other.start < range.end && range.start < other.end) {
            held.waiting += 1;
            held = self.freed.wait(held).unwrap_or_else(PoisonError::into_inner);
            held.waiting -= 1;
        }
        held.ranges.push(range.clone());
        RangeGuard { lock: self, range }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RangeGuard<'_> {
    fn drop(&mut self) {
        let mut held = self.lock.held();
        let place = held.ranges.iter().position(|range| *range == self.range);
        assert!(place.is_some(), "a range that was locked is held until its guard is dropped");
        if let Some(place) = place {
            held.ranges.swap_remove(place);
        }
        let anyone_waits = held.waiting > 0;
        drop(held);
        if anyone_waits {
            self.lock.freed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::RangeLock;

    #[test]
    fn who_overlaps_waits_and_nobody_else() {
        let lock = Arc::new(RangeLock::default());
        let first = lock.lock(512..1024);
        drop((lock.lock(0..512), lock.lock(1024..2048)));
        let other = Arc::clone(&lock);
        let waits = thread::spawn(move || drop(other.lock(0..4096)));
        while lock.held().waiting == 0 {
            thread::yield_now();
        }
        assert_eq!(lock.held().ranges.as_slice(), std::slice::from_ref(&(512..1024)));
        drop(first);
        waits.join().unwrap();
        assert!(lock.held().ranges.is_empty());
    }

    #[test]
    fn empty_ranges_overlap_nothing_inside_them() {
        let lock = RangeLock::default();
        drop((lock.lock(512..512), lock.lock(512..512), lock.lock(0..512)));
        assert!(lock.held().ranges.is_empty());
    }
}
