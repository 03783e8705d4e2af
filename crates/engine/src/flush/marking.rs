//! What became durable last is said in the journal, once the store is idle.
//!
//! Every record carries how far all was durable when it was written, and recovery believes what is
//! so *marked*: a frame that is missing there has been damaged, while one that is missing behind
//! the newest mark never arrived, and ends the journal. The last records of a burst are marked by
//! none that follows, and a root that proves them may be lost. So when nobody has written for a
//! while, and all is durable, a record without changes is appended that marks them; and so it is
//! before the last root of a close. It needs no mark itself: nothing is lost with it.

use crate::core::Core;
use crate::flush::TICKS_UNSYNCED_MAX;

impl Core {
    /// Marks what is durable, if no record has and none may come for a while.
    pub(crate) fn advance_marking(&mut self) -> bool {
        let is_due = self.flushes_are_idle()
            && self.flushes.ticks >= TICKS_UNSYNCED_MAX
            && self.log.is_unmarked();
        // A close marks for itself, before its last root.
        if !is_due || self.stopped.is_some() || self.is_closing || !self.journal_has_room(0) {
            return false;
        }
        self.record_with(&[], self.log.durability_of_next(true));
        true
    }

    /// Whether a record says of all others that they are durable; if there is room for one.
    pub(crate) fn is_marked(&self) -> bool {
        self.log.told >= self.log.newest_change || !self.log.journal.fits(0)
    }

    /// Writes that record, or has made durable what it is to mark; true if that is new.
    pub(crate) fn ask_for_mark(&mut self) -> bool {
        if self.log.is_unmarked() {
            self.record(&[]);
            return true;
        }
        let is_new = !self.flushes.wanted && self.log.syncing.is_none();
        self.flushes.ask();
        is_new
    }
}
