//! What replication needs of a volume beyond what buckets need.

use objects::volume::BucketVolume;
use store::{RequestError, Volume};

/// A run of a volume that is stored, or is zeros that are not.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// How long it is.
    pub length_bytes: u64,
    /// Whether nothing is stored of it.
    pub is_hole: bool,
}

/// A volume of which a copy is kept.
pub trait ReplicaVolume: BucketVolume {
    /// The run that begins at `at_bytes`, up to `most_bytes` of it.
    ///
    /// # Errors
    /// [`RequestError`] of the store.
    fn run_at(&self, at_bytes: u64, most_bytes: u64) -> Result<Run, RequestError>;
}

impl ReplicaVolume for Volume {
    fn run_at(&self, at_bytes: u64, most_bytes: u64) -> Result<Run, RequestError> {
        let runs = self.client().extents_blocking(self.handle(), at_bytes, most_bytes, 1)?;
        let run = runs.first().map(|run| Run { length_bytes: run.length_bytes, is_hole: run.hole });
        // Of no bytes there is no run.
        Ok(run.unwrap_or(Run { length_bytes: most_bytes, is_hole: true }))
    }
}
