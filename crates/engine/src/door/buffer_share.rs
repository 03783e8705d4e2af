//! What each domain holds of the write buffer, so that no domain fills it for the others.
//!
//! ```text
//! take ── holds little beside what is free ──> held ── give_back ──> the next that waits
//!   └──── else: waits for what its own domain gives back
//! ```
//!
//! A domain takes more as long as it holds at most [`HELD_TO_FREE`] times what is free. One alone
//! has four fifths of the write buffer, two have four ninths each, and a newcomer finds a free
//! part: it does not wait until others give back. (Choudhury and Hahne, "Dynamic queue length
//! thresholds for shared-memory packet switches", 1998.) The length of a request does not count, so
//! a long one does not wait longer than its neighbours; a domain exceeds its bound by one request
//! at most. A domain that holds nothing takes what is free, so each goes on.
//!
//! The bound holds for the blocking forms of writes, those of buckets. It does not hold for volumes
//! of no domain, nor for doors that take buffers before they name the volume (block doors, which
//! have bounds of their own).
//!
//! Invariant: a domain holds what it has taken and not given back. A domain that waits holds more
//! than an open group can hold, as that is small beside the write buffer: so the core gives
//! something back, and calls it.

use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use format::domain::DomainId;
use reduce::{ChunkBuf, Permit};

use crate::door::credits::Credits;

/// A domain takes more as long as it holds at most this multiple of what is free.
const HELD_TO_FREE: i64 = 4;
/// Those who wait are called when this much has come back: a call for each chunk would wake them
/// for each chunk.
const CALL_BYTES: i64 = 256 << 10;

/// The shares of all domains that have written.
pub(crate) struct BufferShares {
    credits: Arc<Credits>,
    by_domain: Mutex<HashMap<DomainId, BufferShare>>,
    /// Whether somebody waits in one of them: the core looks here whenever it has nothing to do.
    is_waited: Arc<AtomicBool>,
}

/// What one domain holds; a clone is the same.
#[derive(Clone)]
pub(crate) struct BufferShare {
    held: Arc<Held>,
    /// Gives back here and to the credits.
    give_back: Arc<dyn Fn(usize) + Send + Sync>,
}

struct Held {
    credits: Arc<Credits>,
    state: Mutex<State>,
    returned: Condvar,
    is_waited: Arc<AtomicBool>,
}

#[derive(Default)]
struct State {
    held_bytes: i64,
    waiting: usize,
    /// What has come back since those who wait were called.
    returned_bytes: i64,
}

impl BufferShares {
    pub(crate) fn new(credits: &Arc<Credits>) -> Self {
        let (by_domain, is_waited) = (Mutex::default(), Arc::default());
        Self { credits: Arc::clone(credits), by_domain, is_waited }
    }

    /// The share of a domain.
    pub(crate) fn of(&self, domain: DomainId) -> BufferShare {
        let make = || BufferShare::new(&self.credits, &self.is_waited);
        self.lock().entry(domain).or_insert_with(make).clone()
    }

    /// Calls all who wait: the core has nothing to do, or nobody is to wait any more.
    pub(crate) fn call(&self) {
        if self.is_waited.swap(false, Ordering::AcqRel) {
            for share in self.lock().values() {
                // Who is about to wait has the lock until it does, and hears this.
                drop(share.held.lock());
                share.held.returned.notify_all();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DomainId, BufferShare>> {
        self.by_domain.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BufferShare {
    fn new(credits: &Arc<Credits>, is_waited: &Arc<AtomicBool>) -> Self {
        let held = Arc::new(Held {
            credits: Arc::clone(credits),
            state: Mutex::default(),
            returned: Condvar::new(),
            is_waited: Arc::clone(is_waited),
        });
        let giving = Arc::clone(&held);
        Self { held, give_back: Arc::new(move |bytes| giving.give_back(bytes)) }
    }

    /// Takes bytes that the domain may have, waiting for those that it gives back. They are to be
    /// taken of the credits as well.
    pub(crate) fn take(&self, length_bytes: usize) {
        self.held.take(length_bytes as i64);
    }

    /// Whether [`BufferShare::take`] would not wait.
    pub(crate) fn takes_at_once(&self) -> bool {
        self.held.may_take(&self.held.lock())
    }

    /// A buffer whose bytes, `credit` of them, were taken here and of the credits.
    pub(crate) fn buffer(&self, length_bytes: usize, credit: usize) -> ChunkBuf {
        ChunkBuf::with_permit(length_bytes, Permit::new(Arc::clone(&self.give_back), credit))
    }
}

impl Held {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, length_bytes: i64) {
        let mut state = self.lock();
        if !self.may_take(&state) {
            state = self.wait(state);
        }
        state.held_bytes += length_bytes;
    }

    fn wait<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting += 1;
        loop {
            // Said before it looks: what comes back behind that is followed by a call.
            self.is_waited.store(true, Ordering::Release);
            if self.may_take(&state) {
                break;
            }
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting -= 1;
        state
    }

    fn may_take(&self, state: &State) -> bool {
        state.held_bytes <= self.credits.free_bytes().saturating_mul(HELD_TO_FREE)
    }

    fn give_back(&self, length_bytes: usize) {
        self.credits.give_back(length_bytes);
        let mut state = self.lock();
        state.held_bytes -= length_bytes as i64;
        assert!(state.held_bytes >= 0, "a domain gives back what it holds");
        state.returned_bytes += length_bytes as i64;
        let calls = state.returned_bytes >= CALL_BYTES || state.held_bytes == 0;
        if calls && state.waiting > 0 {
            state.returned_bytes = 0;
            drop(state);
            self.returned.notify_all();
        }
    }
}

impl Debug for BufferShare {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let held_bytes = self.held.lock().held_bytes;
        f.debug_struct("BufferShare").field("held_bytes", &held_bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Arc;
    use std::thread;

    use format::domain::DomainId;
    use proptest::prelude::prop;
    use proptest::{prop_assert, proptest};
    use reduce::ChunkBuf;

    use super::BufferShares;
    use crate::door::credits::Credits;

    const TOTAL_BYTES: usize = 16 << 20;
    const CHUNK: usize = 4096;

    fn shares() -> (Arc<Credits>, BufferShares) {
        let credits = Arc::new(Credits::new(TOTAL_BYTES as u64));
        let shares = BufferShares::new(&credits);
        (credits, shares)
    }

    fn domain(number: u16) -> DomainId {
        DomainId::new(number).unwrap()
    }

    /// Takes chunks as long as nothing is to be waited for, and no more than `most`.
    fn take_chunks(
        shares: &BufferShares,
        credits: &Credits,
        of: u16,
        most: usize,
        held: &mut VecDeque<ChunkBuf>,
    ) {
        let share = shares.of(domain(of));
        for _ in 0..most {
            if !share.takes_at_once() {
                return;
            }
            share.take(CHUNK);
            credits.take(CHUNK);
            held.push_back(share.buffer(CHUNK, CHUNK));
        }
    }

    proptest! {
        /// Whatever domains take that take all they may: who comes finds some, and all comes back.
        #[test]
        fn who_comes_need_not_wait(
            order in prop::collection::vec((1_u16..4, 1_usize..3000), 1..40),
        ) {
            let (credits, shares) = shares();
            let mut held = VecDeque::new();
            for (of, most) in order {
                take_chunks(&shares, &credits, of, most, &mut held);
                let newcomer = shares.of(domain(99));
                prop_assert!(newcomer.takes_at_once() && credits.takes_at_once(CHUNK));
            }
            held.clear();
            prop_assert!(credits.used_bytes() == 0);
        }
    }

    #[test]
    fn who_comes_has_an_equal_part_when_the_others_have_given_back() {
        let (credits, shares) = shares();
        let mut held = [VecDeque::new(), VecDeque::new()];
        take_chunks(&shares, &credits, 1, usize::MAX, &mut held[0]);
        let alone_bytes = held[0].len() * CHUNK;
        assert!(alone_bytes.abs_diff(TOTAL_BYTES / 5 * 4) <= CHUNK);
        for _ in 0..TOTAL_BYTES / CHUNK {
            for (of, held) in [1, 2].into_iter().zip(&mut held) {
                held.pop_front();
                take_chunks(&shares, &credits, of, 2, held);
            }
        }
        for held in &held {
            let bytes = held.len() * CHUNK;
            assert!(bytes.abs_diff(TOTAL_BYTES / 9 * 4) <= TOTAL_BYTES / 50, "{bytes}");
        }
    }

    #[test]
    fn who_waits_is_called_when_its_domain_gives_back() {
        let (credits, shares) = shares();
        let share = shares.of(domain(1));
        let (first, second) = (TOTAL_BYTES / 2, TOTAL_BYTES / 8 * 3);
        let take = |bytes: usize| {
            share.take(bytes);
            credits.take(bytes);
            share.buffer(bytes, bytes)
        };
        let held = (take(first), take(second));
        assert!(!share.takes_at_once());
        let waits = share.clone();
        let waiter = thread::spawn(move || waits.take(second));
        while share.held.lock().waiting == 0 {
            thread::yield_now();
        }
        drop(held.0);
        waiter.join().unwrap();
    }

    #[test]
    fn nobody_waits_once_the_store_stops_writing() {
        let (credits, shares) = shares();
        let share = shares.of(domain(1));
        share.take(TOTAL_BYTES);
        credits.take(TOTAL_BYTES);
        let waits = share.clone();
        let waiter = thread::spawn(move || waits.take(CHUNK));
        while share.held.lock().waiting == 0 {
            thread::yield_now();
        }
        credits.open_wide();
        shares.call();
        waiter.join().unwrap();
    }
}
