//! What a connection has to send: one buffer of bytes, and long values between them.
//!
//! A long value is not copied into the buffer. It is a reader that stands at a place of it, and is
//! read part by part when the bytes before it have been sent.

use std::collections::VecDeque;

use crate::answer::Fault;
use crate::values::ValueReader;

/// The part of a long value that is in memory at once, in bytes.
const PART_BYTES: usize = 64 << 10;
/// An empty buffer that is larger than this is given back, in bytes.
const KEPT_BYTES: usize = 64 << 10;

/// A long value.
#[derive(Debug)]
struct Stream<R> {
    /// Its place in the buffer.
    at: usize,
    left_bytes: u64,
    reader: R,
}

/// What is to be sent, in order.
#[derive(Debug)]
pub(crate) struct Output<R> {
    pub(crate) bytes: Vec<u8>,
    sent: usize,
    streams: VecDeque<Stream<R>>,
    part: Vec<u8>,
    part_sent: usize,
}

impl<R> Default for Output<R> {
    fn default() -> Self {
        Output {
            bytes: Vec::new(),
            sent: 0,
            streams: VecDeque::new(),
            part: Vec::new(),
            part_sent: 0,
        }
    }
}

impl<R: ValueReader> Output<R> {
    pub(crate) fn is_empty(&self) -> bool {
        self.part_sent == self.part.len() && self.streams.is_empty() && self.unsent_bytes() == 0
    }

    /// How much of the buffer is unsent; long values do not count.
    pub(crate) fn unsent_bytes(&self) -> usize {
        self.bytes.len() - self.sent
    }

    pub(crate) fn has_streams(&self) -> bool {
        !self.streams.is_empty()
    }

    /// Whether the next chunk is a part that has to be read.
    pub(crate) fn is_part_next(&self) -> bool {
        let is_at_stream = self.streams.front().is_some_and(|stream| stream.at == self.sent);
        self.part_sent == self.part.len() && is_at_stream
    }

    /// Takes an empty buffer to write into, if it has none.
    pub(crate) fn lend(&mut self, buffer: &mut Vec<u8>) {
        if self.bytes.capacity() == 0 {
            std::mem::swap(&mut self.bytes, buffer);
        }
    }

    /// Gives the buffer away if all is sent, for the next connection.
    pub(crate) fn take_back(&mut self, buffer: &mut Vec<u8>) {
        if self.is_empty() && self.bytes.capacity() > 0 {
            self.bytes.clear();
            std::mem::swap(&mut self.bytes, buffer);
            *self = Output::default();
        }
    }

    /// Puts a long value behind what is in the buffer.
    pub(crate) fn push_stream(&mut self, reader: R, value_bytes: u64) {
        let at = self.bytes.len();
        self.streams.push_back(Stream { at, left_bytes: value_bytes, reader });
    }

    /// What is to be sent next; empty if there is nothing.
    ///
    /// # Errors
    /// If a long value cannot be read, or ends early: the connection cannot go on.
    pub(crate) fn chunk(&mut self) -> Result<&[u8], Fault> {
        while self.part_sent == self.part.len() {
            self.part.clear();
            self.part_sent = 0;
            let Some(stream) = self.streams.front_mut() else { break };
            if self.sent < stream.at {
                return Ok(&self.bytes[self.sent..stream.at]);
            }
            if stream.left_bytes == 0 {
                self.streams.pop_front();
                continue;
            }
            let wanted = stream.left_bytes.min(PART_BYTES as u64) as usize;
            self.part.resize(wanted, 0);
            let read = stream.reader.read(&mut self.part)?;
            self.part.truncate(read);
            if read == 0 {
                return Err(Fault::Other("a value ended early".into()));
            }
            stream.left_bytes -= read as u64;
        }
        if self.part_sent < self.part.len() {
            return Ok(&self.part[self.part_sent..]);
        }
        Ok(&self.bytes[self.sent..])
    }

    /// The front of the chunk has been sent.
    pub(crate) fn advance(&mut self, bytes: usize) {
        if self.part_sent < self.part.len() {
            self.part_sent += bytes;
            assert!(self.part_sent <= self.part.len(), "no more is sent than there was");
        } else {
            self.sent += bytes;
            assert!(self.sent <= self.bytes.len(), "no more is sent than there was");
        }
        if self.is_empty() {
            self.bytes.clear();
            self.sent = 0;
            self.bytes.shrink_to(KEPT_BYTES);
            self.part = Vec::new();
            self.part_sent = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Output;
    use crate::answer::Fault;
    use crate::values::ValueReader;

    struct Bytes(Vec<u8>);

    impl ValueReader for Bytes {
        fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
            let length = out.len().min(self.0.len()).min(3);
            out[..length].copy_from_slice(&self.0[..length]);
            self.0.drain(..length);
            Ok(length)
        }
    }

    fn drain(output: &mut Output<Bytes>, step: usize) -> Result<Vec<u8>, Fault> {
        let mut all = Vec::new();
        loop {
            let chunk = output.chunk()?;
            if chunk.is_empty() {
                return Ok(all);
            }
            let length = chunk.len().min(step);
            all.extend_from_slice(&chunk[..length]);
            output.advance(length);
        }
    }

    #[test]
    fn long_values_come_at_their_place() {
        for step in 1..20 {
            let mut output = Output::default();
            output.push_stream(Bytes(b"first".to_vec()), 5);
            output.bytes.extend_from_slice(b" then ");
            output.push_stream(Bytes(b"second".to_vec()), 6);
            output.push_stream(Bytes(Vec::new()), 0);
            output.bytes.extend_from_slice(b" end");
            assert_eq!(drain(&mut output, step).unwrap(), b"first then second end");
            assert!(output.is_empty());
            output.bytes.extend_from_slice(b"more");
            assert_eq!(drain(&mut output, step).unwrap(), b"more");
        }
    }

    #[test]
    fn a_value_that_ends_early_is_a_fault() {
        let mut output = Output::default();
        output.push_stream(Bytes(b"short".to_vec()), 6);
        assert!(drain(&mut output, 100).is_err());
    }
}
