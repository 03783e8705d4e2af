//! Reservations of volumes: room that is a volume's whatever else writes, as long as it has them.
//!
//! ```text
//! asked -> feature in the geometry -> room? -> promised, recorded -> answered
//!                                      `-> waits as a write does, or is refused
//! ```
//!
//! The catalog keeps how much is reserved; what is promised follows from it and from what the
//! volume maps ([`crate::space::promises`]), and is counted anew before doors are told how much is
//! free.
//! A reservation is the volume's own, as a quota is: snapshots and clones have none.

use std::sync::Arc;

use format::record::Change;

use crate::control::{Asked, SetReservation};
use crate::core::Core;
use crate::door::error::RequestError;
use crate::door::volume::VolumeShared;
use crate::grow::enlarging::{Then, Wish};
use crate::grow::wanted_geometry::knows_reservations;
use crate::space::promises::Left;
use crate::space::waiting::{Waiting, WaitingPromise};
use crate::volumes::queued::queue_of;

/// Queues a volume's reservation, or what has to come before, or has it wait for room.
pub(crate) fn accept_reservation(core: &mut Core, asked: Asked<SetReservation>) {
    let volume = match check_reservation(core, &asked.verb) {
        Ok(volume) => volume,
        Err(error) => return asked.done.fail(error),
    };
    if knows_reservations(&core.geometry) {
        if !core.waiting.is_empty() && !may_have_less(core, &asked.verb, &volume) {
            // Behind those that were before it: what it takes they would lack.
            let promise = wait_with(core, asked, &volume);
            return core.waiting.push_back(Waiting::Promise(promise));
        }
        if let Some(promise) = try_promise(core, asked) {
            core.waiting.push_back(Waiting::Promise(promise));
        }
        return;
    }
    if asked.verb.reservation_bytes.is_none() {
        // It has none. The empty record is answered as every change of a volume is, when all
        // that came before is durable.
        return queue_of(core, Ok((Vec::new(), volume.id)), asked.done);
    }
    core.superblock.wishes.push_back(Wish::Geometry(Then::Reserve(asked)));
}

/// Promises and records a reservation, or refuses it; it comes back if there is no room now.
pub(crate) fn try_promise(core: &mut Core, asked: Asked<SetReservation>) -> Option<WaitingPromise> {
    let volume = match check_reservation(core, &asked.verb) {
        Ok(volume) => volume,
        Err(error) => {
            asked.done.fail(error);
            return None;
        }
    };
    let reservation_bytes = asked.verb.reservation_bytes.unwrap_or(0);
    let left = core.left_to_map(&volume, reservation_bytes);
    if !core.intake.lock().space.try_promise(volume.id, left) {
        return Some(wait_with(core, asked, &volume));
    }
    volume.set_reservation_bytes(reservation_bytes);
    let id = volume.id;
    match reservation_bytes {
        0 => end_promise(core, &volume),
        _ => drop(core.volumes.promised.insert(id, volume)),
    }
    let change = Change::SetReservation { id, reservation_bytes };
    queue_of(core, Ok((vec![change], id)), asked.done);
    None
}

/// What one is told that no room comes for.
pub(crate) fn refuse_promise(core: &mut Core, asked: Asked<SetReservation>) {
    let volume = match check_reservation(core, &asked.verb) {
        Ok(volume) if !core.is_closing => volume,
        Ok(_) => return asked.done.fail(RequestError::Closing),
        Err(error) => return asked.done.fail(error),
    };
    let left = core.left_to_map(&volume, asked.verb.reservation_bytes.unwrap_or(0));
    let (free_bytes, lacks_tables) = core.intake.lock().space.free_to_promise(volume.id, left);
    let needed_bytes = left.bytes;
    asked.done.fail(RequestError::NoRoomToReserve { needed_bytes, free_bytes, lacks_tables });
}

/// A volume is promised nothing any more.
pub(crate) fn end_promise(core: &mut Core, volume: &VolumeShared) {
    core.volumes.promised.remove(&volume.id);
    core.intake.lock().space.promises.end(volume.id);
}

/// Whether a reservation asks for no more than the volume is promised already.
fn may_have_less(core: &Core, verb: &SetReservation, volume: &VolumeShared) -> bool {
    let left = core.left_to_map(volume, verb.reservation_bytes.unwrap_or(0));
    left == Left::default() || core.intake.lock().space.promises.covers(volume.id, left)
}

fn wait_with(core: &Core, asked: Asked<SetReservation>, volume: &VolumeShared) -> WaitingPromise {
    let left = core.left_to_map(volume, asked.verb.reservation_bytes.unwrap_or(0));
    let chunks = left.bytes.div_ceil(u64::from(core.geometry.chunk_bytes));
    WaitingPromise { asked, volume: volume.id, chunks }
}

/// The volume, if it may have the reservation.
fn check_reservation(
    core: &Core,
    verb: &SetReservation,
) -> Result<Arc<VolumeShared>, RequestError> {
    let volume = Arc::clone(core.volumes.volume(&verb.name)?);
    let Some(reservation_bytes) = verb.reservation_bytes else { return Ok(volume) };
    let quota_bytes = volume.quota_bytes().unwrap_or(u64::MAX);
    let most_bytes = volume.size_bytes().min(quota_bytes);
    if reservation_bytes == 0 || reservation_bytes > most_bytes {
        let name = volume.name();
        return Err(RequestError::BadReservation { name, reservation_bytes, most_bytes });
    }
    Ok(volume)
}
