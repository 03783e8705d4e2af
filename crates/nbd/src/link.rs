//! What the three parties of one connection share: the reader, the writer, and the engine's core.
//!
//! ```text
//! reader ── begin ──> slots ── (the engine works) ── complete ──> outcomes ── take ──> writer
//!    └──── room ────────────────<──── released, once sent ───────────────────────────────┘
//! ```
//!
//! - A request is *in flight* from `begin` until its reply has been sent, for until then it holds
//!   memory. Count and bytes of what is in flight are bounded, and the reader waits for room: a
//!   client that sends faster than it reads is not read from any further.
//! - The core only ever pushes onto a list under a lock that nobody holds for long. It wakes the
//!   writer only when the writer sleeps.
//! - An answer without data goes out at once where nobody waits before it and the socket takes it:
//!   whoever flushes waits for it, and waking the writer takes longer than sending. So does a short
//!   read that is all there is in flight: there is nothing that it could be put together beside.
//! - Reader, writer and core send, each while it holds `sending`. What the core could send only in
//!   part leaves its rest there, and whoever sends next sends that first. When the writer has it,
//!   the reader leaves its acknowledgements to the writer instead of waiting.
//! - A client that takes nothing keeps its place, and the memory of its reads, until somebody else
//!   waits for that ([`Forbearance`]): then it is given up. What its reads hold of the write buffer
//!   it keeps for some seconds at most, for all who write need that: outcomes wait *here* while
//!   anything is sent, and whoever sends sees to it that they let go of it ([`Link::let_go`]).
//! - The core asks whether the client has gone ([`Completions::is_gone`]) about what had to wait
//!   for room in the store. Over TCP that may be known only from what the reader has not looked at
//!   yet: before the reader waits for anything it leaves the end of that here.
//! - Once the connection is *broken* nobody waits for anything any more. Outcomes that still
//!   come are dropped: the engine may outlive its clients.

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use engine::{Completions, Reply, RequestError};

use crate::error::Hangup;
use crate::given_up::{has_given_up, is_closed};
use crate::reply::Replies;
use crate::socket::Socket;
use crate::wire::{Command, Request};

/// Requests in flight on one connection.
pub(crate) const REQUESTS_MAX: usize = 256;
/// Bytes of reads in flight on one connection, however much memory the engine has; one read may
/// exceed it alone.
pub(crate) const READ_BYTES_MAX: usize = 64 << 20;
/// So much is given to the socket at a time: beside a longer piece what waits would not be looked
/// after for as long as its client cares to take.
const PIECE_BYTES_MAX: usize = 256 << 10;
/// What waits may hold of the write buffer for so long, and for one piece.
const HOLDS_TIME_MAX: Duration = Duration::from_secs(1);
/// Acknowledgements that may wait for the writer.
const HANDED_OVER_BYTES_MAX: usize = 64 << 10;

/// A read up to this length is answered by the core, if it is alone.
const SHORT_READ_BYTES_MAX: u32 = 16 << 10;
/// Room for its reply.
const ANSWER_BYTES: usize = SHORT_READ_BYTES_MAX as usize + 1024;

/// How long a client is borne with that takes nothing of what it is sent.
pub(crate) struct Forbearance {
    /// For so long whatever happens.
    pub(crate) time_max: Duration,
    /// And until somebody waits for the memory of its replies.
    pub(crate) is_memory_wanted: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Debug for Forbearance {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forbearance").field("time_max", &self.time_max).finish_non_exhaustive()
    }
}

/// How a request ended.
pub(crate) type Outcome = Result<Reply, RequestError>;

/// What there is for the writer to send.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Encoded already.
    pub(crate) replies: Vec<u8>,
    pub(crate) outcomes: VecDeque<(Request, Outcome)>,
}

/// How much of a connection's allowance something takes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Load {
    requests: usize,
    read_bytes: usize,
}

impl Load {
    pub(crate) fn add(&mut self, request: &Request) {
        self.requests += 1;
        self.read_bytes += read_bytes(request);
    }

    fn has_room_for(&self, request: &Request, read_bytes_max: usize) -> bool {
        let read_bytes = read_bytes(request);
        self.requests < REQUESTS_MAX
            && (read_bytes == 0
                || self.read_bytes == 0
                || self.read_bytes + read_bytes <= read_bytes_max)
    }
}

fn read_bytes(request: &Request) -> usize {
    if request.command == Command::Read { request.length_bytes as usize } else { 0 }
}

#[derive(Debug)]
struct State {
    /// Requests that the engine has, by tag.
    slots: Vec<Option<Request>>,
    vacant: Vec<usize>,
    in_flight: Load,
    batch: Batch,
    /// When what waits last let go of what it held.
    let_go: Instant,
    /// Where the core encodes what it answers itself; empty in between.
    answer: Replies,
    /// There will be requests yet.
    reading: bool,
    /// While the reader waits, and may not see the end: what it has not looked at yet.
    unread: Option<Vec<u8>>,
    /// The end is our own doing.
    drained: bool,
    /// The client has given the connection up, though answers may still be sent.
    given_up: bool,
    broken: bool,
    writer_sleeps: bool,
    /// The rest of a reply waits for the writer.
    rest_is_owed: bool,
    /// The reader waits for room. Nobody is called who does not wait: that is a system call.
    reader_waits: bool,
}

/// One connection in transmission.
#[derive(Debug)]
pub(crate) struct Link {
    socket: Arc<Socket>,
    /// The right to send, and the rest of a reply that was sent in part.
    sending: Mutex<Vec<u8>>,
    /// Bytes of reads that may be in flight: a share that leaves other connections theirs.
    read_bytes_max: usize,
    forbearance: Forbearance,
    state: Mutex<State>,
    /// The writer waits here for something to send.
    work_came: Condvar,
    /// The reader waits here for room.
    room_came: Condvar,
}

impl Link {
    /// Over a socket whose writes end after a while, if nothing is taken.
    pub(crate) fn new(
        socket: Arc<Socket>,
        read_share_bytes: usize,
        structured: bool,
        forbearance: Forbearance,
    ) -> Self {
        Self {
            socket,
            sending: Mutex::default(),
            read_bytes_max: read_share_bytes.min(READ_BYTES_MAX),
            forbearance,
            state: Mutex::new(State {
                slots: Vec::new(),
                vacant: Vec::new(),
                in_flight: Load::default(),
                batch: Batch::default(),
                let_go: Instant::now(),
                answer: Replies::new(Box::new([0; ANSWER_BYTES]), structured),
                reading: true,
                unread: None,
                drained: false,
                given_up: false,
                broken: false,
                writer_sleeps: false,
                rest_is_owed: false,
                reader_waits: false,
            }),
            work_came: Condvar::new(),
            room_came: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake_writer(&self, state: &State) {
        if state.writer_sleeps {
            self.work_came.notify_one();
        }
    }

    fn call_reader(&self, state: &State) {
        if state.reader_waits {
            self.room_came.notify_one();
        }
    }

    /// Whether `request` may begin now. There will not be less room until it does.
    pub(crate) fn has_room_for(&self, request: &Request) -> bool {
        self.state().in_flight.has_room_for(request, self.read_bytes_max)
    }

    /// Waits until `request` may begin.
    ///
    /// # Errors
    /// [`Hangup`] when the connection is broken.
    pub(crate) fn wait_for_room(&self, request: &Request) -> Result<(), Hangup> {
        let mut state = self.state();
        while !state.broken && !state.in_flight.has_room_for(request, self.read_bytes_max) {
            state.reader_waits = true;
            state = self.room_came.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.reader_waits = false;
        }
        if state.broken { Err(Hangup) } else { Ok(()) }
    }

    /// Waits for a while.
    ///
    /// # Errors
    /// [`Hangup`] when the connection is broken.
    pub(crate) fn pause(&self, time: Duration) -> Result<(), Hangup> {
        let mut state = self.state();
        if !state.broken {
            let paused = self.room_came.wait_timeout(state, time);
            state = paused.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.broken { Err(Hangup) } else { Ok(()) }
    }

    /// Whether reads are in flight: they hold memory.
    pub(crate) fn is_reading(&self) -> bool {
        self.state().in_flight.read_bytes > 0
    }

    /// Puts `request` in flight; returns the tag that the engine is to know it by.
    pub(crate) fn begin(&self, request: Request) -> u64 {
        let state = &mut *self.state();
        state.in_flight.add(&request);
        let slot = state.vacant.pop().unwrap_or_else(|| {
            state.slots.push(None);
            state.slots.len() - 1
        });
        state.slots[slot] = Some(request);
        slot as u64
    }

    /// A request ended without an outcome: its sender answers it.
    pub(crate) fn retire(&self, tag: u64) {
        let mut state = self.state();
        if let Some(request) = state.vacate(tag) {
            state.release(Load { requests: 1, read_bytes: read_bytes(&request) });
        }
    }

    /// Sends `bytes` now. Waits for the client when it does not read.
    ///
    /// # Errors
    /// [`Hangup`] when the client is gone or given up, which breaks the connection.
    pub(crate) fn send(&self, bytes: &[u8]) -> Result<(), Hangup> {
        let sending = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        self.send_holding(sending, bytes)
    }

    fn send_holding(&self, mut rest: MutexGuard<'_, Vec<u8>>, bytes: &[u8]) -> Result<(), Hangup> {
        let sent = self.send_all(&rest).and_then(|()| self.send_all(bytes));
        rest.clear();
        sent.inspect_err(|_| self.break_off())
    }

    fn send_all(&self, mut bytes: &[u8]) -> Result<(), Hangup> {
        let mut stalled_since = None;
        while !bytes.is_empty() {
            let piece = bytes.get(..PIECE_BYTES_MAX).unwrap_or(bytes);
            match (&*self.socket).write(piece) {
                Ok(0) => return Err(Hangup),
                Ok(sent) => {
                    bytes = &bytes[sent..];
                    stalled_since = None;
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                        let since: Instant = *stalled_since.get_or_insert_with(Instant::now);
                        let long = since.elapsed() >= self.forbearance.time_max;
                        if long && self.is_reading() && (self.forbearance.is_memory_wanted)() {
                            return Err(Hangup);
                        }
                    }
                    _ => return Err(Hangup),
                },
            }
            if !bytes.is_empty() {
                self.let_go();
            }
        }
        Ok(())
    }

    /// Once in a while: what waits to be sent, for who knows how long, lets go of the write buffer.
    fn let_go(&self) {
        let mut state = self.state();
        if state.let_go.elapsed() < HOLDS_TIME_MAX {
            return;
        }
        state.let_go = Instant::now();
        let mut waiting = std::mem::take(&mut state.batch.outcomes);
        // Copying takes its time, and the core wants the lock.
        drop(state);
        for (_, outcome) in &mut waiting {
            if let Ok(Reply::Read(pieces)) = outcome {
                pieces.keep_own_bytes();
            }
        }
        self.put_back(&mut waiting);
    }

    /// Outcomes that were taken come back to the front of those that wait.
    fn put_back(&self, outcomes: &mut VecDeque<(Request, Outcome)>) {
        let mut state = self.state();
        if !state.broken && !outcomes.is_empty() {
            outcomes.append(&mut state.batch.outcomes);
            std::mem::swap(outcomes, &mut state.batch.outcomes);
            self.wake_writer(&state);
        }
    }

    /// Leaves to those who send what is not sent next.
    pub(crate) fn leave(&self, outcomes: &mut VecDeque<(Request, Outcome)>) {
        if !outcomes.is_empty() {
            self.put_back(outcomes);
            self.let_go();
        }
    }

    /// Sends `bytes` now, or leaves them to the writer when that is sending.
    ///
    /// # Errors
    /// [`Hangup`] as for [`Link::send`].
    pub(crate) fn send_or_hand_over(&self, bytes: &[u8]) -> Result<(), Hangup> {
        match self.sending.try_lock() {
            Ok(sending) => return self.send_holding(sending, bytes),
            Err(TryLockError::Poisoned(sending)) => {
                return self.send_holding(sending.into_inner(), bytes);
            }
            Err(TryLockError::WouldBlock) => {}
        }
        let mut state = self.state();
        let waiting = &mut state.batch.replies;
        if waiting.len() + bytes.len() > HANDED_OVER_BYTES_MAX {
            drop(state);
            return self.send(bytes);
        }
        waiting.extend_from_slice(bytes);
        self.wake_writer(&state);
        Ok(())
    }

    /// Waits until there is something to send and swaps it with the empty `batch`. False when there
    /// will be nothing more.
    pub(crate) fn take(&self, batch: &mut Batch) -> bool {
        let mut state = self.state();
        loop {
            if state.broken {
                return false;
            }
            if state.rest_is_owed
                || !state.batch.replies.is_empty()
                || !state.batch.outcomes.is_empty()
            {
                state.rest_is_owed = false;
                std::mem::swap(&mut state.batch, batch);
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

    /// What was in flight has been sent.
    pub(crate) fn release(&self, load: Load) {
        let mut state = self.state();
        state.release(load);
        self.call_reader(&state);
    }

    /// The right to send, if the core may answer this request itself: without waiting, and with
    /// nothing before it that the writer would send.
    fn may_answer(
        &self,
        state: &State,
        request: &Request,
        outcome: &Outcome,
    ) -> Option<MutexGuard<'_, Vec<u8>>> {
        let may = state.is_quickly_answered(request, outcome)
            && state.writer_is_idle()
            && self.socket.takes_at_once();
        if may { self.sending.try_lock().ok() } else { None }
    }

    /// Answers a request that has ended, with the right to send and the state held.
    fn answer_at_once(
        &self,
        state: &mut State,
        rest: &mut Vec<u8>,
        request: &Request,
        outcome: Outcome,
    ) {
        state.answer.outcome(request, outcome);
        self.send_answer(state, rest);
        state.release(Load { requests: 1, read_bytes: read_bytes(request) });
        self.call_reader(state);
        if !state.reading || !state.writer_is_idle() {
            self.wake_writer(state);
        }
    }

    /// Sends the answer, or leaves it to the writer. Of one that was sent in part the rest must be
    /// the next that is sent, whoever sends.
    fn send_answer(&self, state: &mut State, rest: &mut Vec<u8>) {
        let answer = state.answer.as_bytes();
        match self.socket.send_at_once(answer) {
            0 => state.batch.replies.extend_from_slice(answer),
            sent => rest.extend_from_slice(answer.get(sent..).unwrap_or_default()),
        }
        state.rest_is_owed = !rest.is_empty();
        state.answer.clear();
    }

    /// There will be no further requests: when what is in flight has been sent, it is over.
    pub(crate) fn end_reading(&self) {
        let mut state = self.state();
        state.reading = false;
        self.wake_writer(&state);
    }

    /// The reader is going to wait, and has not looked at what ends like this; with None it has
    /// waited.
    pub(crate) fn leave_unread(&self, unread: Option<Vec<u8>>) {
        self.state().unread = unread;
    }

    /// Nothing more is to be read: the server stops.
    pub(crate) fn drain(&self) {
        self.state().drained = true;
        self.socket.shutdown(Shutdown::Read);
    }

    /// The reader has come to the end, with this not looked at.
    pub(crate) fn end_without_a_word(&self, unread: &[u8]) {
        let mut state = self.state();
        state.given_up |= !state.drained && has_given_up(&self.socket, unread);
    }

    /// Whether a reply is still owed.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.state();
        !state.broken && (state.rest_is_owed || state.in_flight != Load::default())
    }

    /// Gives the connection up, whatever is in flight.
    pub(crate) fn break_off(&self) {
        self.socket.shutdown(Shutdown::Both);
        let mut state = self.state();
        state.broken = true;
        let dropped = std::mem::take(&mut state.batch);
        self.work_came.notify_all();
        self.room_came.notify_all();
        drop(state);
        drop(dropped);
    }
}

impl State {
    fn vacate(&mut self, tag: u64) -> Option<Request> {
        let slot = usize::try_from(tag).ok()?;
        let request = self.slots.get_mut(slot)?.take()?;
        self.vacant.push(slot);
        Some(request)
    }

    /// Whether the writer has nothing to send.
    fn writer_is_idle(&self) -> bool {
        let Batch { replies, outcomes } = &self.batch;
        self.writer_sleeps && !self.rest_is_owed && replies.is_empty() && outcomes.is_empty()
    }

    /// Whether the core may answer a request itself: nothing of it is work that belongs elsewhere.
    fn is_quickly_answered(&self, request: &Request, outcome: &Outcome) -> bool {
        match (request.command, outcome) {
            (Command::Read, Ok(Reply::Read(_))) => {
                self.in_flight.requests == 1 && request.length_bytes <= SHORT_READ_BYTES_MAX
            }
            (Command::Read | Command::BlockStatus, _) => false,
            (_, outcome) => matches!(outcome, Ok(Reply::Done)),
        }
    }

    fn release(&mut self, load: Load) {
        self.in_flight.requests -= load.requests;
        self.in_flight.read_bytes -= load.read_bytes;
    }
}

impl Completions for Link {
    fn is_gone(&self) -> bool {
        let mut state = self.state();
        let unread = state.unread.as_deref().filter(|_| !state.drained);
        let is_gone = state.broken
            || is_closed(&self.socket)
            || unread.is_some_and(|unread| has_given_up(&self.socket, unread));
        state.given_up |= is_gone;
        state.given_up
    }

    fn complete(&self, tag: u64, outcome: Outcome) {
        let mut state = self.state();
        let request = state.vacate(tag);
        match request {
            Some(request) if !state.broken => {
                if let Some(mut rest) = self.may_answer(&state, &request, &outcome) {
                    return self.answer_at_once(&mut state, &mut rest, &request, outcome);
                }
                state.batch.outcomes.push_back((request, outcome));
                self.wake_writer(&state);
            }
            _ => {
                // Freeing the bytes of a read takes its time.
                drop(state);
                drop(outcome);
            }
        }
    }
}

#[cfg(test)]
mod tests;
