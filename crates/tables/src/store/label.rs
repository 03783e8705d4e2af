//! The block of zone tables in which a root stands once more: its label.
//!
//! It is no page and has none above it. The root names it, so it lives as blocks of pages do: given
//! at a freeze, kept while a slot holds a root that names it, then free.

use mutants::mutant;

use super::page_store::PageStore;
use super::reach::ReachWalker;

impl PageStore {
    /// Behind a freeze: gives the coming root a block for its label. The one of the root before
    /// goes with the next freeze. A root for which no block is left has no label.
    pub fn renew_label(&mut self) {
        let block = self.space.take_block().unwrap_or(0);
        let former = std::mem::replace(&mut self.label, block);
        if former != 0 && mutant!(ReusesLabelAtOnce) {
            self.space.release(former);
        } else if former != 0 {
            self.space.free(former);
        }
    }

    /// Block of the label of the root that the last freeze led to; 0: it has none.
    #[must_use]
    pub fn label(&self) -> u64 {
        self.label
    }

    /// Opening: the root that the store goes on from has this label, which was walked.
    pub fn adopt_label(&mut self, block: u64) {
        self.label = if block < self.options.tables_blocks { block } else { 0 };
    }
}

impl ReachWalker {
    /// Adds the label of the root that is being walked. One that points out of the zone is none.
    pub fn add_label(&mut self, block: u64) {
        if block != 0 && block < self.tables_blocks && !mutant!(ForgetsLabelAtOpening) {
            self.mark(block);
        }
    }
}
