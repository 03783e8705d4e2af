//! Reservations, by the handle of [`crate::door::client`].

use std::sync::Arc;

use reduce::ChunkBuf;

use crate::door::client::Client;
use crate::door::client_writes::{Accepted, WriteOptions, wait_unless_accepted};
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::open_volume::OpenVolume;
use crate::door::requests::{Request, ReserveRequest};
use crate::door::reservation::Reservation;
use crate::space::write_room::{ReservedFor, WriteRoom};

impl Client {
    /// Reserves `room` for writes to `volume`; the outcome is a [`Reservation`].
    ///
    /// It waits as a write does: while collection, deletions or checkpoints may bring room, and no
    /// longer. Requests that others hold room for do not count as such, so it never waits for them.
    ///
    /// # Errors
    /// [`RequestError::NoSpace`] when no room comes; [`RequestError::QuotaExceeded`] when the
    /// volume could not map so many chunks more within its quota, what is on its way counted as
    /// new; or why the volume cannot be written.
    pub fn reserve_with(
        &self,
        volume: &OpenVolume,
        room: WriteRoom,
        reserved_for: ReservedFor,
        done: Done<Reservation>,
    ) {
        if let Err(error) = volume.0.check_change(0, 0) {
            return done.fail(error);
        }
        if let Some(error) = self.intake.refusal_of_writes() {
            return done.fail(error);
        }
        let (open_id, volume) = (volume.open_id(), Arc::clone(&volume.0));
        let request = ReserveRequest { volume, open_id, room, reserved_for, done };
        self.intake.push(Request::Reserve(request));
    }

    /// Writes several buffers with room that is reserved, as [`Client::write_vectored`] writes
    /// them: in their order, with one answer. None fails or waits for want of room or for a quota;
    /// they may be acknowledged before writes to the same volume that wait for room and came first.
    ///
    /// # Errors
    /// [`RequestError::ReservationTooSmall`] when the reservation holds less than the worst case of
    /// all of them: then nothing is written, and it holds what it held.
    pub fn write_reserved(
        &self,
        reservation: &Reservation,
        writes: Vec<(u64, ChunkBuf)>,
        options: WriteOptions,
        done: Done<()>,
    ) -> Accepted {
        let writes = match self.requests_of(reservation.volume(), writes, options) {
            Ok(writes) => writes,
            Err(error) => {
                done.fail(error);
                return Accepted::Later;
            }
        };
        if writes.is_empty() {
            return self.write_nothing(options.durability, done);
        }
        let acknowledged = self.intake.write_reserved(writes, reservation, done);
        if acknowledged { Accepted::Now } else { Accepted::Later }
    }

    /// From now on so much room is left alone by all but reservations for
    /// [`ReservedFor::Releases`]: in a store that others have filled there is room to delete with.
    ///
    /// What is not there now is kept as soon as it comes. It is not durable: say it at each
    /// opening, before clients come, as [`crate::Options::kept_for_release`].
    pub fn keep_for_release(&self, room: WriteRoom) {
        self.intake.keep_for_release(room);
    }
}

/// The blocking forms.
///
/// # Errors
/// Each returns the [`RequestError`] of its request.
impl Client {
    /// Reserves room and waits until it is held or refused, as [`Client::reserve_with`] says.
    pub fn reserve(
        &self,
        volume: &OpenVolume,
        room: WriteRoom,
        reserved_for: ReservedFor,
    ) -> Result<Reservation, RequestError> {
        let (done, pending) = Done::pending();
        self.reserve_with(volume, room, reserved_for, done);
        pending.wait()
    }

    /// Writes several ranges in their order, as [`Client::write_reserved`] does, and waits for the
    /// answer.
    pub fn write_reserved_at(
        &self,
        reservation: &Reservation,
        writes: &[(u64, &[u8])],
        options: WriteOptions,
    ) -> Result<(), RequestError> {
        let writes = self.filled_buffers(reservation.volume(), writes);
        wait_unless_accepted(|done| self.write_reserved(reservation, writes, options, done))
    }
}
