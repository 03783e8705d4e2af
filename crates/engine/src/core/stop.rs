//! The end of all writing, and what the operator hears.

use format::units::block_offset_bytes;
use tables::PageError;

use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::door::error::RequestError;
use crate::notice::Notice;
use crate::pages::absence::{Advice, lacking_page};

impl Core {
    /// Tells the observer, if there is one.
    pub(crate) fn tell(&self, notice: &Notice) {
        if let Some(observer) = &self.observer {
            observer(notice);
        }
    }

    /// From now on nothing is written: doors refuse what comes, and the loop answers what is under
    /// way with `error`. If another owner has the store, nothing is read either.
    pub(crate) fn stop_writing(&mut self, error: RequestError) {
        let fences = matches!(error, RequestError::Fenced { .. }) && !self.is_fenced();
        if self.stopped.is_some() && !fences {
            return;
        }
        self.stopped = Some(error.clone());
        self.stop_is_answered = false;
        self.tell(&Notice::WritingStopped { error: error.clone() });
        self.intake.refuse_writes(error);
        self.devices.stop_waiting_for_room();
    }

    /// An invariant does not hold. A debug build panics; in a server nothing is written from now
    /// on, with the invariant's name as the cause, and reads go on: what is on the disk was written
    /// while it held.
    pub(crate) fn violated(&mut self, invariant: Invariant) {
        debug_assert!(false, "{invariant:?} does not hold");
        self.stop_writing(RequestError::InvariantBroken { name: format!("{invariant:?}") });
    }

    /// The caller lacks a page. True if the writing stops for that; else the caller tries again.
    pub(crate) fn stop_for(&mut self, error: &PageError) -> bool {
        if let PageError::Unreadable { block, .. } = error {
            match self.absence.met() {
                Advice::Begin => {
                    let offset_bytes = block_offset_bytes(*block);
                    self.tell(&Notice::TablesUnreadable { offset_bytes });
                    return false;
                }
                Advice::Wait => return false,
                Advice::GiveUp => {}
            }
        }
        self.stop_writing(lacking_page(error));
        true
    }

    /// Whether another owner has the store: nothing is read, written or answered any more.
    pub(crate) fn is_fenced(&self) -> bool {
        matches!(self.stopped, Some(RequestError::Fenced { .. }))
    }
}
