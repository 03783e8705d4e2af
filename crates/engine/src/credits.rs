//! Bytes of memory that doors may take: for what is in the write buffer, and for reads under way.
//!
//! Who finds too few waits. While clients write faster than the store takes, that is all of them,
//! all the time, and bytes come back chunk by chunk. To wake every one of them for each chunk cost
//! a fifth of all processor time, so they are called
//!
//! * when a *share* has come back since they were last called, enough for many requests; or
//! * when all bytes are back; or
//! * when the core has nothing to do ([`Credits::call`]): nothing more may come back before
//!   somebody asks for more.
//!
//! So nobody waits for bytes that are there for longer than the core works, or sleeps at a time.
//!
//! Once they are *open* nobody waits any more. When the store stops writing, what was acknowledged
//! stays in the write buffer for as long as the engine runs, and may be all of it: a writer that
//! waited for it to empty would never hear that its write is refused.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use reduce::Permit;

/// What has to come back before those who wait are called while more may come.
const SHARE_BYTES_MAX: i64 = 256 << 10;
/// The same as a part of all bytes, where those are few.
const SHARES_MIN: i64 = 8;

/// Bytes of memory that may still be taken for one use.
pub(crate) struct Credits {
    state: Mutex<State>,
    returned: Condvar,
    total_bytes: i64,
}

struct State {
    free_bytes: i64,
    /// Nobody waits any more.
    open: bool,
    /// Whether somebody waits who has not been called since.
    uncalled: bool,
    /// What has come back since somebody waits.
    returned_bytes: i64,
}

impl Credits {
    pub(crate) fn new(total_bytes: u64) -> Self {
        let total_bytes = i64::try_from(total_bytes).unwrap_or(i64::MAX);
        let state =
            State { free_bytes: total_bytes, open: false, uncalled: false, returned_bytes: 0 };
        Self { state: Mutex::new(state), returned: Condvar::new(), total_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `length_bytes`, waiting for them; what is larger than the whole waits for all of it.
    pub(crate) fn take(&self, length_bytes: usize) {
        let wanted = length_bytes as i64;
        let mut state = self.lock();
        while !self.grants(&state, wanted) {
            if !state.uncalled {
                (state.uncalled, state.returned_bytes) = (true, 0);
            }
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.free_bytes -= wanted;
    }

    /// Takes `length_bytes` if [`Credits::take`] would not wait for them.
    pub(crate) fn try_take(&self, length_bytes: usize) -> bool {
        let wanted = length_bytes as i64;
        let mut state = self.lock();
        let granted = self.grants(&state, wanted);
        if granted {
            state.free_bytes -= wanted;
        }
        granted
    }

    /// The same; they come back when what is returned is dropped.
    pub(crate) fn try_permit(self: &Arc<Self>, length_bytes: usize) -> Option<Permit> {
        let credits = Arc::clone(self);
        let permit = || Permit::new(Arc::new(move |bytes| credits.give_back(bytes)), length_bytes);
        self.try_take(length_bytes).then(permit)
    }

    fn grants(&self, state: &State, wanted_bytes: i64) -> bool {
        state.open || state.free_bytes >= wanted_bytes.min(self.total_bytes)
    }

    pub(crate) fn give_back(&self, length_bytes: usize) {
        let mut state = self.lock();
        state.free_bytes += length_bytes as i64;
        state.returned_bytes += length_bytes as i64;
        let share_bytes = SHARE_BYTES_MAX.min(self.total_bytes / SHARES_MIN);
        if state.returned_bytes >= share_bytes || state.free_bytes >= self.total_bytes {
            self.call_all(state);
        }
    }

    /// Calls those who wait, if anything has come back for them.
    pub(crate) fn call(&self) {
        let state = self.lock();
        if state.returned_bytes > 0 {
            self.call_all(state);
        }
    }

    fn call_all(&self, mut state: MutexGuard<'_, State>) {
        state.returned_bytes = 0;
        let call = std::mem::take(&mut state.uncalled);
        // A call is a system call: not under the lock.
        drop(state);
        if call {
            self.returned.notify_all();
        }
    }

    /// Nobody waits any more: what is asked for is answered with an error.
    pub(crate) fn open_wide(&self) {
        let mut state = self.lock();
        state.open = true;
        self.call_all(state);
    }

    /// Whether somebody waits for them.
    pub(crate) fn are_wanted(&self) -> bool {
        self.lock().uncalled
    }

    /// Bytes of all.
    pub(crate) fn total_bytes(&self) -> usize {
        usize::try_from(self.total_bytes).unwrap_or(usize::MAX)
    }

    /// Bytes that are taken now.
    pub(crate) fn used_bytes(&self) -> u64 {
        u64::try_from(self.total_bytes - self.lock().free_bytes).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread::{self, JoinHandle};

    use super::Credits;

    const TOTAL_BYTES: usize = 1 << 20;
    const SHARE_BYTES: usize = TOTAL_BYTES / 8;
    const CHUNK: usize = 4096;

    /// All is taken, and a thread waits for a chunk of it.
    fn with_one_who_waits() -> (Arc<Credits>, JoinHandle<()>) {
        let credits = Arc::new(Credits::new(TOTAL_BYTES as u64));
        credits.take(TOTAL_BYTES);
        let waits = Arc::clone(&credits);
        let waiter = thread::spawn(move || waits.take(CHUNK));
        while !credits.lock().uncalled {
            thread::yield_now();
        }
        (credits, waiter)
    }

    #[test]
    fn who_waits_is_called_for_a_share_and_not_for_each_chunk() {
        let (credits, waiter) = with_one_who_waits();
        for chunk in 1..SHARE_BYTES / CHUNK {
            credits.give_back(CHUNK);
            assert!(credits.lock().uncalled, "called for {chunk} chunks");
        }
        credits.give_back(CHUNK);
        waiter.join().unwrap();
        assert_eq!(credits.used_bytes() as usize, TOTAL_BYTES - SHARE_BYTES + CHUNK);
    }

    #[test]
    fn who_waits_is_called_when_the_core_has_nothing_to_do() {
        let (credits, waiter) = with_one_who_waits();
        credits.call();
        assert!(credits.lock().uncalled, "there is nothing to be called for");
        credits.give_back(CHUNK);
        credits.call();
        waiter.join().unwrap();
        assert_eq!(credits.used_bytes() as usize, TOTAL_BYTES);
    }

    #[test]
    fn who_waits_is_called_when_all_is_back() {
        let credits = Arc::new(Credits::new(TOTAL_BYTES as u64));
        credits.take(CHUNK);
        let waits = Arc::clone(&credits);
        // More than there is: it waits for all of it.
        let waiter = thread::spawn(move || waits.take(2 * TOTAL_BYTES));
        while !credits.lock().uncalled {
            thread::yield_now();
        }
        credits.give_back(CHUNK);
        waiter.join().unwrap();
        assert!(!credits.try_take(1));
    }

    #[test]
    fn once_they_are_open_nobody_waits() {
        let (credits, waiter) = with_one_who_waits();
        credits.open_wide();
        waiter.join().unwrap();
        assert!(credits.try_take(TOTAL_BYTES));
        assert_eq!(credits.used_bytes() as usize, 2 * TOTAL_BYTES + CHUNK);
    }
}
