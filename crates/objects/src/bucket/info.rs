//! What a bucket says of an object.

use format::objects::OBJECT_KEY_BYTES_MAX;
use format::objects::record::metadata::{Checksum, ContentHeaders, Tags, UserMetadata};
use format::objects::record::{ETag, ObjectRecord};

use super::error::BucketError;

/// What users say of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Content-Type and its like.
    pub content_headers: ContentHeaders,
    /// `x-amz-meta-` and its like.
    pub user_metadata: UserMetadata,
    /// Tags.
    pub tags: Tags,
}

/// An object without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Grows with every put of the bucket.
    pub version: u64,
    /// Bytes of the object.
    pub size_bytes: u64,
    /// What S3 calls its content.
    pub etag: ETag,
    /// When it was put, in milliseconds since 1970.
    pub created_unix_ms: u64,
    /// When it ends, in milliseconds since 1970.
    pub expires_unix_ms: Option<u64>,
    /// What its sender says of it.
    pub metadata: Metadata,
    /// What its sender said that its bytes come to.
    pub checksums: Vec<Checksum>,
}

impl From<ObjectRecord> for ObjectInfo {
    fn from(record: ObjectRecord) -> Self {
        let size_bytes = record.size_bytes();
        Self {
            version: record.version,
            size_bytes,
            etag: record.etag,
            created_unix_ms: record.created_unix_ms,
            expires_unix_ms: record.expires_unix_ms,
            metadata: Metadata {
                content_headers: record.content_headers,
                user_metadata: record.user_metadata,
                tags: record.tags,
            },
            checksums: record.checksums,
        }
    }
}

/// Whether an object has ended.
pub(super) fn has_expired(record: &ObjectRecord, now_ms: u64) -> bool {
    record.expires_unix_ms.is_some_and(|expires| expires <= now_ms)
}

/// The object that a record stands for: none when it has expired.
pub(super) fn living(record: Option<&ObjectRecord>, now_ms: u64) -> Option<&ObjectRecord> {
    record.filter(|record| !has_expired(record, now_ms))
}

pub(super) fn check_key(key: &[u8]) -> Result<(), BucketError> {
    match (1..=OBJECT_KEY_BYTES_MAX).contains(&key.len()) {
        true => Ok(()),
        false => Err(BucketError::KeyLength { bytes: key.len() }),
    }
}
