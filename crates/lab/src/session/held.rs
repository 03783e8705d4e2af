//! What holders of room have, as a session counts it.

use std::collections::BTreeMap;

use engine::{Reservation, WriteRoom};

use crate::script::Verb;

/// A reservation, with what it must have left.
pub(crate) struct Holder {
    pub(crate) reservation: Reservation,
    pub(crate) volume: u32,
    pub(crate) left: WriteRoom,
}

/// What holders of room have, and what was written with a hint.
#[derive(Default)]
pub(crate) struct Holders {
    pub(crate) held: BTreeMap<u32, Holder>,
    /// Chunks that were surely stored without a look-up since the store was opened.
    pub(crate) unindexed_chunks: u64,
}

impl Holders {
    pub(crate) fn end_all(&mut self) {
        self.held.clear();
    }
}

/// Whether reservations end before this: a quota and a rollback want the volume for themselves, a
/// deleted one is gone, and of a store at rest nothing may be held.
pub(crate) fn ends_holders(verb: &Verb) -> bool {
    matches!(verb, Verb::Delete { .. } | Verb::Rollback { .. } | Verb::Quota { .. } | Verb::Idle)
}
