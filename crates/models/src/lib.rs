//! Room `models`: studies that count instead of running the engine.
//!
//! ```text
//! cache      what the tables cost by cache size, replacement policy, filter, locality, neighbours
//! flash      ways to find a duplicate on a simulated flash device: the tables of EaD's paper
//! columns.rs tables as text;   dice.rs   chance that follows from a seed
//! ```
//!
//! A model has no engine, no stored bytes and no clock. Its figures follow from a workload or a
//! trace and a seed, so that a figure in `docs/measurements` can be made again to the digit.
//! The real engine on a simulated disk is room `lab`'s, and the real engine on a real disk
//! `bench`'s.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

pub mod cache;
mod columns;
mod dice;
pub mod flash;

pub use charts::PlotError;
