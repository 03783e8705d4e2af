//! What waits for a moment, ordered by that moment alone: elements of a heap of what comes first.

use std::cmp::Ordering;
use std::time::Instant;

/// An item and when it is due.
pub(crate) struct Due<T> {
    pub(crate) due: Instant,
    pub(crate) item: T,
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl<T> Eq for Due<T> {}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Due<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.due.cmp(&other.due)
    }
}
