//! Frames that parts read by themselves, and chunks that they note for their second copies.

use std::ops::Range;

use disk::AlignedBuf;
use format::pba_page::PbaEntry;
use format::root::Stream;
use format::units::{BLOCK_BYTES, Pba, Pbn};
use tables::{pbn_pba, second_copies};

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
    /// Whether a chunk may have a second copy.
    pub(crate) fn may_have_copy(&self, pbn: Pbn) -> bool {
        let references =
            || pbn_pba::get(&self.state.store, pbn).map_or(0, |entry| entry.references);
        self.state.totals.copied_chunks > 0 && self.state.may_have_copy(references())
    }

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

    /// Lists the chunk if it needs a second copy and has none; its pages are here.
    pub(crate) fn note_popular(&mut self, pbn: Pbn) {
        let entry = pbn_pba::get(&self.state.store, pbn);
        let is_popular = entry.is_some_and(|entry| self.state.is_popular(entry.references));
        if is_popular && second_copies::get(&self.state.store, pbn).is_none() {
            self.copy_lists.want(pbn);
        }
    }

    /// Has the chunk looked at, its frame being damaged, if it has a second copy; its pages are
    /// here.
    pub(crate) fn suspect(&mut self, pbn: Pbn) {
        if second_copies::get(&self.state.store, pbn).is_some() {
            self.copy_lists.suspect(pbn);
        }
    }

    /// Whether collection is to keep the second copy of this chunk, in its own open container.
    pub(crate) fn copy_may_move(&self, chunk: PbaEntry) -> bool {
        let beside = self.placement.open_id(Stream::Collection) == Some(chunk.pba.container);
        self.state.keeps_copy(chunk.references) && !beside
    }
}
