//! Who asks, and whether it may: before anything of the request's body is read.
//!
//! Each operation that the door knows needs a right on the bucket of its path. What is not in the
//! table is not done here. The source of a copy is checked by the copy itself.

use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::validation::NameValidation;
use s3s::{S3Result, s3_error};

use crate::door::Door;
use crate::refused;

/// What an operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Right {
    /// A valid signature.
    None,
    /// The account may read the bucket.
    Read,
    /// The account may write the bucket.
    Write,
}

const OPERATIONS: [(&str, Right); 36] = [
    ("ListBuckets", Right::None),
    ("HeadBucket", Right::Read),
    ("ListObjects", Right::Read),
    ("ListObjectsV2", Right::Read),
    ("GetObject", Right::Read),
    ("HeadObject", Right::Read),
    ("GetObjectAttributes", Right::Read),
    ("GetObjectTagging", Right::Read),
    ("GetObjectAcl", Right::Read),
    ("ListMultipartUploads", Right::Read),
    ("ListParts", Right::Read),
    ("GetBucketLocation", Right::Read),
    ("GetBucketVersioning", Right::Read),
    ("GetBucketAcl", Right::Read),
    ("GetBucketCors", Right::Read),
    ("GetBucketTagging", Right::Read),
    ("GetBucketLifecycleConfiguration", Right::Read),
    ("CreateBucket", Right::Write),
    ("DeleteBucket", Right::Write),
    ("PutObject", Right::Write),
    ("CopyObject", Right::Write),
    ("DeleteObject", Right::Write),
    ("DeleteObjects", Right::Write),
    ("PutObjectTagging", Right::Write),
    ("DeleteObjectTagging", Right::Write),
    ("CreateMultipartUpload", Right::Write),
    ("UploadPart", Right::Write),
    ("UploadPartCopy", Right::Write),
    ("CompleteMultipartUpload", Right::Write),
    ("AbortMultipartUpload", Right::Write),
    ("PutBucketCors", Right::Write),
    ("DeleteBucketCors", Right::Write),
    ("PutBucketTagging", Right::Write),
    ("DeleteBucketTagging", Right::Write),
    ("PutBucketLifecycleConfiguration", Right::Write),
    ("DeleteBucketLifecycle", Right::Write),
];

#[async_trait::async_trait]
impl S3Auth for Door {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        match self.tenants.accounts().by_access_key(access_key) {
            Ok(Some(account)) => Ok(SecretKey::from(account.secret.reveal())),
            Ok(None) => Err(s3_error!(InvalidAccessKeyId)),
            Err(error) => Err(self.unreadable_accounts(&error)),
        }
    }
}

#[async_trait::async_trait]
impl S3Access for Door {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        let account = self.account(context.credentials())?;
        let bucket = context.s3_path().get_bucket_name().unwrap_or_default();
        let operation = context.s3_op().name();
        let right = right_of(operation);
        let may = match right {
            None | Some(Right::Write) => account.may_write(bucket),
            Some(Right::Read) => account.may_read(bucket),
            Some(Right::None) => true,
        };
        if !may {
            return Err(denied(bucket));
        }
        if right.is_none() {
            return Err(s3_error!(NotImplemented, "{operation} is not done here"));
        }
        refused::check(context.headers(), context.uri().query())?;
        self.admit(&account, operation).await
    }
}

/// The answer is the same with and without a bucket of that name.
pub(crate) fn denied(bucket: &str) -> s3s::S3Error {
    s3_error!(AccessDenied, "the account may not do this with {bucket}")
}

fn right_of(operation: &str) -> Option<Right> {
    OPERATIONS.iter().find(|(name, _)| *name == operation).map(|(_, right)| *right)
}

/// Names of buckets and snapshots in paths: what nobody has a bucket of is `NoSuchBucket`.
pub(crate) struct BucketNames;

impl NameValidation for BucketNames {
    fn validate_bucket_name(&self, name: &str) -> bool {
        let (bucket, snapshot) = match name.split_once('@') {
            Some((bucket, snapshot)) => (bucket, Some(snapshot)),
            None => (name, None),
        };
        let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_snapshot =
            |name: &str| (1..=255).contains(&name.len()) && name.bytes().all(is_of_names);
        ::buckets::check_bucket_name(bucket).is_ok() && snapshot.is_none_or(is_snapshot)
    }
}

#[cfg(test)]
mod tests {
    use s3s::validation::NameValidation;

    use super::{BucketNames, Right, right_of};

    #[test]
    fn operations_have_their_rights() {
        assert_eq!(right_of("GetObject"), Some(Right::Read));
        assert_eq!(right_of("CompleteMultipartUpload"), Some(Right::Write));
        assert_eq!(right_of("PutBucketPolicy"), None);
    }

    #[test]
    fn snapshots_have_names() {
        for name in ["photos", "photos@monday", "photos@2026-11-29_a.b"] {
            assert!(BucketNames.validate_bucket_name(name), "{name}");
        }
        for name in ["Photos", "photos@", "@monday", "photos@a@b", "photos@a b", ""] {
            assert!(!BucketNames.validate_bucket_name(name), "{name}");
        }
    }
}
