//! A bucket in as many words as its index and its values need.

use std::sync::Arc;

use engine::{Durability, RequestError};
use format::objects::record::{ETag, ObjectRecord, Value};
use objects::index::{
    Change, INDEX_MEMORY_BYTES_MIN, Index, IndexCreateOptions, IndexError, IndexOptions, Table,
    VolumeIndex,
};
use objects::values::cutter::{CdcCutter, CdcLengths, Cutter, FixedCutter, SegmentPolicy};
use objects::values::{ValueChanges, ValueError, ValueReader, Values, WrittenValue};
use objects::volume::BucketVolume;

use crate::failure::Broken;
use crate::objects::history::Objects;
use crate::objects::recount::{Counted, Recount, entries};
use crate::objects::step_volume::StepVolume;

/// Length of the log's ring: it goes round within a life.
const RING_BYTES: u64 = 64 << 10;
/// Bytes that a writer gets at a time.
const PART_BYTES: usize = 3000;

/// What was asked of a bucket failed, though it should not.
pub(crate) fn broken(asked: &str, error: &ValueError) -> Broken {
    Broken::Objects { what: format!("{asked} failed: {error}") }
}

/// What the engine said, if it was the engine.
pub(crate) fn of_engine(error: &ValueError) -> Option<&RequestError> {
    match error {
        ValueError::Volume(error) | ValueError::Index(IndexError::Volume(error)) => Some(error),
        _ => None,
    }
}

/// Whether the store or the space has no room.
pub(crate) fn is_full(error: &ValueError) -> bool {
    let of_addresses = matches!(error, ValueError::NoAddresses { .. });
    of_addresses || matches!(of_engine(error), Some(RequestError::NoSpace))
}

/// Whether it says that something is damaged.
pub(crate) fn is_damage(error: &ValueError) -> bool {
    matches!(
        error,
        ValueError::Damaged { .. }
            | ValueError::DamagedList { .. }
            | ValueError::Index(IndexError::Damaged(_) | IndexError::NoBucket(_))
    ) || matches!(of_engine(error), Some(RequestError::Damaged { .. }))
}

/// How values are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Fixed,
    /// By content, into segments so short that lists need blocks.
    Content,
}

impl Cut {
    fn cutter(self) -> Box<dyn Cutter> {
        let lengths = CdcLengths { min_bytes: 64, mean_bytes: 256, max_bytes: 6000 };
        match self {
            Self::Fixed => Box::new(FixedCutter::new(8192)),
            Self::Content => Box::new(CdcCutter::new(lengths)),
        }
    }
}

/// An open bucket.
pub(crate) struct Bucket {
    pub(crate) volume: Arc<StepVolume>,
    pub(crate) index: Arc<VolumeIndex>,
    pub(crate) values: Arc<Values>,
}

impl Bucket {
    pub(crate) fn create(volume: &Arc<StepVolume>, seed: u64) -> Result<(), ValueError> {
        let mut uuid = [7; 16];
        uuid[..8].copy_from_slice(&seed.to_le_bytes());
        let options =
            IndexCreateOptions { ring_bytes: RING_BYTES, ..IndexCreateOptions::new(uuid) };
        Ok(VolumeIndex::create(Arc::clone(volume) as _, &options)?)
    }

    /// None when the volume holds no bucket.
    pub(crate) fn open(
        volume: &Arc<StepVolume>,
        read_only: bool,
    ) -> Result<Option<Self>, ValueError> {
        let options = IndexOptions { memory_bytes: INDEX_MEMORY_BYTES_MIN, read_only };
        let backing: Arc<dyn BucketVolume> = Arc::clone(volume) as _;
        let index = match VolumeIndex::open(Arc::clone(&backing), &options) {
            Err(IndexError::NoBucket(_)) => return Ok(None),
            opened => Arc::new(opened?),
        };
        let values = Values::open(backing, Arc::clone(&index) as _)?;
        Ok(Some(Self { volume: Arc::clone(volume), index, values }))
    }

    fn value(&self, key: &[u8]) -> Result<Option<Value>, ValueError> {
        let record = self.index.get(Table::Objects, key)?;
        Ok(record.map(|bytes| ObjectRecord::decode(&bytes)).transpose()?.map(|found| found.value))
    }

    fn write(&self, bytes: &[u8], cut: Cut) -> Result<WrittenValue, ValueError> {
        let mut writer = self.values.writer_with(cut.cutter());
        bytes.chunks(PART_BYTES).try_for_each(|part| writer.write(part))?;
        writer.finish()
    }

    /// Records change in the batch that changes what they name.
    fn apply(
        &self,
        mut changes: ValueChanges<'_>,
        records: &[(&[u8], Option<Value>)],
        durability: Durability,
    ) -> Result<(), ValueError> {
        let mut batch = changes.take();
        batch.extend(records.iter().map(|(key, value)| match value {
            None => Change::Remove { table: Table::Objects, key: key.to_vec() },
            Some(value) => {
                let etag = ETag { md5: [0; 16], parts: None };
                let value = ObjectRecord::new(1, 2, etag, value.clone()).encode();
                Change::Set { table: Table::Objects, key: key.to_vec(), value }
            }
        }));
        self.index.apply(batch, durability)?;
        changes.applied();
        Ok(())
    }

    pub(crate) fn put(
        &self,
        key: &[u8],
        bytes: &[u8],
        cut: Cut,
        durability: Durability,
    ) -> Result<(), ValueError> {
        let written = self.write(bytes, cut)?;
        self.put_written(key, written, &[], durability)
    }

    /// Writes bytes that nobody will name; with `ends` all of them.
    pub(crate) fn give_up(&self, bytes: &[u8], cut: Cut, ends: bool) -> Result<(), ValueError> {
        let mut writer = self.values.writer_with(cut.cutter());
        bytes.chunks(PART_BYTES).try_for_each(|part| writer.write(part))?;
        if ends {
            drop(writer.finish()?);
        }
        Ok(())
    }

    fn put_written(
        &self,
        key: &[u8],
        written: WrittenValue,
        shared: &[format::objects::segments::ListEntry],
        durability: Durability,
    ) -> Result<(), ValueError> {
        let mut changes = self.values.changes();
        changes.share(shared)?;
        let value = changes.name(written);
        if let Some(before) = self.value(key)? {
            changes.release(&before)?;
        }
        self.apply(changes, &[(key, Some(value))], durability)
    }

    pub(crate) fn delete(&self, keys: &[&[u8]], durability: Durability) -> Result<(), ValueError> {
        let mut changes = self.values.changes();
        for key in keys {
            if let Some(value) = self.value(key)? {
                changes.release(&value)?;
            }
        }
        let records: Vec<_> = keys.iter().map(|key| (*key, None)).collect();
        self.apply(changes, &records, durability)
    }

    /// `to` becomes what `from` is, which there is.
    pub(crate) fn copy(&self, from: &[u8], to: &[u8]) -> Result<(), ValueError> {
        let Some(value) = self.value(from)?.filter(|_| from != to) else {
            return Ok(()); // There is nothing to copy.
        };
        let mut changes = self.values.changes();
        changes.share(value.entries())?;
        if let Some(before) = self.value(to)? {
            changes.release(&before)?;
        }
        self.apply(changes, &[(to, Some(value))], Durability::Acknowledged)
    }

    /// `to` becomes `head` and the first `length` bytes behind `start` of `from`.
    pub(crate) fn copy_range(
        &self,
        from: &[u8],
        to: &[u8],
        head: &[u8],
        range: std::ops::Range<u64>,
    ) -> Result<(), ValueError> {
        let Some(value) = self.value(from)? else {
            return Ok(()); // There is nothing to copy.
        };
        let mut composer = self.values.composer(SegmentPolicy::Cdc);
        composer.write(head)?;
        let entries = self.values.slice(&value, &range)?;
        match &value {
            Value::Inline(bytes) => {
                composer.write(&bytes[range.start as usize..range.end as usize])?;
            }
            Value::List(_) => composer.append_entries(&entries)?,
        }
        let written = composer.finish()?;
        self.put_written(to, written, &entries, Durability::Acknowledged)
    }

    /// Reads what a key holds, which stays meanwhile.
    pub(crate) fn reader(&self, key: &[u8]) -> Result<Option<ValueReader>, ValueError> {
        let lookup = self.values.lookup();
        let Some(value) = self.value(key)? else { return Ok(None) };
        let Some(pinned) = self.values.pin(lookup, &value) else {
            panic!("nobody trims between a look-up and its pin");
        };
        Ok(Some(pinned.reader(&self.values)))
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ValueError> {
        let Some(mut reader) = self.reader(key)? else { return Ok(None) };
        let mut bytes = vec![0; reader.length_bytes() as usize];
        reader.read_at(0, &mut bytes)?;
        Ok(Some(bytes))
    }

    pub(crate) fn keys(&self) -> Result<Vec<Vec<u8>>, ValueError> {
        Ok(entries(&*self.index, Table::Objects)?.into_iter().map(|(key, _)| key).collect())
    }

    /// Everything.
    pub(crate) fn objects(&self) -> Result<Objects, ValueError> {
        let mut objects = Objects::new();
        for key in self.keys()? {
            if let Some(bytes) = self.get(&key)? {
                objects.insert(key, bytes.into());
            }
        }
        Ok(objects)
    }

    pub(crate) fn trim_all(&self) -> Result<(), ValueError> {
        while !self.values.trim_some(50)?.is_done {}
        Ok(())
    }

    pub(crate) fn recount(&self) -> Result<Counted, Broken> {
        Recount::of(&*self.index, &*self.volume).count()
    }

    /// The index is whole.
    pub(crate) fn check_index(&self) -> Result<(), Broken> {
        let check = self.index.check();
        let check = check.map_err(|error| broken("a check", &ValueError::Index(error)))?;
        match check.damage.first() {
            None => Ok(()),
            Some(first) => {
                let what = format!("the index has {} damages: {first}", check.damage.len());
                Err(Broken::Objects { what })
            }
        }
    }
}
