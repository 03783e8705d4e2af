//! One connection in transmission: what [`door::Connection`] bounds and wakes, over a socket.
//!
//! - Reader, writer and core send, each while it holds `sending`. What the core could send only in
//!   part leaves its rest there, and the next sender sends that first. When the writer has it,
//!   the reader leaves its acknowledgements to the writer instead of waiting.
//! - While a client takes nothing, its sender looks once a write's time-out whether it is
//!   disconnected ([`door::SlowClientPolicy`]), and gives back what waits holds of the write
//!   buffer.

use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use door::{Hangup, Outcome, SHORT_READ_BYTES_MAX, SlowClientPolicy, Transport};

use crate::given_up::{has_given_up, is_closed};
use crate::reply::Replies;
use crate::request::{Request, Tag};
use crate::socket::Socket;

/// So much is given to the socket at a time: beside a longer piece what waits would not be looked
/// after for as long as its client cares to take.
const PIECE_BYTES_MAX: usize = 256 << 10;
/// Acknowledgements that may wait for the writer.
const HANDED_OVER_BYTES_MAX: usize = 64 << 10;
/// Room for the reply to a read that the core answers.
const ANSWER_BYTES: usize = SHORT_READ_BYTES_MAX as usize + 1024;

/// A connection in transmission.
pub(crate) type Link = door::Connection<Wire>;
/// What there is for the writer to send.
pub(crate) type Batch = door::Batch<Wire>;

/// The socket of a connection, and who may send.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) socket: Arc<Socket>,
    /// The right to send, and the rest of a reply that was sent in part.
    pub(crate) sending: Mutex<Vec<u8>>,
}

/// What is kept under the connection's lock.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Replies that are encoded already, for the writer.
    replies: Vec<u8>,
    /// Where the core encodes what it answers itself; empty in between.
    pub(crate) answer: Replies,
    /// The rest of a reply waits for the writer.
    owes_rest: bool,
}

/// A connection over a socket whose writes end after a while, if nothing is taken.
pub(crate) fn link(
    socket: Arc<Socket>,
    read_share_bytes: usize,
    structured: bool,
    slow_clients: SlowClientPolicy,
) -> Link {
    let outbox = Outbox {
        replies: Vec::new(),
        answer: Replies::new(Box::new([0; ANSWER_BYTES]), structured),
        owes_rest: false,
    };
    let wire = Wire { socket, sending: Mutex::default() };
    Link::new(wire, outbox, read_share_bytes, slow_clients)
}

/// Sends `bytes` now. Waits for the client when it does not read.
///
/// # Errors
/// [`Hangup`] when the client is gone or disconnected, which aborts the connection.
pub(crate) fn send(link: &Link, bytes: &[u8]) -> Result<(), Hangup> {
    let sending = link.transport().sending.lock().unwrap_or_else(PoisonError::into_inner);
    send_holding(link, sending, bytes)
}

/// Sends `bytes` now, or leaves them to the writer when that is sending.
///
/// # Errors
/// [`Hangup`] as for [`send`].
pub(crate) fn send_or_hand_over(link: &Link, bytes: &[u8]) -> Result<(), Hangup> {
    match link.transport().sending.try_lock() {
        Ok(sending) => return send_holding(link, sending, bytes),
        Err(TryLockError::Poisoned(sending)) => {
            return send_holding(link, sending.into_inner(), bytes);
        }
        Err(TryLockError::WouldBlock) => {}
    }
    let handed_over = link.with_outbox(|outbox| {
        let fits = outbox.replies.len() + bytes.len() <= HANDED_OVER_BYTES_MAX;
        if fits {
            outbox.replies.extend_from_slice(bytes);
        }
        fits
    });
    if handed_over { Ok(()) } else { send(link, bytes) }
}

fn send_holding(
    link: &Link,
    mut rest: MutexGuard<'_, Vec<u8>>,
    bytes: &[u8],
) -> Result<(), Hangup> {
    let sent = send_all(link, &rest).and_then(|()| send_all(link, bytes));
    rest.clear();
    sent.inspect_err(|_| link.abort())
}

fn send_all(link: &Link, mut bytes: &[u8]) -> Result<(), Hangup> {
    let mut stalled_since = Instant::now();
    while !bytes.is_empty() {
        let piece = bytes.get(..PIECE_BYTES_MAX).unwrap_or(bytes);
        match (&*link.transport().socket).write(piece) {
            Ok(0) => return Err(Hangup),
            Ok(sent) => {
                bytes = &bytes[sent..];
                stalled_since = Instant::now();
            }
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    if link.gives_up_client(stalled_since) {
                        return Err(Hangup);
                    }
                }
                _ => return Err(Hangup),
            },
        }
        if !bytes.is_empty() {
            link.unpin_write_buffer();
        }
    }
    Ok(())
}

impl Wire {
    /// Sends the answer, or leaves it to the writer. Of one that was sent in part the rest must be
    /// the next that is sent, whatever sends.
    pub(crate) fn send_answer(&self, outbox: &mut Outbox, rest: &mut Vec<u8>) {
        let answer = outbox.answer.as_bytes();
        match self.socket.send_at_once(answer) {
            0 => outbox.replies.extend_from_slice(answer),
            sent => rest.extend_from_slice(answer.get(sent..).unwrap_or_default()),
        }
        outbox.owes_rest = !rest.is_empty();
        outbox.answer.clear();
    }
}

impl Transport for Wire {
    type Tag = Tag;
    type Unread = Vec<u8>;
    type Outbox = Outbox;
    type Turn<'a> = MutexGuard<'a, Vec<u8>>;

    fn try_turn(&self) -> Option<MutexGuard<'_, Vec<u8>>> {
        if self.socket.takes_at_once() { self.sending.try_lock().ok() } else { None }
    }

    fn answer_at_once(
        &self,
        mut turn: MutexGuard<'_, Vec<u8>>,
        outbox: &mut Outbox,
        request: &Request,
        outcome: Outcome,
    ) {
        outbox.answer.outcome(request, outcome);
        self.send_answer(outbox, &mut turn);
    }

    fn is_closed(&self) -> bool {
        is_closed(&self.socket)
    }

    fn has_given_up(&self, unread: &Vec<u8>) -> bool {
        has_given_up(&self.socket, unread)
    }

    fn stop_receiving(&self) {
        self.socket.shutdown(Shutdown::Read);
    }

    fn close(&self) {
        self.socket.shutdown(Shutdown::Both);
    }
}

impl door::Outbox for Outbox {
    type Encoded = Vec<u8>;

    fn is_empty(&self) -> bool {
        !self.owes_rest && self.replies.is_empty()
    }

    fn owes_rest(&self) -> bool {
        self.owes_rest
    }

    fn swap(&mut self, encoded: &mut Vec<u8>) {
        self.owes_rest = false;
        std::mem::swap(&mut self.replies, encoded);
    }
}

#[cfg(test)]
mod tests;
