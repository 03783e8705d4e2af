//! Second copies: the frame of a chunk that many LBAs name is kept twice, in two containers.
//!
//! ```text
//! count lifted over the limit,   +--------+  read   +--------+
//! met by collection or scrub --> | wanted | ------> | copied | <-- moved, dropped by collection
//!                                +--------+  Copy   +--------+
//! read, scrub or collection      +---------+ frame is sound after all --> nothing
//! found its frame damaged -----> | suspect | copy is sound: Move to it --> wanted anew
//!                                +---------+ both are damaged: DropCopy --> listed as damaged
//!                                            copy cannot be read --> listed, until it is met again
//! ```
//!
//! A copy is dropped because its bytes are wrong or not worth their room, never because a device
//! failed: that says nothing of the bytes, and they may be all that is left of the chunk. Whose
//! copy a scrub could not read gets another in its place.
//!
//! One chunk at a time, in the background. To heal is to let the copy take the frame's place: no
//! byte is written but a record. All is looked up again when a frame has come, so what is recorded
//! is true in that moment. A close waits until the lists are empty.
//!
//! The lists are in memory and bounded: what a crash or a full list forgets is met again by
//! collection or scrub. Nothing is copied while room is short, and what is copied has its room
//! reserved as a client's write has. What is durable, and why nothing is lost: decision 017.

pub(crate) mod copying;
pub(crate) mod lists;

use format::units::{Pba, Pbn};
use tables::PinSet;

use crate::copies::lists::CopyLists;
use crate::core::Core;
use crate::core::frame::FoundFrame;
use crate::door::error::RequestError;
use crate::part::Part;
use crate::state::State;

/// References beyond which a chunk gets a second copy, unless the operator says otherwise.
pub const COPIES_ABOVE_DEFAULT: u32 = 1000;

/// Chunks that are stored twice between two ticks, at most, while clients are busy.
const PER_TICK: u32 = 32;

/// The chunk that is worked on.
#[derive(Default)]
pub(crate) struct Copies {
    pub(crate) task: Option<Task>,
    /// A frame is on its way.
    pub(crate) reading: bool,
    /// Chunks that may be begun although clients are busy.
    due: u32,
    /// Pages that the task needs.
    pins: PinSet,
}

/// A chunk that is worked on.
pub(crate) struct Task {
    pub(crate) pbn: Pbn,
    /// Its frame seems damaged; else it is to have a second copy.
    pub(crate) heals: bool,
    pub(crate) frame: Option<FoundFrame>,
    /// Where its frame was found damaged.
    pub(crate) damaged_at: Option<Pba>,
}

impl State {
    /// Whether a chunk with so many references is to have a second copy.
    pub(crate) fn is_popular(&self, references: u32) -> bool {
        self.copies_above > 0 && references > self.copies_above
    }

    /// Whether a second copy of a chunk with so many references is worth its room. Once it has one
    /// it may lose half of its references first.
    pub(crate) fn keeps_copy(&self, references: u32) -> bool {
        self.copies_above > 0 && references > self.copies_above / 2
    }

    /// Whether a chunk with so many references may have a second copy that is worth a look.
    pub(crate) fn may_have_copy(&self, references: u32) -> bool {
        self.totals.copied_chunks > 0 && references > self.copies_above / 2
    }
}

impl Copies {
    /// Time has passed.
    pub(crate) fn tick(&mut self) {
        self.due = PER_TICK;
    }

    /// The next chunk to work on; those to be stored twice only when `is_time` says so.
    pub(crate) fn next_task(
        &mut self,
        lists: &CopyLists,
        is_time: impl FnOnce(bool) -> bool,
    ) -> Option<Task> {
        let begin = |pbn, heals| Task { pbn, heals, frame: None, damaged_at: None };
        if let Some(pbn) = lists.first_suspect() {
            return Some(begin(pbn, true));
        }
        let pbn = lists.first_wanted()?;
        if !is_time(self.due > 0) {
            return None;
        }
        self.due = self.due.saturating_sub(1);
        Some(begin(pbn, false))
    }
}

impl Part for Copies {
    /// Nobody waits for an answer.
    fn fail(&mut self, _error: &RequestError) {}

    fn is_idle(&self, core: &Core) -> bool {
        self.task.is_none() && core.copy_lists.is_empty()
    }

    fn check(&self, _core: &Core) {
        let waits = !self.reading || self.task.is_some();
        assert!(waits, "OnePending: a frame is read for the task that is worked on");
    }
}

impl Task {
    /// Nothing is left to do for its chunk.
    pub(crate) fn end(&self, lists: &mut CopyLists) {
        if self.heals {
            lists.end_suspicion(self.pbn);
        } else {
            lists.end_want(self.pbn);
        }
    }
}
