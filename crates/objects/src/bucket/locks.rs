//! Locks of keys, and what the bucket holds, in as many parts.
//!
//! A lock guards all keys of its stripe: their records, their uploads, and the counts of the
//! stripe. Because its holder alone changes these counts, the counts of the index are those of the
//! records, in whatever order batches of other stripes are made.

use std::sync::{Mutex, MutexGuard, PoisonError};

use format::objects::settings::{Figures, figures_setting, stripe_of};

use crate::index::{Change, Table};

pub(super) struct Stripes(Vec<Mutex<Figures>>);

/// Stripes of some keys, locked, and their counts when a batch has been applied.
pub(super) struct Locked<'a>(Vec<LockedStripe<'a>>);

struct LockedStripe<'a> {
    number: u8,
    figures: MutexGuard<'a, Figures>,
    after: Figures,
}

impl Stripes {
    pub(super) fn new(figures: Vec<Figures>) -> Self {
        Self(figures.into_iter().map(Mutex::new).collect())
    }

    /// Locks the stripes of `keys`, in the order of their numbers.
    pub(super) fn lock<'k>(&self, keys: impl IntoIterator<Item = &'k [u8]>) -> Locked<'_> {
        let mut numbers: Vec<u8> = keys.into_iter().map(stripe_of).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let lock_one = |number: u8| {
            let stripe = &self.0[usize::from(number)];
            let figures = stripe.lock().unwrap_or_else(PoisonError::into_inner);
            let after = *figures;
            LockedStripe { number, figures, after }
        };
        Locked(numbers.into_iter().map(lock_one).collect())
    }
}

impl Locked<'_> {
    /// The counts that a batch gives the stripe of `key`.
    ///
    /// # Panics
    /// When the stripe is not locked.
    pub(super) fn figures_of(&mut self, key: &[u8]) -> &mut Figures {
        let number = stripe_of(key);
        match self.0.iter_mut().find(|stripe| stripe.number == number) {
            Some(stripe) => &mut stripe.after,
            None => panic!("who changes a key has locked its stripe"),
        }
    }

    /// Counts of the locked stripes together: now, and when the batch has been applied.
    pub(super) fn sums(&self) -> (Figures, Figures) {
        let mut sums = (Figures::default(), Figures::default());
        for stripe in &self.0 {
            add(&mut sums.0, &stripe.figures);
            add(&mut sums.1, &stripe.after);
        }
        sums
    }

    /// What the batch must change for the counts.
    pub(super) fn changes(&self) -> Vec<Change> {
        let changed = self.0.iter().filter(|stripe| stripe.after != *stripe.figures);
        let change = |stripe: &LockedStripe<'_>| Change::Set {
            table: Table::Settings,
            key: figures_setting(stripe.number),
            value: stripe.after.encode(),
        };
        changed.map(change).collect()
    }

    /// The batch has been applied.
    pub(super) fn settle(&mut self) {
        for stripe in &mut self.0 {
            *stripe.figures = stripe.after;
        }
    }
}

/// Adds to a sum; it wraps, as what it is made of does.
pub(super) fn add(sum: &mut Figures, figures: &Figures) {
    sum.objects = sum.objects.wrapping_add(figures.objects);
    sum.object_bytes = sum.object_bytes.wrapping_add(figures.object_bytes);
    sum.parts = sum.parts.wrapping_add(figures.parts);
    sum.part_bytes = sum.part_bytes.wrapping_add(figures.part_bytes);
}

/// Takes from a sum what was added to it.
pub(super) fn subtract(sum: &mut Figures, figures: &Figures) {
    sum.objects = sum.objects.wrapping_sub(figures.objects);
    sum.object_bytes = sum.object_bytes.wrapping_sub(figures.object_bytes);
    sum.parts = sum.parts.wrapping_sub(figures.parts);
    sum.part_bytes = sum.part_bytes.wrapping_sub(figures.part_bytes);
}
