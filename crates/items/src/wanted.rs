//! How often items were read since eviction last looked at them.
//!
//! A table of counters, one for several keys: keys that share one are taken for wanted together,
//! which lets the less wanted one stay. It is in memory only, so after a restart nothing has been
//! read.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU8, Ordering};

use hashbrown::DefaultHashBuilder;

/// Counters of a cache: 1 MiB.
const COUNTERS: usize = 1 << 20;
/// As S3-FIFO's main queue has it: an item goes round so often without being read.
const COUNT_MAX: u8 = 3;

pub(crate) struct Wanted {
    counters: Box<[AtomicU8]>,
    hasher: DefaultHashBuilder,
}

impl Wanted {
    pub(crate) fn new() -> Self {
        let counters = (0..COUNTERS).map(|_| AtomicU8::new(0)).collect();
        Self { counters, hasher: DefaultHashBuilder::default() }
    }

    /// The key was read.
    pub(crate) fn add(&self, key: &[u8]) {
        let counter = self.counter(key);
        let count = counter.load(Ordering::Relaxed);
        // Of two readers at once one may not be counted.
        if count < COUNT_MAX {
            counter.store(count + 1, Ordering::Relaxed);
        }
    }

    /// Whether the key was read since; it counts as read once less from now on.
    pub(crate) fn take(&self, key: &[u8]) -> bool {
        let counter = self.counter(key);
        let count = counter.load(Ordering::Relaxed);
        counter.store(count.saturating_sub(1), Ordering::Relaxed);
        count > 0
    }

    fn counter(&self, key: &[u8]) -> &AtomicU8 {
        &self.counters[self.hasher.hash_one(key) as usize % COUNTERS]
    }
}

#[cfg(test)]
mod tests {
    use super::Wanted;

    #[test]
    fn a_key_is_spared_three_times_at_most() {
        let wanted = Wanted::new();
        assert!(!wanted.take(b"a"));
        (0..9).for_each(|_| wanted.add(b"a"));
        let spared = (0..9).filter(|_| wanted.take(b"a")).count();
        assert_eq!(spared, 3);
    }
}
