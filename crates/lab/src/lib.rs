//! The lab: the real engine on a simulated disk, one seed, and an oracle that knows every write.
//!
//! ```text
//! workload.rs   a seed becomes a script      script.rs   a script is text, and text a script
//! simulation.rs life after life of one store session.rs  requests; answers.rs: their answers
//! opening.rs    the engine, step by step     tap.rs      the disk, listened to at every write
//! aside.rs      what each crash would leave  oracle.rs   which prefixes explain what is found
//! trouble.rs    what else goes wrong with a disk   shrink.rs  a failing script made short
//! doubt.rs      what failed requests leave open    rest.rs    what a store at rest must be
//! damaged.rs    wrong bytes on the medium, and their repair
//! fullness.rs   stores that are filled to the last chunk
//! cache_study/ what the tables cost by cache, policy and filter: a model, without the engine
//! flash/       ways to find a duplicate on a simulated flash device: a model as well
//! image/        stores of earlier releases, kept for the tests
//! ```
//!
//! [`Simulation`] drives an [`engine::Engine`] step by step on one thread: inline workers, a
//! [`disk::MemoryDisk`] that completes out of order by the seed, no clock. At every write of the
//! run, those of recoveries included, it looks aside: what if the power went here, or the process
//! died? What would be left is checked, opened, compared with the oracle, and crashed once more
//! while it is being opened. The run itself goes on, through crashes of its own.
//! The same seed gives the same run to the byte: [`Summary::digest`] says so.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod ailing;
mod answers;
mod aside;
pub mod cache_study;
mod columns;
mod damage;
mod damage_atlas;
mod damage_driver;
mod damage_hit;
mod damage_named;
mod damage_pair;
mod damage_store;
mod damage_truth;
mod damage_twice;
mod damage_twice_life;
mod damage_twice_mend;
mod damaged;
mod dice;
mod difference;
mod doubt;
mod failure;
pub mod flash;
pub mod fullness;
mod going_back;
mod growth;
pub mod image;
mod opening;
mod oracle;
mod range;
mod rest;
pub mod schedules;
mod script;
mod sealing;
mod session;
mod shrink;
mod simulation;
mod tap;
mod trims;
mod trouble;
mod upkeep;
mod versions;
mod volumes;
mod workload;

pub use aside::Points;
pub use charts::PlotError;
pub use damage::{DamageRow, DamageTable};
pub use dice::Dice;
pub use failure::{Broken, Failure};
pub use going_back::go_back;
pub use script::{End, Life, Request, Script, ScriptError, Shape, Verb};
pub use sealing::lose_directories;
pub use shrink::{Shrunk, shrink};
pub use simulation::{Look, Simulation, Summary};
pub use trouble::Trouble;
pub use workload::Plan;
