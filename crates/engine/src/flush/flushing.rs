//! The round that makes records durable.

use std::collections::BTreeSet;

/// A round under way.
pub(crate) struct Round {
    /// Records up to this one become durable.
    pub(crate) sequence: u64,
    /// Whether their frames become durable in their containers as well.
    pub(crate) places: bool,
    /// Groups up to this one become durable.
    pub(crate) group: u64,
    /// I/O issued before this mark must have ended.
    pub(crate) mark: u64,
    /// Data zones that were written before the mark. What is written to them later may not have
    /// ended when they are synced, so it counts for the next round.
    pub(crate) zones: BTreeSet<u16>,
    /// Whether the journal is to be synced.
    pub(crate) journal: bool,
    pub(crate) syncs_left: Option<usize>,
    /// What the records that become durable say of durability themselves.
    pub(crate) told: u64,
}

/// The round under way, if any.
#[derive(Default)]
pub(crate) struct Flushing {
    pub(crate) round: Option<Round>,
}

impl Flushing {
    pub(crate) fn sync_ended(&mut self) {
        if let Some(Round { syncs_left: Some(left), .. }) = &mut self.round {
            *left -= 1;
        }
    }
}
