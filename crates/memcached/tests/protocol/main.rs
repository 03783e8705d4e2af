//! Conversations with a connection over the model cache: what is sent, and what is answered.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod bounds;
mod classic;
mod faults;
mod login;
mod meta;
mod parts;
mod properties;
mod talk;
mod told;
mod waiting;
mod ways;
