//! The bytes of objects: segments, extents, what is free.
//!
//! ```text
//! put     writer ─ cutter ─ extents ─ list of segments ─> WrittenValue ─┐
//! delete  the value of the record ──────────────────────────────────────┤ ValueChanges ─> apply
//! copy    the entries of the record's list, or a range of them ─────────┘
//! get     lookup ─> the record ─> pin ─> ValueReader
//! later   trim_some: what nobody names is trimmed, then free
//! ```
//!
//! Each chunk of the value space is, after a crash at any moment, in exactly one state: beyond the
//! high-water mark; in `Free`; in `ToFree`; or named, by a record, by a block of a list, or by a
//! tree in `ToFree` (then `Shared` says how many name it, if they are more than one). Decision 060
//! says why that holds.
//!
//! Locks are taken in this order: the trimmer's, sharing, the space; a region's list alone.

mod changes;
pub mod cutter;
mod error;
mod extent_tables;
mod extent_use;
mod limits;
mod list_builder;
mod list_cursor;
mod pending;
mod range_counts;
mod reader;
mod regions;
mod space;
#[cfg(test)]
mod tests;
mod trimmer;
mod writer;

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use format::objects::record::Value;
use format::objects::segments::ListEntry;
use format::objects::{CHUNK_BYTES, VALUES_END_BYTES, VALUES_START_BYTES};

use crate::index::Index;
use crate::volume::BucketVolume;
use cutter::{Cutter, SegmentPolicy};
use limits::Limits;
use list_builder::Built;
use regions::Regions;
use space::{Generation, Hold, Space, lock};
use trimmer::TrimmerState;

pub use changes::ValueChanges;
pub use error::ValueError;
pub use reader::ValueReader;
pub use trimmer::TrimProgress;
pub use writer::{ValueWriter, WrittenValue};

/// The values of one bucket, for any number of threads.
pub struct Values {
    volume: Arc<dyn BucketVolume>,
    index: Arc<dyn Index>,
    space: Arc<Space>,
    limits: Limits,
    regions: Arc<Regions>,
    /// Held by who changes counts, until they are applied.
    sharing: Mutex<()>,
    trimmer: Mutex<TrimmerState>,
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
    pub fn reader(self, values: &Arc<Values>) -> ValueReader {
        ValueReader::new(values, &self.value, self.pin)
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
        let space = Space::open(&index, chunks)?;
        let regions = Regions::new(&space, limits);
        let (sharing, trimmer) = (Mutex::default(), Mutex::default());
        Ok(Arc::new(Self { volume, index, space, limits, regions, sharing, trimmer }))
    }

    /// Writes a value that is cut as `policy` says.
    #[must_use]
    pub fn writer(self: &Arc<Self>, policy: SegmentPolicy) -> ValueWriter {
        self.writer_with(policy.cutter())
    }

    /// Writes a value that is cut by `cutter`.
    #[must_use]
    pub fn writer_with(self: &Arc<Self>, cutter: Box<dyn Cutter>) -> ValueWriter {
        ValueWriter::new(self, cutter, Built::Streamed)
    }

    /// Puts a value together from others, and from bytes between them.
    #[must_use]
    pub fn composer(self: &Arc<Self>, policy: SegmentPolicy) -> ValueWriter {
        ValueWriter::new(self, policy.cutter(), Built::Composed)
    }

    /// What the next batch of the index must change for its values.
    pub fn changes(&self) -> ValueChanges<'_> {
        ValueChanges::new(self)
    }

    /// The moment before a look-up.
    pub fn lookup(&self) -> Lookup {
        Lookup(self.space.generation())
    }

    /// Keeps the value of a record that was found since `lookup` from being trimmed. None: it may
    /// have been deleted and trimmed meanwhile; look it up again.
    #[must_use]
    pub fn pin(&self, lookup: Lookup, value: &Value) -> Option<Pinned> {
        let ranges = value.entries().iter().map(ListEntry::chunks).collect();
        let pin = self.space.pin(lookup.0, ranges)?;
        Some(Pinned { value: value.clone(), pin })
    }

    /// The entries of a list that have the bytes of `range` of a value: what a copy of the range
    /// names, by [`ValueChanges::share`] and [`ValueWriter::append_entries`]. The object keeps its
    /// value until then. A value in its record has none: its bytes are written.
    ///
    /// # Errors
    /// [`ValueError`].
    pub fn slice(&self, value: &Value, range: &Range<u64>) -> Result<Vec<ListEntry>, ValueError> {
        list_cursor::slice(self.volume.as_ref(), value.entries(), range)
    }

    /// Bytes of the value space below the high-water mark.
    #[must_use]
    pub fn high_water_bytes(&self) -> u64 {
        self.space.high_water() * CHUNK_BYTES
    }

    fn lock_sharing(&self) -> MutexGuard<'_, ()> {
        lock(&self.sharing)
    }
}
