//! Containers that were freed come back as soon as that is known.
//!
//! Two syncs bring a container out of quarantine: one makes the record of its freeing durable, the
//! next makes a record durable that says so (`containers/src/space.rs` tells why one is not
//! enough). Clients' flushes and records do both in passing. Rounds are asked for only while
//! containers are short, or a data zone is to be empty, and a record without changes is written
//! when no other comes.

use crate::engine::Engine;

impl Engine {
    /// Hurries the next container out of quarantine while containers are short.
    pub(crate) fn advance_quarantine(&mut self) -> bool {
        let Some(awaited) = self.core.placement.space.awaited_record() else { return false };
        if self.core.stopped.is_some()
            || self.core.table_room.last_is_asked
            || !(self.core.free_containers_are_short() || self.evacuation_waits_for_quarantine())
        {
            return false;
        }
        self.core.flushes.ask();
        let untold =
            self.core.log.told < awaited && awaited <= self.core.log.settled.durable_sequence;
        if !untold || !self.core.journal_has_room(0) {
            return false;
        }
        self.record(&[]);
        true
    }
}
