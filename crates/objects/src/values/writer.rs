//! Writes a value whose length nobody knows, in bounded memory.
//!
//! ```text
//! bytes ─> uncut ─ cutter ─> padded segments (1 MiB) ─> extents in ToFree ─> list of segments
//! ```
//!
//! A value of up to 512 bytes lies in its record, one of up to a mebibyte is carved off a region at
//! the end, a longer one takes extents as it comes. A writer that is dropped leaves what it took in
//! `ToFree`, where the trimmer finds it.

use std::ops::Range;
use std::sync::Arc;

use format::objects::record::{INLINE_BYTES_MAX, Value};
use format::objects::segments::{ListEntry, Run, encode_block};
use format::objects::{CHUNK_BYTES, OBJECT_BYTES_MAX};
use store::{Durability, WriteOptions};

use super::backing::Backing;
use super::error::ValueError;
use super::extent_use::ExtentQueue;
use super::list_builder::{BLOCKS, Built, ListBuilder};
use super::pending::Pending;
use super::regions::RegionLease;
use crate::buffers::Buffer;
use segments::Cutter;

/// Bytes that are taken in at a time.
const TAKEN_BYTES: usize = 256 << 10;

/// How values are written: what others have stored as well is found.
pub(super) const VALUES: WriteOptions =
    WriteOptions { durability: Durability::Acknowledged, unindexed: false };

/// Writes one value; [`super::Values::writer`] makes one.
pub struct ValueWriter {
    backing: Arc<Backing>,
    cutter: Box<dyn Cutter>,
    /// Bytes of which the cutter has not said where their segment ends.
    uncut: Buffer,
    /// Segments that are not written, each padded to whole chunks.
    ready: Buffer,
    /// Their lengths.
    ready_lengths: Vec<u64>,
    /// Bytes of the value up to now.
    length_bytes: u64,
    list: ListBuilder,
}

/// A value that is written and that nobody names yet; [`super::ValueChanges::name`] takes it.
/// Dropped, it is abandoned.
#[must_use]
pub struct WrittenValue {
    value: Value,
    claim: Claim,
}

impl WrittenValue {
    /// The value, as a record will name it.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    pub(super) fn into_parts(self) -> (Value, Claim) {
        (self.value, self.claim)
    }
}

/// What a written value holds until the batch that names it has been applied.
pub(super) enum Claim {
    Inline,
    Region(RegionLease),
    Extents(Box<ListBuilder>, Vec<ListEntry>),
}

impl Claim {
    /// Says in a batch that the value is named.
    pub(super) fn claim(&mut self, pending: &mut Pending) {
        match self {
            Self::Inline => (), // The record is all there is.
            Self::Region(lease) => lease.claim(pending),
            Self::Extents(list, entries) => list.claim(pending, entries),
        }
    }

    /// The batch has been applied.
    pub(super) fn settle(self) {
        match self {
            Self::Inline => (), // It holds nothing.
            Self::Region(lease) => lease.settle(),
            Self::Extents(list, _) => {
                list.data.settle();
                list.blocks.settle();
            }
        }
    }

    /// Nobody knows whether it has.
    pub(super) fn retire(self) {
        match self {
            Self::Inline => (), // It holds nothing.
            Self::Region(lease) => lease.retire(),
            Self::Extents(list, _) => {
                list.data.retire();
                list.blocks.retire();
            }
        }
    }
}

impl ValueWriter {
    pub(super) fn new(backing: &Arc<Backing>, cutter: Box<dyn Cutter>, built: Built) -> Self {
        let data = ExtentQueue::new(&backing.regions, backing.limits.data_chunks);
        Self {
            backing: Arc::clone(backing),
            cutter,
            uncut: emptied(backing.buffers.take()),
            ready: emptied(backing.buffers.take()),
            ready_lengths: Vec::new(),
            length_bytes: 0,
            list: ListBuilder::new(backing, built, data),
        }
    }

    /// Bytes of the value up to now.
    #[must_use]
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// Appends `bytes` to the value.
    ///
    /// # Errors
    /// [`ValueError`]; then the writer is to be dropped.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), ValueError> {
        self.lengthen(bytes.len() as u64)?;
        for part in bytes.chunks(TAKEN_BYTES) {
            self.uncut.extend_from_slice(part);
            // A value that may still lie in its record is not cut.
            if self.uncut.len() > self.cutter.segment_bytes_max().max(INLINE_BYTES_MAX) {
                self.cut(false)?;
            }
        }
        Ok(())
    }

    /// Appends a value that others wrote: what its list names is this value's from the batch on
    /// that names this one. It was released there, or is shared by [`super::ValueChanges::share`].
    ///
    /// # Errors
    /// [`ValueError`]; then the writer is to be dropped.
    ///
    /// # Panics
    /// When the writer is not one of [`super::Values::composer`].
    pub fn append(&mut self, value: &Value) -> Result<(), ValueError> {
        match value {
            Value::Inline(bytes) => self.write(bytes),
            Value::List(entries) => self.append_entries(entries),
        }
    }

    /// As [`ValueWriter::append`], of entries of a list.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// As there.
    pub fn append_entries(&mut self, entries: &[ListEntry]) -> Result<(), ValueError> {
        self.cut(true)?;
        self.place()?;
        for entry in entries {
            self.lengthen(entry.length_bytes())?;
            self.list.push_entry(*entry)?;
        }
        Ok(())
    }

    /// Chunks for what is mapped next, up to `want`.
    pub(super) fn next_place(&mut self, want: u64) -> Result<Range<u64>, ValueError> {
        assert!(self.uncut.is_empty() && self.ready.is_empty(), "a value is mapped or written");
        self.list.data.next(want)
    }

    /// Appends a run that was mapped.
    pub(super) fn push_mapped(&mut self, run: Run) -> Result<(), ValueError> {
        self.lengthen(run.length_bytes)?;
        self.list.push_written(run)
    }

    fn lengthen(&mut self, bytes: u64) -> Result<(), ValueError> {
        self.length_bytes = self.length_bytes.saturating_add(bytes);
        match self.length_bytes <= OBJECT_BYTES_MAX {
            true => Ok(()),
            false => Err(ValueError::TooLong),
        }
    }

    /// Ends the value.
    ///
    /// # Errors
    /// [`ValueError`]; what was written is abandoned.
    pub fn finish(mut self) -> Result<WrittenValue, ValueError> {
        if self.length_bytes <= INLINE_BYTES_MAX as u64 && self.list.is_empty() {
            assert!(self.uncut.len() as u64 == self.length_bytes, "a short value is not cut");
            let value = Value::Inline(self.uncut.to_vec());
            return Ok(WrittenValue { value, claim: Claim::Inline });
        }
        self.cut(true)?;
        if self.list.is_empty()
            && self.list.built == Built::Streamed
            && let Some(written) = self.finish_in_region()?
        {
            return Ok(written);
        }
        self.place()?;
        let entries = self.list.finish()?;
        let claim = Claim::Extents(Box::new(self.list), entries.clone());
        Ok(WrittenValue { value: Value::List(entries), claim })
    }

    /// Carves all of the value off a region, and a block for its list if a record cannot hold it;
    /// none where no region is long enough or a block neither.
    fn finish_in_region(&mut self) -> Result<Option<WrittenValue>, ValueError> {
        let chunks = self.ready.len() as u64 / CHUNK_BYTES;
        let entries = runs_in(&self.ready_lengths, 0..chunks).len();
        if entries > self.backing.limits.block_entries {
            return Ok(None);
        }
        let has_block = entries > self.backing.limits.list_entries;
        let lease = match self.backing.regions.lease(chunks + u64::from(has_block)) {
            Ok(lease) => lease,
            Err(ValueError::NoAddresses { .. }) => return Ok(None), // Shorter runs may do.
            Err(error) => return Err(error),
        };
        let start = lease.carved().start;
        self.backing.volume.write_vectored_at(&[(start * CHUNK_BYTES, &self.ready)], VALUES)?;
        let mut entries = runs_in(&self.ready_lengths, start..start + chunks);
        if has_block {
            let block_chunk = start + chunks;
            let (block, subtree) = encode_block(&entries, block_chunk);
            let writes = [(block_chunk * CHUNK_BYTES, block.as_slice())];
            self.backing.volume.write_vectored_at(&writes, BLOCKS)?;
            entries = vec![ListEntry::Subtree(subtree)];
        }
        let claim = Claim::Region(lease);
        Ok(Some(WrittenValue { value: Value::List(entries), claim }))
    }

    /// Takes whole segments off what is not cut; with `is_end` all of it.
    fn cut(&mut self, is_end: bool) -> Result<(), ValueError> {
        let mut at = 0;
        while at < self.uncut.len() {
            let Some(length) = self.cutter.cut(&self.uncut[at..], is_end) else {
                assert!(!is_end, "a cutter has an answer at the end");
                break;
            };
            assert!(0 < length && at + length <= self.uncut.len(), "a segment of {length} bytes");
            push_segment(&mut self.ready, &self.uncut[at..at + length]);
            self.ready_lengths.push(length as u64);
            at += length;
            if self.ready.len() > self.backing.limits.ready_bytes {
                self.place()?;
            }
        }
        self.uncut.drain(..at);
        Ok(())
    }

    /// Writes what is ready into extents and appends it to the list.
    fn place(&mut self) -> Result<(), ValueError> {
        let chunks = self.ready.len() as u64 / CHUNK_BYTES;
        let (mut placed, mut places) = (0, Vec::new());
        while placed < chunks {
            let place = self.list.data.next(chunks - placed)?;
            placed += place.end - place.start;
            places.push(place);
        }
        let mut rest = self.ready.as_slice();
        let mut writes = Vec::with_capacity(places.len());
        for place in &places {
            let length_bytes = (place.end - place.start) * CHUNK_BYTES;
            let (part, behind) = rest.split_at(length_bytes as usize);
            writes.push((place.start * CHUNK_BYTES, part));
            rest = behind;
        }
        if !writes.is_empty() {
            self.backing.volume.write_vectored_at(&writes, VALUES)?;
        }
        let mut lengths = std::mem::take(&mut self.ready_lengths).into_iter();
        let (mut left, mut places) = (lengths.next(), places.into_iter());
        let mut place = places.next();
        while let (Some(length_bytes), Some(chunks)) = (left, &mut place) {
            let there = (chunks.end - chunks.start) * CHUNK_BYTES;
            let run = Run {
                length_bytes: length_bytes.min(there),
                first_chunk: chunks.start,
                skip_bytes: 0,
            };
            self.list.push_written(run)?;
            chunks.start = run.end_chunk();
            left = if length_bytes > there { Some(length_bytes - there) } else { lengths.next() };
            if chunks.is_empty() {
                place = places.next();
            }
        }
        assert!(left.is_none() && place.is_none(), "segments come to what is written");
        self.ready.clear();
        Ok(())
    }
}

fn emptied(mut buffer: Buffer) -> Buffer {
    buffer.clear();
    buffer
}

/// Appends a segment, padded to whole chunks.
pub(super) fn push_segment(ready: &mut Vec<u8>, segment: &[u8]) {
    ready.extend_from_slice(segment);
    ready.resize(ready.len().next_multiple_of(CHUNK_BYTES as usize), 0);
}

/// Runs of segments of these lengths, one behind the other in `chunks`.
pub(super) fn runs_in(lengths: &[u64], chunks: Range<u64>) -> Vec<ListEntry> {
    let mut runs: Vec<Run> = Vec::new();
    let mut first_chunk = chunks.start;
    for &length_bytes in lengths {
        let run = Run { length_bytes, first_chunk, skip_bytes: 0 };
        first_chunk = run.end_chunk();
        match runs.last_mut() {
            Some(last) if last.is_continued_by(&run) => last.length_bytes += length_bytes,
            _ => runs.push(run),
        }
    }
    assert!(first_chunk == chunks.end, "segments come to what was carved");
    runs.into_iter().map(ListEntry::Run).collect()
}
