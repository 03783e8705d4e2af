//! Room accounts: who may use buckets, with which key pair, and in which dedup domain.
//!
//! ```text
//! tamis account create ──> accounts.json in the store's directory <── doors, at each look-up
//!   one writer at a time     mode 0600; written beside, synced, renamed
//! ```
//!
//! A door needs the secret itself, for a signature of S3 is made with it. So the file has secrets,
//! and one that others than its owner may read is refused. Nothing here prints a secret; [`Secret`]
//! shows none.
//!
//! Invariants: a name and an access key are those of one account; no two tenants have the same
//! domain; a reader sees the file before a change or after it.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod account;
mod error;
mod file;
mod keys;
mod pattern;

pub use account::{Account, NewAccount, TenantLimits};
pub use error::AccountsError;
pub use file::{Accounts, AllAccounts};
pub use keys::Secret;
pub use pattern::BucketPattern;
