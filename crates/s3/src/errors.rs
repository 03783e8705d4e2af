//! What each error of ours is called in S3: the one table of codes.
//!
//! | ours | S3 |
//! |---|---|
//! | no such bucket or object | `NoSuchBucket`, `NoSuchKey` |
//! | no such upload or part | `NoSuchUpload`, `InvalidPart` |
//! | condition not met | `PreconditionFailed`; of a read also `NotModified` (`conditions.rs`) |
//! | quota of the bucket, the tenant or the volume | `QuotaExceeded`, 403: waiting does not help |
//! | the store is full | `InsufficientStorage`, 507: clients stop, and deletes still work |
//! | damage | `InternalError`, and the operator hears which bytes |
//! | closing, in use, a replica is away | `ServiceUnavailable`, `OperationAborted`: try again |

use std::borrow::Cow;

use buckets::BucketsError;
use hyper::StatusCode;
use objects::bucket::BucketError;
use objects::index::IndexError;
use objects::values::ValueError;
use s3s::{S3Error, S3ErrorCode, s3_error};
use store::RequestError;

/// What a client hears of an error about `place`.
pub(crate) fn refusal(error: &BucketsError, place: &str, observer: &dyn Fn(&str)) -> S3Error {
    match error {
        BucketsError::NoSuchBucket { .. } => s3_error!(NoSuchBucket),
        BucketsError::Exists { .. } => s3_error!(BucketAlreadyExists, "{error}"),
        BucketsError::BadName { .. } => s3_error!(InvalidBucketName, "{error}"),
        BucketsError::NotEmpty { .. } => s3_error!(BucketNotEmpty, "{error}"),
        BucketsError::InUse { .. } => s3_error!(OperationAborted, "{error}"),
        BucketsError::ChunkSize { .. } => s3_error!(NotImplemented, "{error}"),
        BucketsError::Closing | BucketsError::IsReplica { .. } => {
            s3_error!(ServiceUnavailable, "{error}")
        }
        BucketsError::Replication { .. } => s3_error!(OperationAborted, "{error}"),
        BucketsError::Bucket(error) => of_bucket(error, place, observer),
        BucketsError::Request(error) => of_request(error, place, observer),
        BucketsError::NotRepaired { .. } | BucketsError::Machine(_) => {
            internal(error, place, observer)
        }
    }
}

fn of_bucket(error: &BucketError, place: &str, observer: &dyn Fn(&str)) -> S3Error {
    if error.is_no_space() {
        return no_space();
    }
    match error {
        BucketError::KeyLength { .. } => s3_error!(KeyTooLongError, "{error}"),
        BucketError::ConditionFailed { .. } => s3_error!(PreconditionFailed, "{error}"),
        BucketError::QuotaExceeded { .. } => quota_exceeded(error.to_string()),
        BucketError::NoSuchObject => s3_error!(NoSuchKey),
        BucketError::NoSuchUpload { .. } => s3_error!(NoSuchUpload),
        BucketError::PartNumber { .. } => s3_error!(InvalidArgument, "{error}"),
        BucketError::NoSuchPart { .. } => s3_error!(InvalidPart, "{error}"),
        BucketError::PartOrder => s3_error!(InvalidPartOrder, "{error}"),
        BucketError::OutsideObject { .. } => s3_error!(InvalidRange, "{error}"),
        BucketError::TwoChecksums => s3_error!(InvalidRequest, "{error}"),
        BucketError::DocumentTooLong { .. } => s3_error!(EntityTooLarge, "{error}"),
        BucketError::Value(ValueError::TooLong) => s3_error!(EntityTooLarge, "{error}"),
        BucketError::Index(IndexError::ReadOnly) => s3_error!(AccessDenied, "{error}"),
        BucketError::Index(IndexError::Volume(request))
        | BucketError::Value(
            ValueError::Volume(request) | ValueError::Index(IndexError::Volume(request)),
        ) => of_request(request, place, observer),
        _ => internal(error, place, observer),
    }
}

fn of_request(error: &RequestError, place: &str, observer: &dyn Fn(&str)) -> S3Error {
    match error {
        RequestError::NoSpace => no_space(),
        RequestError::QuotaExceeded { .. } => quota_exceeded(error.to_string()),
        RequestError::ReadOnly { .. } => s3_error!(AccessDenied, "{error}"),
        RequestError::NoSuchVolume { .. } => s3_error!(NoSuchBucket),
        RequestError::VolumeExists { .. } => s3_error!(BucketAlreadyExists, "{error}"),
        RequestError::InUse { .. } => s3_error!(OperationAborted, "{error}"),
        RequestError::NotReplicated { .. } => s3_error!(ServiceUnavailable, "{error}"),
        RequestError::HasSnapshots { .. } => s3_error!(BucketNotEmpty, "{error}"),
        _ => internal(error, place, observer),
    }
}

/// What nobody but the operator can do anything about.
fn internal(error: &dyn std::error::Error, place: &str, observer: &dyn Fn(&str)) -> S3Error {
    observer(&format!("S3: {place}: {error}"));
    s3_error!(InternalError, "the store could not do this; its operator has been told why")
}

fn no_space() -> S3Error {
    let message = "the store is full; objects can be read and deleted";
    custom("InsufficientStorage", StatusCode::INSUFFICIENT_STORAGE, message)
}

/// The number of a part that the object does not have.
pub(crate) fn no_part(parts: u16) -> S3Error {
    let message = format!("the object has the parts 1 to {parts}");
    custom("InvalidPartNumber", StatusCode::RANGE_NOT_SATISFIABLE, message)
}

fn quota_exceeded(message: String) -> S3Error {
    custom("QuotaExceeded", StatusCode::FORBIDDEN, message)
}

/// An error that S3 has no code for.
fn custom(
    code: &'static str,
    status: StatusCode,
    message: impl Into<Cow<'static, str>>,
) -> S3Error {
    let mut error = S3Error::with_message(S3ErrorCode::Custom(code.into()), message);
    error.set_status_code(status);
    error
}

/// The body has other bytes than its signature says.
pub(crate) fn other_sha256() -> S3Error {
    let message = "the body does not have the SHA-256 it was signed with";
    custom("XAmzContentSHA256Mismatch", StatusCode::BAD_REQUEST, message)
}

/// What s3s says of a body that does not come as it was announced. Its types are private, so their
/// texts are all there is to tell them by.
pub(crate) fn of_body(error: &(dyn std::error::Error + Send + Sync)) -> S3Error {
    let text = error.to_string();
    let has = |part: &str| text.contains(part);
    match () {
        () if has("Sha256Mismatch") => other_sha256(),
        () if has("SignatureMismatch") => s3_error!(SignatureDoesNotMatch),
        () if has("Trailer") || has("ChunkMeta") || has("FormatError") => {
            s3_error!(InvalidRequest, "the chunks of the body cannot be read")
        }
        () => s3_error!(IncompleteBody),
    }
}

#[cfg(test)]
mod tests {
    use buckets::BucketsError;
    use objects::bucket::BucketError;
    use s3s::S3ErrorCode;
    use store::RequestError;

    use super::refusal;

    #[test]
    fn a_full_store_a_quota_and_damage_are_told_apart() {
        let told = std::cell::RefCell::new(Vec::new());
        let observer = |note: &str| told.borrow_mut().push(note.to_owned());
        let refused = |error: BucketsError| refusal(&error, "photos/cat", &observer);
        let full = refused(RequestError::NoSpace.into());
        assert_eq!(full.status_code().unwrap().as_u16(), 507);
        let of = objects::bucket::QuotaOf::Tenant;
        let quota =
            BucketError::QuotaExceeded { of, quota_bytes: 1, used_bytes: 1, growth_bytes: 1 };
        assert_eq!(refused(quota.into()).status_code().unwrap().as_u16(), 403);
        let none = refused(BucketError::NoSuchObject.into());
        assert_eq!(*none.code(), S3ErrorCode::NoSuchKey);
        assert!(told.borrow().is_empty());
        let reason = Box::new(RequestError::NoSpace);
        let damaged = objects::values::ValueError::Damaged { bytes: 4096..8192, reason };
        let refused = refused(BucketError::from(damaged).into());
        assert_eq!(*refused.code(), S3ErrorCode::InternalError);
        assert!(told.borrow()[0].contains("photos/cat: bytes 4096 to 8191"), "{told:?}");
    }
}
