//! What the superblock holds, and who writes to it.

use std::collections::VecDeque;

use format::root::Root;
use mutants::mutant;

use crate::door::error::RequestError;
use crate::grow::enlarging::{GrowsFor, Wish};
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
    /// Other geometries that have been asked for, in the order in which they came.
    pub(crate) wishes: VecDeque<Wish>,
    /// What another geometry is for that is being written.
    pub(crate) grows_for: Option<GrowsFor>,
}

impl Superblock {
    pub(crate) fn new(newest: &Root) -> Self {
        let newest = Box::new(newest.clone());
        Self {
            newest,
            is_writing_root: false,
            is_mended: false,
            is_scrubbed: false,
            wishes: VecDeque::new(),
            grows_for: None,
        }
    }

    /// Whether another geometry is asked for or being written.
    pub(crate) fn will_grow(&self) -> bool {
        self.grows_for.is_some() || !self.wishes.is_empty()
    }

    /// Whether another geometry for this is.
    pub(crate) fn will_grow_for(&self, purpose: GrowsFor) -> bool {
        self.grows_for == Some(purpose) || self.wishes.iter().any(|wish| wish.purpose() == purpose)
    }

    /// No other geometry is written any more.
    pub(crate) fn fail_wishes(&mut self, error: &RequestError) {
        self.wishes.drain(..).for_each(|wish| wish.fail(error.clone()));
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
