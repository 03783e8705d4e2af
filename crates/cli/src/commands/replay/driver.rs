//! Makes the requests, one after the other, as fast as the engine takes them, and judges what comes
//! back.
//!
//! A write is acknowledged when it is in the engine's write buffer, which bounds those under way.
//! Reads are bounded here, by number and by the memory that the engine gives to one who does not
//! take its replies at once. A read is judged by what was written before it was asked for: the
//! engine's queue is one order.

use std::collections::HashMap;

use engine::{ChunkBuf, Client, OpenVolume, Reply, VOLUME_BYTES_MAX};
use traces::{Content, Direction, Request};

use super::request_buffer::RequestBuffer;
use super::truth::{Compared, Truth};
use crate::commands::in_flight::{Answer, InFlight};
use crate::error::CliError;

/// Requests that may be under way.
const IN_FLIGHT_MAX: usize = 256;
/// The longest write that leaves a request buffer, and the longest read at the end.
const PIECE_BYTES: u64 = 1 << 20;

/// What was carried to the store and back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Carried {
    pub(super) reads: u64,
    pub(super) writes: u64,
    pub(super) read_bytes: u64,
    pub(super) written_bytes: u64,
    /// Requests beyond the end of any volume, which were left out.
    pub(super) beyond: u64,
    pub(super) end_bytes: u64,
    pub(super) compared: Compared,
}

/// One volume, driven.
pub(super) struct Driver<'a> {
    in_flight: InFlight<'a>,
    content: Content,
    pub(super) truth: Truth,
    buffer: Option<RequestBuffer>,
    reading: HashMap<u64, Reading>,
    reading_bytes: usize,
    carried: Carried,
}

/// A read under way.
struct Reading {
    offset_bytes: u64,
    length_bytes: usize,
    keys: Vec<Option<u64>>,
}

impl<'a> Driver<'a> {
    pub(super) fn new(
        client: &'a Client,
        volume: OpenVolume,
        content: Content,
        truth: Truth,
        buffer: Option<RequestBuffer>,
    ) -> Self {
        Self {
            in_flight: InFlight::new(client, volume),
            content,
            truth,
            buffer,
            reading: HashMap::new(),
            reading_bytes: 0,
            carried: Carried::default(),
        }
    }

    /// Makes a request of the trace.
    pub(super) fn make(&mut self, request: &Request) -> Result<(), CliError> {
        let (offset_bytes, length_bytes) = (request.offset_bytes(), request.length_bytes());
        let end_bytes = offset_bytes + length_bytes;
        if end_bytes > VOLUME_BYTES_MAX {
            self.carried.beyond += 1;
            return Ok(());
        }
        self.carried.end_bytes = self.carried.end_bytes.max(end_bytes);
        match request.direction {
            Direction::Write => self.write(offset_bytes, request),
            Direction::Read => {
                self.carried.reads += 1;
                self.carried.read_bytes += length_bytes;
                let holds = |buffer: &RequestBuffer| buffer.holds(offset_bytes, length_bytes);
                if self.buffer.as_ref().is_some_and(holds) {
                    self.drain_buffer()?;
                }
                self.read(offset_bytes, length_bytes)
            }
        }
    }

    /// What is written counts as written from now on, in the request buffer or behind it.
    fn write(&mut self, offset_bytes: u64, request: &Request) -> Result<(), CliError> {
        let length_bytes = request.length_bytes();
        self.carried.writes += 1;
        self.carried.written_bytes += length_bytes;
        let Some(buffer) = &mut self.buffer else {
            let mut buf = self.room(offset_bytes, length_bytes as usize)?;
            self.content.fill(request.grain, &request.digests, buf.bytes_mut());
            self.truth.write(offset_bytes, buf.bytes());
            self.submit(offset_bytes, buf);
            return Ok(());
        };
        let mut bytes = vec![0; length_bytes as usize];
        self.content.fill(request.grain, &request.digests, &mut bytes);
        self.truth.write(offset_bytes, &bytes);
        buffer.write(offset_bytes, &bytes);
        if buffer.is_full() { self.drain_buffer() } else { Ok(()) }
    }

    /// Writes what the request buffer holds. The flush ends the engine's own gathering, so that
    /// nothing is gathered but here.
    fn drain_buffer(&mut self) -> Result<(), CliError> {
        let Some(buffer) = &mut self.buffer else { return Ok(()) };
        for write in buffer.drain(PIECE_BYTES as usize) {
            let mut buf = self.room(write.offset_bytes, write.bytes.len())?;
            buf.bytes_mut().copy_from_slice(&write.bytes);
            self.submit(write.offset_bytes, buf);
        }
        self.wait_below(0)?;
        Ok(self.in_flight.flush()?)
    }

    /// A buffer of the engine's, when it has one and not too much is under way.
    fn room(&mut self, offset_bytes: u64, length_bytes: usize) -> Result<ChunkBuf, CliError> {
        self.wait_below(IN_FLIGHT_MAX)?;
        Ok(self.in_flight.buffer(offset_bytes, length_bytes))
    }

    fn submit(&mut self, offset_bytes: u64, buf: ChunkBuf) {
        self.in_flight.write(offset_bytes, buf, false);
    }

    fn read(&mut self, offset_bytes: u64, length_bytes: u64) -> Result<(), CliError> {
        self.wait_below(IN_FLIGHT_MAX)?;
        let memory_bytes = reply_memory_bytes(length_bytes as usize);
        // The engine waits for memory that replies hold which nobody but this thread takes.
        while !self.reading.is_empty()
            && self.reading_bytes + memory_bytes > self.in_flight.read_share_bytes()
        {
            self.settle_some(0)?;
        }
        let keys = self.truth.keys(offset_bytes, length_bytes);
        self.reading_bytes += memory_bytes;
        let tag = self.in_flight.read(offset_bytes, length_bytes as u32);
        let length_bytes = length_bytes as usize;
        self.reading.insert(tag, Reading { offset_bytes, length_bytes, keys });
        Ok(())
    }

    /// Waits until no more than so many requests are under way.
    fn wait_below(&mut self, to_come_max: usize) -> Result<(), CliError> {
        while self.settle_some(to_come_max)? {}
        Ok(())
    }

    /// Takes the answers that are here, waiting for one while more are to come; whether any was.
    fn settle_some(&mut self, to_come_max: usize) -> Result<bool, CliError> {
        let answers = self.in_flight.take(to_come_max);
        let any = !answers.is_empty();
        answers.into_iter().try_for_each(|answer| self.settle(answer))?;
        Ok(any)
    }

    fn settle(&mut self, (tag, outcome): Answer) -> Result<(), CliError> {
        let reply = outcome?;
        let (Reply::Read(pieces), Some(reading)) = (reply, self.reading.remove(&tag)) else {
            return Ok(());
        };
        self.reading_bytes -= reply_memory_bytes(reading.length_bytes);
        let mut bytes = vec![0; reading.length_bytes];
        pieces.assemble(&mut bytes)?;
        let compared = self.truth.compare(reading.offset_bytes, &bytes, &reading.keys);
        self.carried.compared.add(compared);
        Ok(())
    }

    /// Waits for all that is under way and makes it durable.
    pub(super) fn finish(&mut self) -> Result<Carried, CliError> {
        self.drain_buffer()?;
        self.wait_below(0)?;
        self.in_flight.flush()?;
        Ok(self.carried)
    }

    /// Reads everything back that was written and compares it; `advance` is told how many bytes.
    pub(super) fn verify(
        &mut self,
        mut advance: impl FnMut(u64) -> Result<(), CliError>,
    ) -> Result<Compared, CliError> {
        self.carried.compared = Compared::default();
        for range in self.truth.written_ranges(PIECE_BYTES) {
            self.read(range.start, range.end - range.start)?;
            advance(range.end - range.start)?;
        }
        self.wait_below(0)?;
        Ok(self.carried.compared)
    }
}

/// What the engine counts for a read until its reply is dropped: frames and what is made of them.
fn reply_memory_bytes(length_bytes: usize) -> usize {
    2 * length_bytes.next_power_of_two()
}
