//! What a client has sent and nobody has looked at yet.
//!
//! One read of the socket brings as many pipelined requests as have arrived. The payload of a write
//! goes past this buffer: what is here already is copied, and the rest is read from the socket to
//! where it belongs, together with the requests behind it, in one call.

use std::io::{self, ErrorKind, IoSliceMut, Read};
use std::time::{Duration, Instant};

use crate::wire::option::{OPTION_BYTES_MAX, OPTION_HEADER_BYTES};
use door::Hangup;

/// Holds some thirty writes of 4 KiB, and the longest option.
const INCOMING_BYTES: usize = 128 << 10;
const _: () = assert!(INCOMING_BYTES >= OPTION_HEADER_BYTES + OPTION_BYTES_MAX);

/// Bytes that have arrived, in order.
#[derive(Debug)]
pub(crate) struct Incoming {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Incoming {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; INCOMING_BYTES].into_boxed_slice(), start: 0, end: 0 }
    }

    /// What has arrived.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Forgets the first `length` bytes.
    pub(crate) fn consume(&mut self, length: usize) {
        self.start = self.end.min(self.start + length);
    }

    /// The first `N` bytes, taken off, when that many have arrived.
    pub(crate) fn take_array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let array = *self.unread().first_chunk()?;
        self.consume(N);
        Some(array)
    }

    /// Reads once; returns false when `source` waited in vain for as long as it waits.
    ///
    /// # Errors
    /// [`Hangup`] when there will be nothing more.
    pub(crate) fn fill(&mut self, source: &mut impl Read) -> Result<bool, Hangup> {
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let length = arrived(source.read(&mut self.bytes[self.end..]))?;
        self.end += length.unwrap_or(0);
        Ok(length.is_some())
    }

    /// Whether the next `length` bytes, as many as find room here, are; reads until they are.
    ///
    /// # Errors
    /// [`Hangup`] when it ends before.
    pub(crate) fn await_here(
        &mut self,
        source: &mut impl Read,
        length: usize,
    ) -> Result<(), Hangup> {
        let length = length.min(INCOMING_BYTES);
        while self.unread().len() < length {
            self.fill(source)?;
        }
        Ok(())
    }

    /// Fills `target` with what comes next, from here and from `source`, for as long as `time_max`;
    /// returns how much of it is filled.
    ///
    /// # Errors
    /// [`Hangup`] when it ends before.
    pub(crate) fn read_for(
        &mut self,
        source: &mut impl Read,
        target: &mut [u8],
        time_max: Duration,
    ) -> Result<usize, Hangup> {
        let whole = target.len();
        let here = self.unread();
        let here = &here[..here.len().min(target.len())];
        let (front, mut rest) = target.split_at_mut(here.len());
        front.copy_from_slice(here);
        self.consume(front.len());
        if rest.is_empty() {
            return Ok(whole);
        }
        // Everything that was here is taken, so that all of the buffer is free.
        (self.start, self.end) = (0, 0);
        let deadline = Instant::now() + time_max;
        while !rest.is_empty() {
            let wanted = rest.len();
            let both = &mut [IoSliceMut::new(rest), IoSliceMut::new(&mut self.bytes)];
            let length = arrived(source.read_vectored(both))?.unwrap_or(0);
            self.end = length.saturating_sub(wanted);
            rest = &mut std::mem::take(&mut rest)[length.min(wanted)..];
            if !rest.is_empty() && Instant::now() >= deadline {
                break;
            }
        }
        Ok(whole - rest.len())
    }

    /// Takes back `bytes`, the last that were taken, when nothing is here that came behind them;
    /// at most [`INCOMING_BYTES`].
    pub(crate) fn put_back(&mut self, bytes: &[u8]) {
        debug_assert!(self.unread().is_empty());
        let bytes = &bytes[..bytes.len().min(INCOMING_BYTES)];
        self.bytes[..bytes.len()].copy_from_slice(bytes);
        (self.start, self.end) = (0, bytes.len());
    }

    /// Throws away the next `length` bytes.
    ///
    /// # Errors
    /// [`Hangup`] when there will not be as many.
    pub(crate) fn discard(
        &mut self,
        source: &mut impl Read,
        mut length: usize,
    ) -> Result<(), Hangup> {
        loop {
            let here = self.unread().len().min(length);
            self.consume(here);
            length -= here;
            if length == 0 {
                return Ok(());
            }
            self.fill(source)?;
        }
    }
}

/// What a read has brought; `None` when it waited in vain.
fn arrived(read: io::Result<usize>) -> Result<Option<usize>, Hangup> {
    match read {
        Ok(0) => Err(Hangup),
        Ok(length) => Ok(Some(length)),
        Err(error) => match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(None),
            _ => Err(Hangup),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::{Hangup, INCOMING_BYTES, Incoming};
    use proptest::prelude::proptest;
    use std::io::{self, ErrorKind, Read};
    use std::time::Duration;

    /// Gives its bytes in pieces of these sizes, and nothing at a piece of size 0.
    struct Dribble<'a> {
        bytes: &'a [u8],
        sizes: &'a [usize],
        turn: usize,
    }

    impl Read for Dribble<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.turn += 1;
            let size = self.sizes[self.turn % self.sizes.len()];
            if size == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let length = size.min(out.len()).min(self.bytes.len());
            let (now, later) = self.bytes.split_at(length);
            out[..length].copy_from_slice(now);
            self.bytes = later;
            Ok(length)
        }

        fn read_vectored(&mut self, outs: &mut [io::IoSliceMut<'_>]) -> io::Result<usize> {
            let mut joined = vec![0; outs.iter().map(|out| out.len()).sum()];
            let length = self.read(&mut joined)?;
            let mut rest = &joined[..length];
            for out in outs {
                let part = rest.len().min(out.len());
                out[..part].copy_from_slice(&rest[..part]);
                rest = &rest[part..];
            }
            Ok(length)
        }
    }

    proptest! {
        #[test]
        fn bytes_come_out_as_they_went_in(
            sizes in proptest::collection::vec(0_usize..300, 1..6),
            wants in proptest::collection::vec((0_usize..400, 0_u8..3), 1..20),
        ) {
            let bytes: Vec<u8> = (0..=250).cycle().take(10_000).collect();
            let sizes = [sizes, vec![40]].concat();
            let mut source = Dribble { bytes: &bytes, sizes: &sizes, turn: 0 };
            let mut incoming = Incoming::new();
            let mut at = 0;
            for (length, how) in wants {
                match how {
                    0 => {
                        let mut out = vec![0; length];
                        let hour = Duration::from_secs(3600);
                        let read = incoming.read_for(&mut source, &mut out, hour);
                        assert_eq!(read, Ok(length));
                        assert_eq!(out, bytes[at..at + length]);
                        at += length;
                    }
                    1 => {
                        incoming.discard(&mut source, length).unwrap();
                        at += length;
                    }
                    _ => loop {
                        if let Some(array) = incoming.take_array::<28>() {
                            assert_eq!(array, bytes[at..at + 28]);
                            at += 28;
                            break;
                        }
                        incoming.fill(&mut source).unwrap();
                    },
                }
            }
        }
    }

    #[test]
    fn the_end_is_a_hangup_wherever_it_comes() {
        let mut out = [0; 10];
        let hour = Duration::from_secs(3600);
        assert_eq!(Incoming::new().fill(&mut [].as_slice()), Err(Hangup));
        let mut short = [1; 9].as_slice();
        assert_eq!(Incoming::new().read_for(&mut short, &mut out, hour), Err(Hangup));
        assert_eq!(Incoming::new().discard(&mut [1; 9].as_slice(), 10), Err(Hangup));
    }

    #[test]
    fn what_came_of_a_payload_in_time_can_be_put_back() {
        let mut slow = Dribble { bytes: &[1, 2, 3, 4], sizes: &[0, 3], turn: 0 };
        let (mut incoming, mut out) = (Incoming::new(), [0; 4]);
        assert_eq!(incoming.read_for(&mut slow, &mut out, Duration::ZERO), Ok(3));
        incoming.put_back(&out[1..3]);
        assert_eq!(incoming.await_here(&mut slow, 3), Ok(()));
        assert_eq!(incoming.unread(), [2, 3, 4]);
        let mut silent = Dribble { bytes: &[], sizes: &[0], turn: 0 };
        assert_eq!(Incoming::new().read_for(&mut silent, &mut out, Duration::ZERO), Ok(0));
        assert_eq!(Incoming::new().fill(&mut silent), Ok(false));
        assert_eq!(Incoming::new().unread().len(), 0);
        assert_eq!(Incoming::new().bytes.len(), INCOMING_BYTES);
    }
}
