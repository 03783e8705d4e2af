//! Room `models`: studies that count instead of running the engine.
//!
//! ```text
//! cache      what the tables cost by cache size, replacement policy, filter, locality, neighbours
//! flash      ways to find a duplicate on a simulated flash device: the tables of EaD's paper
//! fidr       FIDR in closed form: tables, the tree of its cache engine, cost
//! server     a storage server by its resources: cores, DRAM, PCIe, table engine
//! cidr       CIDR and CAL'17: large chunks, predictor, layout, scheduler, devices apart
//! dedupcore  DedupCore: hashing, filters, look-ups by events
//! multes     Multes++: fingerprints at the rate of the line, round trips, tenants, a Parquet pair
//! through_engine FIDR's workloads and real data through the real engine, beside the models
//! reproduction   every row of the papers beside ours, and docs/reproduction.md
//!   └─ row.rs kind.rs parameter.rs units.rs   what a row is, and what models are given
//! columns.rs tables as text;   dice.rs   chance that follows from a seed
//! ```
//!
//! A model has no engine, no stored bytes and no clock. Its figures follow from a workload or a
//! trace and a seed, so that a figure in `docs/measurements` can be made again to the digit. Only
//! `through_engine` has an engine. Its faults are sought in room `lab`, its speed in `bench`.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

pub mod cache;
pub mod cidr;
mod columns;
pub mod dedupcore;
mod dice;
pub mod fidr;
pub mod flash;
mod kind;
pub mod multes;
mod parameter;
pub mod reproduction;
mod row;
pub mod server;
pub mod through_engine;
pub mod units;

pub use charts::PlotError;
pub use kind::Kind;
pub use parameter::{Mark, Parameter};
pub use row::{Basis, Paper, Row, Tolerance, Verdict};
