//! How a bucket becomes one of two copies, and which of them.

use std::sync::Arc;

use replication::{
    PEER_BYTES_MAX, PromoteError, RING_BYTES_MAX, ReplicaRole, ReplicaState, Secondary, identity_of,
};
use store::{Volume, random_bytes};

use crate::copies::{Replicator, refused, set_state, state_of};
use crate::error::BucketsError;
use crate::registry::{Buckets, lock_unused};

/// How a bucket is replicated, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// What its volume says.
    pub state: ReplicaState,
    /// How far the connection is; none: there is none.
    pub link: Option<String>,
}

impl Buckets {
    /// Has `replicator` keep the connections of replicated buckets that are opened from now on; of
    /// several the first.
    pub fn set_replicator(&self, replicator: Arc<dyn Replicator>) {
        let _ = self.shared().replicator.set(replicator);
    }

    /// How a bucket is replicated; none: it is not.
    ///
    /// # Errors
    /// [`BucketsError::NoSuchBucket`]; [`BucketsError`].
    pub fn replication(&self, name: &str) -> Result<Option<Replication>, BucketsError> {
        let state = state_of(name, &self.shared().volume(name)?)?;
        let link = self.shared().replicator.get().and_then(|replicator| replicator.link(name));
        Ok(state.map(|state| Replication { state, link }))
    }

    /// Makes a bucket the primary of a replica at `peer`, or changes the address and the policy of
    /// one that is; durable when this returns. The bucket is closed for it.
    ///
    /// # Errors
    /// [`BucketsError::InUse`], [`BucketsError::IsReplica`], [`BucketsError::Replication`];
    /// [`BucketsError`].
    pub fn replicate(
        &self,
        name: &str,
        peer: &str,
        may_go_on_alone: bool,
    ) -> Result<(), BucketsError> {
        if peer.len() > PEER_BYTES_MAX {
            return Err(refused(name, "the address of its replica is too long"));
        }
        let peer = peer.to_owned();
        self.with_closed(name, |volume, found| {
            let next = match found {
                None => {
                    let mut state = Secondary::empty_state(number()?, identity_of(volume)?);
                    (state.role, state.position.epoch) = (ReplicaRole::Primary, 1);
                    ReplicaState { peer, may_go_on_alone, ..state }
                }
                Some(state) => {
                    let was_in_step = match state.role {
                        ReplicaRole::Primary => state.was_in_step && state.peer == peer,
                        ReplicaRole::Alone => false,
                        ReplicaRole::Secondary | ReplicaRole::Syncing => {
                            return Err(BucketsError::IsReplica { name: name.to_owned() });
                        }
                        ReplicaRole::Fenced => {
                            return Err(refused(name, "another copy of it has taken over"));
                        }
                    };
                    let role = ReplicaRole::Primary;
                    ReplicaState { role, peer, may_go_on_alone, was_in_step, ..state }
                }
            };
            set_state(volume, &next)
        })
    }

    /// Lets a replica take over: it is a bucket of this store from now on, and its old primary is
    /// fenced when they meet.
    ///
    /// # Errors
    /// [`BucketsError::Replication`] when it is no replica, or holds a mixture; [`BucketsError`].
    pub fn promote(&self, name: &str) -> Result<(), BucketsError> {
        self.with_closed(name, |volume, found| {
            let Some(state) = found else { return Err(refused(name, "it is no replica")) };
            let mut secondary = Secondary::new(Arc::new(volume.clone()), state, RING_BYTES_MAX);
            match secondary.promote() {
                Ok(_) => Ok(()),
                Err(PromoteError::Volume(error)) => Err(error.into()),
                Err(error) => Err(refused(name, &error.to_string())),
            }
        })
    }

    /// Makes a primary, or a copy that was one, a replica that takes all from the new primary: what
    /// it holds alone is lost.
    ///
    /// # Errors
    /// [`BucketsError::Replication`] when it is not replicated; [`BucketsError`].
    pub fn demote(&self, name: &str) -> Result<(), BucketsError> {
        self.with_closed(name, |volume, found| {
            let Some(state) = found else { return Err(refused(name, "it is not replicated")) };
            set_state(volume, &Secondary::empty_state(state.set, state.volume))
        })
    }

    /// Has a primary replicate no more; durable when this returns. Its replica stays one until it
    /// is promoted or deleted. Changes are not counted from here on, so the epoch is a new one: a
    /// replica is compared when there is one again.
    ///
    /// # Errors
    /// [`BucketsError::IsReplica`]; [`BucketsError::Replication`] when it is not replicated, or
    /// fenced; [`BucketsError`].
    pub fn end_replication(&self, name: &str) -> Result<(), BucketsError> {
        self.with_closed(name, |volume, found| {
            let Some(mut state) = found else { return Err(refused(name, "it is not replicated")) };
            match state.role {
                ReplicaRole::Primary => {}
                ReplicaRole::Alone => return Ok(()),
                ReplicaRole::Secondary | ReplicaRole::Syncing => {
                    return Err(BucketsError::IsReplica { name: name.to_owned() });
                }
                ReplicaRole::Fenced => {
                    return Err(refused(name, "another copy of it has taken over"));
                }
            }
            state.role = ReplicaRole::Alone;
            state.position.epoch += 1;
            (state.was_in_step, state.went_on_alone) = (false, false);
            set_state(volume, &ReplicaState { peer: String::new(), ..state })
        })
    }

    /// Changes a bucket that nobody has open meanwhile.
    fn with_closed(
        &self,
        name: &str,
        change: impl FnOnce(&Volume, Option<ReplicaState>) -> Result<(), BucketsError>,
    ) -> Result<(), BucketsError> {
        let shared = self.shared();
        let slot = shared.slot(name)?;
        let mut held = lock_unused(&slot, name)?;
        if let Some(hosted) = held.take() {
            // What cannot be merged is replayed when the bucket is opened next.
            let _ = hosted.bucket.clone().close();
        }
        let changed = shared.cut_off(name, || {
            let volume = shared.volume(name)?;
            let found = state_of(name, &volume)?;
            change(&volume, found)
        });
        drop(held);
        shared.give_back(name, slot);
        changed
    }
}

fn number() -> Result<u64, BucketsError> {
    let bytes: [u8; 8] = random_bytes()?;
    Ok(u64::from_le_bytes(bytes))
}
