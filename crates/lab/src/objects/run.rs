//! A run of buckets under way: what it is of, what it has come to, and what it did.

use disk::MemoryDisk;

use crate::dice::{Dice, Digest};
use crate::failure::Broken;
use crate::objects::history::History;
use crate::script::Shape;
use crate::simulation::aside::Points;

/// What to simulate of buckets.
#[derive(Clone, Copy, Debug)]
pub struct ObjectPlan {
    /// Of everything.
    pub seed: u64,
    /// Operations of each life.
    pub steps: u64,
    /// Lives of the store.
    pub lives: u64,
    /// Writes for each crash point that is looked at; 0: no point is.
    pub one_in: u64,
}

/// What a run of buckets did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectSummary {
    /// Operations.
    pub operations: u64,
    /// Lives that ended in a crash.
    pub crashes: u64,
    /// Device writes.
    pub writes: u64,
    /// Crashes that were looked at aside.
    pub points: Points,
    /// Operations that were refused for want of room.
    pub refused: u64,
    /// Times that writing stopped because the disk failed.
    pub stopped: u64,
    /// Times that chunks of a bucket were made unreadable.
    pub rotten: u64,
    /// Bytes of objects that were read piece by piece while chunks were unreadable.
    pub beside_rot_bytes: u64,
    /// Objects that expired and were removed.
    pub expired: u64,
    /// Puts and deletions whose condition did not hold.
    pub unmet: u64,
    /// Requests that were refused for a quota.
    pub over_quota: u64,
    /// Deletions while the last put or write had been refused for want of room.
    pub deleted_when_full: u64,
    /// Runs in which something was refused for want of room.
    pub full: u64,
    /// Snapshots and rollbacks.
    pub versions: u64,
    /// Stands for every operation on the disk and every answer, in their order.
    pub digest: u64,
}

impl ObjectSummary {
    /// Adds what another run did.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.crashes += other.crashes;
        self.writes += other.writes;
        self.points.add(other.points);
        self.refused += other.refused;
        self.stopped += other.stopped;
        self.rotten += other.rotten;
        self.beside_rot_bytes += other.beside_rot_bytes;
        self.expired += other.expired;
        self.unmet += other.unmet;
        self.over_quota += other.over_quota;
        self.deleted_when_full += other.deleted_when_full;
        self.full += other.full;
        self.versions += other.versions;
        self.digest ^= other.digest;
    }
}

/// What is wrong, and aside of the run where.
pub(super) type Outcome<T> = Result<T, (Option<String>, Broken)>;

/// A run under way.
pub(super) struct Run {
    pub(super) plan: ObjectPlan,
    pub(super) shape: Shape,
    pub(super) disk: MemoryDisk,
    pub(super) history: History,
    /// The state that was durable when the last life ended.
    pub(super) flushed: usize,
    pub(super) closed: bool,
    pub(super) dice: Dice,
    pub(super) digest: Digest,
    pub(super) summary: ObjectSummary,
    pub(super) life: usize,
    pub(super) step: usize,
    /// Milliseconds since 1970.
    pub(super) now_ms: u64,
    /// The next snapshot's number.
    pub(super) snapshots: u32,
}

pub(super) fn in_run(broken: Broken) -> (Option<String>, Broken) {
    (None, broken)
}
