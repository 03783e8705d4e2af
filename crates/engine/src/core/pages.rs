//! Pages that parts want: held while more of them come, and read.

use format::units::{BLOCK_BYTES, Zone, block_offset_bytes};
use tables::{PageRead, PinSet};

use crate::core::Core;
use crate::devices::Purpose;
use crate::pages::wanted::Wanted;

impl Core {
    /// Submits the reads that wants have named.
    pub(crate) fn submit_page_reads(&mut self, reads: Vec<PageRead>) {
        for read in reads {
            let offset_bytes = block_offset_bytes(read.pointer.block());
            self.devices.read(Zone::Tables, offset_bytes, BLOCK_BYTES, Purpose::Page(read));
        }
    }

    /// Gives back what an earlier attempt `held`, now that a later one holds its own: were those
    /// pages to leave the cache while others come, what needs many would never end.
    pub(crate) fn hold_in(&mut self, held: &mut PinSet, wanted: Wanted) {
        let earlier = std::mem::replace(held, wanted.pins);
        self.state.store.release_pins(earlier);
        self.submit_page_reads(wanted.reads);
    }
}
