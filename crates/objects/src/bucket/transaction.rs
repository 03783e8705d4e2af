//! Objects of several keys, read and changed together, as a caller decides by what it finds.
//!
//! ```text
//! begin: stripes locked ─> get, read ─> put, describe, remove: staged ─> commit: one batch
//!                                         └───── dropped: nothing has changed
//! ```
//!
//! For doors whose requests read, judge and write in one go, and come many at a time: a batch of
//! short values is one request to the engine and one of the index (Multes++ gathers likewise).
//! Later calls of a transaction see what earlier ones have staged.

use std::borrow::Cow;
use std::collections::BTreeMap;

use format::BLOCK_BYTES;
use format::objects::record::{ETag, ObjectRecord, Value};
use store::Durability;

use super::edit::Edit;
use super::error::BucketError;
use super::get::Reader;
use super::info::{Metadata, ObjectInfo, check_key, has_expired};
use super::put::new_record;
use super::{Bucket, Core};
use crate::values::{TOGETHER_BYTES_MAX, ValueError, ValueReader, ValueWriter, WrittenValue};

/// About what the log takes for a transaction of short values.
const LOG_BYTES: usize = 32 << 10;

/// What an object that a transaction puts says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// What its sender says of it.
    pub metadata: Metadata,
    /// When it ends, in milliseconds since 1970.
    pub expires_unix_ms: Option<u64>,
}

/// Changes of some keys, which nobody else changes until it ends. Dropped, nothing has changed.
#[must_use]
pub struct Transaction<'a> {
    core: &'a Core,
    edit: Edit<'a>,
    now_ms: u64,
    slots: BTreeMap<Vec<u8>, Slot<'a>>,
}

/// What a key had, and what it is to have.
struct Slot<'a> {
    before: Option<ObjectRecord>,
    now: Option<Staged<'a>>,
    is_changed: bool,
}

/// An object as the transaction leaves it.
struct Staged<'a> {
    /// Its value is that of before, or empty where there is new content.
    record: ObjectRecord,
    content: Content<'a>,
}

/// What an object is to hold.
enum Content<'a> {
    /// What it held before.
    Kept,
    /// These bytes, which the commit writes together with others.
    Bytes(Cow<'a, [u8]>),
    /// A value that is written already.
    Written(WrittenValue),
}

impl Staged<'_> {
    fn info(&self) -> ObjectInfo {
        let info = ObjectInfo::from(self.record.clone());
        match &self.content {
            Content::Kept => info,
            Content::Bytes(bytes) => ObjectInfo { size_bytes: bytes.len() as u64, ..info },
            Content::Written(written) => {
                let size_bytes = written.value().length_bytes().unwrap_or_default();
                ObjectInfo { size_bytes, ..info }
            }
        }
    }

    /// The value that bytes are read from; none: the bytes are here.
    fn stored_value(&self) -> Option<&Value> {
        match &self.content {
            Content::Kept => Some(&self.record.value),
            Content::Written(written) => Some(written.value()),
            Content::Bytes(_) => None,
        }
    }
}

impl Bucket {
    /// Begins to change the objects of `keys`. One that has expired is none.
    ///
    /// # Errors
    /// [`BucketError::Index`] with [`IndexError::ReadOnly`](crate::index::IndexError::ReadOnly);
    /// [`BucketError::KeyLength`].
    pub fn transaction<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k [u8], IntoIter: Clone>,
        now_ms: u64,
    ) -> Result<Transaction<'_>, BucketError> {
        self.core.check_writable()?;
        let keys = keys.into_iter();
        keys.clone().try_for_each(check_key)?;
        let edit = self.core.edit(keys);
        Ok(Transaction { core: &self.core, edit, now_ms, slots: BTreeMap::new() })
    }

    /// Whether a transaction that puts values of these lengths would wait for memory that earlier
    /// writes hold. What others take meanwhile is not known, so an answer is a guess.
    pub fn would_wait(&self, value_bytes: impl IntoIterator<Item = usize>) -> bool {
        let padded = value_bytes.into_iter().map(|bytes| bytes.next_multiple_of(BLOCK_BYTES));
        self.core.values.volume().would_wait(padded.sum::<usize>() + LOG_BYTES)
    }

    /// Writes a value of any length that a transaction is to put. Dropped, it leaves nothing.
    #[must_use]
    pub fn value_writer(&self) -> ValueWriter {
        self.core.values.writer(self.core.segments)
    }

    /// Reads what a [`ValueWriter`] has written and no object names yet.
    #[must_use]
    pub fn read_written(&self, written: &WrittenValue) -> ValueReader {
        self.core.reader_of_kept(written.value())
    }

    /// All versions that objects of the bucket have had by now are below this number.
    #[must_use]
    pub fn next_version(&self) -> u64 {
        self.core.versions.peek()
    }
}

impl<'a> Transaction<'a> {
    /// The object of a key, as the transaction has it by now.
    ///
    /// # Errors
    /// [`BucketError::DamagedEntry`]: the key cannot be changed; [`BucketError`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<ObjectInfo>, BucketError> {
        let slot = self.slot(key)?;
        Ok(slot.now.as_ref().map(Staged::info))
    }

    /// The bytes of an object; none: there is no object.
    ///
    /// # Errors
    /// [`BucketError::Value`] with the bytes that are lost; [`BucketError`].
    pub fn read(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, BucketError> {
        if let Some(Staged { content: Content::Bytes(bytes), .. }) = &self.slot(key)?.now {
            return Ok(Some(bytes.to_vec()));
        }
        let Some(mut reader) = self.reader(key)? else { return Ok(None) };
        let bytes = store::zeroed(reader.info().size_bytes as usize);
        let mut bytes = bytes.map_err(ValueError::from)?;
        let read = reader.read_at(0, &mut bytes)?;
        assert!(read == bytes.len(), "an object knows how long it is");
        Ok(Some(bytes))
    }

    /// Reads an object part by part, also behind the end of the transaction; none: there is no
    /// object, or the transaction has put its bytes and only [`Transaction::read`] has them.
    ///
    /// # Errors
    /// [`BucketError`].
    pub fn reader(&mut self, key: &[u8]) -> Result<Option<Reader>, BucketError> {
        let core = self.core;
        let Some(staged) = &self.slot(key)?.now else { return Ok(None) };
        let Some(value) = staged.stored_value() else { return Ok(None) };
        Ok(Some(Reader::new(staged.info(), core.reader_of_kept(value))))
    }

    /// A version for an object that is put or described; no other has it.
    ///
    /// # Errors
    /// [`BucketError::Index`].
    pub fn new_version(&mut self) -> Result<u64, BucketError> {
        self.core.versions.next(&*self.core.index)
    }

    /// The key has an object of these bytes from the commit on. Without an ETag it gets one that is
    /// made of its version.
    ///
    /// # Errors
    /// [`BucketError`].
    ///
    /// # Panics
    /// With more than [`TOGETHER_BYTES_MAX`] bytes.
    pub fn put(
        &mut self,
        key: &[u8],
        bytes: impl Into<Cow<'a, [u8]>>,
        description: Description,
        version: u64,
        etag: Option<ETag>,
    ) -> Result<(), BucketError> {
        let bytes = bytes.into();
        assert!(bytes.len() <= TOGETHER_BYTES_MAX, "a value of {} bytes", bytes.len());
        self.put_content(key, Content::Bytes(bytes), description, version, etag)
    }

    /// As [`Transaction::put`], of a value of any length that [`Bucket::value_writer`] has written.
    ///
    /// # Errors
    /// [`BucketError`].
    pub fn put_written(
        &mut self,
        key: &[u8],
        written: WrittenValue,
        description: Description,
        version: u64,
        etag: Option<ETag>,
    ) -> Result<(), BucketError> {
        self.put_content(key, Content::Written(written), description, version, etag)
    }

    fn put_content(
        &mut self,
        key: &[u8],
        content: Content<'a>,
        description: Description,
        version: u64,
        etag: Option<ETag>,
    ) -> Result<(), BucketError> {
        let etag = etag.unwrap_or_else(|| etag_of(version));
        let now_ms = self.now_ms;
        let slot = self.slot(key)?;
        let Description { metadata, expires_unix_ms } = description;
        let record = new_record(version, etag, Value::EMPTY, now_ms, metadata);
        let record = ObjectRecord { expires_unix_ms, ..record };
        slot.now = Some(Staged { record, content });
        slot.is_changed = true;
        Ok(())
    }

    /// The object of the key says something else of itself from the commit on, and has this version
    /// if there is one; its bytes and their time stay.
    ///
    /// # Errors
    /// [`BucketError::NoSuchObject`]; [`BucketError`].
    pub fn describe(
        &mut self,
        key: &[u8],
        description: Description,
        version: Option<u64>,
    ) -> Result<(), BucketError> {
        let slot = self.slot(key)?;
        let staged = slot.now.as_mut().ok_or(BucketError::NoSuchObject)?;
        let Description { metadata, expires_unix_ms } = description;
        let Metadata { content_headers, user_metadata, tags } = metadata;
        staged.record = ObjectRecord {
            version: version.unwrap_or(staged.record.version),
            expires_unix_ms,
            content_headers,
            user_metadata,
            tags,
            ..staged.record.clone()
        };
        slot.is_changed = true;
        Ok(())
    }

    /// The key has no object from the commit on; returns whether it had one.
    ///
    /// # Errors
    /// [`BucketError`].
    pub fn remove(&mut self, key: &[u8]) -> Result<bool, BucketError> {
        let slot = self.slot(key)?;
        slot.is_changed = true;
        Ok(slot.now.take().is_some())
    }

    /// Makes all changes together, and returns when they are as safe as `durability` says.
    ///
    /// # Errors
    /// [`BucketError`]: nothing has changed; where it is the flush that failed, the changes are
    /// made, and a crash may take them back.
    pub fn commit(self, durability: Durability) -> Result<(), BucketError> {
        self.commit_then(durability, || ())
    }

    /// As [`Transaction::commit`]; calls `then` when the changes are made and visible, before
    /// anybody else can change the keys: for a cache that takes what was written.
    ///
    /// # Errors
    /// As there; `then` was called if it is the flush that failed.
    pub fn commit_then(
        self,
        durability: Durability,
        then: impl FnOnce(),
    ) -> Result<(), BucketError> {
        let Self { core, mut edit, mut slots, .. } = self;
        slots.retain(|_, slot| slot.is_changed);
        let staged = slots.values().filter_map(|slot| slot.now.as_ref());
        let bytes = staged.filter_map(|staged| match &staged.content {
            Content::Bytes(bytes) => Some(&bytes[..]),
            Content::Kept | Content::Written(_) => None,
        });
        let values: Vec<&[u8]> = bytes.collect();
        let written = core.values.write_together(core.segments, &values)?;
        let mut named = edit.values.name_together(written).into_iter();
        for (key, Slot { before, now, .. }) in slots {
            match (before, now) {
                (Some(before), None) => edit.remove_object(&key, &before)?,
                (None, None) => (), // It was put and removed again.
                (before, Some(Staged { record, content })) => {
                    let value = match content {
                        Content::Kept => {
                            edit.set_record(&key, before.as_ref(), &record);
                            continue;
                        }
                        Content::Written(written) => edit.values.name(written),
                        Content::Bytes(_) => match named.next() {
                            Some(value) => value,
                            None => panic!("each value is written"),
                        },
                    };
                    let record = ObjectRecord { value, ..record };
                    edit.set_object(&key, before.as_ref(), &record)?;
                }
            }
        }
        edit.apply()?;
        then();
        drop(edit);
        core.help_to_free();
        core.make_durable(durability)
    }

    fn slot(&mut self, key: &[u8]) -> Result<&mut Slot<'a>, BucketError> {
        if !self.slots.contains_key(key) {
            let before = self.core.record(key)?;
            let living = before.as_ref().filter(|record| !has_expired(record, self.now_ms));
            let now =
                living.map(|record| Staged { record: record.clone(), content: Content::Kept });
            self.slots.insert(key.to_vec(), Slot { before, now, is_changed: false });
        }
        match self.slots.get_mut(key) {
            Some(slot) => Ok(slot),
            None => panic!("a slot that was looked up is there"),
        }
    }
}

/// An ETag that no other object of the bucket has, and that nobody takes for an MD5: S3 gives those
/// of one part a suffix.
fn etag_of(version: u64) -> ETag {
    let mut md5 = [0; 16];
    md5[8..].copy_from_slice(&version.to_be_bytes());
    ETag { md5, parts: Some(1) }
}
