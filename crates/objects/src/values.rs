//! The bytes of objects: segments, extents, what is free.
//!
//! ```text
//! put     writer ─ cutter ─ extents ─ list of segments ─> WrittenValue ─┐
//! delete  the value of the record ──────────────────────────────────────┤ ValueChanges ─> apply
//! copy    the entries of the record's list, or a range of them ─────────┘
//! get     lookup ─> the record ─> pin ─> ValueReader
//! later   free_released, trim_some: what nobody names is trimmed, then free
//! ```
//!
//! Each chunk of the value space is, after a crash at any moment, in exactly one state: beyond the
//! high-water mark; in `Free`; in `ToFree`; or named, by a record, by a block of a list, or by a
//! tree in `ToFree` (then `Shared` says how many name it, if they are more than one). Decision 060
//! says why that holds.
//!
//! Locks are taken in this order: the trimmer's, sharing, the space; a region's list alone.

mod backing;
mod changes;
mod error;
mod extent_tables;
mod extent_use;
mod limits;
mod list_builder;
mod list_cursor;
mod list_walk;
mod mapped;
mod pending;
mod range_counts;
mod reader;
mod recount;
mod regions;
mod released;
mod space;
#[cfg(test)]
mod tests;
mod together;
mod trimmer;
mod writer;

use std::ops::Range;
use std::sync::Arc;

use format::objects::record::Value;
use format::objects::segments::ListEntry;
use format::objects::{CHUNK_BYTES, VALUES_END_BYTES, VALUES_START_BYTES};

use crate::index::Index;
use crate::volume::BucketVolume;
use backing::Backing;
use limits::Limits;
use list_builder::Built;
use segments::{Cutter, SegmentPolicy};
use space::{Generation, Hold, Space};
use trimmer::Trimmer;

pub use changes::ValueChanges;
pub use error::ValueError;
pub(crate) use list_walk::walk_list;
pub use mapped::{ChunkCopy, MapChunks};
pub use reader::ValueReader;
pub use recount::{ChunkProblem, Recount, RecountedWindow};
pub use together::{TOGETHER_BYTES_MAX, WrittenTogether};
pub use trimmer::TrimProgress;
pub use writer::{ValueWriter, WrittenValue};

/// The values of one bucket, for any number of threads.
pub struct Values {
    backing: Arc<Backing>,
    trimmer: Trimmer,
}

/// A moment before a look-up in the index; what it finds can be pinned.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Lookup(Generation);

/// A value that stays as it is while this lives.
#[must_use]
pub struct Pinned {
    value: Value,
    pin: Hold,
}

impl Pinned {
    /// Reads it.
    pub fn reader(self, values: &Values) -> ValueReader {
        ValueReader::new(&values.backing, &self.value, self.pin)
    }
}

impl Values {
    /// The values of the bucket in `volume`, whose index is `index`.
    ///
    /// # Errors
    /// [`ValueError`].
    pub fn open(
        volume: Arc<dyn BucketVolume>,
        index: Arc<dyn Index>,
    ) -> Result<Arc<Self>, ValueError> {
        let end_bytes = volume.size_bytes().min(VALUES_END_BYTES);
        Self::open_in(volume, index, VALUES_START_BYTES..end_bytes, Limits::OF_BUCKETS)
    }

    fn open_in(
        volume: Arc<dyn BucketVolume>,
        index: Arc<dyn Index>,
        bytes: Range<u64>,
        limits: Limits,
    ) -> Result<Arc<Self>, ValueError> {
        let chunks = bytes.start / CHUNK_BYTES..bytes.end / CHUNK_BYTES;
        if chunks.start > chunks.end {
            return Err(ValueError::OutsideSpace(chunks)); // The volume is too small for a bucket.
        }
        let space = Space::open(&index, chunks)?;
        let backing = Backing::new(volume, index, space, limits);
        let trimmer = Trimmer::new(&backing);
        Ok(Arc::new(Self { backing, trimmer }))
    }

    /// The volume that holds them.
    pub(crate) fn volume(&self) -> &dyn BucketVolume {
        self.backing.volume.as_ref()
    }

    /// Writes a value that is cut as `policy` says.
    #[must_use]
    pub fn writer(&self, policy: SegmentPolicy) -> ValueWriter {
        self.writer_with(policy.cutter())
    }

    /// Writes a value that is cut by `cutter`.
    #[must_use]
    pub fn writer_with(&self, cutter: Box<dyn Cutter>) -> ValueWriter {
        ValueWriter::new(&self.backing, cutter, Built::Streamed)
    }

    /// Puts a value together from others, and from bytes between them.
    #[must_use]
    pub fn composer(&self, policy: SegmentPolicy) -> ValueWriter {
        ValueWriter::new(&self.backing, policy.cutter(), Built::Composed)
    }

    /// What the next batch of the index must change for its values.
    pub fn changes(&self) -> ValueChanges<'_> {
        ValueChanges::new(&self.backing)
    }

    /// The moment before a look-up.
    pub fn lookup(&self) -> Lookup {
        Lookup(self.backing.space.generation())
    }

    /// Keeps the value of a record that was found since `lookup` from being trimmed. None: it may
    /// have been deleted and trimmed meanwhile; look it up again.
    #[must_use]
    pub fn pin(&self, lookup: Lookup, value: &Value) -> Option<Pinned> {
        let ranges = value.entries().iter().map(ListEntry::chunks).collect();
        let pin = self.backing.space.pin(lookup.0, ranges)?;
        Some(Pinned { value: value.clone(), pin })
    }

    /// The entries of a list that have the bytes of `range` of a value: what a copy of the range
    /// names, by [`ValueChanges::share`] and [`ValueWriter::append_entries`]. The object keeps its
    /// value until then. A value in its record has none: its bytes are written.
    ///
    /// # Errors
    /// [`ValueError`].
    pub fn slice(&self, value: &Value, range: &Range<u64>) -> Result<Vec<ListEntry>, ValueError> {
        list_cursor::slice(self.backing.volume.as_ref(), value.entries(), range)
    }

    /// Bytes of the value space below the high-water mark.
    #[must_use]
    pub fn high_water_bytes(&self) -> u64 {
        self.backing.space.high_water() * CHUNK_BYTES
    }

    /// Ranges that wait for [`Values::free_released`].
    pub(crate) fn released(&self) -> usize {
        self.backing.released.count()
    }

    /// Trims and frees up to `entries_max` ranges that batches have released since the opening,
    /// without a look for others: trees, and what was held, are left to [`Values::trim_some`]. To
    /// be called by no one who holds a [`ValueChanges`].
    ///
    /// # Errors
    /// [`ValueError`]; [`Values::trim_some`] finds them again.
    pub fn free_released(&self, entries_max: u64) -> Result<TrimProgress, ValueError> {
        self.trimmer.free_released(entries_max)
    }

    /// Trims and frees up to about `entries_max` entries of what nobody names; a block of a long
    /// list counts as one. To be called by no one who holds a [`ValueChanges`].
    ///
    /// # Errors
    /// [`ValueError`]; what was begun is found again.
    pub fn trim_some(&self, entries_max: u64) -> Result<TrimProgress, ValueError> {
        self.trimmer.trim_some(entries_max)
    }
}
