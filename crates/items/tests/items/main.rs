//! Items over buckets of real stores in memory.

#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod bounds;
mod doors;
mod hit_rates;
mod kills;
mod model;
mod parts;
mod rig;
mod threads;
mod waiting;
