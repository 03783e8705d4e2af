//! Reservations: room that a holder has before it begins, so that it can end.
//!
//! ```text
//! reserve ──> held ──write_reserved──> on its way ──applied──> stored
//!    │          └──────── drop ──────────────┐                   │
//!    └── NoSpace, QuotaExceeded              └──> given back <───┘ what it did not take
//! ```
//!
//! A write with a reservation draws its worst case from it, under the lock of the queue, and is on
//! its way then like a write that found room at the door. So it cannot fail for want of room, it
//! waits behind no write that does, and what it leaves of its worst case comes back when its group
//! is applied. Of the volume's quota a reservation holds as many chunks as it has, whether the
//! volume has a quota or not: one that is set later does not break the promise.
//!
//! What a reservation covers is the room that [`crate::space::space_budget`] counts: containers,
//! with the padding of a flush behind each write, and pages of the tables. The journal is a ring
//! and needs none: a group waits for a checkpoint. Nor is it durable: nothing of it is on disk, and
//! a crash or a close ends it with the process.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use mutants::mutant;

use crate::door::error::RequestError;
use crate::door::open_volume::OpenVolume;
use crate::door::volume::{HeldQuota, QuotaShare};
use crate::space::write_room::{ReservedFor, WriteRoom};

/// How room comes back to the store.
type GiveBack = Box<dyn Fn(WriteRoom) + Send + Sync>;

/// Room in a store that belongs to its holder until it is written or dropped.
///
/// It is of one volume, and has that open as long as it lives. A crash, or a close of the store,
/// ends it: who opens the store next reserves again.
pub struct Reservation {
    give_back: GiveBack,
    volume: OpenVolume,
    reserved_for: ReservedFor,
    left: Mutex<Left>,
}

/// What has not been written.
struct Left {
    room: WriteRoom,
    quota: HeldQuota,
}

impl Reservation {
    /// Of room that the store counts as held, with as many chunks of the quota.
    pub(crate) fn new(
        give_back: GiveBack,
        volume: OpenVolume,
        room: WriteRoom,
        reserved_for: ReservedFor,
    ) -> Self {
        let quota = HeldQuota::new(&volume.0, room.chunks);
        Self { give_back, volume, reserved_for, left: Mutex::new(Left { room, quota }) }
    }

    /// The volume that it is of.
    #[must_use]
    pub fn volume(&self) -> &OpenVolume {
        &self.volume
    }

    /// Room that may still be written.
    #[must_use]
    pub fn left(&self) -> WriteRoom {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).room
    }

    /// Whether writes of releases may draw from what is kept for them.
    pub(crate) fn is_for_release(&self) -> bool {
        self.reserved_for == ReservedFor::Releases
    }

    /// Takes the worst case of writes of so many chunks each out of it: all of them, or none.
    /// Comes back with the room taken, and with the share of the quota for each write.
    ///
    /// # Errors
    /// [`RequestError::ReservationTooSmall`] when it holds less.
    pub(crate) fn draw(
        &self,
        writes: &[u64],
    ) -> Result<(WriteRoom, Vec<QuotaShare>), RequestError> {
        let asked = WriteRoom { chunks: writes.iter().sum(), writes: writes.len() as u64 };
        let mut held = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(left) = held.room.without(asked) else {
            let WriteRoom { chunks: left_chunks, writes: left_writes } = held.room;
            let WriteRoom { chunks, writes } = asked;
            return Err(RequestError::ReservationTooSmall {
                chunks,
                writes,
                left_chunks,
                left_writes,
            });
        };
        if !mutant!(DrawsNothing) {
            held.room = left;
        }
        Ok((asked, writes.iter().map(|&chunks| held.quota.draw(chunks)).collect()))
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (volume, left) = (self.volume.name(), self.left());
        let mut fields = f.debug_struct("Reservation");
        fields.field("volume", &volume).field("reserved_for", &self.reserved_for);
        fields.field("left", &left).finish_non_exhaustive()
    }
}

impl Drop for Reservation {
    /// Gives back what was not written, and what waits for room hears of it.
    fn drop(&mut self) {
        if !mutant!(KeepsReservation) {
            (self.give_back)(self.left());
        }
    }
}
