//! A frame that is read for itself: of a chunk that is explained, or stored twice.

use disk::AlignedBuf;
use format::units::Pba;

use crate::devices::Purpose;
use crate::engine::Engine;
use crate::read::reads::{FoundFrame, blocks_of};

impl Engine {
    /// The frame at `pba`, from memory; None while it is read. Where there is no such place, it has
    /// no bytes.
    pub(crate) fn find_frame(
        &mut self,
        pba: Pba,
        purpose: fn(Pba) -> Purpose,
    ) -> Option<FoundFrame> {
        if let Some(frame) = self.core.placement.read(pba) {
            return Some(FoundFrame { pba, bytes: Some(frame.into_owned()), in_memory: true });
        }
        let Some((zone, start_bytes)) = self.core.geometry.container_zone(pba.container) else {
            return Some(FoundFrame { pba, bytes: None, in_memory: false });
        };
        let blocks = blocks_of(pba);
        self.core.placement.space.pin(pba.container);
        let offset_bytes = start_bytes + u64::from(blocks.start);
        self.core.devices.read(zone, offset_bytes, blocks.len(), purpose(pba));
        None
    }

    /// The frame at `pba` has come; None when the device did not give it.
    pub(crate) fn frame_found(&mut self, pba: Pba, buf: Option<AlignedBuf>) -> FoundFrame {
        self.core.placement.space.unpin(pba.container);
        let start = (pba.offset_bytes - blocks_of(pba).start) as usize;
        let end = start + pba.length_bytes as usize;
        let bytes = buf.and_then(|buf| buf.get(start..end).map(Into::into));
        FoundFrame { pba, bytes, in_memory: false }
    }
}
