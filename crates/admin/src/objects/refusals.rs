//! What a bucket does not do, as who asked over the control socket gets it.

use buckets::BucketsError;
use objects::bucket::BucketError;
use objects::index::IndexError;
use objects::values::ValueError;

use crate::error::ControlError;
use crate::objects::ObjectKey;
use crate::protocol::{Refusal, RefusalKind};

impl From<BucketsError> for ControlError {
    /// What the engine refused stays the engine's error; all else is a refusal by what the caller
    /// can do about it.
    fn from(error: BucketsError) -> Self {
        let kind = kind_of(&error);
        match error {
            BucketsError::Request(request)
            | BucketsError::Bucket(
                BucketError::Index(IndexError::Volume(request))
                | BucketError::Value(
                    ValueError::Volume(request) | ValueError::Index(IndexError::Volume(request)),
                ),
            ) => Self::Request(request),
            error => Refusal { kind, sentence: error.to_string() }.into(),
        }
    }
}

impl From<BucketError> for ControlError {
    fn from(error: BucketError) -> Self {
        BucketsError::Bucket(error).into()
    }
}

fn kind_of(error: &BucketsError) -> RefusalKind {
    match error {
        BucketsError::NoSuchBucket { .. } => RefusalKind::NotFound,
        BucketsError::Exists { .. } => RefusalKind::Exists,
        BucketsError::BadName { .. }
        | BucketsError::NotEmpty { .. }
        | BucketsError::ChunkSize { .. } => RefusalKind::BadRequest,
        BucketsError::InUse { .. } | BucketsError::IsReplica { .. } => RefusalKind::InUse,
        BucketsError::Replication { .. } => RefusalKind::BadRequest,
        BucketsError::Bucket(error) => kind_of_bucket(error),
        BucketsError::NotRepaired { .. }
        | BucketsError::Closing
        | BucketsError::Request(_)
        | BucketsError::Machine(_) => RefusalKind::Failed,
    }
}

fn kind_of_bucket(error: &BucketError) -> RefusalKind {
    match error {
        error if error.is_no_space() => RefusalKind::NoSpace,
        BucketError::QuotaExceeded { .. } => RefusalKind::NoSpace,
        BucketError::NoSuchObject | BucketError::Index(IndexError::Unfinished) => {
            RefusalKind::NotFound
        }
        BucketError::ConditionFailed { .. } => RefusalKind::Exists,
        BucketError::DamagedEntry(_)
        | BucketError::Index(IndexError::Damaged(_))
        | BucketError::Value(
            ValueError::Damaged { .. }
            | ValueError::DamagedList { .. }
            | ValueError::DamagedExtents(_)
            | ValueError::Overlap(_)
            | ValueError::OutsideSpace(_)
            | ValueError::Index(IndexError::Damaged(_)),
        ) => RefusalKind::Damaged,
        BucketError::Index(IndexError::ReadOnly | IndexError::NoBucket(_))
        | BucketError::KeyLength { .. }
        | BucketError::OutsideObject { .. }
        | BucketError::Value(ValueError::TooLong) => RefusalKind::BadRequest,
        _ => RefusalKind::Failed,
    }
}

/// There is no object of this key.
pub(super) fn no_object(bucket: &str, key: &ObjectKey) -> ControlError {
    let sentence = format!("there is no object {key} in bucket {bucket}");
    Refusal { kind: RefusalKind::NotFound, sentence }.into()
}

/// The error of a change of this key, which names the key where the bucket does not.
pub(super) fn of_key(bucket: &str, key: &ObjectKey, error: BucketError) -> ControlError {
    match error {
        BucketError::NoSuchObject => no_object(bucket, key),
        BucketError::ConditionFailed { .. } => {
            let sentence = format!("bucket {bucket} has an object {key} already");
            Refusal { kind: RefusalKind::Exists, sentence }.into()
        }
        BucketError::Value(
            error @ (ValueError::Damaged { .. } | ValueError::DamagedList { .. }),
        ) => {
            let sentence = format!("the object {key} in bucket {bucket} is damaged: {error}");
            Refusal { kind: RefusalKind::Damaged, sentence }.into()
        }
        error => error.into(),
    }
}

/// The same of an error of [`buckets`].
pub(super) fn of_put(bucket: &str, key: &ObjectKey, error: BucketsError) -> ControlError {
    match error {
        BucketsError::Bucket(error) => of_key(bucket, key, error),
        error => error.into(),
    }
}
