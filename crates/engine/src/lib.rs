//! The engine: what a store is and does, from a write's acknowledgement to its place on disk.
//!
//! ```text
//! client.rs ─ intake.rs ─┬─ write.rs ─ buffer.rs ─ group.rs ─ commit.rs ─ placement.rs ─ state.rs
//!   doors' side          ├─ read.rs, extents.rs, explain.rs, walk.rs ─ compare.rs, weigh.rs
//!                        ├─ unmap.rs, administer.rs
//!                        ├─ flush.rs ─ checkpoint.rs ─ collect.rs ─ copying.rs
//!                        └─ scrub.rs ─ scrub/steps.rs ─ its four stages
//! create.rs, grow.rs, enlarge.rs    open.rs ─ loading.rs ─ recovery.rs ─ mend.rs
//! check.rs ─ check/checker.rs      repair.rs ─ repair/survey.rs ─ ledger.rs ─ rebuild.rs
//! ```
//!
//! `engine.rs` holds the core's state and the loop; what a verb needs to remember lies in a file of
//! its own (`flushing`, `checkpoints`, `collect/collection`, `reads`, `scrub/state`), and
//! the verb's file above adds its methods to the core. Imports go one way: verbs, core, state. A
//! verb of many files has a folder.
//!
//! Rooms below know nothing of each other; here they meet. There is no thread, clock or randomness
//! in this crate: [`Engine::run`] works on the thread of whoever calls it.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod absence;
mod administer;
mod ahead;
mod background;
mod belonging;
mod buffer;
mod candidates;
mod carried;
mod carrying;
mod check;
mod checkpoint;
mod checkpoints;
mod client;
mod client_reads;
mod client_volumes;
mod collect;
mod commit;
mod compare;
mod comparing;
mod comparisons;
mod container_lives;
mod copies;
mod copying;
mod create;
mod credits;
mod dedup;
mod deletion_pace;
mod deletions;
mod devices;
mod difference;
mod directories;
mod directory_reads;
mod domains;
mod done;
mod ending;
mod engine;
mod enlarge;
mod enlarging;
mod error;
mod explain;
mod explaining;
mod explanation;
mod extents;
mod figures;
mod flush;
mod flushing;
mod frame_cache;
mod fullness;
mod geometry;
mod group;
mod grow;
mod hash_work;
mod held_pages;
mod holds;
mod intake;
mod known;
mod lba_runs;
mod lend;
mod lending;
mod loading;
mod loading_hash;
mod lone_frame;
mod lookaside;
mod lookups;
mod map_ahead;
mod mapping;
mod marking;
mod marks;
mod mend;
mod near;
mod new_volumes;
mod notice;
mod open;
mod open_error;
mod options;
mod outcome;
mod packing;
mod page_runs;
mod partial;
mod pending;
mod place_hash;
mod placement;
mod prefetch;
mod problem;
mod quarantine;
mod quota;
mod quota_line;
mod read;
mod read_ahead;
mod reads;
mod record;
mod recovery;
mod repair;
mod requests;
mod scratch;
mod scrub;
mod seeking;
mod slot;
#[cfg(test)]
mod small_store;
mod space_budget;
mod stages;
mod state;
mod stats;
mod streams;
mod structures;
mod table_figures;
mod take_versions;
mod unmap;
mod versions;
mod volume;
mod volumes;
mod wait;
mod waiting;
mod walk;
mod walks;
mod wanted;
mod warm;
mod watermarks;
mod weigh;
mod weight;
mod whose_journal;
mod write;

pub use check::{check, check_within};
pub use client::{Accepted, Client};
pub use collect::step::{CollectPosition, CollectRequest, CollectStep, CollectedContainer};
pub use copies::COPIES_ABOVE_DEFAULT;
pub use create::{CreateError, PlanError, create, plan};
pub use difference::{ChangedRange, DifferenceRequest, DifferenceStep};
pub use done::{Completions, Done};
pub use engine::Engine;
pub use error::RequestError;
pub use explanation::{
    Address, ExplainedChunk, ExplainedCopy, ExplainedFrame, ExplainedPage, ExplainedPlace,
    Explanation,
};
pub use format::catalog::{Dedup, Origin};
pub use format::detection::{Detection, FingerprintKind};
pub use format::domain::DomainSecret;
pub use format::units::{Codec, Compression, VolumeId, Zone};
pub use grow::{GrowError, GrowOptions, Growing, plan_growth};
pub use holds::Holds;
pub use notice::{Notice, Observer, Room};
pub use open::{open, open_with_cache};
pub use open_error::{OpenError, OpenReport};
pub use options::{Caches, ComparingAhead, CreateOptions, MEMORY_BYTES_MIN, Options};
pub use outcome::{DedupWord, Extent, ReadPieces, Reply, Segment, VolumeInfo};
pub use problem::{CheckProgress, CheckReport, Problem};
pub use reduce::{ChunkBuf, Permit};
pub use repair::error::RepairError;
pub use repair::{GivenUp, RepairReport, repair, repair_without};
pub use requests::{AdminRequest, DeleteRequest, NewVolume, SnapshotRequest};
pub use scrub::{
    DAMAGED_LISTED_MAX, DamagedChunk, ScrubFinding, ScrubPosition, ScrubRequest, ScrubStep,
};
pub use stages::{Clock, JobTime, StageTime, StageTimes};
pub use stats::{
    Counters, HeatFigures, HotPageFigures, ReadCacheFigures, Stats, TableFigures, TablesFigures,
    UnderWay, VolumeStats, Written,
};
pub use structures::{Structure, structures};
pub use volume::{SECTOR_BYTES, VOLUME_BYTES_MAX, VolumeHandle};
pub use watermarks::WARN_PERCENT_DEFAULT;
pub use weight::{
    CountedChunk, ReferenceClass, Tally, VolumeWeight, Weighing, WeightRequest, WeightStep,
};

/// Name of a zone's file in the store.
pub(crate) fn zone_name(zone: Zone) -> String {
    disk::ZoneName(zone).to_string()
}
