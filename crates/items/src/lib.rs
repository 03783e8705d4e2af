//! Room items: the items of memcached clients, kept as the objects of a bucket.
//!
//! ```text
//! door ──> memcached::Connection ──> ItemsConnection (memcached::Cache)     cache.rs
//!             reads ──> hot items, else the bucket ──> hot items            read.rs, hot.rs
//!             changes ──> one transaction a run of them ──> hot items       change.rs
//!             long values ──> written first, then a transaction             long.rs
//!             flush_all ──> a document of the bucket                        flush.rs
//!             beyond its bound, a bucket loses what nobody reads            evict.rs
//! upkeep, a thread ──> deletes what a flush has ended                       upkeep.rs
//! ```
//!
//! The key of an item is that of its object, and its value the object's bytes, so S3 and memcached
//! see the same. What memcached keeps beside the value is told from the object (`marks.rs`). When
//! an item was last read, and that it was, is in memory only.
//!
//! Invariants: an item that is answered was the object at a moment between the request and its
//! answer, whichever door changed it; answers are in the order of requests; what was answered with
//! `STORED` is in the store's order, so that a crash keeps a prefix, or is durable where
//! [`ItemsOptions::durability`] says so. Why it is made like this: decision 065.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod cache;
mod change;
mod evict;
mod fault;
mod flush;
mod hot;
mod items;
mod long;
mod marks;
mod outcome;
mod read;
mod shared;
mod totals;
mod upkeep;
mod wanted;

pub use cache::ItemsConnection;
pub use items::{Items, ItemsError, ItemsOptions};
pub use long::{ItemReader, ItemWriter};
