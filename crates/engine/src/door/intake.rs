//! The one place where doors' threads and the core's thread meet.
//!
//! A request enters a queue; its place there is its place in the one order of the store. A write
//! is acknowledged *here*, on the door's own thread, as soon as it has both of:
//!
//! * credits of the write buffer (taken when its buffer was made, given back when the buffer is
//!   dropped): memory is bounded, and a fast client is slowed to the speed of the store;
//! * a reservation of space for its worst case (every chunk unique and incompressible, every
//!   table page it may touch new): what is acknowledged has its room.
//!
//! Since the queue is FIFO, a read that comes after an acknowledgement is looked at by the core
//! after that write is in the write buffer: read-your-writes needs no further lock.
//!
//! A write without a reservation is queued unacknowledged; the core lets it wait while space can
//! be collected and fails it with no-space when not. No write behind it, in the queue too, gets a
//! reservation before it: what was answered first is not written over by it. Only a write that
//! draws from room which its sender holds ([`crate::door::reservation`]) overtakes it: a holder
//! must be able to end in a full store.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use disk::Doorbell;
use format::units::VolumeId;
use mutants::mutant;

use crate::door::buffer_share::BufferShares;
use crate::door::credits::Credits;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::lookaside::Lookaside;
use crate::door::requests::{CopyRequest, Request, WriteAnswer, WriteRequest};
use crate::door::reservation::Reservation;
use crate::options::Options;
use crate::space::space_budget::SpaceBudget;
use crate::space::write_room::WriteRoom;
use crate::stats::stages::Expanding;
use crate::write::partial::Ack;

pub(crate) struct IntakeState {
    requests: VecDeque<Request>,
    /// Among them is a write without a reservation.
    lacks_room: bool,
    pub(crate) space: SpaceBudget,
    /// Set once: every further request gets it.
    refused: Option<RequestError>,
    /// Set once: every further write gets it.
    writes_refused: Option<RequestError>,
}

impl IntakeState {
    fn refusal_of_writes(&self) -> Option<RequestError> {
        self.refused.as_ref().or(self.writes_refused.as_ref()).cloned()
    }
}

/// The queue between doors and the core.
pub(crate) struct Intake {
    state: Mutex<IntakeState>,
    doorbell: Doorbell,
    /// Of the write buffer.
    pub(crate) credits: Arc<Credits>,
    /// Of the write buffer, too: what each domain has of it.
    pub(crate) buffer_shares: BufferShares,
    /// Of reads under way.
    pub(crate) read_credits: Arc<Credits>,
    /// For reads that need not come here.
    pub(crate) lookaside: Lookaside,
    pub(crate) expanding: Arc<Expanding>,
    pub(crate) chunk_bytes: u32,
    pub(crate) sync: bool,
    /// Set once: the core ends before its next step.
    abandoned: AtomicBool,
    /// Set once: a close will be asked for.
    close_announced: AtomicBool,
    /// Set once: another owner has the store.
    fenced: AtomicBool,
}

impl Intake {
    /// `lookaside_bytes`: of memory for what finds frames for doors.
    pub(crate) fn new(
        doorbell: Doorbell,
        options: &Options,
        chunk_bytes: u32,
        lookaside_bytes: u64,
    ) -> Self {
        let mut space = SpaceBudget::new(chunk_bytes);
        space.keep_for_release(options.kept_for_release);
        let credits = Arc::new(Credits::new(options.write_buffer_bytes()));
        Self {
            state: Mutex::new(IntakeState {
                requests: VecDeque::new(),
                lacks_room: false,
                space,
                refused: None,
                writes_refused: None,
            }),
            doorbell,
            buffer_shares: BufferShares::new(&credits),
            credits,
            read_credits: Arc::new(Credits::new(options.read_bytes())),
            lookaside: Lookaside::new(lookaside_bytes, chunk_bytes),
            expanding: Arc::default(),
            chunk_bytes,
            sync: options.sync,
            abandoned: AtomicBool::new(false),
            close_announced: AtomicBool::new(false),
            fenced: AtomicBool::new(false),
        }
    }

    /// The core ends before its next step, without writing anything out.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Release);
        self.doorbell.ring();
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    /// From now on nothing waits for a device without room for longer than a close does.
    pub(crate) fn announce_close(&self) {
        self.close_announced.store(true, Ordering::Release);
    }

    pub(crate) fn is_close_announced(&self) -> bool {
        self.close_announced.load(Ordering::Acquire)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, IntakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a write; true when it is acknowledged by this call.
    pub(crate) fn write(&self, mut request: WriteRequest) -> bool {
        let mut state = self.lock();
        if let Some(error) = state.refusal_of_writes() {
            drop(state);
            request.fail(&error);
            return false;
        }
        let is_waited_for = state.lacks_room || state.space.limit.is_waited_for;
        request.reserved =
            !is_waited_for && state.space.try_reserve(Some(request.volume.id), request.chunks);
        state.lacks_room |= !request.reserved;
        // Quotas are set under this lock: a write behind one in the queue is judged by it.
        let acknowledged = request.reserved
            && !request.durable
            && request.covers_whole_chunks
            && request.volume.quota_bytes().is_none();
        if acknowledged {
            request.acknowledge_at_the_door();
            self.lookaside.stamp(request.volume.id, request.range_bytes());
        }
        state.requests.push_back(Request::Write(request));
        drop(state);
        self.doorbell.ring();
        acknowledged
    }

    /// Queues the writes of a vector next to one another, in their order; true when all are
    /// acknowledged by this call.
    pub(crate) fn write_vector(&self, mut writes: Vec<WriteRequest>, done: Done<()>) -> bool {
        let mut state = self.lock();
        if let Some(error) = state.refusal_of_writes() {
            drop(state);
            done.fail(error);
            return false;
        }
        // All have room or none: one that waits for some would let those behind it overtake it.
        let chunks = || writes.iter().map(|write| write.chunks);
        let volume = writes.first().map(|write| write.volume.id);
        let is_waited_for = state.lacks_room || state.space.limit.is_waited_for;
        let reserved = !is_waited_for && state.space.try_reserve_all(volume, chunks());
        state.lacks_room |= !reserved;
        let is_free = |write: &WriteRequest| write.volume.quota_bytes().is_none();
        let at_the_door = |write: &WriteRequest| !write.durable && write.covers_whole_chunks;
        let acknowledged =
            reserved && writes.iter().all(|write| at_the_door(write) && is_free(write));
        self.answer_vector(&mut writes, acknowledged, done);
        if mutant!(TurnsVectorRound) {
            writes.reverse();
        }
        let queued = writes.into_iter().map(|write| WriteRequest { reserved, ..write });
        state.requests.extend(queued.map(Request::Write));
        drop(state);
        self.doorbell.ring();
        acknowledged
    }

    /// The same with room that a reservation holds. Neither room nor a quota stands in their way,
    /// so they are acknowledged unless they have to read or to be durable first.
    pub(crate) fn write_reserved(
        &self,
        mut writes: Vec<WriteRequest>,
        reservation: &Reservation,
        done: Done<()>,
    ) -> bool {
        let mut state = self.lock();
        let refusal = state.refusal_of_writes();
        let chunks: Vec<u64> = writes.iter().map(|write| write.chunks).collect();
        let (room, quotas) = match refusal.map_or_else(|| reservation.draw(&chunks), Err) {
            Ok(drawn) => drawn,
            Err(error) => {
                drop(state);
                done.fail(error);
                return false;
            }
        };
        state.space.use_held(room, reservation.is_for_release());
        for (write, quota) in writes.iter_mut().zip(quotas) {
            (write.reserved, write.quota) = (true, Some(quota));
        }
        let acknowledged = writes.iter().all(|write| !write.durable && write.covers_whole_chunks);
        self.answer_vector(&mut writes, acknowledged, done);
        state.requests.extend(writes.into_iter().map(Request::Write));
        drop(state);
        self.doorbell.ring();
        acknowledged
    }

    /// What a reservation still holds comes back.
    pub(crate) fn end_hold(&self, room: WriteRoom, for_release: bool) {
        self.lock().space.end_hold(room, for_release);
        self.doorbell.ring();
    }

    /// From now on so much is left alone by all but reservations for releases.
    pub(crate) fn keep_for_release(&self, room: WriteRoom) {
        self.lock().space.keep_for_release(room);
        self.doorbell.ring();
    }

    /// Says how the writes of a vector are answered: now, or all by `done`.
    fn answer_vector(&self, writes: &mut [WriteRequest], acknowledged: bool, done: Done<()>) {
        if acknowledged {
            done.not_needed();
            for write in writes {
                write.answer = WriteAnswer::Given;
                self.lookaside.stamp(write.volume.id, write.range_bytes());
            }
            return;
        }
        let ack = Ack::of_vector(writes.len(), done);
        let last = writes.len() - 1;
        for (number, write) in writes.iter_mut().enumerate() {
            // What makes the last durable makes all before it durable.
            write.durable &= number == last;
            write.answer = WriteAnswer::OfVector(Arc::clone(&ack));
        }
    }

    /// Queues a copy between volumes, with its worst case reserved if that fits now.
    pub(crate) fn copy_range(&self, mut request: CopyRequest) {
        let mut state = self.lock();
        if let Some(error) = state.refusal_of_writes() {
            drop(state);
            return request.ack.fail(&error);
        }
        let is_waited_for = state.lacks_room || state.space.limit.is_waited_for;
        let room_chunks = request.range.room_chunks();
        request.reserved =
            !is_waited_for && state.space.try_reserve(Some(request.range.to.id), room_chunks);
        state.lacks_room |= !request.reserved;
        state.requests.push_back(Request::Copy(request));
        drop(state);
        self.doorbell.ring();
    }

    /// What a write would be answered with at once, if writes are refused.
    pub(crate) fn refusal_of_writes(&self) -> Option<RequestError> {
        self.lock().refusal_of_writes()
    }

    /// Queues any other request.
    pub(crate) fn push(&self, request: Request) {
        let mut state = self.lock();
        if let Some(error) = state.refused.clone() {
            drop(state);
            request.fail(error);
            return;
        }
        state.requests.push_back(request);
        drop(state);
        self.doorbell.ring();
    }

    /// Takes bytes of the write buffer, waiting for them. The core may sleep over an open group for
    /// which nobody waited until now: it closes that when all writers wait.
    pub(crate) fn take_buffer_credit(&self, length_bytes: usize) {
        self.credits.take_or_say(length_bytes, || self.doorbell.ring());
    }

    /// Moves all that is queued to the end of `into`. True when a write without a reservation is
    /// among it: then room counts as waited for, until the core says otherwise.
    pub(crate) fn take(&self, into: &mut VecDeque<Request>) -> bool {
        let mut state = self.lock();
        into.append(&mut state.requests);
        let lacks_room = std::mem::take(&mut state.lacks_room);
        state.space.limit.is_waited_for |= lacks_room;
        lacks_room
    }

    /// Whether a request to this volume is queued that the core has not taken yet.
    pub(crate) fn has_requests_to(&self, volume: VolumeId) -> bool {
        self.lock().requests.iter().any(|request| request.is_to(volume))
    }

    /// The core has nothing to do: who waits for memory is told of what came back.
    pub(crate) fn call_waiters(&self) {
        self.credits.call();
        self.buffer_shares.call();
        self.read_credits.call();
    }

    /// From now on no write is acknowledged: each is answered with `error`. Nor does any wait for
    /// room in the write buffer, which will not empty.
    pub(crate) fn refuse_writes(&self, error: RequestError) {
        self.lock().writes_refused.get_or_insert(error);
        self.credits.open_wide();
        self.buffer_shares.call();
    }

    /// Another owner has the store: every new request is answered with `error`, and no read at the
    /// door either.
    pub(crate) fn fence(&self, error: RequestError) {
        self.fenced.store(true, Ordering::Release);
        self.refuse(error);
    }

    pub(crate) fn is_fenced(&self) -> bool {
        self.fenced.load(Ordering::Acquire)
    }

    /// From now on every new request is answered with `error`.
    pub(crate) fn refuse(&self, error: RequestError) {
        self.lock().refused.get_or_insert(error);
        self.credits.open_wide();
        self.buffer_shares.call();
        self.read_credits.open_wide();
    }
}
