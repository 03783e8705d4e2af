//! Scrub: everything that is stored is read and verified, a step at a time, beside all else.
//!
//! ```text
//! Superblock -> Tables (tree by tree, level by level) -> Containers (one a step) -> Losses -> done
//! ```
//!
//! The engine keeps no scrub in its mind. The caller asks for a *step*
//! ([`ScrubRequest`]) from a [`ScrubPosition`] and gets back what it found and the position
//! that follows. So the caller, who has a clock, sets the pace; a scrub is interrupted by not
//! asking on, and resumed, in another process if need be, by asking from the last position.
//!
//! What makes this right while the store changes:
//!
//! * A chunk is damaged only if the tables place it where its frame fails **when it is judged**,
//!   and its container was pinned since before the read: it may have been freed meanwhile, but not
//!   written again.
//!   What was moved or forgotten meanwhile is nobody's damage.
//! * Only what does not change is read: of a container what had reached the device when its turn
//!   came, of the tables blocks that a live pointer names before and after the read.
//! * What moves behind the scrub's back was verified by what moved it: collection checks every
//!   frame that it copies. What is new since the scrub began is for the next one.
//!
//! Whatever is damaged is healed where a second copy exists: one copy of the geometry from the
//! other, a root slot from the root in memory or by a checkpoint, a page of a table from the cache,
//! a directory from the frames, a chunk from the open container's memory or the write buffer. A
//! dead chunk is forgotten, so that nothing is mapped to it any more. What is left is remembered
//! ([`crate::scrub::damage`]): a client that writes the same content again heals it for all. What
//! only fingerprints show stays known, and is told by each scrub, until they show that it is right.
//! So is what a repair abandoned, until it is written again ([`crate::scrub::losses`]).

mod containers;
pub(crate) mod damage;
mod heal;
mod losses;
mod stages;
pub(crate) mod state;
mod steps;
mod superblock;
mod tables;
mod verdicts;

use crate::check::problem::Problem;

/// Where a scrub goes on. Kept by the caller; it stays good across restarts, since it names places
/// and not what is there.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum ScrubPosition {
    /// Both copies of the geometry, both root slots.
    #[default]
    Superblock,
    /// Pages of tables.
    Tables {
        /// The tree.
        tree: u32,
        /// Levels still to come in it, counted from the leaves; none given yet: from its top.
        level: Option<u8>,
        /// The first page of that level that was not read.
        index: u64,
    },
    /// Frames and directories.
    Containers {
        /// The first that was not read.
        container: u32,
    },
    /// What of which volumes is lost with what was found damaged.
    Losses {
        /// The volume whose map is next.
        volume: u32,
        /// The leaf of it that is next.
        leaf: u64,
    },
}

/// What a step is to do.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubRequest {
    /// From where.
    pub position: ScrubPosition,
    /// Whether chunks are expanded and fingerprinted as well.
    pub fingerprints: bool,
}

/// Something damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubFinding {
    /// What.
    pub problem: Problem,
    /// Whether it is sound again.
    pub healed: bool,
}

/// A stored chunk whose bytes are lost until a client writes them again.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DamagedChunk {
    /// Its PBN.
    pub pbn: u64,
    /// Where its frame should be.
    pub container: u32,
    /// Whether its frame may be whole all the same, so that only a scrub with fingerprints sees the
    /// damage. A caller that did not say may have meant it.
    pub checksum_fits: bool,
}

/// Damaged chunks that a step lists at most.
pub const DAMAGED_LISTED_MAX: usize = 20_000;

/// What a step did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubStep {
    /// Where the next one begins; none when all has been read.
    pub next: Option<ScrubPosition>,
    /// Read by this step.
    pub bytes_read: u64,
    /// What a whole scrub reads, as the store is now.
    pub bytes_total: u64,
    /// Pages of tables that are sound.
    pub pages: u64,
    /// Containers read.
    pub containers: u64,
    /// Frames of stored chunks that are sound.
    pub frames: u64,
    /// What is damaged, or was.
    pub findings: Vec<ScrubFinding>,
    /// Chunks that are known to be damaged, found by this step or before: not more than
    /// [`DAMAGED_LISTED_MAX`].
    pub damaged: Vec<DamagedChunk>,
    /// How many there are in all.
    pub damaged_chunks: u64,
    /// Chunks that a repair found nothing of, whether or not something maps them still: what the
    /// last stage names are lost.
    pub given_up_chunks: u64,
}
