//! Containers that were freed come back as soon as that is known.
//!
//! Two syncs bring a container out of quarantine: one makes the record of its freeing durable, the
//! next makes a record durable that says so (`containers/src/space.rs` tells why one is not
//! enough). Clients' flushes and records do both in passing. Rounds are asked for only while
//! containers are short, or a data zone is to be empty, and a record without changes is written
//! when no other comes.

use crate::core::Core;

/// Hurries the next container out of quarantine while containers are short, or a zone is to be
/// empty (`zone_waits`).
pub(crate) fn advance_quarantine(core: &mut Core, zone_waits: bool) -> bool {
    let Some(awaited) = core.placement.space.awaited_record() else { return false };
    if core.stopped.is_some()
        || core.table_room.last_is_asked
        || !(core.free_containers_are_short() || zone_waits)
    {
        return false;
    }
    core.flushes.ask();
    let untold = core.log.told < awaited && awaited <= core.log.settled.durable_sequence;
    if !untold || !core.journal_has_room(0) {
        return false;
    }
    core.record(&[]);
    true
}
