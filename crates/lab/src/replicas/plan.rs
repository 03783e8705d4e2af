//! What a run of two copies is of, and what it did.

use std::fmt;

/// One of this number of seeds has a primary that goes on alone.
const ALONE_ONE_IN: u64 = 4;

/// What to simulate of two copies.
#[derive(Clone, Copy, Debug)]
pub struct ReplicaPlan {
    /// Of everything.
    pub seed: u64,
    /// Operations, deaths and cuts.
    pub steps: u64,
}

impl ReplicaPlan {
    /// Whether the primary goes on while its replica is away.
    pub(super) fn goes_on_alone(&self) -> bool {
        self.seed.is_multiple_of(ALONE_ONE_IN)
    }
}

/// What such a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaSummary {
    /// Puts and deletions that were acknowledged.
    pub acknowledged: u64,
    /// Those that failed, for want of the replica or because somebody died.
    pub failed: u64,
    /// Deaths of a primary.
    pub primary_deaths: u64,
    /// Deaths of a replica.
    pub replica_deaths: u64,
    /// Promotions.
    pub promotions: u64,
    /// Promotions that were refused, since the replica held a mixture.
    pub mixtures: u64,
    /// Openings of a primary that came back.
    pub returns: u64,
    /// Old primaries that were found fenced.
    pub fenced: u64,
    /// Times that a bucket was read as a whole and judged.
    pub judged: u64,
}

impl ReplicaSummary {
    /// Adds what another run did.
    pub fn add(&mut self, other: &Self) {
        self.acknowledged += other.acknowledged;
        self.failed += other.failed;
        self.primary_deaths += other.primary_deaths;
        self.replica_deaths += other.replica_deaths;
        self.promotions += other.promotions;
        self.mixtures += other.mixtures;
        self.returns += other.returns;
        self.fenced += other.fenced;
        self.judged += other.judged;
    }
}

impl fmt::Display for ReplicaSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} changes acknowledged and {} failed, {} primaries and {} replicas died, {} \
             promotions and {} refused, {} primaries came back, {} were fenced, {} times all was \
             judged",
            self.acknowledged,
            self.failed,
            self.primary_deaths,
            self.replica_deaths,
            self.promotions,
            self.mixtures,
            self.returns,
            self.fenced,
            self.judged
        )
    }
}
