//! Room accounts: who may use buckets, with which key pair, and in which dedup domain.
//!
//! ```text
//! tamis account create ──> accounts.json in the store's directory, mode 0600 <── doors, at each look-up
//!                            written beside, synced, renamed; one writer at a time (accounts.lock)
//! ```
//!
//! A door needs the secret itself, for a signature of S3 is made with it, so the file has secrets and
//! nobody but its owner may read it: a file that others may read is refused. Nothing here prints a
//! secret; [`Secret`] shows none.
//!
//! Invariants: a name and an access key are those of one account; a reader sees the file before a
//! change or after it.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod account;
mod error;
mod file;
mod keys;
mod pattern;

pub use account::{Account, NewAccount};
pub use error::AccountsError;
pub use file::Accounts;
pub use keys::Secret;
pub use pattern::BucketPattern;
