//! Whether a key holds what it held: for caches above the bucket, which keep what they have read.
//!
//! Each key has a count, which many keys share. A batch makes the counts of its keys odd before it
//! can be seen, and even when it is. A reader notes an even count, reads, and keeps what it found
//! together with the count: as long as the count is the same, nobody has changed the key.
//!
//! Invariant: a count is changed under the lock of its keys' stripe only, so one batch at a time.
//! Keys of one slot are of one stripe.

use std::sync::atomic::{AtomicU64, Ordering};

use format::objects::settings::slot_of;

/// Counts of a bucket, one for each slot of keys: 512 KiB.
pub const MOMENT_COUNTS: usize = 1 << u16::BITS;

/// A moment at which nobody was changing a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment(u64);

pub(super) struct Moments(Box<[AtomicU64]>);

impl Moments {
    pub(super) fn new() -> Self {
        Self((0..MOMENT_COUNTS).map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn moment(&self, key: &[u8]) -> Option<Moment> {
        let count = self.0[moment_number(key)].load(Ordering::SeqCst);
        count.is_multiple_of(2).then_some(Moment(count))
    }

    pub(super) fn is_unchanged(&self, key: &[u8], since: Moment) -> bool {
        self.0[moment_number(key)].load(Ordering::SeqCst) == since.0
    }

    /// Says that a batch is changing these keys, whose stripes its caller has locked, until the
    /// answer is dropped.
    pub(super) fn change<'a, 'k>(&'a self, keys: impl Iterator<Item = &'k [u8]>) -> Changing<'a> {
        let mut numbers: Vec<usize> = keys.map(moment_number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for &number in &numbers {
            let before = self.0[number].fetch_add(1, Ordering::SeqCst);
            assert!(before.is_multiple_of(2), "one batch at a time changes a key");
        }
        Changing { moments: self, numbers }
    }
}

pub(super) struct Changing<'a> {
    moments: &'a Moments,
    numbers: Vec<usize>,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        for &number in &self.numbers {
            self.moments.0[number].fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Which of the [`MOMENT_COUNTS`] counts is that of a key: keys of one count share their moments.
#[must_use]
pub fn moment_number(key: &[u8]) -> usize {
    usize::from(slot_of(key))
}
