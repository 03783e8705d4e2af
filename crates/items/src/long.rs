//! Values that are too long for a batch: written part by part, and then put in a transaction.

use std::ops::Range;

use memcached::{Answer, Fault, Join, Store, StoreDecision};
use objects::bucket::{Bucket, BucketError, Reader, Transaction};
use objects::values::{ValueWriter, WrittenValue};

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

/// Gives a long value, or a part of it, as it was when it was found.
pub struct ItemReader {
    reader: Reader,
    left: Range<u64>,
}

impl memcached::ValueReader for ItemReader {
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        let length = (self.left.end - self.left.start).min(out.len() as u64) as usize;
        let read = self.reader.read_at(self.left.start, &mut out[..length]);
        let read = read.map_err(|error| fault_of(&error))?;
        self.left.start += read as u64;
        Ok(read)
    }
}

/// An object of which any part can be read.
pub(crate) struct ItemSource(pub(crate) Reader);

impl memcached::ValueSource for ItemSource {
    type Reader = ItemReader;

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<(), Fault> {
        let read = self.0.read_at(offset, out).map_err(|error| fault_of(&error))?;
        assert!(read == out.len(), "a part is inside the value");
        Ok(())
    }

    fn into_reader(self, offset: u64, bytes: u64) -> Result<ItemReader, Fault> {
        Ok(ItemReader { reader: self.0, left: offset..offset + bytes })
    }
}

/// A piece of a value that is put together.
enum Piece {
    Old(Range<u64>),
    New,
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
        let old_bytes = old.map_or(0, |(_, old_bytes)| old_bytes);
        let written = match pieces_of(join, old_bytes, store.value_bytes) {
            Some(pieces) => self.put_together(&mut transaction, key, pieces, &written)?,
            None => written,
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
        self.keep_bound(now_s);
        Ok(Answer::Stored { cas: item.cas, value_bytes })
    }

    fn put_together(
        &self,
        transaction: &mut Transaction<'_>,
        key: &[u8],
        pieces: Vec<Piece>,
        new: &WrittenValue,
    ) -> Result<WrittenValue, BucketError> {
        let mut writer = self.bucket.value_writer();
        for piece in pieces {
            match (piece, transaction.reader(key)?) {
                (Piece::Old(range), Some(mut old)) => {
                    copy(|at_bytes, part| old.read_at(at_bytes, part), range, &mut writer)?;
                }
                (Piece::Old(_), None) => panic!("a value that is joined has been there"),
                (Piece::New, _) => {
                    let mut reader = self.bucket.read_written(new);
                    let range = 0..new.value().length_bytes().unwrap_or_default();
                    let read_at = |at_bytes, part: &mut [u8]| Ok(reader.read_at(at_bytes, part)?);
                    copy(read_at, range, &mut writer)?;
                }
            }
        }
        Ok(writer.finish()?)
    }
}

/// The pieces of a joined value; none: it is the new one.
fn pieces_of(join: Join, old_bytes: u64, new_bytes: u64) -> Option<Vec<Piece>> {
    match join {
        Join::Replace => None,
        Join::Append => Some(vec![Piece::Old(0..old_bytes), Piece::New]),
        Join::Prepend => Some(vec![Piece::New, Piece::Old(0..old_bytes)]),
        Join::Over { offset } => {
            let behind = offset.saturating_add(new_bytes).min(old_bytes)..old_bytes;
            Some(vec![Piece::Old(0..offset), Piece::New, Piece::Old(behind)])
        }
    }
}

fn copy(
    mut read_at: impl FnMut(u64, &mut [u8]) -> Result<usize, BucketError>,
    mut range: Range<u64>,
    writer: &mut ValueWriter,
) -> Result<(), BucketError> {
    let mut part = vec![0; COPIED_BYTES];
    while !range.is_empty() {
        let length = (range.end - range.start).min(COPIED_BYTES as u64) as usize;
        let read = read_at(range.start, &mut part[..length])?;
        assert!(read == length, "a value has all its bytes");
        writer.write(&part[..length])?;
        range.start += length as u64;
    }
    Ok(())
}
