//! A bucket in as many words as values need: one thread, keys of one byte.

use std::sync::Arc;

use format::objects::record::{ETag, ObjectRecord, Value};
use store::{CreateOptions, Durability, Options, Store};

use super::map_index::{Map, MapIndex};
use crate::index::{Change, Index, Table};
use crate::test_volume::TestVolume;
use crate::values::limits::Limits;
use crate::values::{ValueChanges, ValueError, ValueReader, Values, WrittenValue};
use segments::{CdcCutter, CdcLengths, Cutter, FixedCutter, SegmentPolicy};

/// Small ones, so that few bytes make everything happen.
pub(super) const SMALL: Limits = Limits {
    list_entries: 3,
    block_entries: 4,
    ready_bytes: 6 << 12,
    region_chunks: 20,
    region_rest_chunks: 3,
    idle_regions: 2,
    data_chunks: (3, 12),
    blocks_chunks: (1, 4),
};

/// First byte and length of the value space.
pub(super) const START_BYTES: u64 = 1 << 20;

pub(super) struct Bucket {
    pub(super) store: Store,
    pub(super) volume: Arc<TestVolume>,
    pub(super) index: Arc<MapIndex>,
    pub(super) values: Arc<Values>,
    limits: Limits,
    space_bytes: u64,
}

/// How values are cut in tests.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    Fixed,
    Content,
}

impl Cut {
    pub(super) fn cutter(self) -> Box<dyn Cutter> {
        let lengths = CdcLengths { min_bytes: 64, mean_bytes: 256, max_bytes: 6000 };
        match self {
            Self::Fixed => Box::new(FixedCutter::new(8192)),
            Self::Content => Box::new(CdcCutter::new(lengths)),
        }
    }
}

impl Bucket {
    pub(super) fn new(limits: Limits, space_bytes: u64) -> Self {
        let disk = store::create_in_memory(&CreateOptions::new(64 << 20), 1).unwrap();
        let store = Store::open_in_memory(&disk, Options::default()).unwrap();
        let inner = store.create_volume("bucket", START_BYTES + space_bytes).unwrap();
        Self::over(store, inner, Map::new(), limits, space_bytes)
    }

    fn over(
        store: Store,
        inner: store::Volume,
        map: Map,
        limits: Limits,
        space_bytes: u64,
    ) -> Self {
        let index = Arc::new(MapIndex::with(map));
        let volume = TestVolume::stopping(inner, Arc::clone(&index.stop.stopped));
        let space = START_BYTES..START_BYTES + space_bytes;
        let opened =
            Values::open_in(Arc::clone(&volume) as _, Arc::clone(&index) as _, space, limits);
        Self { store, volume, values: opened.unwrap(), index, limits, space_bytes }
    }

    /// As after a crash, or a close: what was in memory is gone.
    pub(super) fn reopened(self) -> Self {
        let Self { store, volume, index, values, limits, space_bytes } = self;
        drop(values);
        let map = index.map.lock().unwrap().clone();
        Self::over(store, volume.inner.clone(), map, limits, space_bytes)
    }

    fn get(&self, table: Table, key: u8) -> Option<Value> {
        let bytes = self.index.map.lock().unwrap().get(&(table, vec![key])).cloned()?;
        Some(ObjectRecord::decode(&bytes).unwrap().value)
    }

    pub(super) fn value(&self, key: u8) -> Option<Value> {
        self.get(Table::Objects, key)
    }

    pub(super) fn write(&self, bytes: &[u8], cut: Cut) -> Result<WrittenValue, ValueError> {
        let mut writer = self.values.writer_with(cut.cutter());
        bytes.chunks(1000).try_for_each(|part| writer.write(part))?;
        writer.finish()
    }

    /// Records change in the batch that changes what they name.
    fn apply(
        &self,
        mut changes: ValueChanges<'_>,
        records: Vec<(Table, u8, Option<Value>)>,
    ) -> Result<(), ValueError> {
        let mut batch = changes.take();
        batch.extend(records.into_iter().map(|(table, key, value)| match value {
            None => Change::Remove { table, key: vec![key] },
            Some(value) => {
                let etag = ETag { md5: [0; 16], parts: None };
                let value = ObjectRecord::new(1, 2, etag, value).encode();
                Change::Set { table, key: vec![key], value }
            }
        }));
        self.index.apply(batch, Durability::Acknowledged)?;
        changes.applied();
        Ok(())
    }

    pub(super) fn put_written(
        &self,
        table: Table,
        key: u8,
        written: WrittenValue,
    ) -> Result<(), ValueError> {
        let mut changes = self.values.changes();
        let value = changes.name(written);
        if let Some(before) = self.get(table, key) {
            changes.release(&before)?;
        }
        self.apply(changes, vec![(table, key, Some(value))])
    }

    pub(super) fn put(&self, key: u8, bytes: &[u8], cut: Cut) -> Result<(), ValueError> {
        self.put_written(Table::Objects, key, self.write(bytes, cut)?)
    }

    pub(super) fn put_part(&self, key: u8, bytes: &[u8], cut: Cut) -> Result<(), ValueError> {
        self.put_written(Table::Uploads, key, self.write(bytes, cut)?)
    }

    pub(super) fn delete(&self, keys: &[u8]) -> Result<(), ValueError> {
        let mut changes = self.values.changes();
        for &key in keys {
            if let Some(value) = self.value(key) {
                changes.release(&value)?;
            }
        }
        self.apply(changes, keys.iter().map(|&key| (Table::Objects, key, None)).collect())
    }

    pub(super) fn copy(&self, from: u8, to: u8) -> Result<(), ValueError> {
        let Some(value) = self.value(from).filter(|_| from != to) else {
            return Ok(()); // There is nothing to copy.
        };
        let mut changes = self.values.changes();
        changes.share(value.entries())?;
        if let Some(before) = self.value(to) {
            changes.release(&before)?;
        }
        self.apply(changes, vec![(Table::Objects, to, Some(value))])
    }

    /// Puts a range of an object behind bytes of its own.
    pub(super) fn copy_range(
        &self,
        from: u8,
        to: u8,
        head: &[u8],
        range: std::ops::Range<u64>,
    ) -> Result<(), ValueError> {
        let Some(value) = self.value(from) else {
            return Ok(()); // There is nothing to copy.
        };
        let mut composer = self.values.composer(SegmentPolicy::Cdc);
        composer.write(head)?;
        let entries = self.values.slice(&value, &range)?;
        match &value {
            Value::Inline(bytes) => {
                composer.write(&bytes[range.start as usize..range.end as usize])?
            }
            Value::List(_) => composer.append_entries(&entries)?,
        }
        let written = composer.finish()?;
        let mut changes = self.values.changes();
        changes.share(&entries)?;
        let new = changes.name(written);
        if let Some(before) = self.value(to) {
            changes.release(&before)?;
        }
        self.apply(changes, vec![(Table::Objects, to, Some(new))])
    }

    /// Makes an object of all parts, in the order of their keys.
    pub(super) fn complete(&self, key: u8) -> Result<(), ValueError> {
        let parts: Vec<u8> =
            self.index.entries(Table::Uploads).iter().map(|(part, _)| part[0]).collect();
        let mut composer = self.values.composer(SegmentPolicy::Cdc);
        for &part in &parts {
            composer.append(&self.get(Table::Uploads, part).unwrap())?;
        }
        let written = composer.finish()?;
        let mut changes = self.values.changes();
        let value = changes.name(written);
        if let Some(before) = self.value(key) {
            changes.release(&before)?;
        }
        let mut records = vec![(Table::Objects, key, Some(value))];
        records.extend(parts.into_iter().map(|part| (Table::Uploads, part, None)));
        self.apply(changes, records)
    }

    pub(super) fn trim_all(&self) {
        while !self.values.trim_some(7).unwrap().is_done {}
    }

    pub(super) fn reader(&self, key: u8) -> Option<ValueReader> {
        self.reader_of(Table::Objects, key)
    }

    pub(super) fn reader_of(&self, table: Table, key: u8) -> Option<ValueReader> {
        let lookup = self.values.lookup();
        let value = self.get(table, key)?;
        Some(self.values.pin(lookup, &value).unwrap().reader(&self.values))
    }

    /// A reader of what a key holds, and its bytes; the look-up may race with the trimmer.
    pub(super) fn reader_or_raced(&self, key: u8) -> Option<(ValueReader, Vec<u8>)> {
        loop {
            let lookup = self.values.lookup();
            let value = self.value(key)?;
            let (Some(first), Some(second)) =
                (self.values.pin(lookup, &value), self.values.pin(lookup, &value))
            else {
                continue; // The trimmer chose meanwhile.
            };
            let (mut first, second) = (first.reader(&self.values), second.reader(&self.values));
            let mut bytes = vec![0; first.length_bytes() as usize];
            first.read_at(0, &mut bytes).unwrap();
            return Some((second, bytes));
        }
    }

    pub(super) fn bytes_of(&self, table: Table, key: u8) -> Option<Vec<u8>> {
        let mut reader = self.reader_of(table, key)?;
        let mut bytes = vec![0xee; reader.length_bytes() as usize + 5];
        let length = reader.read_at(0, &mut bytes).unwrap();
        bytes.truncate(length);
        Some(bytes)
    }

    pub(super) fn bytes(&self, key: u8) -> Option<Vec<u8>> {
        self.bytes_of(Table::Objects, key)
    }
}

/// Bytes that no two values share, compressible by half.
pub(super) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as u8
    };
    (0..length).map(|at| if at % 2 == 0 { next() } else { 0x55 }).collect()
}
