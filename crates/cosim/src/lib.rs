//! Room `cosim`: the hardware of `rtl/` beside the code that the store runs.
//!
//! ```text
//! build.rs   Verilator makes a C++ model of each block; cc compiles it with its shim
//! model.rs   a model with its clock: made, ticked, dropped. All `unsafe` of the room is here
//! blocks.rs  sha3_256 and bch_encoder as functions of bytes, with the cycles they took
//! dedup      DedupCore with host, memory and storage device, beside a plain map; its driver
//! ```
//!
//! A proof, as `lab` is: nothing imports it, and no program has it. It compiles without Verilator,
//! and then has nothing to simulate: [`VERILATOR`] says so, and tests are skipped with a sentence.
//! A test drives the inputs of a block cycle by cycle, and holds its outputs against the Rust code
//! of `reduce` or a plain map.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

#[cfg(verilator)]
mod blocks;
#[cfg(verilator)]
pub mod dedup;
#[cfg(verilator)]
mod model;

#[cfg(verilator)]
pub use blocks::{BchEncoder, PARITY_BYTES, SECTOR_BYTES, Sha3, Timed};
#[cfg(verilator)]
pub use model::{
    Bch, BchInputs, BchOutputs, Bench, Block, DedupCore, DedupInputs, DedupOutputs, Sha3Block,
    Sha3Inputs, Sha3Outputs, StubbedDedup,
};

/// Whether Verilator was there when this was compiled, so that there are models.
pub const VERILATOR: bool = cfg!(verilator);

/// SHA3 cores of [`DedupCore`]: `COSIM_CORES` when this was compiled, else four.
#[cfg(verilator)]
pub const CORES: u32 = match u32::from_str_radix(env!("COSIM_CORES"), 10) {
    Ok(cores) => cores,
    Err(_) => panic!("`COSIM_CORES` is a number"),
};

/// What a test says that has no model to test.
pub const SKIPPED: &str = "skipped: Verilator is not installed (Debian package `verilator`)";
