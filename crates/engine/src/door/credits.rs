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
//! A request that finds enough takes it, though others wait: to let everybody wait in line would
//! put each request to sleep. But who has waited longest lets others by until these have taken a
//! part of all bytes (what it wants itself is counted in), and from then on is *due*: nobody else
//! gets any before it has its own. So who wants much does not wait for as long as others go on
//! wanting little, and who wants more than that part is due as soon as it is the first.
//!
//! A task of an executor leaves a waker and is woken when the others are called, to try again. It
//! has no turn and is never due: a task that nobody polls would hold everybody up.
//!
//! Once they are *open* nobody waits any more. When the store stops writing, what was acknowledged
//! stays in the write buffer for as long as the engine runs, and may be all of it: a writer that
//! waited for it to empty would never hear that its write is refused.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use reduce::Permit;

/// What has to come back before those who wait are called while more may come.
const SHARE_BYTES_MAX: i64 = 256 << 10;
/// The same as a part of all bytes, where those are few.
const SHARES_MIN: i64 = 8;

/// Others may take this part of all bytes before who has waited longest.
const OVERTAKEN_PART: i64 = 4;

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
    /// Who waits, the longest first.
    waiting: VecDeque<Waiting>,
    /// The next who waits is known by this.
    next_turn: u64,
    /// What others have taken since the first of them is the first.
    overtaken_bytes: i64,
    /// Tasks that try again when the others are called.
    tasks: Vec<Waker>,
}

/// One who waits.
struct Waiting {
    turn: u64,
    wanted_bytes: i64,
}

impl State {
    /// Takes bytes for somebody who does not wait.
    fn take(&mut self, length_bytes: i64) {
        self.free_bytes -= length_bytes;
        if !self.waiting.is_empty() {
            self.overtaken_bytes += length_bytes;
        }
    }

    /// The same for one who has waited.
    fn take_waiting(&mut self, turn: u64, length_bytes: i64) {
        if self.is_first(turn) {
            self.waiting.pop_front();
            (self.free_bytes, self.overtaken_bytes) = (self.free_bytes - length_bytes, 0);
        } else {
            self.waiting.retain(|waiting| waiting.turn != turn);
            self.take(length_bytes);
        }
    }

    /// From now on somebody waits who has not been called.
    fn wait_for_call(&mut self) {
        if !self.uncalled {
            (self.uncalled, self.returned_bytes) = (true, 0);
        }
    }

    fn is_first(&self, turn: u64) -> bool {
        self.waiting.front().is_some_and(|first| first.turn == turn)
    }
}

impl Credits {
    pub(crate) fn new(total_bytes: u64) -> Self {
        let total_bytes = i64::try_from(total_bytes).unwrap_or(i64::MAX);
        let state = State {
            free_bytes: total_bytes,
            open: false,
            uncalled: false,
            returned_bytes: 0,
            waiting: VecDeque::new(),
            next_turn: 0,
            overtaken_bytes: 0,
            tasks: Vec::new(),
        };
        Self { state: Mutex::new(state), returned: Condvar::new(), total_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes `length_bytes`, waiting for them; what is larger than the whole waits for all of it.
    pub(crate) fn take(&self, length_bytes: usize) {
        self.take_or_say(length_bytes, || {});
    }

    /// The same; `say` is called before it waits for more than there is, and all others for it.
    pub(crate) fn take_or_say(&self, length_bytes: usize, say: impl FnOnce()) {
        let wanted = length_bytes as i64;
        let mut state = self.lock();
        if !self.grants(&state, wanted) {
            return self.wait_for(state, wanted, say);
        }
        state.take(wanted);
    }

    fn wait_for<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        wanted_bytes: i64,
        say: impl FnOnce(),
    ) {
        let turn = state.next_turn;
        state.next_turn += 1;
        state.waiting.push_back(Waiting { turn, wanted_bytes });
        if self.is_first_lacking(&state) {
            drop(state);
            say();
            state = self.lock();
        }
        while !(self.grants(&state, wanted_bytes)
            || state.is_first(turn) && self.has(&state, wanted_bytes))
        {
            state.wait_for_call();
            state = self.returned.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let was_due = self.is_first_due(&state);
        state.take_waiting(turn, wanted_bytes);
        if was_due {
            // What it has left was refused to others.
            self.call_all(state);
        }
    }

    /// Takes `length_bytes` if [`Credits::take`] would not wait for them.
    pub(crate) fn try_take(&self, length_bytes: usize) -> bool {
        let wanted = length_bytes as i64;
        let mut state = self.lock();
        let granted = self.grants(&state, wanted);
        if granted {
            state.take(wanted);
        }
        granted
    }

    /// The same; without them, `task` is woken when there may be enough.
    pub(crate) fn try_take_or_wake(&self, length_bytes: usize, task: &Waker) -> bool {
        let wanted = length_bytes as i64;
        let mut state = self.lock();
        let granted = self.grants(&state, wanted);
        if granted {
            state.take(wanted);
        } else {
            if !state.tasks.iter().any(|waiting| waiting.will_wake(task)) {
                state.tasks.push(task.clone());
            }
            state.wait_for_call();
        }
        granted
    }

    /// Whether [`Credits::take`] would take `length_bytes` without waiting.
    pub(crate) fn takes_at_once(&self, length_bytes: usize) -> bool {
        self.grants(&self.lock(), length_bytes as i64)
    }

    /// As [`Credits::try_take`]; they come back when what is returned is dropped.
    pub(crate) fn try_permit(self: &Arc<Self>, length_bytes: usize) -> Option<Permit> {
        let credits = Arc::clone(self);
        let permit = || Permit::new(Arc::new(move |bytes| credits.give_back(bytes)), length_bytes);
        self.try_take(length_bytes).then(permit)
    }

    /// Whether there are so many.
    fn has(&self, state: &State, wanted_bytes: i64) -> bool {
        state.open || state.free_bytes >= wanted_bytes.min(self.total_bytes)
    }

    /// Whether who has waited longest is the next.
    fn is_first_due(&self, state: &State) -> bool {
        let overtaken_bytes_max = self.total_bytes / OVERTAKEN_PART;
        state
            .waiting
            .front()
            .is_some_and(|first| first.wanted_bytes + state.overtaken_bytes > overtaken_bytes_max)
    }

    /// Whether anybody may take so many.
    fn grants(&self, state: &State, wanted_bytes: i64) -> bool {
        self.has(state, wanted_bytes) && (state.open || !self.is_first_due(state))
    }

    /// Whether who is due lacks bytes: to call would help nobody.
    fn is_first_lacking(&self, state: &State) -> bool {
        self.is_first_due(state)
            && state.waiting.front().is_some_and(|first| !self.has(state, first.wanted_bytes))
    }

    pub(crate) fn give_back(&self, length_bytes: usize) {
        let mut state = self.lock();
        state.free_bytes += length_bytes as i64;
        state.returned_bytes += length_bytes as i64;
        let share_bytes = SHARE_BYTES_MAX.min(self.total_bytes / SHARES_MIN);
        let many = state.returned_bytes >= share_bytes || state.free_bytes >= self.total_bytes;
        if many && !self.is_first_lacking(&state) {
            self.call_all(state);
        }
    }

    /// Calls those who wait, if anything has come back for them.
    pub(crate) fn call(&self) {
        let state = self.lock();
        if state.returned_bytes > 0 && !self.is_first_lacking(&state) {
            self.call_all(state);
        }
    }

    /// Whether one waits for more than there is, and everybody else for that one.
    pub(crate) fn are_saved(&self) -> bool {
        self.is_first_lacking(&self.lock())
    }

    fn call_all(&self, mut state: MutexGuard<'_, State>) {
        state.returned_bytes = 0;
        let call = std::mem::take(&mut state.uncalled);
        let tasks = std::mem::take(&mut state.tasks);
        // A call is a system call: not under the lock.
        drop(state);
        if call {
            self.returned.notify_all();
        }
        tasks.into_iter().for_each(Waker::wake);
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

    /// Bytes that nobody has; without bound once nobody waits any more.
    pub(crate) fn free_bytes(&self) -> i64 {
        let state = self.lock();
        if state.open { i64::MAX } else { state.free_bytes.max(0) }
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
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};
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

    /// Somebody waits for `wanted_bytes` while a neighbour has so many chunks under way, of which
    /// it gives none back before it has tried for the next.
    fn wait_beside_a_neighbour(wanted_bytes: usize, chunks: usize) {
        let credits = Arc::new(Credits::new(TOTAL_BYTES as u64));
        credits.take(chunks * CHUNK);
        let waits = Arc::clone(&credits);
        let waiter = thread::spawn(move || waits.take(wanted_bytes));
        while credits.lock().waiting.is_empty() {
            thread::yield_now();
        }
        let (mut under_way, mut taken_bytes) = (chunks, 0);
        while !waiter.is_finished() {
            let takes = credits.try_take(CHUNK);
            if takes {
                (under_way, taken_bytes) = (under_way + 1, taken_bytes + CHUNK);
            }
            if under_way > chunks || (!takes && under_way > 0) {
                credits.give_back(CHUNK);
                under_way -= 1;
            }
            assert!(taken_bytes <= TOTAL_BYTES / 4, "{wanted_bytes} after {taken_bytes}");
            thread::yield_now();
        }
        waiter.join().unwrap();
    }

    #[test]
    fn who_wants_much_does_not_wait_for_as_long_as_others_want_little() {
        let all = TOTAL_BYTES / CHUNK;
        for (wanted_bytes, chunks) in
            [(SHARE_BYTES, all), (TOTAL_BYTES, 1), (2 * TOTAL_BYTES, 1), (TOTAL_BYTES, all)]
        {
            wait_beside_a_neighbour(wanted_bytes, chunks);
        }
    }

    #[test]
    fn who_was_refused_for_one_who_is_due_is_called_when_that_one_has_its_own() {
        let credits = Arc::new(Credits::new(TOTAL_BYTES as u64));
        credits.take(TOTAL_BYTES);
        let wait_for = |length_bytes: usize, others: usize| {
            let waits = Arc::clone(&credits);
            let waiter = thread::spawn(move || waits.take(length_bytes));
            while credits.lock().waiting.len() <= others {
                thread::yield_now();
            }
            waiter
        };
        let due = wait_for(TOTAL_BYTES / 2, 0);
        let other = wait_for(CHUNK, 1);
        credits.give_back(TOTAL_BYTES / 2 - CHUNK);
        assert!(credits.are_saved() && !credits.try_take(1));
        credits.give_back(2 * CHUNK);
        due.join().unwrap();
        other.join().unwrap();
        assert_eq!(credits.used_bytes() as usize, TOTAL_BYTES);
    }

    #[test]
    fn who_lacks_bytes_and_holds_all_others_up_says_so_once_it_is_in_line() {
        let credits = Credits::new(TOTAL_BYTES as u64);
        credits.take_or_say(CHUNK, || panic!("it does not wait"));
        credits.take_or_say(TOTAL_BYTES, || {
            assert!(credits.are_saved());
            credits.give_back(CHUNK);
        });
        assert_eq!(credits.used_bytes() as usize, TOTAL_BYTES);
    }

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_task_is_woken_once_for_all_its_tries_and_holds_nobody_up() {
        let credits = Credits::new(TOTAL_BYTES as u64);
        let woken = Arc::<Woken>::default();
        let task = Waker::from(Arc::clone(&woken));
        credits.take(TOTAL_BYTES);
        assert!(!credits.try_take_or_wake(TOTAL_BYTES, &task));
        assert!(!credits.try_take_or_wake(TOTAL_BYTES, &task));
        credits.give_back(SHARE_BYTES - CHUNK);
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        assert!(credits.try_take(CHUNK), "a task that wants all is not due");
        credits.give_back(2 * CHUNK);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(credits.try_take_or_wake(CHUNK, &task));
        assert!(!credits.try_take_or_wake(TOTAL_BYTES, &task));
        credits.open_wide();
        assert_eq!(woken.0.load(Ordering::Relaxed), 2);
        assert!(credits.try_take_or_wake(TOTAL_BYTES, &task));
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
