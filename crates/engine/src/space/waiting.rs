//! What waits for space: writes, copies between volumes, reservations, unmaps and shrinks that must
//! write the rest of a chunk again, and what makes volumes, snapshots and clones.
//!
//! Not acknowledged, so without a place in the order yet.

use std::ops::Range;

use format::units::VolumeId;

use crate::control::{Asked, SetReservation, Verb};
use crate::door::error::RequestError;
use crate::door::requests::{CopyRequest, ReserveRequest, UnmapRequest, WriteRequest};
use crate::space::write_room::PAGES_PER_CHUNK_MAX;

/// More chunks than any store has, and few enough for sums of their bytes.
const CHUNKS_MAX: u64 = 1 << 40;

/// The reservation of a volume, for which there was no room yet.
pub(crate) struct WaitingPromise {
    pub(crate) asked: Asked<SetReservation>,
    pub(crate) volume: VolumeId,
    /// Chunks of a write that takes as many bytes.
    pub(crate) chunks: u64,
}

/// A request without a reservation.
pub(crate) enum Waiting {
    Write(WriteRequest),
    Copy(CopyRequest),
    /// Bytes that an unmap covers, whose whole chunks are in the write buffer, and how many chunks
    /// they cover in part.
    Ends {
        unmap: UnmapRequest,
        range: Range<u64>,
        ragged: u64,
    },
    Reserve(ReserveRequest),
    /// One that makes versions, or a volume smaller in the middle of a chunk.
    Change(Verb),
    /// The reservation of a volume.
    Promise(WaitingPromise),
}

impl Waiting {
    /// Chunks whose worst case it waits for.
    pub(crate) fn chunks(&self) -> u64 {
        match self {
            Self::Write(write) => write.chunks,
            Self::Copy(copy) => copy.range.room_chunks(),
            Self::Ends { ragged, .. } => *ragged,
            // The padding of a write is no longer than a chunk.
            Self::Reserve(ReserveRequest { room, .. }) => {
                room.chunks.saturating_add(room.writes).min(CHUNKS_MAX)
            }
            Self::Change(Verb::ResizeVolume(_)) => 1,
            Self::Promise(promise) => promise.chunks.min(CHUNKS_MAX),
            Self::Change(verb) => verb.versions_made().div_ceil(PAGES_PER_CHUNK_MAX),
        }
    }

    /// The least of these that one can begin with which is alone: writes and copies go in piece by
    /// piece.
    pub(crate) fn least_chunks(&self) -> u64 {
        if let Self::Write(_) | Self::Copy(_) = self { 1 } else { self.chunks() }
    }

    /// The volume to which it writes; its room is behind that volume's own promise.
    pub(crate) fn volume(&self) -> Option<VolumeId> {
        match self {
            Self::Write(write) => Some(write.volume.id),
            Self::Copy(copy) => Some(copy.range.to.id),
            Self::Ends { unmap, .. } => Some(unmap.volume.id),
            Self::Reserve(reserve) => Some(reserve.volume.id),
            Self::Promise(promise) => Some(promise.volume),
            Self::Change(_) => None,
        }
    }

    pub(crate) fn fail(self, error: &RequestError) {
        match self {
            Self::Write(mut write) => write.fail(error),
            Self::Copy(copy) => copy.ack.fail(error),
            Self::Ends { unmap, .. } => unmap.done.fail(error.clone()),
            Self::Reserve(request) => request.done.fail(error.clone()),
            Self::Change(verb) => verb.fail(error.clone()),
            Self::Promise(promise) => promise.asked.done.fail(error.clone()),
        }
    }
}
