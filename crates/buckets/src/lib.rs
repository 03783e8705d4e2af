//! Room buckets: the buckets of a running store, by name, for every door.
//!
//! ```text
//! doors (s3, admin) ──> Buckets::open("photos") ──> OpenBucket ──> objects::Bucket ──> its volume
//!                            └── one open handle a bucket, shared; the oldest idle one is closed
//! upkeep, a thread ────> merges, frees, expires in each open bucket; lifecycle.rs: by rules
//! ```
//!
//! The states of a bucket in this process:
//!
//! ```text
//! closed ──open──> open ──idle and memory is short, Buckets::close──> closed
//!                   └──delete: no request holds it──> gone
//! ```
//!
//! `copies.rs` and `replicated.rs`: one of two copies of a bucket (decision 068) is here. A primary
//! is opened through the room that has its connection, a replica by nobody.
//!
//! `repair.rs` lets a damaged bucket of a store that is not served take a new index.
//!
//! Room `objects` has no thread, clock or randomness; this room gives it all three. A bucket is a
//! volume of kind bucket, so snapshots and clones of volumes are those of buckets: `photos@monday`
//! is opened read-only.
//!
//! Invariants: a bucket has one open handle in a process, whatever the number of doors; a bucket
//! that a request holds is neither closed nor deleted.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod copies;
mod counting;
mod domains;
mod error;
pub mod lifecycle;
mod mapped;
mod name;
mod opened;
mod put;
mod registry;
mod repair;
mod replicated;
mod slots;
#[cfg(test)]
mod tests;
mod upkeep;

use std::time::{SystemTime, UNIX_EPOCH};

pub use copies::{Replicator, holds_mixture};
pub use counting::DomainUsage;
pub use domains::DomainQuotas;
pub use error::BucketsError;
pub use mapped::CopyError;
pub use name::{BUCKET_NAME_BYTES_MAX, check_bucket_name};
pub use opened::OpenBucket;
pub use put::ObjectWriter;
pub use registry::{BucketInfo, Buckets, NewBucket};
pub use repair::{
    BucketRepairOptions, REPAIRING_SUFFIX, is_being_repaired, remove_leftovers, repair_bucket,
};
pub use replicated::Replication;
pub use slots::BucketsOptions;

/// Milliseconds since 1970.
#[must_use]
pub fn now_unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
