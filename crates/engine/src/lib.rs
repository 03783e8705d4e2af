//! The engine: what a store is and does, from a write's acknowledgement to its place on disk.
//!
//! ```text
//! door ──> engine, dispatch ────┬─> write ─> duplicates, placement ─┐
//!   client.rs   the loop        ├─> read, copy_range                ├─> state ─> rooms below
//!                               ├─> volumes, space                  │     pages, devices
//!                               ├─> flush ─> checkpoint, merge ─────┘
//!                               ├─> collect, evacuate, copies,      beside all else
//!                               │     scrub, lend
//!                               └─> walk, explain, stats            questions
//! create, grow    open    check ─> repair                           without a running core
//! control                                                           verbs, and what each answers
//! ```
//!
//! `engine.rs` is the loop: it calls the *parts* (`part.rs`), each of which owns its state
//! (`flush/flushing`, `checkpoint/checkpoints`, `collect/collection`, `scrub/state`), and works on
//! what all share (`core.rs`). `dispatch.rs` hands requests to parts. Reads and the stages of
//! groups are methods of the loop's own type still (decision 076). Imports go one way: loop, parts,
//! core, state.
//!
//! Rooms below know nothing of each other; here they meet. There is no thread, clock or randomness
//! in this crate: [`Engine::run`] works on its caller's thread. A program that embeds a store takes
//! crate `store`, which gives the engine a thread, files, a clock and randomness.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod background;
mod check;
mod checkpoint;
mod collect;
pub mod control;
mod copies;
mod copy_range;
mod core;
mod create;
mod devices;
mod dispatch;
mod door;
mod duplicates;
mod engine;
mod evacuate;
mod explain;
mod flush;
mod geometry;
mod grow;
mod holds;
mod lba_runs;
mod lend;
mod marks;
mod merge;
mod notice;
mod open;
mod options;
mod pages;
mod part;
mod place_hash;
mod placement;
mod read;
mod repair;
mod scrub;
#[cfg(test)]
mod small_store;
mod space;
mod state;
mod stats;
mod volumes;
mod walk;
mod write;

pub use accelerator::{EmulatedSettings, SettingsError};
pub use check::problem::{CheckProgress, CheckReport, Problem};
pub use check::structures::{Structure, structures};
pub use check::{check, check_within};
pub use collect::step::{CollectPosition, CollectRequest, CollectStep, CollectedContainer};
pub use control::Ask;
pub use control::{DeleteRequest, NewVolume, SnapshotRequest};
pub use copies::COPIES_ABOVE_DEFAULT;
pub use create::{CreateError, PlanError, create, plan};
pub use door::client::Client;
pub use door::client_writes::{Accepted, Durability, WriteOptions};
pub use door::done::{Completions, Done, Pending};
pub use door::error::RequestError;
pub use door::moment::utc;
pub use door::open_volume::OpenVolume;
pub use door::opens::{Ending, OpenInfo, Opener};
pub use door::outcome::{Extent, ReadPieces, Reply, Segment, VolumeInfo};
pub use door::reservation::Reservation;
pub use door::volume::{SECTOR_BYTES, VOLUME_BYTES_MAX, VolumeHandle};
pub use engine::Engine;
pub use evacuate::{EvacuateZone, KeepZone, ListZones, RetireZone, ZoneInfo, ZoneState};
pub use explain::explanation::{
    Address, ExplainedChunk, ExplainedCopy, ExplainedFrame, ExplainedPage, ExplainedPlace,
    Explanation,
};
pub use format::catalog::{Dedup, Origin, VolumeKind};
pub use format::detection::{Detection, FingerprintKind};
pub use format::domain::DomainSecret;
pub use format::units::{Codec, Compression, VolumeId, Zone};
pub use grow::{GrowError, GrowOptions, Growing, plan_growth};
pub use holds::Holds;
pub use notice::{Notice, Observer, Room};
pub use open::open_error::{OpenError, OpenReport};
pub use open::{open, open_with_cache};
pub use options::{Caches, ComparingAhead, CreateOptions, MEMORY_BYTES_MIN, Options};
pub use reduce::{ChunkBuf, Permit};
pub use repair::error::RepairError;
pub use repair::{GivenUp, RepairReport, repair, repair_without};
pub use scrub::{
    DAMAGED_LISTED_MAX, DamagedChunk, ScrubFinding, ScrubPosition, ScrubRequest, ScrubStep,
};
pub use space::watermarks::WARN_PERCENT_DEFAULT;
pub use space::write_room::{ReservedFor, WriteRoom};
pub use stats::stages::{Clock, JobTime, StageTime, StageTimes};
pub use stats::{
    AcceleratorFigures, Counters, HeatFigures, HotPageFigures, ReadCacheFigures, Stats,
    TableFigures, TablesFigures, UnderWay, VolumeStats, VolumeWritten, Written,
};
pub use walk::difference::{ChangedRange, DifferenceRequest, DifferenceStep};
pub use walk::weight::{
    CountedChunk, ReferenceClass, Tally, VolumeWeight, Weighing, WeightRequest, WeightStep,
};

/// Name of a zone's file in the store.
pub(crate) fn zone_name(zone: Zone) -> String {
    disk::ZoneName(zone).to_string()
}
