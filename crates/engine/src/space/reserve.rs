//! Reservations, on the core's side: they are granted in the order of the queue, and wait for room
//! as writes do ([`crate::space::wait`]).
//!
//! One for releases goes before all that wait: it brings room, and takes what the others may not.

use std::sync::Arc;

use crate::core::Core;
use crate::door::error::RequestError;
use crate::door::requests::ReserveRequest;
use crate::door::reservation::Reservation;
use crate::space::waiting::Waiting;
use crate::space::write_room::ReservedFor;

/// Grants a reservation, refuses it, or has it wait for room.
pub(crate) fn accept_reserve(core: &mut Core, request: ReserveRequest) {
    let goes_first = request.reserved_for == ReservedFor::Releases;
    if !core.waiting.is_empty() && !goes_first {
        return core.waiting.push_back(Waiting::Reserve(request));
    }
    if let Some(request) = try_grant(core, request) {
        core.waiting.push_front(Waiting::Reserve(request));
    }
}

/// Grants or refuses a reservation; it comes back if there is no room now.
pub(crate) fn try_grant(core: &mut Core, request: ReserveRequest) -> Option<ReserveRequest> {
    let change = request.volume.check_change(0, 0);
    if let Err(error) = change.and_then(|()| check_quota_for(core, &request)) {
        request.done.fail(error);
        return None;
    }
    let ReserveRequest { room, reserved_for, .. } = request;
    let for_release = reserved_for == ReservedFor::Releases;
    if !core.intake.lock().space.try_hold(request.volume.id, room, for_release) {
        return Some(request);
    }
    let ReserveRequest { volume, open_id, done, .. } = request;
    let volume = core.volumes.open_again(&volume, open_id);
    let intake = Arc::clone(&core.intake);
    let give_back = Box::new(move |room| intake.end_hold(room, for_release));
    let reservation = Reservation::new(give_back, volume, room, reserved_for);
    done.reply(reservation);
    None
}

/// That the volume may map as many chunks more as the room has, and all that is on its way.
fn check_quota_for(core: &Core, request: &ReserveRequest) -> Result<(), RequestError> {
    let volume = &request.volume;
    let entry = core.state.catalog.get(volume.id);
    let (Some(quota_bytes), Some(entry)) = (volume.quota_bytes(), entry) else {
        return Ok(());
    };
    let quota_chunks = quota_bytes.div_ceil(u64::from(core.geometry.chunk_bytes));
    let taken = entry.mapped_chunks + volume.quota_reserved();
    if taken.saturating_add(request.room.chunks) <= quota_chunks {
        return Ok(());
    }
    Err(RequestError::QuotaExceeded { volume: volume.name() })
}
