//! One account.

use std::num::NonZeroU64;

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
    /// Of an account of kind tenant, what it may use. It has a domain, which no other tenant has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantLimits>,
    /// When it was made, in seconds since 1970.
    pub created_unix_s: u64,
}

/// What a tenant may use; what is not given is not limited.
///
/// A request of `n` bytes takes `1 / requests_per_s + n / bytes_per_s` seconds of the tenant's
/// time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantLimits {
    /// Most bytes of the objects in all its buckets together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota_bytes: Option<u64>,
    /// Requests a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_s: Option<NonZeroU64>,
    /// Bytes a second, of requests and answers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<NonZeroU64>,
    /// How much it may do at once after a pause: what its rates give in this time, in ms. None:
    /// [`TenantLimits::BURST_MS_DEFAULT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_ms: Option<u32>,
}

impl TenantLimits {
    /// The burst of who was given none.
    pub const BURST_MS_DEFAULT: u32 = 1000;
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
    /// Of an account of kind tenant, what it may use. It gets a domain of its name if it is given
    /// none.
    pub tenant: Option<TenantLimits>,
    /// Now, in seconds since 1970.
    pub created_unix_s: u64,
}

/// Whether people and programs can tell an account by this name.
pub(crate) fn is_account_name(name: &str) -> bool {
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    (1..=64).contains(&name.len()) && name.bytes().all(is_of_names)
}
