//! Writes: credits before the payload, and payloads that do not come.
//!
//! Only the client can make us wait while we hold credits, and not for longer than the grace that
//! all clients share ([`crate::shared_grace`]): what has come by then is written, and for the rest
//! credits are taken only when it is here, piece by piece. A slow client may take any time, and
//! nobody waits for it.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use engine::{Accepted, ChunkBuf, Completions, Done, RequestError};

use crate::admission::{Admission, QUOTA_PAUSE};
use crate::connection::Connection;
use crate::hangup::Hangup;
use crate::request::{Outcome, Request};
use crate::transport::{Reader, Transport};

/// How long it may take to copy a piece that is here.
const PIECE_TIME_MAX: Duration = Duration::from_secs(1);
/// Pieces of one that takes longer end where this divides the address: every chunk is a part of one
/// piece, and a piece is as long as what a reader must be able to keep
/// ([`Reader::await_received`]).
const PIECE_BYTES: u64 = 64 << 10;

/// Longer payloads than this have memory of their own, and not out of a pool.
const POOLED_BYTES_MAX: usize = 2 << 20;

impl<T: Transport> Admission<'_, T> {
    pub(crate) fn write(
        &mut self,
        reader: &mut impl Reader<T>,
        request: Request<T::Tag>,
    ) -> Result<(), Hangup> {
        // Capacity first: waiting for it may depend on the client, and must not while we hold
        // credits.
        self.wait_for_capacity(reader, &request)?;
        let length = request.payload_bytes();
        if reader.received_bytes() < length {
            reader.send_answers()?;
        }
        if !has_memory_for(length) {
            // There is hardly ever none for a piece of it.
            return self.write_slowly(reader, request, ChunkBuf::new(Vec::new()), 0);
        }
        let mut buf = self.buffer(reader, request.offset_bytes, length)?;
        let filled = self.receive(reader, buf.bytes_mut())?;
        if filled < length {
            return self.write_slowly(reader, request, buf, filled);
        }
        self.write_last(reader, request, request.offset_bytes, buf);
        Ok(())
    }

    /// A buffer of the write buffer: first the volume's quota is waited for, then credits.
    fn buffer(
        &self,
        reader: &mut impl Reader<T>,
        offset_bytes: u64,
        length: usize,
    ) -> Result<ChunkBuf, Hangup> {
        if self.volume.holds_writers_up() {
            reader.send_answers()?;
            while self.volume.holds_writers_up() {
                self.wait(reader, || self.connection.pause(QUOTA_PAUSE))?;
            }
        }
        if let Some(buf) = self.client.try_buffer(offset_bytes, length) {
            return Ok(buf);
        }
        reader.send_answers()?;
        self.wait(reader, || Ok(self.client.buffer(offset_bytes, length)))
    }

    /// Fills `target` with the payload, for as long as the grace allows; returns how much came.
    fn receive(&self, reader: &mut impl Reader<T>, target: &mut [u8]) -> Result<usize, Hangup> {
        if reader.received_bytes() >= target.len() {
            return reader.receive(target, PIECE_TIME_MAX);
        }
        let (grace, begun) = (self.connection.payload_grace(), Instant::now());
        let filled = reader.receive(target, grace.time_max(begun))?;
        if filled < target.len() {
            let now = Instant::now();
            grace.spend(now - begun, now);
        }
        Ok(filled)
    }

    /// The payload of a write does not come, but for the `filled` bytes at the front of `buf`.
    fn write_slowly(
        &mut self,
        reader: &mut impl Reader<T>,
        request: Request<T::Tag>,
        mut buf: ChunkBuf,
        filled: usize,
    ) -> Result<(), Hangup> {
        let end_bytes = request.offset_bytes + request.payload_bytes() as u64;
        let mut at_bytes = request.offset_bytes;
        // What is here of the last piece waits for the rest of it, without credits.
        let here_bytes = at_bytes + filled as u64;
        let whole = (here_bytes - here_bytes % PIECE_BYTES).saturating_sub(at_bytes) as usize;
        if whole < filled {
            reader.put_back(&buf.bytes()[whole..filled]);
        }
        buf.truncate(whole);
        let mut piece = (whole > 0).then_some(buf);
        loop {
            if let Some(buf) = piece.take() {
                let next_bytes = at_bytes + buf.bytes().len() as u64;
                if next_bytes == end_bytes {
                    self.write_last(reader, request, at_bytes, buf);
                    return Ok(());
                }
                if let Err(error) = self.write_piece(reader, at_bytes, buf)? {
                    reader.discard((end_bytes - next_bytes) as usize)?;
                    reader.answer_error(&request, &error);
                    return Ok(());
                }
                at_bytes = next_bytes;
            }
            let piece_end_bytes = (at_bytes / PIECE_BYTES + 1) * PIECE_BYTES;
            let length = (piece_end_bytes.min(end_bytes) - at_bytes) as usize;
            reader.await_received(length)?;
            if reader.has_given_up() {
                return Err(Hangup);
            }
            let mut buf = self.buffer(reader, at_bytes, length)?;
            reader.receive(buf.bytes_mut(), PIECE_TIME_MAX)?;
            piece = Some(buf);
        }
    }

    /// A piece of a payload but the last, whose end the client is not told of.
    fn write_piece(
        &self,
        reader: &impl Reader<T>,
        at_bytes: u64,
        buf: ChunkBuf,
    ) -> Result<Result<(), RequestError>, Hangup> {
        let (ended, outcome) = mpsc::channel();
        let piece = Piece { connection: Arc::clone(&self.connection), ended };
        let done = Done::new(Arc::new(piece), 0);
        match self.client.write(&self.volume, at_bytes, buf, false, done) {
            Accepted::Now => Ok(Ok(())),
            Accepted::Later => self.wait(reader, || {
                let outcome = outcome.recv().unwrap_or(Err(RequestError::Closing));
                Ok(outcome.map(drop))
            }),
        }
    }

    /// The write of a request's payload, or of the end of it, with which the request ends.
    fn write_last(
        &mut self,
        reader: &mut impl Reader<T>,
        request: Request<T::Tag>,
        at_bytes: u64,
        buf: ChunkBuf,
    ) {
        // There still is capacity: only this thread begins anything.
        let done = self.begin(request);
        let tag = done.tag;
        match self.client.write(&self.volume, at_bytes, buf, request.durable, done) {
            Accepted::Now => {
                self.retire(tag);
                reader.answer_done(&request);
            }
            Accepted::Later => {}
        }
    }
}

/// Whether the process gets memory for a payload whose length a client has chosen: to take it and
/// not to get it would end the process.
fn has_memory_for(length: usize) -> bool {
    length <= POOLED_BYTES_MAX || Vec::<u8>::new().try_reserve_exact(length).is_ok()
}

/// Who is told of one piece of a write: the thread that sends the next.
struct Piece<T: Transport> {
    connection: Arc<Connection<T>>,
    ended: Sender<Outcome>,
}

impl<T: Transport> Completions for Piece<T> {
    fn complete(&self, _tag: u64, outcome: Outcome) {
        // A reader that has ended does not ask any more.
        let _ = self.ended.send(outcome);
    }

    fn is_gone(&self) -> bool {
        self.connection.is_gone()
    }
}
