//! The lab's own claims: what its models find, and what was found with them.
//!
//! One binary: each would link the whole room again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod cache_study;
mod crash_schedules;
mod crashes;
mod damage;
mod findings;
mod flash;
mod fullness;
mod stored_images;
