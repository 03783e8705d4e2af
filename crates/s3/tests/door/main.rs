//! The door of S3, over TCP, before a real store.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod access;
mod client;
mod listings;
mod objects;
mod rig;
mod settings;
mod signing;
mod uploads;
