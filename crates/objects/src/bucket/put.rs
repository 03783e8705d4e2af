//! Puts an object: its bytes first, without any lock; then its record.

use std::ops::Range;
use std::sync::Arc;

use format::objects::record::metadata::Checksum;
use format::objects::record::{ETag, ObjectRecord, Value};
use store::Durability;

use super::condition::Condition;
use super::error::BucketError;
use super::get::Reader;
use super::info::{Metadata, check_key, living};
use super::{Bucket, Core};
use crate::values::{MapChunks, ValueWriter};

/// Bytes of an object between two looks at the quota.
pub(super) const QUOTA_LOOK_BYTES: u64 = 8 << 20;

/// How an object is put.
#[derive(Clone, Debug)]
pub struct PutOptions {
    /// What its sender says of it.
    pub metadata: Metadata,
    /// When it ends, in milliseconds since 1970.
    pub expires_unix_ms: Option<u64>,
    /// What the key must hold.
    pub condition: Condition,
    /// Whether the put returns when no crash can take it back.
    pub durability: Durability,
    /// Milliseconds since 1970 when the put begins: the object's time.
    pub now_ms: u64,
}

impl PutOptions {
    /// Without conditions, metadata or expiry; acknowledged.
    #[must_use]
    pub fn new(now_ms: u64) -> Self {
        Self {
            metadata: Metadata::default(),
            expires_unix_ms: None,
            condition: Condition::None,
            durability: Durability::Acknowledged,
            now_ms,
        }
    }
}

/// What is known of an object when all its bytes are.
#[derive(Clone, Debug)]
pub struct FinishOptions {
    /// MD5 of its bytes.
    pub md5: [u8; 16],
    /// At most one of each algorithm.
    pub checksums: Vec<Checksum>,
}

impl FinishOptions {
    /// Without checksums.
    #[must_use]
    pub fn new(md5: [u8; 16]) -> Self {
        Self { md5, checksums: Vec::new() }
    }
}

/// An object that was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// Its version.
    pub version: u64,
    /// Its ETag.
    pub etag: ETag,
    /// Its bytes.
    pub size_bytes: u64,
}

impl Put {
    pub(super) fn of(record: &ObjectRecord) -> Self {
        let ObjectRecord { version, etag, .. } = *record;
        Self { version, etag, size_bytes: record.size_bytes() }
    }
}

/// Writes one object; [`Bucket::put`] makes one. Dropped, it leaves nothing.
#[must_use]
pub struct Writer {
    core: Arc<Core>,
    key: Vec<u8>,
    options: PutOptions,
    value: ValueWriter,
    /// Bytes from which the quota is looked at again.
    next_look_bytes: u64,
}

impl Bucket {
    /// Puts an object of any length. A condition that does not hold now is refused now, and is
    /// judged again when the object takes its place.
    ///
    /// # Errors
    /// [`BucketError`].
    pub fn put(&self, key: &[u8], options: PutOptions) -> Result<Writer, BucketError> {
        check_key(key)?;
        self.core.check_writable()?;
        if options.condition != Condition::None {
            let found = self.core.record(key)?;
            options.condition.judge(living(found.as_ref(), options.now_ms))?;
        }
        let value = self.core.values.writer(self.core.segments);
        let (core, key) = (Arc::clone(&self.core), key.to_vec());
        Ok(Writer { core, key, options, value, next_look_bytes: QUOTA_LOOK_BYTES })
    }
}

impl Writer {
    /// Appends bytes to the object.
    ///
    /// # Errors
    /// [`BucketError`]; then the writer is to be dropped. A long object that does not fit the quota
    /// is refused on the way, one that still may at its end.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BucketError> {
        self.value.write(bytes)?;
        self.look_at_quota()
    }

    /// Appends the bytes in `range` of an object of another bucket without moving them: `map` has
    /// the volume of this bucket map chunks of the other's. Nothing is written beside.
    ///
    /// # Errors
    /// [`BucketError`], what `map` returns among them; then the writer is to be dropped.
    pub fn map_from(
        &mut self,
        from: &mut Reader,
        range: Range<u64>,
        map: MapChunks<'_>,
    ) -> Result<(), BucketError> {
        self.value.map_from(from.value(), range, map)?;
        self.look_at_quota()
    }

    fn look_at_quota(&mut self) -> Result<(), BucketError> {
        let length_bytes = self.value.length_bytes();
        if length_bytes < self.next_look_bytes {
            return Ok(());
        }
        self.next_look_bytes = length_bytes + QUOTA_LOOK_BYTES;
        let before_bytes = match self.core.record(&self.key) {
            Ok(record) => record.map_or(0, |record| record.size_bytes()),
            Err(_) => return Ok(()), // The end of the object says so.
        };
        self.core.usage.check(length_bytes.saturating_sub(before_bytes))
    }

    /// Bytes up to now.
    #[must_use]
    pub fn length_bytes(&self) -> u64 {
        self.value.length_bytes()
    }

    /// Ends the object: it is visible when this returns, and replaces what the key held.
    ///
    /// # Errors
    /// [`BucketError`]: nothing has changed; where it is the flush of a durable put that failed,
    /// the object is there, and a crash may take it back.
    pub fn finish(self, finish: FinishOptions) -> Result<Put, BucketError> {
        let etag = ETag { md5: finish.md5, parts: None };
        self.finish_as(etag, finish.checksums)
    }

    /// As [`Writer::finish`], for a copy that has the ETag of its source.
    ///
    /// # Errors
    /// As there.
    pub fn finish_as(self, etag: ETag, checksums: Vec<Checksum>) -> Result<Put, BucketError> {
        let Self { core, key, options, value, .. } = self;
        let checksums = sorted(checksums)?;
        let written = value.finish()?;
        let mut edit = core.edit([key.as_slice()]);
        let before = core.record(&key)?;
        options.condition.judge(living(before.as_ref(), options.now_ms))?;
        let version = core.versions.next(&*core.index)?;
        let value = edit.values.name(written);
        let record = new_record(version, etag, value, options.now_ms, options.metadata);
        let record = ObjectRecord { expires_unix_ms: options.expires_unix_ms, checksums, ..record };
        edit.set_object(&key, before.as_ref(), &record)?;
        edit.finish(options.durability)?;
        Ok(Put::of(&record))
    }
}

pub(super) fn new_record(
    version: u64,
    etag: ETag,
    value: Value,
    created_unix_ms: u64,
    metadata: Metadata,
) -> ObjectRecord {
    let Metadata { content_headers, user_metadata, tags } = metadata;
    let record = ObjectRecord::new(version, created_unix_ms, etag, value);
    ObjectRecord { content_headers, user_metadata, tags, ..record }
}

/// Checksums in the order of their algorithms.
pub(super) fn sorted(mut checksums: Vec<Checksum>) -> Result<Vec<Checksum>, BucketError> {
    checksums.sort_by_key(Checksum::algorithm);
    match checksums.windows(2).any(|pair| pair[0].algorithm() == pair[1].algorithm()) {
        true => Err(BucketError::TwoChecksums),
        false => Ok(checksums),
    }
}
