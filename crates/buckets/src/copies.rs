//! Which side of a replicated bucket a volume holds, and through what it is changed.
//!
//! Rooms with sockets keep the connections ([`Replicator`]). Without one, as in a command that
//! opens a closed store, a primary is opened read-only, so that nothing is changed that its replica
//! does not have.

use std::sync::Arc;

use engine::{Client, Opener};
use objects::volume::BucketVolume;
use replication::{ReplicaRole, ReplicaState, StateError, identity_of, read_state, write_state};
use store::Volume;

use crate::error::BucketsError;
use crate::now_unix_ms;

/// Who keeps the connections of replicated buckets.
pub trait Replicator: Send + Sync {
    /// The volume of a primary, whose changes go to the replica as well; returns when the copies
    /// have met, or this one may go on alone.
    ///
    /// # Errors
    /// [`BucketsError`] when neither comes about in time.
    fn mirror(
        &self,
        name: &str,
        volume: Volume,
        state: ReplicaState,
    ) -> Result<Arc<dyn BucketVolume>, BucketsError>;

    /// Ends the connection of this bucket, which is closed, and takes no other one until
    /// [`Replicator::resume`]; false: it has not ended for some time.
    fn suspend(&self, name: &str) -> bool;

    /// Connections are taken again.
    fn resume(&self, name: &str);

    /// How far the connection of a bucket is, in a word or two; none: it has none.
    fn link(&self, name: &str) -> Option<String>;
}

/// A volume for a bucket.
pub(crate) struct Held {
    pub(crate) volume: Arc<dyn BucketVolume>,
    /// Changes go to another server as well: all of them must pass the bucket.
    pub(crate) is_mirrored: bool,
    pub(crate) is_read_only: bool,
}

/// Checks that a repair may make a bucket anew, which no other server has.
///
/// # Errors
/// [`BucketsError::Replication`].
pub(crate) fn check_not_replicated(
    client: &Client,
    name: &str,
    opened_by: &str,
) -> Result<(), BucketsError> {
    let opener = Opener::new(opened_by.to_owned(), now_unix_ms() / 1000);
    // A block that cannot be read is what a repair is for.
    check_may_go_back(name, &Volume::new(client.clone(), client.open_volume(name, opener)?))
}

/// Whether a volume is a replica whose comparison with its primary has not ended.
#[must_use]
pub fn holds_mixture(volume: &Volume) -> bool {
    matches!(read_own(volume), Ok(Some(ReplicaState { role: ReplicaRole::Syncing, .. })))
}

pub(crate) fn refused(name: &str, reason: &str) -> BucketsError {
    BucketsError::Replication { name: name.to_owned(), reason: reason.to_owned() }
}

/// Checks that the volume of a bucket may be given other contents by who asks the engine for it.
///
/// # Errors
/// [`BucketsError::Replication`].
pub(crate) fn check_may_go_back(name: &str, volume: &Volume) -> Result<(), BucketsError> {
    match state_of(name, volume) {
        Ok(Some(state)) if state.role != ReplicaRole::Alone => Err(refused(
            name,
            "it is one of two copies, and the other one would not hear of this: put what a \
             snapshot holds into it, object by object",
        )),
        _ => Ok(()),
    }
}

/// How the bucket in a volume is replicated.
pub(crate) fn state_of(name: &str, volume: &Volume) -> Result<Option<ReplicaState>, BucketsError> {
    read_own(volume).map_err(|error| match error {
        StateError::Volume(error) => error.into(),
        StateError::Format(error) => refused(name, &error.to_string()),
    })
}

fn read_own(volume: &Volume) -> Result<Option<ReplicaState>, StateError> {
    read_state(volume, identity_of(volume)?)
}

/// Writes it, durable when this returns.
pub(crate) fn set_state(volume: &Volume, state: &ReplicaState) -> Result<(), BucketsError> {
    write_state(volume, state)?;
    Ok(volume.flush_blocking()?)
}

impl Held {
    /// The volume through which a bucket is changed.
    pub(crate) fn of(
        name: &str,
        volume: &Volume,
        is_read_only: bool,
        replicator: Option<&Arc<dyn Replicator>>,
    ) -> Result<Self, BucketsError> {
        let plain = Arc::new(volume.clone());
        let Some(state) = state_of(name, volume)? else {
            return Ok(Self { volume: plain, is_mirrored: false, is_read_only });
        };
        match (state.role, replicator.filter(|_| !is_read_only)) {
            (ReplicaRole::Secondary | ReplicaRole::Syncing, _) => {
                Err(BucketsError::IsReplica { name: name.to_owned() })
            }
            (ReplicaRole::Alone, _) => Ok(Self { volume: plain, is_mirrored: false, is_read_only }),
            (ReplicaRole::Primary | ReplicaRole::Fenced, Some(replicator)) => {
                let volume = replicator.mirror(name, volume.clone(), state)?;
                Ok(Self { volume, is_mirrored: true, is_read_only })
            }
            (ReplicaRole::Primary | ReplicaRole::Fenced, None) => {
                Ok(Self { volume: plain, is_mirrored: true, is_read_only: true })
            }
        }
    }
}
