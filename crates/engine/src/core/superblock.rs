//! What the superblock holds, and who writes to it.

use format::root::Root;
use mutants::mutant;

use crate::state::State;

/// The newest root, and whether one of the two slots is being written.
pub(crate) struct Superblock {
    /// The newest durable root, as its slot has it. A replay begins where its journal does, and
    /// free PBNs before its `free_tail` may be handed out.
    pub(crate) newest: Box<Root>,
    /// A root is on its way to its slot, or there and not the newest yet.
    pub(crate) is_writing_root: bool,
    /// A scrub writes here: the next root waits, so that not both slots are torn.
    pub(crate) is_mended: bool,
    /// A step of a scrub judges it by the geometry in memory: no other geometry is written.
    pub(crate) is_scrubbed: bool,
}

impl Superblock {
    pub(crate) fn new(newest: &Root) -> Self {
        let newest = Box::new(newest.clone());
        Self { newest, is_writing_root: false, is_mended: false, is_scrubbed: false }
    }

    /// The generation of the next root.
    pub(crate) fn next_generation(&self) -> u64 {
        self.newest.generation + 1
    }

    /// PBNs in the free queue that may be handed out: a root without their entries is durable.
    pub(crate) fn free_pbns(&self, state: &State) -> u64 {
        let early = mutant!(ReusesPbnAtOnce);
        let limit = if early { state.free.tail() } else { self.newest.free_tail };
        limit.saturating_sub(state.free.head())
    }
}
