//! What the Hash-PBN table does in the background: sealing and merging, a step at a time.
//!
//! A step touches a few dozen pages, so that clients' groups go in between. It is due when more
//! entries are young than should be; when far more are, groups wait for it. It changes pages as
//! groups do: while a checkpoint has to come first, both wait, and neither waits for the other. A
//! store that is being closed leaves the rest to its next opening.

use tables::PageError;

use crate::engine::Engine;
use crate::state::Wanted;

/// Steps that one step of the engine does at most: clients' work goes in between.
const STEPS_MAX: usize = 4;

impl Engine {
    /// Does what is due, as far as its pages are here.
    pub(crate) fn advance_hash(&mut self) -> bool {
        let mut moved = false;
        for _ in 0..STEPS_MAX {
            if self.stopped.is_some() || !self.hash_work_may_go_on() {
                break;
            }
            match self.hash_step() {
                Ok(true) => moved = true,
                Ok(false) => break,
                Err(error) => {
                    self.stop_for(&error);
                    return true;
                }
            }
        }
        moved
    }

    fn hash_step(&mut self) -> Result<bool, PageError> {
        if self.state.store.awaits(&self.lookups.hash_pins) {
            return Ok(false);
        }
        let mut wanted = Wanted::default();
        let here = self.state.want_hash_work(&mut wanted);
        self.counters.merge_reads += wanted.reads.len() as u64;
        self.hold_pages(wanted, |lookups| &mut lookups.hash_pins);
        if here? {
            self.state.hash.work(&mut self.state.store);
            self.hold_pages(Wanted::default(), |lookups| &mut lookups.hash_pins);
            return Ok(true);
        }
        Ok(false)
    }

    fn hash_work_may_go_on(&self) -> bool {
        self.state.hash.work_is_due()
            && !self.checkpoints.closing
            && !self.checkpoints.tables_are_behind(&self.state)
    }

    /// Whether writers must wait for a checkpoint, or for young entries to be merged.
    pub(crate) fn tables_are_behind(&self) -> bool {
        self.checkpoints.tables_are_behind(&self.state)
            || self.state.hash.is_behind() && self.hash_work_may_go_on()
    }
}
