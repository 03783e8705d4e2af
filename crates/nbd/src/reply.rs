//! Replies, gathered into one buffer: simple and structured ones, and reads put together in place.
//!
//! The bytes of a read are assembled where they are sent from. A structured reply with holes has a
//! header before each run of data, and how many there are is known before anything is assembled:
//! so all data is assembled behind the room that all headers take, and each run then moves forward
//! to its place. A run never moves backward, hence none is overwritten before it has moved, and a
//! read without holes moves nothing.
//!
//! The buffer is never cleared, for that would cost as much as filling it. Replies that are longer
//! than it are put together in memory that all connections share, for as long as it takes: most
//! connections wait, and each would keep what its longest reply took.
//!
//! What a read takes of the engine's memory for reads is held until its bytes have been sent, too:
//! clients that do not take them would each hold a reply that nobody counts.

use door::Operation;
use engine::{ChunkBuf, Extent, Permit, ReadPieces, Reply, RequestError, Segment};

use crate::changed::Run;
use crate::handshake::ALLOCATION_CONTEXT;
use crate::request::{Request, Tag};
use crate::wire::{
    CHUNK_BLOCK_STATUS, CHUNK_DONE, CHUNK_ERROR, CHUNK_NONE, DATA_CHUNK_PREFIX_BYTES, Errno,
    HOLE_CHUNK_BYTES, SIMPLE_REPLY_BYTES, STATE_HOLE, STATE_ZERO, STRING_BYTES_MAX, chunk_header,
    data_chunk_prefix, hole_chunk, simple_reply,
};

/// Longest extent whose length is whole sectors and fits its field.
const EXTENT_BYTES_MAX: u64 = u32::MAX as u64 - 511;

/// The bytes of a read before they are put together.
pub(crate) trait Pieces {
    fn length_bytes(&self) -> usize;
    fn segments(&self) -> Vec<Segment>;
    fn assemble(&self, out: &mut [u8]) -> Result<(), RequestError>;
}

impl Pieces for ReadPieces {
    fn length_bytes(&self) -> usize {
        self.length_bytes()
    }

    fn segments(&self) -> Vec<Segment> {
        self.segments()
    }

    fn assemble(&self, out: &mut [u8]) -> Result<(), RequestError> {
        self.assemble(out)
    }
}

/// A read that is answered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReadRange {
    pub(crate) tag: Tag,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: u32,
}

impl ReadRange {
    pub(crate) fn of(request: &Request) -> Self {
        Self {
            tag: request.tag,
            offset_bytes: request.offset_bytes,
            length_bytes: request.length_bytes,
        }
    }
}

/// Replies that wait to be sent.
#[derive(Debug)]
pub(crate) struct Replies {
    buffer: Box<[u8]>,
    /// Instead of `buffer`, until they have been sent.
    long: Option<ChunkBuf>,
    filled: usize,
    /// Of the reads whose bytes are here.
    permits: Vec<Permit>,
    structured: bool,
}

impl Replies {
    /// In `buffer`, or in a longer one where it is too short.
    pub(crate) fn new(buffer: Box<[u8]>, structured: bool) -> Self {
        Self { buffer, long: None, filled: 0, permits: Vec::new(), structured }
    }

    /// What is to be sent.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.long.as_ref().map_or(&self.buffer[..], ChunkBuf::bytes)[..self.filled]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Everything has been sent.
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
        self.long = None;
        self.permits.clear();
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.long.as_mut().map_or(&mut self.buffer[..], ChunkBuf::bytes_mut)
    }

    /// Room for `length` bytes behind what there is. Counted as filled; its contents are old.
    fn room(&mut self, length: usize) -> &mut [u8] {
        let (start, end) = (self.filled, self.filled + length);
        if self.bytes_mut().len() < end {
            let mut longer = ChunkBuf::pooled(end);
            longer.bytes_mut()[..start].copy_from_slice(self.as_bytes());
            self.long = Some(longer);
        }
        self.filled = end;
        &mut self.bytes_mut()[start..end]
    }

    /// Replies that are encoded already.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    /// What the engine says of a request.
    pub(crate) fn outcome(&mut self, request: &Request, outcome: Result<Reply, RequestError>) {
        let cookie = request.tag.cookie;
        match (request.operation, outcome) {
            (operation, Err(error)) => self.error(cookie, operation, &error),
            (Operation::Read, Ok(Reply::Read(pieces))) => {
                self.read(&ReadRange::of(request), &pieces);
                self.permits.extend(pieces.into_permit());
            }
            (Operation::Extents { .. }, Ok(Reply::Extents(extents))) => {
                self.extents(cookie, &extents)
            }
            (Operation::Read | Operation::Extents { .. }, Ok(_)) => {
                self.fail(cookie, Errno::Io, &RequestError::Closing.to_string());
            }
            (_, Ok(_)) => self.done(cookie),
        }
    }

    /// Success without data.
    pub(crate) fn done(&mut self, cookie: u64) {
        self.append(&simple_reply(0, cookie));
    }

    /// A failure. Where replies are structured it comes with its sentence.
    pub(crate) fn fail(&mut self, cookie: u64, errno: Errno, sentence: &str) {
        if !self.structured {
            return self.append(&simple_reply(errno as u32, cookie));
        }
        let sentence = &sentence.as_bytes()[..sentence.floor_char_boundary(STRING_BYTES_MAX)];
        // At most STRING_BYTES_MAX, so it fits both fields.
        let length = u16::try_from(sentence.len()).unwrap_or(u16::MAX);
        self.append(&chunk_header(CHUNK_DONE, CHUNK_ERROR, cookie, u32::from(length) + 6));
        self.append(&(errno as u32).to_be_bytes());
        self.append(&length.to_be_bytes());
        self.append(sentence);
    }

    /// The engine failed a request.
    pub(crate) fn error(&mut self, cookie: u64, operation: Operation, error: &RequestError) {
        self.fail(cookie, door::Errno::of(error, operation).into(), &error.to_string());
    }

    /// A read of nothing.
    pub(crate) fn empty_read(&mut self, cookie: u64) {
        if self.structured {
            self.append(&chunk_header(CHUNK_DONE, CHUNK_NONE, cookie, 0));
        } else {
            self.done(cookie);
        }
    }

    /// The bytes of a read, or the error that putting them together ended with.
    pub(crate) fn read(&mut self, range: &ReadRange, pieces: &impl Pieces) {
        let start = self.filled;
        if pieces.length_bytes() != range.length_bytes as usize {
            return self.fail(
                range.tag.cookie,
                Errno::Io,
                "the read came back with another length",
            );
        }
        let done = if self.structured {
            self.structured_read(range, pieces)
        } else {
            self.simple_read(range, pieces)
        };
        if let Err(error) = done {
            self.filled = start;
            self.error(range.tag.cookie, Operation::Read, &error);
        }
    }

    fn simple_read(&mut self, range: &ReadRange, pieces: &impl Pieces) -> Result<(), RequestError> {
        let out = self.room(SIMPLE_REPLY_BYTES + range.length_bytes as usize);
        let (header, data) = out.split_at_mut(SIMPLE_REPLY_BYTES);
        header.copy_from_slice(&simple_reply(0, range.tag.cookie));
        pieces.assemble(data)
    }

    fn structured_read(
        &mut self,
        range: &ReadRange,
        pieces: &impl Pieces,
    ) -> Result<(), RequestError> {
        let segments = runs(range, pieces.segments());
        if let [Segment { hole: true, .. }] = segments.as_slice() {
            let ReadRange { tag, offset_bytes, length_bytes } = *range;
            self.append(&hole_chunk(CHUNK_DONE, tag.cookie, offset_bytes, length_bytes));
            return Ok(());
        }
        let headers: usize = segments.iter().map(header_bytes).sum();
        let out = self.room(headers + range.length_bytes as usize);
        pieces.assemble(&mut out[headers..])?;
        let written = lay_out(out, headers, range, &segments);
        self.filled -= out.len() - written;
        Ok(())
    }

    /// Extents of `base:allocation`, in order from where the request begins.
    pub(crate) fn extents(&mut self, cookie: u64, extents: &[Extent]) {
        let runs: Vec<Run> = extents.iter().map(run_of).collect();
        self.statuses(cookie, &[(ALLOCATION_CONTEXT, runs)]);
    }

    /// Runs of several contexts, by their numbers, each from where the request begins.
    pub(crate) fn statuses(&mut self, cookie: u64, contexts: &[(u32, Vec<Run>)]) {
        if contexts.iter().any(|(_, runs)| sendable(runs).next().is_none()) {
            return self.fail(cookie, Errno::Io, "no extent was found");
        }
        for (at, (id, runs)) in contexts.iter().enumerate() {
            let flags = if at + 1 == contexts.len() { CHUNK_DONE } else { 0 };
            let count = u32::try_from(sendable(runs).count()).unwrap_or(u32::MAX);
            self.append(&chunk_header(flags, CHUNK_BLOCK_STATUS, cookie, 4 + 8 * count));
            self.append(&id.to_be_bytes());
            for (length_bytes, state) in sendable(runs) {
                let length_bytes = (*length_bytes).min(EXTENT_BYTES_MAX);
                self.append(&u32::try_from(length_bytes).unwrap_or(u32::MAX).to_be_bytes());
                self.append(&state.to_be_bytes());
            }
        }
    }
}

/// Data or a hole, as `base:allocation` has it.
pub(crate) fn run_of(extent: &Extent) -> Run {
    let state = if extent.hole { STATE_HOLE | STATE_ZERO } else { 0 };
    (extent.length_bytes, state)
}

/// The runs that are told: behind one that must be cut, the next would be taken for another place.
fn sendable(runs: &[Run]) -> impl Iterator<Item = &Run> {
    let cut = runs.iter().position(|(length_bytes, _)| *length_bytes > EXTENT_BYTES_MAX);
    let runs = cut.and_then(|at| runs.get(..=at)).unwrap_or(runs);
    runs.iter().filter(|(length_bytes, _)| *length_bytes > 0)
}

/// The runs that are sent: those of the read, or all of it as one where it may not be fragmented
/// and is not one already.
fn runs(range: &ReadRange, segments: Vec<Segment>) -> Vec<Segment> {
    let whole = Segment { offset_bytes: 0, length_bytes: range.length_bytes, hole: false };
    let fragmented = segments.len() > 1;
    if (range.tag.unfragmented && fragmented) || !is_cover(range.length_bytes, &segments) {
        return vec![whole];
    }
    segments
}

/// Whether the segments are all of a read, in order. What a client is not sent it does not notice,
/// so this is not left to trust.
fn is_cover(length_bytes: u32, segments: &[Segment]) -> bool {
    let end = segments.iter().try_fold(0_u32, |end, segment| {
        let follows = segment.offset_bytes == end && segment.length_bytes > 0;
        follows.then(|| end.checked_add(segment.length_bytes)).flatten()
    });
    end == Some(length_bytes)
}

fn header_bytes(segment: &Segment) -> usize {
    if segment.hole { HOLE_CHUNK_BYTES } else { DATA_CHUNK_PREFIX_BYTES }
}

/// Puts headers and runs in their places in `out`, whose data lie behind `headers` bytes; returns
/// how long the reply is.
fn lay_out(out: &mut [u8], headers: usize, range: &ReadRange, segments: &[Segment]) -> usize {
    let mut end = 0;
    for (at, segment) in segments.iter().enumerate() {
        let flags = if at + 1 == segments.len() { CHUNK_DONE } else { 0 };
        let (cookie, length) = (range.tag.cookie, segment.length_bytes as usize);
        let offset_bytes = range.offset_bytes + u64::from(segment.offset_bytes);
        let behind = end + header_bytes(segment);
        if segment.hole {
            let chunk = hole_chunk(flags, cookie, offset_bytes, segment.length_bytes);
            out[end..behind].copy_from_slice(&chunk);
            end = behind;
        } else {
            let source = headers + segment.offset_bytes as usize;
            if source != behind {
                out.copy_within(source..source + length, behind);
            }
            let prefix = data_chunk_prefix(flags, cookie, offset_bytes, segment.length_bytes);
            out[end..behind].copy_from_slice(&prefix);
            end = behind + length;
        }
    }
    end
}

#[cfg(test)]
mod tests;
