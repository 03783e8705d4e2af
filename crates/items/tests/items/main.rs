//! Items over buckets of real stores in memory.

#![cfg(test)]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod doors;
mod model;
mod rig;
