//! Pages that parts want: held while more of them come, and read.

use format::units::{BLOCK_BYTES, Zone, block_offset_bytes};
use tables::{PageRead, PinSet};

use crate::core::Core;
use crate::devices::Purpose;
use crate::pages::held_pages::HeldPages;
use crate::pages::wanted::Wanted;

impl Core {
    /// Submits the reads that wants have named.
    pub(crate) fn submit_page_reads(&mut self, reads: Vec<PageRead>) {
        for read in reads {
            let offset_bytes = block_offset_bytes(read.pointer.block());
            self.devices.read(Zone::Tables, offset_bytes, BLOCK_BYTES, Purpose::Page(read));
        }
    }

    /// Gives back what an earlier attempt held, now that a later one holds its own.
    pub(crate) fn hold_pages(&mut self, wanted: Wanted, of: fn(&mut HeldPages) -> &mut PinSet) {
        let mut held = std::mem::take(of(&mut self.held_pages));
        self.hold_in(&mut held, wanted);
        *of(&mut self.held_pages) = held;
    }

    /// The same for a part that keeps its pins itself.
    pub(crate) fn hold_in(&mut self, held: &mut PinSet, wanted: Wanted) {
        let earlier = std::mem::replace(held, wanted.pins);
        self.state.store.release_pins(earlier);
        self.submit_page_reads(wanted.reads);
    }
}
