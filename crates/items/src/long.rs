//! Values that are too long for a batch: written part by part, and then put in a transaction.

use memcached::{Answer, Fault, Join, Store, StoreDecision};
use objects::bucket::{Bucket, BucketError, Reader};
use objects::values::{ValueReader, ValueWriter, WrittenValue};

use crate::fault::fault_of;
use crate::hot::{NewEntry, Replaced, Replacement};
use crate::marks::{StoredItem, new_description};
use crate::shared::Shared;

/// Bytes of a long value that are copied at once.
const COPIED_BYTES: usize = 256 << 10;

/// Takes the parts of a long value; dropped, it leaves nothing.
pub struct ItemWriter(ValueWriter);

impl ItemWriter {
    pub(crate) fn new(bucket: &Bucket) -> Self {
        Self(bucket.value_writer())
    }

    fn finish(self) -> Result<WrittenValue, BucketError> {
        Ok(self.0.finish()?)
    }
}

impl memcached::ValueWriter for ItemWriter {
    fn write(&mut self, part: &[u8]) -> Result<(), Fault> {
        self.0.write(part).map_err(|error| fault_of(&error.into()))
    }
}

/// Gives the parts of a long value, as it was when it was found.
pub struct ItemReader {
    reader: Reader,
    read_bytes: u64,
}

impl ItemReader {
    pub(crate) fn of(reader: Reader) -> Self {
        Self { reader, read_bytes: 0 }
    }
}

impl memcached::ValueReader for ItemReader {
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        let read = self.reader.read_at(self.read_bytes, out).map_err(|error| fault_of(&error))?;
        self.read_bytes += read as u64;
        Ok(read)
    }
}

impl Shared {
    /// Stores a value that came in parts, if its conditions hold.
    pub(crate) fn store_long(
        &self,
        store: &Store<'_>,
        writer: ItemWriter,
        now_s: u64,
    ) -> Result<Answer, Fault> {
        let written = writer.finish().map_err(|error| fault_of(&error))?;
        self.put_long(store, written, now_s).map_err(|error| fault_of(&error))
    }

    /// Stores a value that came whole and does not fit a batch, by itself or joined.
    pub(crate) fn store_alone(&self, store: &Store<'_>, now_s: u64) -> Result<Answer, Fault> {
        let write = || {
            let mut writer = self.bucket.value_writer();
            writer.write(store.value)?;
            self.put_long(store, writer.finish()?, now_s)
        };
        write().map_err(|error: BucketError| fault_of(&error))
    }

    /// A value that is joined is copied while its key is locked: nobody changes it meanwhile.
    fn put_long(
        &self,
        store: &Store<'_>,
        written: WrittenValue,
        now_s: u64,
    ) -> Result<Answer, BucketError> {
        let key = store.key;
        let mut transaction = self.bucket.transaction([key], now_s.saturating_mul(1000))?;
        let before = self.bucket.moment(key);
        let found = transaction.get(key)?.filter(|info| self.flushes.is_live(info.version));
        let found = found.map(|info| self.remembered(key, StoredItem::of(info)));
        let old = found.as_ref().map(|found| (&found.item, found.value_bytes));
        let (mut item, join, value_bytes) = match store.decide(old, now_s, || 0) {
            StoreDecision::Refuse(answer) => return Ok(answer),
            StoreDecision::Write { item, join, value_bytes } => (item, join, value_bytes),
        };
        let written = match (join, transaction.reader(key)?) {
            (Join::Append, Some(old)) => {
                self.joined(|w| copy_object(old, w), |w| self.copy_written(&written, w))?
            }
            (Join::Prepend, Some(old)) => {
                self.joined(|w| self.copy_written(&written, w), |w| copy_object(old, w))?
            }
            _ => written,
        };
        let length_bytes = written.value().length_bytes();
        assert!(length_bytes == Some(value_bytes), "a joined value has its length");
        let version = transaction.new_version()?;
        if item.cas == 0 {
            item.cas = version;
        }
        let now = if item.expires.is_over(now_s) {
            transaction.remove(key)?;
            Replacement::Nothing
        } else {
            let description = new_description(&item, version);
            transaction.put_written(key, written, description, version, None)?;
            Replacement::Entry(NewEntry::without_value(key, item, version, value_bytes))
        };
        transaction.commit_then(self.durability, || {
            self.totals.stored.add(1);
            self.hot.replace(&self.bucket, std::iter::once(Replaced { key, before, now }));
        })?;
        Ok(Answer::Stored { cas: item.cas, value_bytes })
    }

    fn joined(
        &self,
        front: impl FnOnce(&mut ValueWriter) -> Result<(), BucketError>,
        back: impl FnOnce(&mut ValueWriter) -> Result<(), BucketError>,
    ) -> Result<WrittenValue, BucketError> {
        let mut writer = self.bucket.value_writer();
        front(&mut writer)?;
        back(&mut writer)?;
        Ok(writer.finish()?)
    }

    fn copy_written(
        &self,
        written: &WrittenValue,
        writer: &mut ValueWriter,
    ) -> Result<(), BucketError> {
        let mut reader: ValueReader = self.bucket.read_written(written);
        copy(|at_bytes, part| Ok(reader.read_at(at_bytes, part)?), writer)
    }
}

fn copy_object(mut reader: Reader, writer: &mut ValueWriter) -> Result<(), BucketError> {
    copy(|at_bytes, part| reader.read_at(at_bytes, part), writer)
}

fn copy(
    mut read_at: impl FnMut(u64, &mut [u8]) -> Result<usize, BucketError>,
    writer: &mut ValueWriter,
) -> Result<(), BucketError> {
    let (mut part, mut at_bytes) = (vec![0; COPIED_BYTES], 0);
    loop {
        let read = read_at(at_bytes, &mut part)?;
        if read == 0 {
            return Ok(());
        }
        writer.write(&part[..read])?;
        at_bytes += read as u64;
    }
}
