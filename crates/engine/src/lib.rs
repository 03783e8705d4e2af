//! The engine: what a store is and does, from a write's acknowledgement to its place on disk.
//!
//! ```text
//! client.rs ─ intake.rs ─┬─ write.rs ─ buffer.rs ─ group.rs ─ commit.rs ─ placement.rs ─ state.rs
//!   doors' side          ├─ read.rs, extents.rs
//!                        ├─ unmap.rs, volumes.rs
//!                        └─ flush.rs ─ checkpoint.rs ─ collect.rs
//! create.rs ─ recovery.rs ─ engine.rs (the loop) ─ check.rs
//! ```
//!
//! Rooms below know nothing of each other; here they meet. There is no thread, clock or randomness
//! in this crate: [`Engine::run`] works on the thread of whoever calls it.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod buffer;
mod check;
mod checker;
mod checkpoint;
mod client;
mod collect;
mod commit;
mod create;
mod devices;
mod engine;
mod extents;
mod figures;
mod flush;
mod group;
mod intake;
mod loading;
mod open;
mod options;
mod outcome;
mod placement;
mod problem;
mod read;
mod record;
mod recovery;
mod state;
mod stats;
mod unmap;
mod volume;
mod volumes;
mod write;

pub use check::{CheckProgress, CheckReport, Problem, check};
pub use client::{Accepted, Client, Completions, Done};
pub use create::{CreateError, PlanError, create, plan};
pub use engine::Engine;
pub use format::units::{Codec, Compression, VolumeId, Zone};
pub use open::{OpenError, OpenReport, open};
pub use options::{CreateOptions, MEMORY_BYTES_MIN, Options};
pub use outcome::{Extent, ReadPieces, Reply, RequestError, Segment, VolumeInfo};
pub use reduce::ChunkBuf;
pub use stats::{Counters, Stats, VolumeStats};
pub use volume::{SECTOR_BYTES, VOLUME_BYTES_MAX, VolumeHandle};

/// Name of a zone's file in the store.
pub(crate) fn zone_name(zone: Zone) -> String {
    disk::ZoneName(zone).to_string()
}
