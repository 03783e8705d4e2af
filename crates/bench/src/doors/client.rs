//! Our client of NBD: what is ready is sent by one call, what has come is taken by one call.
//!
//! A thread a connection. Each turn fills what is free of the depth with requests, sends all of
//! them together, receives once, as much as there is, and takes all replies in it apart. A server
//! that answers many requests together is asked for many together, and neither a system call nor a
//! wake-up is paid for each. fio's engine for NBD sends and receives each request by itself.
//!
//! Sending and receiving both stop after [`PAUSE`], and the other has its turn: a server that
//! does not receive before its replies are taken is no end of both.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use nbd::wire::option::{READ_ONLY, SEND_FLUSH, SEND_FUA};
use nbd::wire::{COMMAND_FUA, Command, Request};
use thiserror::Error;

use super::load::{Ask, Asks, Durability, Load, Volume};
use super::rate::{Limit, Rate, together};
use super::replies::{Ended, InFlight, Replies, ReplyError};
use crate::connecting::{TIME_LIMIT, connect, disconnect};
use crate::failure::Failure;

/// After so long without progress a call stops, and the other direction has its turn.
const PAUSE: Duration = Duration::from_millis(20);
/// Received by one call at most: more than a Unix socket holds by default.
const RECEIVED_BYTES: usize = 512 << 10;

/// Why a run of our client failed.
#[derive(Debug, Error)]
pub(super) enum ClientError {
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Reply(#[from] ReplyError),
    #[error("the volume has {found_bytes} bytes instead of {wanted_bytes}, or flags {flags:#x}")]
    OtherVolume { found_bytes: u64, wanted_bytes: u64, flags: u16 },
    #[error("the server says nothing for a minute while {waiting} bytes or replies are due")]
    Silent { waiting: usize },
    #[error("at {offset_bytes} other bytes were read than had been written")]
    Differs { offset_bytes: u64 },
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Client(Box::new(error))
    }
}

/// Where a volume is served.
#[derive(Copy, Clone)]
pub(super) struct Door<'a> {
    pub(super) socket: &'a Path,
    pub(super) export: &'a str,
}

/// Runs `load` on all its connections at once; `run` is a number that no other run has.
pub(super) fn run(
    door: Door<'_>,
    volume: &Volume,
    load: Load,
    run: u64,
    limit: Limit,
) -> Result<Rate, Failure> {
    let ready = Barrier::new(load.connections as usize);
    thread::scope(|scope| {
        let one = |connection| {
            let (ready, volume) = (&ready, volume);
            scope.spawn(move || {
                let asks = Asks::new(load, volume, run, connection);
                let made = Connection::open(door, asks, limit);
                // Those that failed are waited for as well.
                ready.wait();
                made?.run()
            })
        };
        let threads: Vec<_> = (0..load.connections).map(one).collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        together(ended.map(|rate| match rate {
            Ok(rate) => Ok(rate?),
            Err(_) => Err(Failure::NoSystem("a thread of the client panicked".to_owned())),
        }))
    })
}

/// One connection and its requests.
struct Connection {
    stream: UnixStream,
    asks: Asks,
    limit: Limit,
    in_flight: InFlight,
    replies: Replies,
    /// Requests, of which the first bytes have been sent.
    out: Vec<u8>,
    sent_bytes: usize,
    received: Vec<u8>,
    /// Of `received`, not taken yet.
    filled_bytes: usize,
    /// Flushes that writes have left to be sent.
    flushes_due: usize,
    done: u64,
}

impl Connection {
    fn open(door: Door<'_>, asks: Asks, limit: Limit) -> Result<Self, ClientError> {
        let (stream, facts) = connect(door.socket, door.export)?;
        let wanted_bytes = limit.volume_bytes;
        let load = asks.load;
        let needed = match load.durability {
            Durability::Buffered | Durability::FlushEach => SEND_FLUSH,
            Durability::Fua => SEND_FUA,
        };
        let is_served = facts.flags & needed == needed && facts.flags & READ_ONLY == 0;
        if facts.size_bytes != wanted_bytes || !is_served {
            let (found_bytes, flags) = (facts.size_bytes, facts.flags);
            return Err(ClientError::OtherVolume { found_bytes, wanted_bytes, flags });
        }
        stream.set_read_timeout(Some(PAUSE))?;
        stream.set_write_timeout(Some(PAUSE))?;
        Ok(Self {
            stream,
            limit,
            in_flight: InFlight::new(load.depth),
            replies: Replies::new(load.block_bytes as usize, limit.verifies),
            out: Vec::new(),
            sent_bytes: 0,
            received: vec![0; RECEIVED_BYTES],
            filled_bytes: 0,
            flushes_due: 0,
            done: 0,
            asks,
        })
    }

    /// Asks until the time or the bytes are over, and waits for the last answer.
    fn run(mut self) -> Result<Rate, ClientError> {
        let begun = Instant::now();
        let mut progress = begun;
        loop {
            let over = self.limit.is_over(begun, self.done, &self.asks.load);
            self.queue(over);
            if self.out.is_empty() && self.in_flight.is_empty() {
                break;
            }
            let moved = self.send()? | self.receive()?;
            if moved {
                progress = Instant::now();
            } else if progress.elapsed() > TIME_LIMIT {
                let waiting = self.out.len() - self.sent_bytes;
                return Err(ClientError::Silent { waiting });
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        disconnect(&mut self.stream)?;
        Ok(Rate { operations: self.done, seconds })
    }

    /// Fills what is free of the depth with requests.
    fn queue(&mut self, over: bool) {
        while self.in_flight.has_room() {
            let ask = match (self.flushes_due, over) {
                (0, true) => return,
                (0, false) => self.asks.next(),
                _ => {
                    self.flushes_due -= 1;
                    Ask::Flush
                }
            };
            if let Ask::Write { offset_bytes, .. } | Ask::Read { offset_bytes } = ask
                && self.limit.verifies
                && self.in_flight.touches(offset_bytes)
            {
                // Which of two at one place counts nobody could say. Sequential ones never meet
                // unless the volume is shorter than the depth.
                return;
            }
            let Some(cookie) = self.in_flight.begin(ask) else { return };
            self.encode(ask, cookie);
        }
    }

    fn encode(&mut self, ask: Ask, cookie: u64) {
        let load = self.asks.load;
        let fua = if load.durability == Durability::Fua { COMMAND_FUA } else { 0 };
        let block = load.block_bytes;
        let (flags, command, offset_bytes, length_bytes) = match ask {
            Ask::Write { offset_bytes, .. } => (fua, Command::Write, offset_bytes, block),
            Ask::Read { offset_bytes } => (0, Command::Read, offset_bytes, block),
            Ask::Flush => (0, Command::Flush, 0, 0),
        };
        Request { flags, command, cookie, offset_bytes, length_bytes }.encode(&mut self.out);
        if let Ask::Write { first_id, .. } = ask {
            self.asks.append(first_id, &mut self.out);
        }
    }

    /// Sends what is queued, by one call; whether anything went.
    fn send(&mut self) -> io::Result<bool> {
        let waiting = &self.out[self.sent_bytes..];
        if waiting.is_empty() {
            return Ok(false);
        }
        let sent = unless_paused(self.stream.write(waiting))?;
        self.sent_bytes += sent;
        if self.sent_bytes == self.out.len() {
            self.out.clear();
            self.sent_bytes = 0;
        }
        Ok(sent > 0)
    }

    /// Receives once, and takes all that can be of it; whether anything came.
    fn receive(&mut self) -> Result<bool, ClientError> {
        let room = &mut self.received[self.filled_bytes..];
        let result = self.stream.read(room);
        if matches!(result, Ok(0)) {
            return Err(io::Error::from(ErrorKind::UnexpectedEof).into());
        }
        let more = unless_paused(result)?;
        self.filled_bytes += more;
        let Self { asks, limit, done, flushes_due, .. } = self;
        let mut differs = None;
        let input = &self.received[..self.filled_bytes];
        let taken = self.replies.take(input, &mut self.in_flight, |Ended { ask, bytes }| {
            let flushes = asks.load.durability == Durability::FlushEach;
            match ask {
                Ask::Write { .. } => {
                    asks.record(ask);
                    *flushes_due += usize::from(flushes);
                    *done += u64::from(!flushes);
                }
                Ask::Flush => *done += 1,
                Ask::Read { offset_bytes } => {
                    *done += 1;
                    if limit.verifies && !asks.matches(offset_bytes, bytes) {
                        differs.get_or_insert(offset_bytes);
                    }
                }
            }
        })?;
        self.received.copy_within(taken..self.filled_bytes, 0);
        self.filled_bytes -= taken;
        match differs {
            Some(offset_bytes) => Err(ClientError::Differs { offset_bytes }),
            None => Ok(more > 0),
        }
    }
}

/// Nothing, where the call stopped.
fn unless_paused(result: io::Result<usize>) -> io::Result<usize> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(0)
        }
        other => other,
    }
}
