//! What reads leave where doors find it ([`crate::door::lookaside`]): frames by address, and copies
//! of leaves of maps.

use format::map_page::SLOTS;
use format::units::{Lba, TreeId};
use mutants::mutant;
use tables::lba_pbn;

use crate::door::lookaside::SlotSet;
use crate::door::outcome::FrameBytes;
use crate::engine::Engine;
use crate::read::read_ahead::Source;
use crate::read::reads::{ReadOp, SpanPart};
use crate::state::mapping::leaf_start;

impl Engine {
    /// What an address reads as is kept for the doors, if its frame is.
    pub(crate) fn let_doors_know(&self, op: &ReadOp, lba: Lba, part: &SpanPart, source: &Source) {
        if let Source::Held(FrameBytes::Held(frame)) | Source::New(FrameBytes::Held(frame)) = source
            && op.is_for_doors()
        {
            let (address, chunk) = ((op.volume.id, lba), (part.pbn, part.pba.check));
            self.core.intake.lookaside.fill(address, op.as_of, chunk, frame);
        }
    }

    /// The leaf in which a read begins, which is here, is copied for doors, if it is time.
    pub(crate) fn show_leaf(&self, op: &ReadOp, lba: Lba) {
        let (volume, leaf) = (op.volume.id, lba_pbn::place(lba).0);
        if !op.is_for_doors() || !self.core.intake.lookaside.leaf_is_due((volume, leaf)) {
            return;
        }
        let Some(page) = self.core.state.store.page(TreeId::volume(volume), leaf) else { return };
        let (first, mut left_out) = (leaf_start(leaf), SlotSet::default());
        let lbas = first..first + SLOTS as u64;
        if !mutant!(ShowsWhatIsBuffered) {
            self.core
                .buffer
                .note_buffered(volume, lbas, |lba| left_out.add((lba - first) as usize));
        }
        self.core.intake.lookaside.fill_leaf((volume, leaf), op.as_of, page, left_out);
    }
}
