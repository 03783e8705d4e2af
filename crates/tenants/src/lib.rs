//! Room tenants: how much of a served store each of those who share it may use, and how much it
//! did.
//!
//! ```text
//! accounts.json ──> Tenants ──> Tenant ── charge: a token bucket ──> how long its socket is unread
//!   (refresh)          │          ├───── record, moved: its figures
//!                      │          └───── quota of its buckets (room `buckets` asks)
//! doors ──> Pool ── enter: a slot, now or when it is its turn
//! ```
//!
//! A tenant is a dedup domain with limits: the account of kind tenant names both, and whatever
//! other account has the same domain is the same tenant's. So two tenants never share a chunk, and
//! several key pairs of one tenant share its limits.
//!
//! The parts that decide have no clock and no thread: [`TokenBucket`] and [`Shares`] are told the
//! time, or what happened. [`Tenant`] and [`Pool`] put locks around them.
//!
//! Invariants:
//! 1. Over any interval a tenant is granted at most its burst and what its rates give in that time.
//! 2. Nobody waits for tokens that are there, or for a slot that nobody else may claim.
//! 3. A slot that becomes free goes to the waiting tenant that holds fewest.
//!
//! Why it is made like this: decision 067.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod figures;
mod follower;
mod latency;
mod pool;
mod rates;
mod registry;
mod shares;
mod tenant;
mod token_bucket;

pub use figures::{Operation, OperationFigures, TenantFigures};
pub use follower::Follower;
pub use pool::{Pool, Slot};
pub use rates::Rates;
pub use registry::Tenants;
pub use shares::{PartyId, Shares};
pub use tenant::{Tenant, TooFarBehind};
pub use token_bucket::TokenBucket;
