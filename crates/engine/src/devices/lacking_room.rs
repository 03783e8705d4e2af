//! Writes that the medium has no room for wait for it.
//!
//! A store whose host runs out of space (a sparse file, a thin device, a quota of another machine)
//! sees its writes fail although every promise still holds: nothing was synced since. Such a write
//! stays in flight for the rest of the engine and is submitted again every few ticks, whole. A disk
//! promises no order among operations in flight, so a write that takes many attempts is a write
//! that takes long: what needs it waits, the write buffer fills, and all goes on when there
//! is room ([`disk::ErrorClass::NoSpace`] says that a failed attempt takes no effect later).
//!
//! ```text
//! submitted --(no space)--> waiting --(every few ticks)--> tried again --(ok)--> ended
//!                              ^------------(no space)---------|
//! ```

use std::collections::BTreeMap;

use disk::{Completion, ErrorClass, Io, IoError};

/// Ticks between two attempts: half a second.
const ATTEMPT_TICKS: u32 = 5;

/// What became of the room on the medium.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RoomChange {
    /// A write found none.
    Lacks(IoError),
    /// All that waited has been written.
    Came,
}

/// What waits for room.
#[derive(Default)]
pub(crate) struct LackingRoom {
    /// By tag; None while it is tried again.
    waiting: BTreeMap<u64, Option<Box<Io>>>,
    /// The first failure since there was room.
    failure: Option<IoError>,
    /// Since then.
    ticks: u32,
    is_told: bool,
    /// Nothing is held any more: failures are for the caller.
    given_up: bool,
}

impl LackingRoom {
    /// Takes a completion that failed for want of room, unless it `may_fail`; false: it has ended.
    pub(crate) fn holds(
        &mut self,
        completion: &mut Completion,
        may_fail: impl FnOnce() -> bool,
    ) -> bool {
        let Err(error) = &completion.result else {
            if !self.waiting.is_empty() {
                self.waiting.remove(&completion.tag);
            }
            return false;
        };
        let lacks_room = error.class() == ErrorClass::NoSpace && !self.given_up && !may_fail();
        let Some(io) = completion.failed.take_if(|_| lacks_room) else {
            self.waiting.remove(&completion.tag);
            return false;
        };
        if self.failure.is_none() {
            self.failure = Some(error.clone());
        }
        self.waiting.insert(completion.tag, Some(io));
        true
    }

    /// Submits what waits, if it is time, and says what has changed since the last tick.
    pub(crate) fn tick(&mut self, mut submit: impl FnMut(Io)) -> Option<RoomChange> {
        let failure = self.failure.clone()?;
        if self.waiting.is_empty() {
            *self = Self { given_up: self.given_up, ..Self::default() };
            return Some(RoomChange::Came);
        }
        self.ticks += 1;
        if self.ticks.is_multiple_of(ATTEMPT_TICKS) {
            for io in self.waiting.values_mut().filter_map(Option::take) {
                submit(*io);
            }
        }
        let is_new = !std::mem::replace(&mut self.is_told, true);
        is_new.then_some(RoomChange::Lacks(failure))
    }

    /// Ticks since there was room, and the failure that said so.
    pub(crate) fn lacking(&self) -> Option<(u32, &IoError)> {
        self.failure.as_ref().map(|failure| (self.ticks, failure))
    }

    /// Ends all that waits with its failure; from now on nothing is held.
    pub(crate) fn give_up(&mut self, done: &mut Vec<Completion>) {
        self.given_up = true;
        if let Some(failure) = &self.failure {
            let waiting = std::mem::take(&mut self.waiting).into_values().flatten();
            done.extend(waiting.map(|io| io.complete(Err(failure.clone()))));
        }
    }
}
