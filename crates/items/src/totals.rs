//! What the connections of a cache count together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use memcached::{Counts, Figures};

#[derive(Default)]
pub(crate) struct Totals {
    counts: Mutex<Counts>,
    pub(crate) stored: Total,
    pub(crate) get_expired: Total,
    pub(crate) get_flushed: Total,
    /// What the bucket had counted of expired items when the counts began.
    expired_before: AtomicU64,
}

/// A count that many threads add to.
#[derive(Default)]
pub(crate) struct Total(AtomicU64);

impl Total {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

impl Totals {
    pub(crate) fn count(&self, counts: &Counts) {
        self.counts().add(counts);
    }

    /// Begins all counts anew, of a bucket that has counted `expired` items.
    pub(crate) fn reset(&self, expired: u64) {
        *self.counts() = Counts::default();
        self.expired_before.store(expired, Ordering::Relaxed);
        for total in [&self.stored, &self.get_expired, &self.get_flushed] {
            total.reset();
        }
    }

    /// The figures that this knows; all others are those of `figures`.
    pub(crate) fn fill(&self, figures: Figures) -> Figures {
        let expired_before = self.expired_before.load(Ordering::Relaxed);
        Figures {
            expired: figures.expired.saturating_sub(expired_before),
            counts: *self.counts(),
            items_total: self.stored.get(),
            get_expired: self.get_expired.get(),
            get_flushed: self.get_flushed.get(),
            ..figures
        }
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        // An addition leaves the counts whole.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
