//! A frame that is read for itself: of a chunk that is explained, or stored twice.

use std::ops::Range;

use disk::AlignedBuf;
use format::units::{BLOCK_BYTES, Pba};

use crate::core::Core;
use crate::devices::Purpose;

/// What was found where the tables placed a frame that is read alone.
pub(crate) struct FoundFrame {
    pub(crate) pba: Pba,
    /// None when the device did not give it, or there is no such place.
    pub(crate) bytes: Option<Vec<u8>>,
    pub(crate) in_memory: bool,
}

/// The whole blocks of its container that a frame lies in, in bytes.
pub(crate) fn blocks_of(pba: Pba) -> Range<u32> {
    let block_bytes = BLOCK_BYTES as u32;
    let end_bytes = (pba.offset_bytes + pba.length_bytes).next_multiple_of(block_bytes);
    pba.offset_bytes / block_bytes * block_bytes..end_bytes
}

impl Core {
    /// The frame at `pba`, from memory; None while it is read. Where there is no such place, it has
    /// no bytes.
    pub(crate) fn find_frame(
        &mut self,
        pba: Pba,
        purpose: fn(Pba) -> Purpose,
    ) -> Option<FoundFrame> {
        if let Some(frame) = self.placement.read(pba) {
            return Some(FoundFrame { pba, bytes: Some(frame.into_owned()), in_memory: true });
        }
        let Some((zone, start_bytes)) = self.geometry.container_zone(pba.container) else {
            return Some(FoundFrame { pba, bytes: None, in_memory: false });
        };
        let blocks = blocks_of(pba);
        self.placement.space.pin(pba.container);
        let offset_bytes = start_bytes + u64::from(blocks.start);
        self.devices.read(zone, offset_bytes, blocks.len(), purpose(pba));
        None
    }

    /// The frame at `pba` has come; None when the device did not give it.
    pub(crate) fn frame_found(&mut self, pba: Pba, buf: Option<AlignedBuf>) -> FoundFrame {
        self.placement.space.unpin(pba.container);
        let start = (pba.offset_bytes - blocks_of(pba).start) as usize;
        let end = start + pba.length_bytes as usize;
        let bytes = buf.and_then(|buf| buf.get(start..end).map(Into::into));
        FoundFrame { pba, bytes, in_memory: false }
    }
}
