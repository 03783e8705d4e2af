//! A bucket in as many words as its index and its values need. Its segments are short, so that
//! lists of few bytes have blocks.

use std::ops::Range;
use std::sync::Arc;

use engine::Durability;
use format::objects::record::{ETag, ObjectRecord, Value};
use format::objects::segments::ListEntry;
use objects::bucket::BucketError;
use objects::index::{
    Change, INDEX_MEMORY_BYTES_MIN, Index, IndexCreateOptions, IndexOptions, Table, VolumeIndex,
};
use objects::values::{ValueChanges, Values, WrittenValue};
use objects::volume::BucketVolume;
use segments::{CdcCutter, CdcLengths, Cutter, FixedCutter, SegmentPolicy};

use crate::failure::Broken;
use crate::objects::bucket::{Bucket, Cut, LookedUp, PART_BYTES, RING_BYTES};
use crate::objects::failures::broken;
use crate::objects::recount::{Counted, NeededChunks, Recount, entries, needed_chunks};
use crate::objects::step_volume::StepVolume;

fn cutter(cut: Cut) -> Box<dyn Cutter> {
    let lengths = CdcLengths { min_bytes: 64, mean_bytes: 256, max_bytes: 6000 };
    match cut {
        Cut::Fixed => Box::new(FixedCutter::new(8192)),
        Cut::Content => Box::new(CdcCutter::new(lengths)),
    }
}

/// One of them.
pub(crate) struct Parts {
    volume: Arc<StepVolume>,
    index: Arc<VolumeIndex>,
    values: Arc<Values>,
}

impl Parts {
    pub(crate) fn create(volume: &Arc<StepVolume>, uuid: [u8; 16]) -> Result<(), BucketError> {
        let options =
            IndexCreateOptions { ring_bytes: RING_BYTES, ..IndexCreateOptions::new(uuid) };
        Ok(VolumeIndex::create(Arc::clone(volume) as _, &options)?)
    }

    pub(crate) fn open(volume: &Arc<StepVolume>, read_only: bool) -> Result<Self, BucketError> {
        let options = IndexOptions { memory_bytes: INDEX_MEMORY_BYTES_MIN, read_only };
        let backing: Arc<dyn BucketVolume> = Arc::clone(volume) as _;
        let index = Arc::new(VolumeIndex::open(Arc::clone(&backing), &options)?);
        let values = Values::open(backing, Arc::clone(&index) as _)?;
        Ok(Self { volume: Arc::clone(volume), index, values })
    }

    fn value(&self, key: &[u8]) -> Result<Option<Value>, BucketError> {
        let record = self.index.get(Table::Objects, key)?;
        Ok(record.map(|bytes| ObjectRecord::decode(&bytes)).transpose()?.map(|found| found.value))
    }

    fn write(&self, bytes: &[u8], cut: Cut) -> Result<WrittenValue, BucketError> {
        let mut writer = self.values.writer_with(cutter(cut));
        bytes.chunks(PART_BYTES).try_for_each(|part| writer.write(part))?;
        Ok(writer.finish()?)
    }

    /// Records change in the batch that changes what they name.
    fn apply(
        &self,
        mut changes: ValueChanges<'_>,
        records: &[(&[u8], Option<Value>)],
        durability: Durability,
    ) -> Result<(), BucketError> {
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

    fn put_written(
        &self,
        key: &[u8],
        written: WrittenValue,
        shared: &[ListEntry],
        durability: Durability,
    ) -> Result<(), BucketError> {
        let mut changes = self.values.changes();
        changes.share(shared)?;
        let value = changes.name(written);
        if let Some(before) = self.value(key)? {
            changes.release(&before)?;
        }
        self.apply(changes, &[(key, Some(value))], durability)
    }
}

impl Bucket for Parts {
    fn volume(&self) -> &Arc<StepVolume> {
        &self.volume
    }

    fn put(
        &self,
        key: &[u8],
        bytes: &[u8],
        cut: Cut,
        durability: Durability,
    ) -> Result<(), BucketError> {
        let written = self.write(bytes, cut)?;
        self.put_written(key, written, &[], durability)
    }

    fn give_up(&self, bytes: &[u8], cut: Cut, ends: bool) -> Result<(), BucketError> {
        let mut writer = self.values.writer_with(cutter(cut));
        bytes.chunks(PART_BYTES).try_for_each(|part| writer.write(part))?;
        if ends {
            drop(writer.finish()?);
        }
        Ok(())
    }

    fn delete(&self, keys: &[&[u8]], durability: Durability) -> Result<(), BucketError> {
        let mut changes = self.values.changes();
        for key in keys {
            if let Some(value) = self.value(key)? {
                changes.release(&value)?;
            }
        }
        let records: Vec<_> = keys.iter().map(|key| (*key, None)).collect();
        self.apply(changes, &records, durability)
    }

    fn copy(&self, from: &[u8], to: &[u8]) -> Result<(), BucketError> {
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

    fn copy_range(
        &self,
        from: &[u8],
        to: &[u8],
        head: &[u8],
        range: Range<u64>,
    ) -> Result<(), BucketError> {
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

    fn keys(&self) -> Result<Vec<Vec<u8>>, BucketError> {
        Ok(entries(&*self.index, Table::Objects)?.into_iter().map(|(key, _)| key).collect())
    }

    fn recount(&self) -> Result<Counted, Broken> {
        Recount::of(&*self.index, &*self.volume).count()
    }

    fn needed_chunks(&self) -> Result<NeededChunks, BucketError> {
        needed_chunks(&*self.index, &*self.volume)
    }

    fn reader(&self, key: &[u8]) -> Result<Option<LookedUp>, BucketError> {
        let lookup = self.values.lookup();
        let Some(value) = self.value(key)? else { return Ok(None) };
        let Some(pinned) = self.values.pin(lookup, &value) else {
            panic!("nobody trims between a look-up and its pin");
        };
        let mut reader = pinned.reader(&self.values);
        let read = move |offset, out: &mut [u8]| Ok(reader.read_at(offset, out)?);
        let length_bytes = value.length_bytes().unwrap_or(0);
        Ok(Some(LookedUp { length_bytes, expires_ms: None, reader: Box::new(read) }))
    }

    fn merge(&self) -> Result<(), BucketError> {
        Ok(self.index.merge().map(drop)?)
    }

    fn trim_some(&self, entries_max: u64) -> Result<bool, BucketError> {
        if entries_max % 2 == 1 {
            self.values.free_released(entries_max)?;
            return Ok(false);
        }
        Ok(self.values.trim_some(entries_max)?.is_done)
    }

    fn check(&self) -> Result<(), Broken> {
        let check = self.index.check();
        let check = check.map_err(|error| broken("a check", &error.into()))?;
        match check.damage.first() {
            None => Ok(()),
            Some(first) => {
                let what = format!("the index has {} damages: {first}", check.damage.len());
                Err(Broken::Objects { what })
            }
        }
    }
}
