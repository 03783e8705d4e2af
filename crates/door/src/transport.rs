//! What a protocol plugs in: how its answers leave, and what its reader does around a wait.

use std::fmt::Debug;
use std::time::Duration;

use engine::{ReadPieces, RequestError};

use crate::hangup::Hangup;
use crate::request::{Outcome, Request};

/// A read up to this length is answered by the core, if it is alone.
pub const SHORT_READ_BYTES_MAX: u32 = 16 << 10;

/// The way to a client, shared by reader, writer and core.
pub trait Transport: Send + Sync + 'static {
    /// What the protocol knows a request by.
    type Tag: Copy + Debug + Send + 'static;
    /// What its reader has not looked at while it waits, if the client's end may show in it.
    type Unread: Debug + Send + 'static;
    /// What it keeps under the connection's lock.
    type Outbox: Outbox;
    /// The right to send, which one thread has at a time.
    type Turn<'a>
    where
        Self: 'a;

    /// The right to send, if the core may have it now: when nobody has it, and the wire takes an
    /// answer at once. Must not block.
    fn try_turn(&self) -> Option<Self::Turn<'_>>;

    /// Sends an answer, or leaves what cannot be sent now in the outbox. Called by the core, under
    /// the connection's lock: must not block.
    fn answer_at_once(
        &self,
        turn: Self::Turn<'_>,
        outbox: &mut Self::Outbox,
        request: &Request<Self::Tag>,
        outcome: Outcome,
    );

    /// Whether the client's end is closed, for all that is known without a look at what was
    /// received. Must not block.
    fn is_closed(&self) -> bool;

    /// Whether the client has given the connection up, where `unread` is what its reader has not
    /// looked at. Must not block.
    fn has_given_up(&self, unread: &Self::Unread) -> bool;

    /// Nothing more is received, and a reader that waits for something wakes.
    fn stop_receiving(&self);

    /// Ends both directions, and wakes the threads that wait on them.
    fn close(&self);
}

/// Answers that are encoded and wait for the writer.
pub trait Outbox: Debug + Send + 'static {
    /// What the writer takes of it.
    type Encoded: Debug + Default + Send;

    /// Whether nothing waits.
    fn is_empty(&self) -> bool;

    /// Whether an answer was sent in part: its rest must be the next that is sent.
    fn owes_rest(&self) -> bool;

    /// Swaps what waits with the empty `encoded`.
    fn swap(&mut self, encoded: &mut Self::Encoded);
}

/// A protocol's reader: where payloads come from, and where answers go that need no writer.
pub trait Reader<T: Transport> {
    /// Payload bytes that have been received already.
    fn received_bytes(&self) -> usize;

    /// Fills `target` with what comes next, for as long as `time_max`; returns how much is filled.
    ///
    /// # Errors
    /// [`Hangup`] when the client ends before.
    fn receive(&mut self, target: &mut [u8], time_max: Duration) -> Result<usize, Hangup>;

    /// Waits until the next `length` bytes are received, however long that takes.
    ///
    /// # Errors
    /// [`Hangup`] when the client ends before.
    fn await_received(&mut self, length: usize) -> Result<(), Hangup>;

    /// Takes back `bytes`, the last that were taken; nothing was received behind them.
    fn put_back(&mut self, bytes: &[u8]);

    /// Throws away the next `length` bytes.
    ///
    /// # Errors
    /// [`Hangup`] when the client ends before.
    fn discard(&mut self, length: usize) -> Result<(), Hangup>;

    /// Gathers the answer of a request that succeeded without data, or read nothing.
    fn answer_done(&mut self, request: &Request<T::Tag>);

    /// Gathers the answer of a read.
    fn answer_read(&mut self, request: &Request<T::Tag>, pieces: &ReadPieces);

    /// Gathers the answer of a request that failed.
    fn answer_error(&mut self, request: &Request<T::Tag>, error: &RequestError);

    /// Sends what is gathered. Called before every wait: nobody waits for an answer that is there.
    ///
    /// # Errors
    /// [`Hangup`] when the client is gone or disconnected.
    fn send_answers(&mut self) -> Result<(), Hangup>;

    /// What the core may look at while this thread waits.
    fn unread(&self) -> T::Unread;

    /// Whether nobody is left to carry anything out for. Asked behind every wait.
    fn has_given_up(&self) -> bool;
}
