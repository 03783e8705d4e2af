//! Copies objects, or ranges of them, without moving bytes.
//!
//! Both keys are locked from the look at the source to the batch, so the source keeps what the copy
//! comes to name. Only where the list of a range would have too many levels, after many copies of
//! copies, are its bytes read and written.

use std::ops::Range;

use format::objects::record::{ETag, ObjectRecord, Value};
use store::Durability;

use super::condition::Condition;
use super::edit::Edit;
use super::error::BucketError;
use super::info::{Metadata, check_key, living};
use super::put::{Put, new_record};
use super::{Bucket, Core};
use crate::values::{ValueError, ValueReader};
use segments::SegmentPolicy;

/// Bytes that are read and written at a time.
const REWRITTEN_BYTES: usize = 1 << 20;

/// What a copy says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CopiedMetadata {
    /// What the source says, its expiry too.
    #[default]
    Keep,
    /// Something else.
    Replace {
        /// What it says.
        metadata: Metadata,
        /// When it ends, in milliseconds since 1970.
        expires_unix_ms: Option<u64>,
    },
}

/// How an object is copied.
#[derive(Clone, Debug)]
pub struct CopyOptions {
    /// What the source must be like.
    pub source_condition: Condition,
    /// What the key of the copy must hold before.
    pub condition: Condition,
    /// Which bytes; none: all.
    pub range: Option<Range<u64>>,
    /// MD5 of these bytes, if it is known. Else a copy of all has the ETag of its source, and one
    /// of a range has one that no other object of the bucket has.
    pub md5: Option<[u8; 16]>,
    /// What the copy says of itself.
    pub metadata: CopiedMetadata,
    /// Whether the copy returns when no crash can take it back.
    pub durability: Durability,
    /// Milliseconds since 1970: the copy's time.
    pub now_ms: u64,
}

impl CopyOptions {
    /// All of the object, as it is; acknowledged.
    #[must_use]
    pub fn new(now_ms: u64) -> Self {
        Self {
            source_condition: Condition::None,
            condition: Condition::None,
            range: None,
            md5: None,
            metadata: CopiedMetadata::Keep,
            durability: Durability::Acknowledged,
            now_ms,
        }
    }
}

impl Bucket {
    /// Copies an object, over itself as well.
    ///
    /// # Errors
    /// [`BucketError::NoSuchObject`], [`BucketError::ConditionFailed`],
    /// [`BucketError::OutsideObject`]; [`BucketError`].
    pub fn copy(&self, from: &[u8], to: &[u8], options: CopyOptions) -> Result<Put, BucketError> {
        check_key(from)?;
        check_key(to)?;
        let core = &*self.core;
        core.check_writable()?;
        let mut edit = core.edit([from, to]);
        let now_ms = options.now_ms;
        let source = core.source(from, &options.source_condition, now_ms)?;
        let before = core.record(to)?;
        options.condition.judge(living(before.as_ref(), now_ms))?;
        let is_whole = is_whole(&source, options.range.as_ref());
        let version = core.versions.next(&*core.index)?;
        let etag = copied_etag(options.md5, &source, is_whole, version);
        let checksums = if is_whole { source.checksums.clone() } else { Vec::new() };
        let (metadata, expires_unix_ms) = match options.metadata {
            CopiedMetadata::Replace { metadata, expires_unix_ms } => (metadata, expires_unix_ms),
            CopiedMetadata::Keep => (metadata_of(&source), source.expires_unix_ms),
        };
        let keeps_value = from == to && is_whole;
        let value = match keeps_value {
            true => source.value.clone(),
            false => core.copied_value(&mut edit, &source, options.range)?,
        };
        let record = new_record(version, etag, value, now_ms, metadata);
        let record = ObjectRecord { expires_unix_ms, checksums, ..record };
        match keeps_value {
            true => edit.set_record(to, before.as_ref(), &record),
            false => edit.set_object(to, before.as_ref(), &record)?,
        }
        edit.finish(options.durability)?;
        Ok(Put::of(&record))
    }
}

impl Core {
    /// The object that is to be copied; its key is locked.
    pub(super) fn source(
        &self,
        key: &[u8],
        condition: &Condition,
        now_ms: u64,
    ) -> Result<ObjectRecord, BucketError> {
        let found = self.record(key)?;
        let source = living(found.as_ref(), now_ms).ok_or(BucketError::NoSuchObject)?;
        condition.judge(Some(source))?;
        found.ok_or(BucketError::NoSuchObject)
    }

    /// A value with bytes of the source, for a record of the batch.
    pub(super) fn copied_value(
        &self,
        edit: &mut Edit<'_>,
        source: &ObjectRecord,
        range: Option<Range<u64>>,
    ) -> Result<Value, BucketError> {
        let size_bytes = source.size_bytes();
        let range = range.unwrap_or(0..size_bytes);
        if range.start > range.end || range.end > size_bytes {
            return Err(BucketError::OutsideObject { size_bytes });
        }
        let entries = match &source.value {
            Value::Inline(bytes) => {
                let part = bytes[range.start as usize..range.end as usize].to_vec();
                return Ok(Value::Inline(part));
            }
            Value::List(entries) if range == (0..size_bytes) => {
                edit.values.share(entries)?;
                return Ok(source.value.clone());
            }
            Value::List(_) if range.is_empty() => return Ok(Value::EMPTY),
            Value::List(_) => self.values.slice(&source.value, &range)?,
        };
        let mut composer = self.values.composer(SegmentPolicy::Fixed);
        let composed = composer.append_entries(&entries).and_then(|()| composer.finish());
        match composed {
            Ok(written) => {
                edit.values.share(&entries)?;
                Ok(edit.values.name(written))
            }
            Err(ValueError::TooDeep) => self.rewritten(edit, &[(&source.value, range)]),
            Err(error) => Err(error.into()),
        }
    }

    /// A value with the bytes of others, read and written again. They stay meanwhile, because their
    /// keys are locked.
    pub(super) fn rewritten(
        &self,
        edit: &mut Edit<'_>,
        pieces: &[(&Value, Range<u64>)],
    ) -> Result<Value, BucketError> {
        let mut writer = self.values.writer(self.segments);
        let mut bytes = vec![0; REWRITTEN_BYTES];
        for (value, range) in pieces {
            let mut reader = self.reader_of_kept(value);
            let mut at = range.start;
            while at < range.end {
                let length = (range.end - at).min(REWRITTEN_BYTES as u64) as usize;
                let found = reader.read_at(at, &mut bytes[..length])?;
                assert!(found == length, "a record knows how long its value is");
                writer.write(&bytes[..length])?;
                at += length as u64;
            }
        }
        Ok(edit.values.name(writer.finish()?))
    }

    /// A reader of a value that nobody releases meanwhile, because its key is locked or its writer
    /// holds it: what the trimmer chose between look-up and pin is nothing of it.
    pub(super) fn reader_of_kept(&self, value: &Value) -> ValueReader {
        loop {
            if let Some(pinned) = self.values.pin(self.values.lookup(), value) {
                return pinned.reader(&self.values);
            }
        }
    }
}

pub(super) fn is_whole(source: &ObjectRecord, range: Option<&Range<u64>>) -> bool {
    range.is_none_or(|range| *range == (0..source.size_bytes()))
}

/// The ETag of a copy that is put as `version`.
pub(super) fn copied_etag(
    md5: Option<[u8; 16]>,
    source: &ObjectRecord,
    is_whole: bool,
    version: u64,
) -> ETag {
    match md5 {
        Some(md5) => ETag { md5, parts: None },
        None if is_whole => source.etag,
        None => {
            let number = u128::from(version) << 64 | u128::from(source.version);
            ETag { md5: number.to_be_bytes(), parts: None }
        }
    }
}

fn metadata_of(record: &ObjectRecord) -> Metadata {
    let ObjectRecord { content_headers, user_metadata, tags, .. } = record.clone();
    Metadata { content_headers, user_metadata, tags }
}
