//! The log of a bucket: a ring in its volume, groups of changes one behind the other.
//!
//! ```text
//! ring    ... zeros | merged ──── groups ────> next | zeros ...
//! ```
//!
//! Positions count bytes since the bucket was made; a position is at its remainder by the ring's
//! length. An append writes whole chunks: the last one once more, with the groups that are in it,
//! and what follows. The engine keeps the old chunk or the new one, so groups that are in it
//! already are never in danger.
//!
//! Invariants: what is between `merged` and `next` is not written over, but by the same bytes.
//! Behind `next` are zeros up to `merged` of the next round, unless an append has failed or a group
//! is torn: then `behind_is_zeros` is false, and it is trimmed before the next append. So no bytes
//! of users in what a torn group has left are ever read as a group.

use std::sync::Arc;

use format::BLOCK_BYTES;
use format::objects::header::{BucketHeader, RING_AT_BYTES};
use format::objects::log::{GROUP_BYTES_MAX, GroupHeader, Place, encode_group, group_bytes};
use mutants::mutant;
use store::{RequestError, ReservedFor, WriteRoom};

use crate::index::pages::UNINDEXED;
use crate::volume::BucketVolume;

const CHUNK_BYTES: u64 = BLOCK_BYTES as u64;

/// Bytes that are written at once.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// A group takes no more of the ring than one part in this many, so that one fits behind a merge.
const RING_TO_GROUP: u64 = 4;

/// The longest body of a group in a ring of this length.
pub(crate) fn body_bytes_max(ring_bytes: u64) -> usize {
    let group_bytes_max = (ring_bytes / RING_TO_GROUP).min(GROUP_BYTES_MAX as u64) as usize;
    group_bytes_max - group_bytes(0)
}

/// The log of an open bucket.
pub(crate) struct Log {
    volume: Arc<dyn BucketVolume>,
    header: BucketHeader,
    /// The first group that is not in redb.
    merged: Place,
    /// The next group that will be.
    next: Place,
    /// Bytes of the chunk that `next` is in, in front of it.
    tail: Vec<u8>,
    behind_is_zeros: bool,
}

impl Log {
    /// A log whose groups from `merged` up to `next` have been replayed; `tail` is what the chunk
    /// of `next` holds in front of it.
    pub(crate) fn new(
        volume: Arc<dyn BucketVolume>,
        header: BucketHeader,
        (merged, next): (Place, Place),
        tail: Vec<u8>,
    ) -> Self {
        assert!(tail.len() as u64 == next.position % CHUNK_BYTES, "the tail ends where groups do");
        Self { volume, header, merged, next, tail, behind_is_zeros: false }
    }

    pub(crate) fn next(&self) -> Place {
        self.next
    }

    pub(crate) fn merged(&self) -> Place {
        self.merged
    }

    /// Whether a group with a body of this length fits without a merge.
    pub(crate) fn has_room(&self, body_bytes: usize) -> bool {
        let end = self.next.position + group_bytes(body_bytes) as u64;
        end.next_multiple_of(CHUNK_BYTES) <= self.ring_end()
    }

    /// Whether half of the ring waits for a merge.
    pub(crate) fn is_half_full(&self) -> bool {
        (self.next.position - self.merged.position) * 2 >= self.header.ring_bytes
    }

    /// Appends a group; with `for_release` in room that is kept for what gives back more.
    ///
    /// # Errors
    /// [`RequestError`]; the group is not there, and the next one takes its place.
    ///
    /// # Panics
    /// When it does not fit ([`Log::has_room`]).
    pub(crate) fn append(&mut self, body: &[u8], for_release: bool) -> Result<(), RequestError> {
        assert!(self.has_room(body.len()), "a group fits into the ring");
        self.zero_behind()?;
        let Place { position, sequence } = self.next;
        let start = position - self.tail.len() as u64;
        let length_bytes = self.tail.len() + group_bytes(body.len());
        let mut bytes = Vec::with_capacity(length_bytes.next_multiple_of(BLOCK_BYTES));
        bytes.extend_from_slice(&self.tail);
        if mutant!(ForgetsTailOfLog) {
            bytes.fill(0);
        }
        encode_group(&GroupHeader { uuid: self.header.uuid, sequence, position }, body, &mut bytes);
        let end = start + bytes.len() as u64;
        bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES), 0);
        self.behind_is_zeros = false;
        self.write(start, &bytes, for_release)?;
        self.behind_is_zeros = true;
        let whole = (end % CHUNK_BYTES) as usize;
        let tail_at = (end - start) as usize - whole;
        self.tail = bytes[tail_at..tail_at + whole].to_vec();
        self.next = Place { position: end, sequence: sequence + 1 };
        Ok(())
    }

    fn write(&self, start: u64, bytes: &[u8], for_release: bool) -> Result<(), RequestError> {
        let pieces = self.pieces(start, bytes.len() as u64, WRITE_BYTES_MAX as u64);
        let mut rest = bytes;
        let mut writes = Vec::with_capacity(pieces.len());
        for (at_bytes, length_bytes) in pieces {
            let (here, behind) = rest.split_at(length_bytes as usize);
            writes.push((at_bytes, here));
            rest = behind;
        }
        if !for_release {
            // One at a time: together they could be more than the engine's write buffer.
            return writes
                .iter()
                .try_for_each(|write| self.volume.write_vectored_at(&[*write], UNINDEXED));
        }
        let room = WriteRoom::of_chunks(bytes.len() as u64 / CHUNK_BYTES, writes.len() as u64);
        let reservation = self.volume.reserve(room, ReservedFor::Releases)?;
        writes
            .iter()
            .try_for_each(|write| self.volume.write_reserved_at(&reservation, &[*write], UNINDEXED))
    }

    /// Trims what is behind the end of the log, unless it is known to be zeros.
    fn zero_behind(&mut self) -> Result<(), RequestError> {
        if self.behind_is_zeros {
            return Ok(());
        }
        self.trim(self.next.position.next_multiple_of(CHUNK_BYTES), self.ring_end())?;
        self.behind_is_zeros = true;
        Ok(())
    }

    /// Gives the ring back up to `to`: all before it is in redb.
    ///
    /// # Errors
    /// [`RequestError`]; the ring is given back, and what was in it is not trimmed.
    pub(crate) fn release(&mut self, to: Place) -> Result<(), RequestError> {
        let from = self.merged.position / CHUNK_BYTES * CHUNK_BYTES;
        self.merged = to;
        let trimmed = self.trim(from, to.position / CHUNK_BYTES * CHUNK_BYTES);
        if trimmed.is_err() {
            self.behind_is_zeros = false;
        }
        trimmed
    }

    fn trim(&self, from: u64, to: u64) -> Result<(), RequestError> {
        let pieces = self.pieces(from, to.saturating_sub(from), u64::MAX);
        pieces.into_iter().try_for_each(|(at_bytes, length)| self.volume.trim(at_bytes, length))
    }

    /// Where the ring ends that begins with the chunk of the first group that counts.
    fn ring_end(&self) -> u64 {
        self.merged.position / CHUNK_BYTES * CHUNK_BYTES + self.header.ring_bytes
    }

    fn pieces(&self, start: u64, length_bytes: u64, piece_bytes_max: u64) -> Vec<(u64, u64)> {
        pieces(self.header.ring_bytes, start, length_bytes, piece_bytes_max)
    }
}

/// Where a range of positions is in the volume, in pieces of bounded length.
pub(crate) fn pieces(
    ring_bytes: u64,
    start: u64,
    length_bytes: u64,
    piece_bytes_max: u64,
) -> Vec<(u64, u64)> {
    let (mut at, mut left) = (start, length_bytes);
    let mut pieces = Vec::new();
    while left > 0 {
        let within = at % ring_bytes;
        let here = left.min(ring_bytes - within).min(piece_bytes_max);
        pieces.push((RING_AT_BYTES + within, here));
        at += here;
        left -= here;
    }
    pieces
}
