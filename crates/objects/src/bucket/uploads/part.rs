//! Puts parts of an upload: their bytes without any lock, or those of an object.

use std::ops::Range;
use std::sync::Arc;

use format::objects::record::{ETag, ObjectRecord, PARTS_MAX, Value};
use format::objects::uploads::part_key;
use store::Durability;

use super::UploadId;
use crate::bucket::condition::Condition;
use crate::bucket::copy::{copied_etag, is_whole};
use crate::bucket::edit::Edit;
use crate::bucket::error::BucketError;
use crate::bucket::get::Reader;
use crate::bucket::info::check_key;
use crate::bucket::put::{FinishOptions, Put, sorted};
use crate::bucket::{Bucket, Core};
use crate::values::{MapChunks, ValueWriter};

/// How a part is put.
#[derive(Clone, Copy, Debug)]
pub struct PartOptions {
    /// Whether the call returns when no crash can take the part back.
    pub durability: Durability,
    /// Milliseconds since 1970: the part's time.
    pub now_ms: u64,
}

/// How a part is copied from an object.
#[derive(Clone, Debug)]
pub struct CopyPartOptions {
    /// What the source must be like.
    pub source_condition: Condition,
    /// Which bytes; none: all.
    pub range: Option<Range<u64>>,
    /// As in [`crate::bucket::CopyOptions::md5`].
    pub md5: Option<[u8; 16]>,
    /// How the part is put.
    pub part: PartOptions,
}

/// Writes one part; [`Bucket::put_part`] makes one. Dropped, it leaves nothing.
#[must_use]
pub struct PartWriter {
    core: Arc<Core>,
    key: Vec<u8>,
    upload: UploadId,
    number: u16,
    options: PartOptions,
    value: ValueWriter,
}

impl Bucket {
    /// Puts a part of an upload; one of the same number is replaced.
    ///
    /// # Errors
    /// [`BucketError::NoSuchUpload`], [`BucketError::PartNumber`]; [`BucketError`].
    pub fn put_part(
        &self,
        key: &[u8],
        upload: UploadId,
        number: u16,
        options: PartOptions,
    ) -> Result<PartWriter, BucketError> {
        check_key(key)?;
        check_number(number)?;
        self.core.check_writable()?;
        self.core.upload(key, upload)?;
        let value = self.core.values.writer(self.core.segments);
        let (core, key) = (Arc::clone(&self.core), key.to_vec());
        Ok(PartWriter { core, key, upload, number, options, value })
    }

    /// Puts a part of an upload that has bytes of an object.
    ///
    /// # Errors
    /// Those of [`Bucket::put_part`] and of [`Bucket::copy`].
    pub fn copy_part(
        &self,
        from: &[u8],
        key: &[u8],
        upload: UploadId,
        number: u16,
        options: CopyPartOptions,
    ) -> Result<Put, BucketError> {
        check_key(from)?;
        check_key(key)?;
        check_number(number)?;
        let core = &*self.core;
        core.check_writable()?;
        let mut edit = core.edit([from, key]);
        core.upload(key, upload)?;
        let source = core.source(from, &options.source_condition, options.part.now_ms)?;
        let is_whole = is_whole(&source, options.range.as_ref());
        let version = core.versions.next(&*core.index)?;
        let etag = copied_etag(options.md5, &source, is_whole, version);
        let value = core.copied_value(&mut edit, &source, options.range)?;
        let part = ObjectRecord::new(version, options.part.now_ms, etag, value);
        core.replace_part(&mut edit, key, (upload, number), &part)?;
        edit.finish(options.part.durability)?;
        Ok(Put::of(&part))
    }
}

impl PartWriter {
    /// Appends bytes to the part.
    ///
    /// # Errors
    /// [`BucketError`]; then the writer is to be dropped.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BucketError> {
        Ok(self.value.write(bytes)?)
    }

    /// As [`Writer::map_from`](crate::bucket::Writer::map_from).
    ///
    /// # Errors
    /// As there.
    pub fn map_from(
        &mut self,
        from: &mut Reader,
        range: Range<u64>,
        map: MapChunks<'_>,
    ) -> Result<(), BucketError> {
        Ok(self.value.map_from(from.value(), range, map)?)
    }

    /// Bytes up to now.
    #[must_use]
    pub fn length_bytes(&self) -> u64 {
        self.value.length_bytes()
    }

    /// Ends the part.
    ///
    /// # Errors
    /// [`BucketError::NoSuchUpload`] when it was completed or aborted meanwhile; [`BucketError`].
    pub fn finish(self, finish: FinishOptions) -> Result<Put, BucketError> {
        let Self { core, key, upload, number, options, value } = self;
        let checksums = sorted(finish.checksums)?;
        let written = value.finish()?;
        let mut edit = core.edit([key.as_slice()]);
        core.upload(&key, upload)?;
        let version = core.versions.next(&*core.index)?;
        let value: Value = edit.values.name(written);
        let etag = ETag { md5: finish.md5, parts: None };
        let part =
            ObjectRecord { checksums, ..ObjectRecord::new(version, options.now_ms, etag, value) };
        core.replace_part(&mut edit, &key, (upload, number), &part)?;
        edit.finish(options.durability)?;
        Ok(Put::of(&part))
    }
}

impl Core {
    fn replace_part(
        &self,
        edit: &mut Edit<'_>,
        key: &[u8],
        (upload, number): (UploadId, u16),
        part: &ObjectRecord,
    ) -> Result<(), BucketError> {
        let before = self.part(upload, number)?;
        if let Some(before) = &before {
            edit.values.release(&before.value)?;
        }
        edit.set_part(key, part_key(upload.0, number), before.as_ref(), Some(part));
        Ok(())
    }
}

fn check_number(number: u16) -> Result<(), BucketError> {
    match (1..=PARTS_MAX).contains(&number) {
        true => Ok(()),
        false => Err(BucketError::PartNumber { number }),
    }
}
