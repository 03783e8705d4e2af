//! Second copies in the accounts: where they are, and of which chunks nobody knows.

use format::units::{Pbn, TreeId};
use tables::pbn_pba;

use crate::repair::ledger::{Ledger, Pages};

impl Ledger {
    /// Notes the second copies that the base's table names, and the leaves of it that are lost.
    pub(crate) fn read_copies(&mut self, pages: &mut Pages<'_>) {
        pages.each_leaf(TreeId::COPIES, |leaf, page| {
            let Some(page) = page else {
                self.copies_lost.insert(leaf);
                return;
            };
            let entries = pbn_pba::entries(leaf, page);
            self.copies.extend(entries.map(|(pbn, entry)| (pbn, entry.pba)));
        });
    }

    /// Whether nobody knows where all second copies are.
    pub(crate) fn has_lost_copies(&self) -> bool {
        !self.copies_lost.is_empty()
    }

    /// Whether nobody knows if a chunk has a second copy.
    pub(crate) fn may_have_copy(&self, pbn: Pbn) -> bool {
        let (leaf, _) = pbn_pba::place(pbn);
        self.copies_lost.contains(&leaf) && !self.copies.contains_key(&pbn)
    }
}
