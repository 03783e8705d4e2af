//! The lab's own claims: what it finds, and what was found with it.
//!
//! One binary: each would link the whole room again.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod crash_schedules;
mod crashes;
mod damage;
mod findings;
mod fullness;
mod stored_images;
