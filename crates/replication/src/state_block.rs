//! The block in which each copy says what it is.

use format::BLOCK_BYTES;
use format::objects::replica::{REPLICA_STATE_AT_BYTES, ReplicaState, VolumeIdentity};
use objects::volume::BucketVolume;
use store::{Durability, RequestError, Reservation, Volume, WriteOptions};
use thiserror::Error;

/// How it is written: nobody else has such a block.
pub(crate) const UNINDEXED: WriteOptions =
    WriteOptions { durability: Durability::Acknowledged, unindexed: true };

/// Why nobody knows how a bucket is replicated.
#[derive(Debug, Error)]
pub enum StateError {
    /// The volume does not give the block.
    #[error(transparent)]
    Volume(#[from] RequestError),
    /// The block is damaged, or a newer program's.
    #[error(transparent)]
    Format(#[from] format::FormatError),
}

/// Which volume a block in `volume` is to name.
///
/// # Errors
/// [`RequestError`] of the store.
pub fn identity_of(volume: &Volume) -> Result<VolumeIdentity, RequestError> {
    let store = volume.client().geometry()?.uuid;
    Ok(VolumeIdentity { store, number: volume.handle().id().0 })
}

/// How the bucket in a volume is replicated; none: it is not. Neither is a clone of a copy, nor
/// what another store has received from one.
///
/// # Errors
/// [`StateError`].
pub fn read_state(
    volume: &dyn BucketVolume,
    identity: VolumeIdentity,
) -> Result<Option<ReplicaState>, StateError> {
    let mut block = [0; BLOCK_BYTES];
    volume.read_at(REPLICA_STATE_AT_BYTES, &mut block)?;
    Ok(ReplicaState::decode(&block)?.filter(|state| state.volume == identity))
}

/// Writes the block; a caller that needs it durable flushes.
///
/// # Errors
/// [`RequestError`] of the store.
pub fn write_state(volume: &dyn BucketVolume, state: &ReplicaState) -> Result<(), RequestError> {
    write_state_in(volume, state, None)
}

/// The same, in room that was reserved if there is any.
pub(crate) fn write_state_in(
    volume: &dyn BucketVolume,
    state: &ReplicaState,
    reservation: Option<&Reservation>,
) -> Result<(), RequestError> {
    let block = state.encode();
    let writes = [(REPLICA_STATE_AT_BYTES, &block[..])];
    match reservation {
        Some(reservation) => volume.write_reserved_at(reservation, &writes, UNINDEXED),
        None => volume.write_vectored_at(&writes, UNINDEXED),
    }
}
