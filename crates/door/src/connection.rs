//! What the three parties of one connection share: the reader, the writer, and the engine's core.
//!
//! ```text
//! reader ── begin ─> slots ── (the engine works) ── complete ─> outcomes ── next_batch ─> writer
//!    └── capacity ───────────────<──── release, once sent ──────────────────────────────────┘
//! ```
//!
//! * A request is *in flight* from `begin` until its answer has been sent, for until then it holds
//!   memory. Count and bytes of what is in flight are bounded ([`Load`]), and the reader waits for
//!   capacity: a client that sends faster than it reads is not read from any further.
//! * The core only ever pushes onto a list under a lock that nobody holds for long, and wakes the
//!   writer only when the writer sleeps. An answer without data it sends itself where nobody waits
//!   before it and the wire takes it: a client waits for its flush, and waking the writer takes
//!   longer than sending. So it does with a short read that is all there is in flight: there is
//!   nothing that it could be assembled beside.
//! * Outcomes wait *here* while anything is sent, so that a sender whose client reads nothing can
//!   give back what they hold of the write buffer ([`Connection::unpin_write_buffer`]).
//! * The core asks whether the client has gone ([`Completions::is_gone`]) about what had to wait
//!   for space in the store. Some wires tell that only by what the reader has not looked at yet:
//!   before it waits for anything it leaves that here ([`Connection::set_unread`]).
//! * States: open, then *draining* (`reading` is false: no further request begins, all that is in
//!   flight is answered), then over. *Aborted* is over at once: nobody waits for anything any more,
//!   and outcomes that still come are dropped, for the engine may outlive its clients.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::{Completions, Done, Reply};

use crate::hangup::Hangup;
use crate::load::{Load, READ_BYTES_MAX, REQUESTS_MAX};
use crate::request::{Outcome, Request};
use crate::shared_grace::SharedGrace;
use crate::slow_clients::SlowClientPolicy;
use crate::state::{Batch, State};
use crate::transport::{Outbox, Transport};

/// Outcomes that wait may pin the write buffer for so long.
const PINNED_TIME_MAX: Duration = Duration::from_secs(1);

/// One connection whose requests are admitted.
#[derive(Debug)]
pub struct Connection<T: Transport> {
    transport: T,
    /// Bytes of reads that may be in flight: a share that leaves other connections theirs.
    read_bytes_max: usize,
    slow_clients: SlowClientPolicy,
    state: Mutex<State<T>>,
    /// The writer waits here for something to send.
    work_came: Condvar,
    /// The reader waits here for capacity.
    capacity_came: Condvar,
}

impl<T: Transport> Connection<T> {
    /// A connection whose reads may hold `read_share_bytes`, and no more than [`READ_BYTES_MAX`].
    #[must_use]
    pub fn new(
        transport: T,
        outbox: T::Outbox,
        read_share_bytes: usize,
        slow_clients: SlowClientPolicy,
    ) -> Self {
        Self {
            transport,
            read_bytes_max: read_share_bytes.min(READ_BYTES_MAX),
            slow_clients,
            state: Mutex::new(State::new(outbox)),
            work_came: Condvar::new(),
            capacity_came: Condvar::new(),
        }
    }

    /// The way to the client.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_writer(&self, state: &State<T>) {
        if state.writer_sleeps {
            self.work_came.notify_one();
        }
    }

    fn call_reader(&self, state: &State<T>) {
        if state.reader_waits {
            self.capacity_came.notify_one();
        }
    }

    /// Whether `request` may begin now. There will not be less capacity until it does: only the
    /// reader begins anything.
    pub fn has_capacity_for(&self, request: &Request<T::Tag>) -> bool {
        self.spare_requests_for(request) > 0
    }

    /// How many requests may begin now: `request`, and behind it others that read nothing.
    pub(crate) fn spare_requests_for(&self, request: &Request<T::Tag>) -> usize {
        let in_flight = self.state().in_flight;
        let fits = in_flight.has_capacity_for(request, self.read_bytes_max);
        if fits { REQUESTS_MAX - in_flight.requests } else { 0 }
    }

    /// Waits until `request` may begin.
    ///
    /// # Errors
    /// [`Hangup`] when the connection is aborted.
    pub fn wait_for_capacity(&self, request: &Request<T::Tag>) -> Result<(), Hangup> {
        self.wait_for(|in_flight| in_flight.has_capacity_for(request, self.read_bytes_max))
    }

    /// Waits until no read is in flight: the writer has sent all replies.
    ///
    /// # Errors
    /// [`Hangup`] when the connection is aborted.
    pub fn wait_for_reads(&self) -> Result<(), Hangup> {
        self.wait_for(|in_flight| in_flight.read_bytes == 0)
    }

    fn wait_for(&self, is_so: impl Fn(&Load) -> bool) -> Result<(), Hangup> {
        let mut state = self.state();
        while !state.aborted && !is_so(&state.in_flight) {
            state.reader_waits = true;
            state = self.capacity_came.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.reader_waits = false;
        }
        if state.aborted { Err(Hangup) } else { Ok(()) }
    }

    /// Waits for `time`, or less when the connection ends.
    ///
    /// # Errors
    /// [`Hangup`] when the connection is aborted.
    pub fn pause(&self, time: Duration) -> Result<(), Hangup> {
        let mut state = self.state();
        if !state.aborted {
            let paused = self.capacity_came.wait_timeout(state, time);
            state = paused.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.aborted { Err(Hangup) } else { Ok(()) }
    }

    /// What this and other connections have for payloads that do not come.
    pub(crate) fn payload_grace(&self) -> &SharedGrace {
        &self.slow_clients.payload_grace
    }

    /// Whether reads are in flight: they hold memory.
    pub fn has_reads_in_flight(&self) -> bool {
        self.state().in_flight.read_bytes > 0
    }

    /// Puts `request` in flight; returns whom the engine is to tell when it has ended.
    pub fn begin<A: Into<Reply>>(self: &Arc<Self>, request: Request<T::Tag>) -> Done<A> {
        let tag = self.state().begin(request);
        Done::new(Arc::clone(self), tag)
    }

    /// A request ended without an outcome: its sender answers it.
    pub(crate) fn retire(&self, tag: u64) {
        let mut state = self.state();
        if let Some(request) = state.vacate(tag) {
            state.release(Load::of(&request));
        }
    }

    /// Waits until there is something to send and swaps it with the empty `batch`. False when there
    /// will be nothing more.
    pub fn next_batch(&self, batch: &mut Batch<T>) -> bool {
        let mut state = self.state();
        loop {
            if state.aborted {
                return false;
            }
            if !state.outbox.is_empty() || !state.outcomes.is_empty() {
                state.outbox.swap(&mut batch.encoded);
                std::mem::swap(&mut state.outcomes, &mut batch.outcomes);
                return true;
            }
            if !state.reading && state.in_flight == Load::default() {
                return false;
            }
            state.writer_sleeps = true;
            state = self.work_came.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.writer_sleeps = false;
        }
    }

    /// Gives back to the front of those that wait what is not sent next, so that it can be looked
    /// after while something else is sent.
    pub fn put_back(&self, outcomes: &mut VecDeque<(Request<T::Tag>, Outcome)>) {
        if !outcomes.is_empty() {
            self.prepend(outcomes);
            self.unpin_write_buffer();
        }
    }

    fn prepend(&self, outcomes: &mut VecDeque<(Request<T::Tag>, Outcome)>) {
        let mut state = self.state();
        if !state.aborted && !outcomes.is_empty() {
            outcomes.append(&mut state.outcomes);
            std::mem::swap(outcomes, &mut state.outcomes);
            self.wake_writer(&state);
        }
    }

    /// Whether the writer waits for something to send.
    pub fn writer_waits(&self) -> bool {
        self.state().writer_sleeps
    }

    /// The answers of `load` have been sent.
    pub fn release(&self, load: Load) {
        let mut state = self.state();
        state.release(load);
        self.call_reader(&state);
    }

    /// Changes what waits encoded, if `change` does, and then wakes the writer.
    pub fn with_outbox(&self, change: impl FnOnce(&mut T::Outbox) -> bool) -> bool {
        let mut state = self.state();
        let changed = change(&mut state.outbox);
        if changed {
            self.wake_writer(&state);
        }
        changed
    }

    /// For a sender whose client reads nothing: once a second what waits to be sent is
    /// copied out of the write buffer, into memory that was set aside for its reads.
    pub fn unpin_write_buffer(&self) {
        let mut state = self.state();
        if state.unpinned.elapsed() < PINNED_TIME_MAX {
            return;
        }
        state.unpinned = Instant::now();
        let mut waiting = std::mem::take(&mut state.outcomes);
        // Copying takes its time, and the core wants the lock.
        drop(state);
        for (_, outcome) in &mut waiting {
            if let Ok(Reply::Read(pieces)) = outcome {
                pieces.keep_own_bytes();
            }
        }
        self.prepend(&mut waiting);
    }

    /// Whether a client that has taken nothing since `stalled_since` is disconnected now.
    pub fn gives_up_client(&self, stalled_since: Instant) -> bool {
        let now = Instant::now();
        let stalled = now.saturating_duration_since(stalled_since);
        self.slow_clients.gives_up(stalled, now, || self.has_reads_in_flight())
    }

    /// There will be no further requests: when what is in flight has been sent, it is over.
    pub fn end_reading(&self) {
        let mut state = self.state();
        state.reading = false;
        self.wake_writer(&state);
    }

    /// The reader is going to wait, and has not looked at `unread`; with None it has waited.
    pub fn set_unread(&self, unread: Option<T::Unread>) {
        self.state().unread = unread;
    }

    /// Nothing more is to be read: the server stops. What is in flight is answered.
    pub fn drain(&self) {
        self.state().stopped_receiving = true;
        self.transport.stop_receiving();
    }

    /// The reader has come to the end without a good-bye, with this not looked at.
    pub fn note_end(&self, unread: &T::Unread) {
        let mut state = self.state();
        state.client_gone |= !state.stopped_receiving && self.transport.has_given_up(unread);
    }

    /// Whether an answer is still owed.
    pub fn is_busy(&self) -> bool {
        let state = self.state();
        !state.aborted && (state.outbox.owes_rest() || state.in_flight != Load::default())
    }

    /// Ends the connection now, whatever is in flight.
    pub fn abort(&self) {
        self.transport.close();
        let mut state = self.state();
        state.aborted = true;
        let mut dropped = Batch::<T>::default();
        state.outbox.swap(&mut dropped.encoded);
        std::mem::swap(&mut state.outcomes, &mut dropped.outcomes);
        self.work_came.notify_all();
        self.capacity_came.notify_all();
        drop(state);
        drop(dropped);
    }

    /// The right to send, if the core may answer this request itself: without waiting, and with
    /// nothing before it that the writer would send.
    fn turn_of_core(
        &self,
        state: &State<T>,
        request: &Request<T::Tag>,
        outcome: &Outcome,
    ) -> Option<T::Turn<'_>> {
        let may = state.is_quickly_answered(request, outcome) && state.writer_is_idle();
        if may { self.transport.try_turn() } else { None }
    }
}

impl<T: Transport> Completions for Connection<T> {
    fn is_gone(&self) -> bool {
        let mut state = self.state();
        let unread = state.unread.as_ref().filter(|_| !state.stopped_receiving);
        let is_gone = state.aborted
            || self.transport.is_closed()
            || unread.is_some_and(|unread| self.transport.has_given_up(unread));
        state.client_gone |= is_gone;
        state.client_gone
    }

    fn complete(&self, tag: u64, outcome: Outcome) {
        let mut guard = self.state();
        let state = &mut *guard;
        match state.vacate(tag) {
            Some(request) if !state.aborted => {
                if let Some(turn) = self.turn_of_core(state, &request, &outcome) {
                    self.transport.answer_at_once(turn, &mut state.outbox, &request, outcome);
                    state.release(Load::of(&request));
                    self.call_reader(state);
                    if !state.reading || !state.writer_is_idle() {
                        self.wake_writer(state);
                    }
                    return;
                }
                state.outcomes.push_back((request, outcome));
                self.wake_writer(state);
            }
            _ => {
                // Freeing the bytes of a read takes its time.
                drop(guard);
                drop(outcome);
            }
        }
    }
}
