//! The door of S3, over TCP, before a real store.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod access;
mod bodies;
mod checksums;
mod client;
mod columns;
mod damage;
mod documents;
mod keys;
mod listings;
mod objects;
mod rig;
mod settings;
mod signing;
mod slow;
mod tenants;
mod uploads;
