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

use std::collections::BTreeMap;

use format::objects::record::{ETag, ObjectRecord, Value};
use store::Durability;

use super::edit::Edit;
use super::error::BucketError;
use super::info::{Metadata, ObjectInfo, check_key, has_expired};
use super::put::new_record;
use super::{Bucket, Core};
use crate::values::{Pinned, TOGETHER_BYTES_MAX};

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
    slots: BTreeMap<Vec<u8>, Slot>,
}

/// What a key had, and what it is to have.
struct Slot {
    before: Option<ObjectRecord>,
    now: Option<Staged>,
    is_changed: bool,
}

/// An object as the transaction leaves it.
struct Staged {
    /// Its value is that of before, or empty where there are bytes.
    record: ObjectRecord,
    /// What it is to hold, if that is new.
    bytes: Option<Vec<u8>>,
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
}

impl Transaction<'_> {
    /// The object of a key, as the transaction has it by now.
    ///
    /// # Errors
    /// [`BucketError::DamagedEntry`]: the key cannot be changed; [`BucketError`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<ObjectInfo>, BucketError> {
        let slot = self.slot(key)?;
        Ok(slot.now.as_ref().map(|staged| {
            let info = ObjectInfo::from(staged.record.clone());
            match &staged.bytes {
                Some(bytes) => ObjectInfo { size_bytes: bytes.len() as u64, ..info },
                None => info,
            }
        }))
    }

    /// The bytes of an object; none: there is no object.
    ///
    /// # Errors
    /// [`BucketError::Value`] with the bytes that are lost; [`BucketError`].
    pub fn read(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, BucketError> {
        let core = self.core;
        let Some(staged) = &self.slot(key)?.now else { return Ok(None) };
        if let Some(bytes) = &staged.bytes {
            return Ok(Some(bytes.clone()));
        }
        let value = &staged.record.value;
        let pinned = core.values.pin(core.values.lookup(), value);
        // The key is locked, so nobody releases the value of its record.
        let pinned: Pinned = match pinned {
            Some(pinned) => pinned,
            None => panic!("a locked key names its value"),
        };
        let mut bytes = vec![0; value.length_bytes().unwrap_or_default() as usize];
        let read = pinned.reader(&core.values).read_at(0, &mut bytes)?;
        assert!(read == bytes.len(), "an object knows how long it is");
        Ok(Some(bytes))
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
        bytes: Vec<u8>,
        description: Description,
        version: u64,
        etag: Option<ETag>,
    ) -> Result<(), BucketError> {
        assert!(bytes.len() <= TOGETHER_BYTES_MAX, "a value of {} bytes", bytes.len());
        let etag = etag.unwrap_or_else(|| etag_of(version));
        let now_ms = self.now_ms;
        let slot = self.slot(key)?;
        let Description { metadata, expires_unix_ms } = description;
        let record = new_record(version, etag, Value::EMPTY, now_ms, metadata);
        let record = ObjectRecord { expires_unix_ms, ..record };
        slot.now = Some(Staged { record, bytes: Some(bytes) });
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
        let values: Vec<&[u8]> = staged.filter_map(|staged| staged.bytes.as_deref()).collect();
        let written = core.values.write_together(core.segments, &values)?;
        let mut named = edit.values.name_together(written).into_iter();
        for (key, Slot { before, now, .. }) in slots {
            match (before, now) {
                (Some(before), None) => edit.remove_object(&key, &before)?,
                (None, None) => (), // It was put and removed again.
                (before, Some(Staged { record, bytes: None })) => {
                    edit.set_record(&key, before.as_ref(), &record);
                }
                (before, Some(Staged { record, bytes: Some(_) })) => {
                    let Some(value) = named.next() else { panic!("each value is written") };
                    let record = ObjectRecord { value, ..record };
                    edit.set_object(&key, before.as_ref(), &record)?;
                }
            }
        }
        edit.apply()?;
        then();
        drop(edit);
        core.make_durable(durability)
    }

    fn slot(&mut self, key: &[u8]) -> Result<&mut Slot, BucketError> {
        if !self.slots.contains_key(key) {
            let before = self.core.record(key)?;
            let living = before.as_ref().filter(|record| !has_expired(record, self.now_ms));
            let now = living.map(|record| Staged { record: record.clone(), bytes: None });
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
