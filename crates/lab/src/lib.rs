//! The lab: the real engine on a simulated disk, one seed, and an oracle that knows every write.
//!
//! ```text
//! workload      a seed becomes a script, and script.rs a script text, and text a script
//! simulation    life after life of one store: opening.rs steps the engine, tap.rs listens to its
//!               disk, aside.rs says what each crash would leave, trouble.rs what else goes wrong
//! session       one life: requests, their answers, what failed ones leave open (doubt.rs)
//! oracle.rs     which prefixes explain what is found       shrink.rs  a failing script made short
//! damage        wrong bytes in stores, and their repair: one hit, or two (damage/twice)
//! fullness.rs   stores that are filled to the last chunk
//! objects       buckets: puts, merges, snapshots, crashes at every write
//! replicas      a bucket on two stores: deaths of either, cuts, fail-overs
//! image         stores of earlier releases, kept for the tests
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

mod damage;
mod dice;
mod failure;
pub mod fullness;
pub mod image;
mod objects;
mod oracle;
mod range;
mod replicas;
pub mod schedules;
mod script;
mod session;
mod shape;
mod shrink;
mod simulation;
mod workload;

/// Who opens volumes here.
pub(crate) fn opener() -> engine::Opener {
    engine::Opener::new("the lab", 0)
}

pub use crate::objects::{ObjectPlan, ObjectSummary};
pub use damage::{DamageRow, DamageTable};
pub use dice::Dice;
pub use failure::{Broken, Failure};
pub use replicas::{ReplicaPlan, ReplicaSummary};
pub use script::{End, HolderVerb, Life, Request, Script, ScriptError, Shape, Verb};
pub use shrink::{Shrunk, shrink};
pub use simulation::aside::Points;
pub use simulation::going_back::go_back;
pub use simulation::sealing::lose_directories;
pub use simulation::trouble::Trouble;
pub use simulation::{Look, Simulation, Summary};
pub use workload::Plan;
