//! The tables over a device in memory, against plain models, and through crashes.
//!
//! One binary: each would link the whole room again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod damage;
mod device;
mod eviction;
mod hash_table;
mod page_life;
mod priorities;
mod store_model;
mod tables_model;
mod tables_rig;
