//! Room `plan`: what hardware a store needs for a workload, what is saturated first, and what it
//! costs beside storing everything.
//!
//! ```text
//! demand.rs    what clients want: bytes a second, reads, duplicates, compressibility, capacity
//! costs.rs     what each stage takes of a core and of memory, chunk by chunk
//!   └─ measure.rs   the stages that compute, timed on this machine
//! offload.rs   which stage is somebody else's: hashing, compression, look-ups
//! needs.rs     cores, memory, tables, bandwidths for the demand
//! carried.rs   the most that a number of cores carries, and what stops them
//! prices.rs    dollars, from a file or FIDR's;  bill.rs  what comes to what
//! plot.rs      cores drawn
//! ```
//!
//! A model of stages that add up: each chunk passes through copying, fingerprint, look-up and, if
//! it is unique, compression; each request through sockets and queues, each read to a device. All
//! but the look-up, which is one thread's, spread over cores. It
//! knows no queues, so it says what a machine can carry and nothing of latency. There is no store
//! here and no engine; `tamis plan` shows it.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

#[cfg(test)]
mod beside;
mod bill;
mod carried;
mod costs;
mod demand;
mod measure;
mod needs;
mod offload;
mod plot;
mod prices;

pub use bill::{Bill, bill};
pub use carried::{Bottleneck, CORES, Carried, Machine, carried};
pub use charts::PlotError;
pub use costs::StageCosts;
pub use demand::Demand;
pub use measure::{Sample, measure};
pub use needs::{Needs, needs};
pub use offload::Offload;
pub use plot::plot;
pub use prices::Prices;
