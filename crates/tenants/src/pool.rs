//! A pool's slots, shared by tenants, for any number of threads.

use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::shares::{PartyId, Shares};

type Then = Box<dyn FnOnce(Slot) + Send>;

/// Slots of a pool of threads, or bytes of a memory; a clone is the same.
///
/// ```
/// use tenants::{PartyId, Pool};
/// let pool = Pool::new(2, 0);
/// let (one, two) = (PartyId::new(1), PartyId::new(2));
/// let held = (pool.enter(one).ok_or("free")?, pool.enter(one).ok_or("free")?);
/// assert!(pool.enter(two).is_none());
/// let (sender, served) = std::sync::mpsc::channel();
/// pool.enter_then(two, 1, move |slot| { let _ = sender.send(slot); });
/// drop(held.0);
/// assert!(served.try_recv().is_ok());
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone)]
pub struct Pool {
    shares: Arc<Mutex<Shares<Then>>>,
}

/// What a party holds of a pool; dropped, the next in turn has it.
#[must_use]
pub struct Slot {
    pool: Pool,
    party: PartyId,
    amount: u64,
}

impl Pool {
    /// `slots`, of which who has its share leaves `kept` free.
    ///
    /// # Panics
    /// When nothing is left beside what is kept.
    #[must_use]
    pub fn new(slots: u64, kept: u64) -> Self {
        Self { shares: Arc::new(Mutex::new(Shares::new(slots, kept))) }
    }

    /// A slot, if one is free that nobody else has a better claim to. Who gets none may ask again
    /// whenever a slot is dropped, or use [`Pool::enter_then`].
    #[must_use]
    pub fn enter(&self, party: PartyId) -> Option<Slot> {
        self.enter_with(party, 1)
    }

    /// The same for `amount` of what the pool has.
    #[must_use]
    pub fn enter_with(&self, party: PartyId, amount: u64) -> Option<Slot> {
        let taken = self.lock().try_take(party, amount);
        taken.ok().map(|amount| self.slot(party, amount))
    }

    /// Hands a slot to `then`: at once, or on the thread that drops one when the turn has come.
    /// `then` may drop it, and must not wait.
    pub fn enter_then(
        &self,
        party: PartyId,
        amount: u64,
        then: impl FnOnce(Slot) + Send + 'static,
    ) {
        self.lock().wait(party, amount, Box::new(then));
        self.serve();
    }

    /// What a party holds.
    #[must_use]
    pub fn held_by(&self, party: PartyId) -> u64 {
        self.lock().held_by(party)
    }

    fn serve(&self) {
        loop {
            let next = self.lock().take_next();
            let Some((party, amount, then)) = next else { return };
            then(self.slot(party, amount));
        }
    }

    fn slot(&self, party: PartyId, amount: u64) -> Slot {
        Slot { pool: self.clone(), party, amount }
    }

    fn lock(&self) -> MutexGuard<'_, Shares<Then>> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.pool.lock().give_back(self.party, self.amount);
        self.pool.serve();
    }
}

impl Debug for Pool {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("free", &self.lock().free()).finish_non_exhaustive()
    }
}

impl Debug for Slot {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").field("party", &self.party).field("amount", &self.amount).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::mpsc::channel;
    use std::thread;

    use super::Pool;
    use crate::shares::PartyId;

    #[test]
    fn who_no_longer_wants_a_slot_passes_it_on() {
        let pool = Pool::new(1, 0);
        let held = pool.enter(PartyId::new(1)).unwrap();
        let (sender, served) = channel();
        for of in 2..5000 {
            let sender = sender.clone();
            // Every slot but the last is dropped at once.
            pool.enter_then(PartyId::new(of), 1, move |slot| match of {
                4999 => sender.send(slot).unwrap(),
                _ => drop(slot),
            });
        }
        drop(held);
        let last = served.recv().unwrap();
        assert_eq!(pool.held_by(PartyId::new(4999)), 1);
        drop(last);
        assert!(pool.enter(PartyId::NOBODY).is_some());
    }

    #[test]
    fn no_more_are_held_than_there_are() {
        let (pool, held) = (Pool::new(3, 0), AtomicU64::new(0));
        thread::scope(|scope| {
            for of in 0..6 {
                let (pool, held) = (&pool, &held);
                scope.spawn(move || {
                    for _ in 0..2000 {
                        let (sender, served) = channel();
                        pool.enter_then(PartyId::new(of), 1, move |slot| {
                            let _ = sender.send(slot);
                        });
                        let slot = served.recv().unwrap();
                        assert!(held.fetch_add(1, Ordering::SeqCst) < 3);
                        held.fetch_sub(1, Ordering::SeqCst);
                        drop(slot);
                    }
                });
            }
        });
        assert!(pool.enter_with(PartyId::NOBODY, 3).is_some());
    }
}
