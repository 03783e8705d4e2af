//! The state of a connection, under its one lock ([`Connection`](crate::Connection)).

use std::collections::VecDeque;
use std::time::Instant;

use engine::Reply;

use crate::load::Load;
use crate::request::{Operation, Outcome, Request};
use crate::transport::{Outbox, SHORT_READ_BYTES_MAX, Transport};

/// What there is for a writer to send.
#[derive(Debug)]
pub struct Batch<T: Transport> {
    /// Answers that are encoded already.
    pub encoded: <T::Outbox as Outbox>::Encoded,
    /// Outcomes that are to be encoded, in the order in which they came.
    pub outcomes: VecDeque<(Request<T::Tag>, Outcome)>,
}

impl<T: Transport> Default for Batch<T> {
    fn default() -> Self {
        Self { encoded: Default::default(), outcomes: VecDeque::new() }
    }
}

#[derive(Debug)]
pub(crate) struct State<T: Transport> {
    /// Requests that the engine has, by the tag that it knows them by.
    slots: Vec<Option<Request<T::Tag>>>,
    vacant: Vec<usize>,
    pub(crate) in_flight: Load,
    pub(crate) outcomes: VecDeque<(Request<T::Tag>, Outcome)>,
    pub(crate) outbox: T::Outbox,
    /// When what waits last gave back what it held of the write buffer.
    pub(crate) unpinned: Instant,
    /// There will be requests yet.
    pub(crate) reading: bool,
    /// While the reader waits: what it has not looked at.
    pub(crate) unread: Option<T::Unread>,
    /// We ended the receiving, so its end says nothing of the client.
    pub(crate) stopped_receiving: bool,
    /// The client has gone, though answers may still be sent.
    pub(crate) client_gone: bool,
    pub(crate) aborted: bool,
    pub(crate) writer_sleeps: bool,
    /// The reader waits for capacity. Who does not wait is not called: that is a system call.
    pub(crate) reader_waits: bool,
}

impl<T: Transport> State<T> {
    pub(crate) fn new(outbox: T::Outbox) -> Self {
        Self {
            slots: Vec::new(),
            vacant: Vec::new(),
            in_flight: Load::default(),
            outcomes: VecDeque::new(),
            outbox,
            unpinned: Instant::now(),
            reading: true,
            unread: None,
            stopped_receiving: false,
            client_gone: false,
            aborted: false,
            writer_sleeps: false,
            reader_waits: false,
        }
    }

    /// Puts `request` in flight; returns the tag that the engine knows it by.
    pub(crate) fn begin(&mut self, request: Request<T::Tag>) -> u64 {
        self.in_flight.add(&request);
        let slot = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(request);
        slot as u64
    }

    pub(crate) fn vacate(&mut self, tag: u64) -> Option<Request<T::Tag>> {
        let slot = usize::try_from(tag).ok()?;
        let request = self.slots.get_mut(slot)?.take()?;
        self.vacant.push(slot);
        Some(request)
    }

    /// Whether the writer has nothing to send.
    pub(crate) fn writer_is_idle(&self) -> bool {
        self.writer_sleeps && self.outbox.is_empty() && self.outcomes.is_empty()
    }

    /// Whether the core may answer a request itself: nothing of it is work that belongs elsewhere.
    pub(crate) fn is_quickly_answered(&self, request: &Request<T::Tag>, outcome: &Outcome) -> bool {
        match (request.operation, outcome) {
            (Operation::Read, Ok(Reply::Read(_))) => {
                self.in_flight.requests == 1 && request.length_bytes <= SHORT_READ_BYTES_MAX
            }
            (Operation::Read | Operation::Extents { .. }, _) => false,
            (_, outcome) => matches!(outcome, Ok(Reply::Done)),
        }
    }

    pub(crate) fn release(&mut self, load: Load) {
        self.in_flight.requests -= load.requests;
        self.in_flight.read_bytes -= load.read_bytes;
    }
}
