//! One account.

use serde::{Deserialize, Serialize};

use crate::keys::Secret;
use crate::pattern::BucketPattern;

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Its name, for people.
    pub name: String,
    /// The public half of its key pair.
    pub access_key: String,
    /// The other half.
    pub secret: Secret,
    /// Buckets that it may read.
    #[serde(default)]
    pub read: Vec<BucketPattern>,
    /// Buckets that it may read, write, make and delete.
    #[serde(default)]
    pub write: Vec<BucketPattern>,
    /// The dedup domain of the buckets that it makes; none: the store's default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// When it was made, in seconds since 1970.
    pub created_unix_s: u64,
}

impl Account {
    /// Whether it may read a bucket, or a snapshot of it.
    #[must_use]
    pub fn may_read(&self, bucket: &str) -> bool {
        self.may_write(bucket) || self.read.iter().any(|pattern| pattern.matches(bucket))
    }

    /// Whether it may write, make and delete a bucket.
    #[must_use]
    pub fn may_write(&self, bucket: &str) -> bool {
        self.write.iter().any(|pattern| pattern.matches(bucket))
    }
}

/// What a new account is like.
#[derive(Clone, Debug, Default)]
pub struct NewAccount {
    /// Its name.
    pub name: String,
    /// Buckets that it may read.
    pub read: Vec<BucketPattern>,
    /// Buckets that it may read, write, make and delete.
    pub write: Vec<BucketPattern>,
    /// The dedup domain of the buckets that it makes.
    pub domain: Option<String>,
    /// Now, in seconds since 1970.
    pub created_unix_s: u64,
}

/// Whether people and programs can tell an account by this name.
pub(crate) fn is_account_name(name: &str) -> bool {
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    (1..=64).contains(&name.len()) && name.bytes().all(is_of_names)
}
