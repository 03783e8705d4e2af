//! The lab: the real engine on a simulated disk, one seed, and an oracle that knows every write.
//!
//! [`Simulation`] drives an [`engine::Engine`] step by step on one thread: inline workers, a
//! [`disk::MemoryDisk`] that completes out of order by the seed, no clock. Between steps it cuts
//! the power, lets unsynced writes be lost, kept or torn, opens the store again and asks the
//! `oracle` whether what is left is a prefix of what was written that holds everything flushed.
//! The same seed gives the same run to the byte.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod dice;
mod failure;
mod oracle;
mod simulation;
mod workload;

pub use dice::Dice;
pub use failure::Failure;

pub use simulation::{Plan, Simulation, Summary};
