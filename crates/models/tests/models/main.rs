//! What the models claim, whatever the seed.
//!
//! One binary: each would link the whole room again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod cache;
mod flash;
mod reproduction;
