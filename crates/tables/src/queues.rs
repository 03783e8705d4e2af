//! The queues of S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi: "FIFO queues are all you need for cache
//! eviction", SOSP 2023): the small one, the main one, and the ghosts of what left the small one.
//!
//! Two caches stand in them: the pages of the tables (`store/eviction.rs`, which says why), and the
//! frames that the engine has read. Who may go, and what counts as the small queue's, is theirs.
//! Entries carry a serial of their owner's, so that one of what is gone is known and skipped.

use std::collections::VecDeque;
use std::hash::Hash;

use crate::ghosts::Ghosts;

/// Where entries stand, oldest first; `N` is what ghosts are known by.
pub struct Queues<E, N> {
    /// What came in and has not been wanted again yet.
    pub small: VecDeque<E>,
    /// What was wanted again.
    pub main: VecDeque<E>,
    /// What left the small queue.
    pub ghosts: Ghosts<N>,
}

impl<E, N> Default for Queues<E, N> {
    fn default() -> Self {
        Self { small: VecDeque::new(), main: VecDeque::new(), ghosts: Ghosts::default() }
    }
}

impl<E, N: Hash> Queues<E, N> {
    /// Puts an entry at the end of one of them.
    pub fn push(&mut self, in_main: bool, entry: E) {
        if in_main { self.main.push_back(entry) } else { self.small.push_back(entry) }
    }

    /// Whether more entries are of what is gone than of the `held` that are there.
    #[must_use]
    pub fn are_stale(&self, held: usize) -> bool {
        self.small.len() + self.main.len() > 2 * held + ENTRIES_MIN
    }

    /// Takes out the entries of what is gone.
    pub fn retain(&mut self, is_here: impl Fn(&E) -> bool) {
        self.small.retain(&is_here);
        self.main.retain(&is_here);
    }

    /// Memory that they take.
    #[must_use]
    pub fn resident_bytes(&self) -> usize {
        (self.small.capacity() + self.main.capacity()) * size_of::<E>()
            + self.ghosts.resident_bytes()
    }
}

/// Entries that are not worth clearing up.
const ENTRIES_MIN: usize = 64;
