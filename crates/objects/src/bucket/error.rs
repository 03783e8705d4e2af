//! Why a bucket did not do what it was asked to, by what the caller can do about it.

use format::FormatError;
use format::objects::OBJECT_KEY_BYTES_MAX;
use format::objects::record::{ETag, PARTS_MAX};
use store::RequestError;

use crate::index::IndexError;
use crate::values::ValueError;

/// What a request found that it does not want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Version of the object.
    pub version: u64,
    /// Its ETag.
    pub etag: ETag,
    /// When it was put, in milliseconds since 1970.
    pub created_unix_ms: u64,
}

/// What has a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaOf {
    /// One bucket.
    Bucket,
    /// All buckets of a tenant together.
    Tenant,
}

impl QuotaOf {
    fn holds(self) -> &'static str {
        match self {
            Self::Bucket => "the bucket holds",
            Self::Tenant => "the buckets of the tenant hold",
        }
    }

    fn its(self) -> &'static str {
        match self {
            Self::Bucket => "its",
            Self::Tenant => "their",
        }
    }
}

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The index did not answer, or the bucket is read-only.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A value could not be written, read or freed.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// An entry of the index is none that a program writes.
    #[error("an entry of the bucket's index is damaged: {0}")]
    DamagedEntry(#[from] FormatError),
    /// Keys have 1 to 1,024 bytes.
    #[error("a key of {bytes} bytes is none: keys have 1 to {OBJECT_KEY_BYTES_MAX} bytes")]
    KeyLength {
        /// Its length.
        bytes: usize,
    },
    /// What the key holds does not meet the condition; nothing has changed.
    #[error("the object does not meet the condition of the request")]
    ConditionFailed {
        /// What the key holds; none: no object.
        found: Option<Found>,
    },
    /// The bucket, or all of its tenant, would hold more than the quota; nothing has changed.
    #[error(
        "{} {used_bytes} bytes, and {growth_bytes} more are over {} quota of {quota_bytes}",
        .of.holds(),
        .of.its()
    )]
    QuotaExceeded {
        /// What has the quota.
        of: QuotaOf,
        /// The quota.
        quota_bytes: u64,
        /// What is held, and what others are about to put.
        used_bytes: u64,
        /// What this request would add.
        growth_bytes: u64,
    },
    /// The key has no object.
    #[error("there is no object of this key")]
    NoSuchObject,
    /// The key has no upload of this number: it was completed or aborted, or never begun.
    #[error("there is no upload {upload} of this key")]
    NoSuchUpload {
        /// Its number.
        upload: u64,
    },
    /// Parts have the numbers 1 to 10,000.
    #[error("{number} is no number of a part: parts have 1 to {PARTS_MAX}")]
    PartNumber {
        /// The number.
        number: u16,
    },
    /// A part that a completion names is not there, or has another ETag.
    #[error("the upload has no part {number} of this ETag")]
    NoSuchPart {
        /// The number.
        number: u16,
    },
    /// A completion names no part, or parts that are not in the order of their numbers.
    #[error("a completion names at least one part, and parts in the order of their numbers")]
    PartOrder,
    /// A copied range does not lie in its object.
    #[error("the range to copy is not in the object, which has {size_bytes} bytes")]
    OutsideObject {
        /// Bytes of the object.
        size_bytes: u64,
    },
    /// The name of a document is empty or too long.
    #[error("a document's name of {bytes} bytes is none: names have 1 to {limit} bytes")]
    DocumentName {
        /// Its length.
        bytes: usize,
        /// Most bytes of a name.
        limit: usize,
    },
    /// A document is too long.
    #[error("a document has at most {limit} bytes, and this one has {bytes}")]
    DocumentTooLong {
        /// Its length.
        bytes: usize,
        /// Most bytes of a document.
        limit: usize,
    },
    /// A checksum stands there twice.
    #[error("an object has at most one checksum of each algorithm")]
    TwoChecksums,
}

impl BucketError {
    /// Whether the store has no room for the request, so that deletions help.
    #[must_use]
    pub fn is_no_space(&self) -> bool {
        let request = match self {
            Self::Index(IndexError::Volume(request))
            | Self::Value(
                ValueError::Volume(request) | ValueError::Index(IndexError::Volume(request)),
            ) => request,
            Self::Value(ValueError::NoAddresses { .. }) => return true,
            _ => return false,
        };
        matches!(request, RequestError::NoSpace)
    }
}
