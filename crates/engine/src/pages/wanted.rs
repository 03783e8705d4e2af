//! What wants ask for and hold.

use tables::{PageRead, PinSet};

/// Leaves of the PBN-PBA table that a want knows again: new chunks share one, and what they repeat
/// mostly came not long before.
const PBA_LEAVES_KNOWN: usize = 4;

/// Where wants put the pages they hold and the reads they need.
///
/// Whatever becomes of them, damage included, it is handed on to be held and read
/// ([`crate::core::Core::hold_in`]): a page that was asked for counts as on its way, and
/// what asks for it later waits for that read.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) pins: PinSet,
    pub(crate) reads: Vec<PageRead>,
    /// Leaves of the PBN-PBA table that were asked for last, the newest first, and whether each was
    /// here.
    pba_leaves: [Option<(u64, bool)>; PBA_LEAVES_KNOWN],
}

impl Wanted {
    /// Whether a leaf of the PBN-PBA table is here, if it is among those asked for last.
    pub(crate) fn known_pba_leaf(&self, leaf: u64) -> Option<bool> {
        let mut known = self.pba_leaves.iter().flatten();
        known.find(|(known, _)| *known == leaf).map(|&(_, here)| here)
    }

    /// A leaf of the PBN-PBA table has been asked for.
    pub(crate) fn know_pba_leaf(&mut self, leaf: u64, here: bool) {
        self.pba_leaves.rotate_right(1);
        self.pba_leaves[0] = Some((leaf, here));
    }
}
