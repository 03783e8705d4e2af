//! The container that takes new frames.
//!
//! Three cursors move forward only: what is *filled*, what of it was *handed out* to be written
//! (whole blocks), and, after a restart, where memory begins. The invariants:
//!
//! * A byte that was handed out is never handed out again and never changes: the device sees every
//!   block of a container once per life. A flush in the middle of a block therefore pads it with
//!   zeros, and the next frame begins on the next block. The price is at most 4095 bytes a flush;
//!   the gain is that no torn or reordered write can damage what was durable before.
//! * The directory always fits: a frame is taken only when, with the fill rounded up to a block,
//!   its entry and the footer still have room at the end. So [`OpenContainer::seal`] cannot fail,
//!   and the directory shares no block with frames.
//! * Every frame stays readable from memory until all writes of the container are done: a read of
//!   the device that overtook a write would see the container's earlier life.
//!
//! Bytes between the last frame and the directory are not written and hold what they held.

use crate::error::DoesNotFit;
use crate::segments::{SEGMENT_BYTES, Segments, WriteBytes};
use crate::unpacked::SharedBytes;
use disk::AlignedBuf;
use format::directory::{self, DirectoryEntry};
use format::frame;
use format::units::{
    BLOCK_BYTES, CONTAINER_BYTES, ContainerId, Fingerprint, FrameCheck, Pba, Pbn, UUID_BYTES,
};
use mutants::mutant;
use std::borrow::Cow;
use std::ops::Range;

/// Blocks of a container to be written once.
#[derive(Clone, Debug)]
pub struct ContainerWrite {
    /// The container.
    pub container: ContainerId,
    /// Where in it, a multiple of a block.
    pub offset_bytes: u32,
    /// What, whole blocks.
    pub bytes: WriteBytes,
}

/// A frame of a batch that is to be appended.
#[derive(Copy, Clone, Debug)]
pub struct NewFrame {
    /// The chunk's name.
    pub pbn: Pbn,
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// Bytes of the frame, header included.
    pub length_bytes: u32,
    /// The part of its checksum that the tables repeat beside its place.
    pub check: FrameCheck,
}

/// A container that takes frames; see the head of this file.
pub struct OpenContainer {
    image: SealedImage,
    sequence: u32,
    entries: Vec<DirectoryEntry>,
    /// Everything below was handed out; a multiple of a block.
    handed_bytes: u32,
}

/// What is left of a container that takes no more frames.
pub struct Sealed {
    /// What was not handed out before, the directory last.
    pub writes: Vec<ContainerWrite>,
    /// Bytes that frames fill.
    pub used_bytes: u32,
    /// The frames, to be read until the writes are done.
    pub image: SealedImage,
    /// Memory of the directory's entries, empty: the next container's may use it.
    pub list: Vec<DirectoryEntry>,
}

/// The frames of a container in memory, until all of its writes are done.
pub struct SealedImage {
    id: ContainerId,
    segments: Segments,
    /// What is in memory, holes between the frames included.
    in_memory: Range<u32>,
    writes_out: usize,
}

impl OpenContainer {
    /// An empty container; `sequence` is new for every life of every container. Its directory uses
    /// the memory of `list`, which is empty ([`Sealed::list`]).
    #[must_use]
    pub fn new(id: ContainerId, sequence: u32, list: Vec<DirectoryEntry>) -> Self {
        Self::resume(id, sequence, 0, list)
    }

    /// A container that held `entries` in its first `fill_bytes` when the store was last open. It
    /// goes on at the next block, because what lies behind the fill in its block may have been
    /// written.
    #[must_use]
    pub fn resume(
        id: ContainerId,
        sequence: u32,
        fill_bytes: u32,
        entries: Vec<DirectoryEntry>,
    ) -> Self {
        let start = next_block(fill_bytes.min(CONTAINER_BYTES));
        let (segments, in_memory) = (Segments::new(), start..start);
        let image = SealedImage { id, segments, in_memory, writes_out: 0 };
        Self { image, sequence, entries, handed_bytes: start }
    }

    /// The container's number.
    #[must_use]
    pub fn id(&self) -> ContainerId {
        self.image.id
    }

    /// Which life of the container this is.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Where the next frame will begin.
    #[must_use]
    pub fn fill_bytes(&self) -> u32 {
        self.image.in_memory.end
    }

    /// What is below has been handed out to be written and never changes again.
    #[must_use]
    pub fn handed_bytes(&self) -> u32 {
        self.handed_bytes
    }

    /// What the directory will say.
    #[must_use]
    pub fn entries(&self) -> &[DirectoryEntry] {
        &self.entries
    }

    /// Whether a frame of `length_bytes` has room, its directory entry and the footer counted.
    #[must_use]
    pub fn fits(&self, length_bytes: usize) -> bool {
        frame_fits(self.fill_bytes() as usize, self.entries.len(), length_bytes)
    }

    /// Appends one frame.
    ///
    /// # Errors
    /// [`DoesNotFit`] when the container has to be sealed first; nothing has changed then.
    pub fn append(
        &mut self,
        frame: &[u8],
        pbn: Pbn,
        fingerprint: Fingerprint,
    ) -> Result<Pba, DoesNotFit> {
        let (length_bytes, check) = (frame.len() as u32, frame::check_of(frame));
        let mut pba = Vec::with_capacity(1);
        self.append_batch(frame, &[NewFrame { pbn, fingerprint, length_bytes, check }], &mut pba);
        pba.pop().ok_or(DoesNotFit {
            container: self.id(),
            frame_bytes: frame.len(),
            fill_bytes: self.fill_bytes(),
        })
    }

    /// Appends frames that lie one after the other at the start of `bytes`, as many as fit, and
    /// pushes their places onto `pbas`. Returns how many it took: the rest belongs into the next
    /// container.
    ///
    /// # Panics
    /// When `bytes` is shorter than the frames.
    pub fn append_batch(
        &mut self,
        bytes: &[u8],
        frames: &[NewFrame],
        pbas: &mut Vec<Pba>,
    ) -> usize {
        let (start, taken) = self.enter(frames, pbas);
        let length_bytes = (self.fill_bytes() - start) as usize;
        self.image.segments.write(start, &bytes[..length_bytes]);
        taken
    }

    /// As [`Self::append_batch`], with frames that lie in `bytes` from `from` on. They are not
    /// copied if the thread that packs the segment can do it, which [`WriteBytes::Unpacked`] says:
    /// for large batches, since their makers' memory is held until then.
    ///
    /// # Panics
    /// When `bytes` is shorter than the frames.
    pub fn lay_batch(
        &mut self,
        bytes: &SharedBytes,
        from: usize,
        frames: &[NewFrame],
        pbas: &mut Vec<Pba>,
    ) -> usize {
        let (start, taken) = self.enter(frames, pbas);
        let length_bytes = (self.fill_bytes() - start) as usize;
        self.image.segments.lay(start, bytes, from..from + length_bytes);
        taken
    }

    /// Enters as many frames as fit into the directory, and pushes their places onto `pbas`. Where
    /// the first begins, and how many they are; their bytes are still to come.
    fn enter(&mut self, frames: &[NewFrame], pbas: &mut Vec<Pba>) -> (u32, usize) {
        let start = self.fill_bytes();
        let (mut offset_bytes, mut taken) = (start, 0);
        for &NewFrame { pbn, fingerprint, length_bytes, check } in frames {
            if !frame_fits(offset_bytes as usize, self.entries.len(), length_bytes as usize) {
                break;
            }
            self.entries.push(DirectoryEntry { fingerprint, pbn, offset_bytes, length_bytes });
            pbas.push(Pba { container: self.id(), offset_bytes, length_bytes, check });
            offset_bytes += length_bytes;
            taken += 1;
        }
        self.image.in_memory.end = offset_bytes;
        (start, taken)
    }

    /// Hands out what is to be written and was not handed out before: full segments, or with
    /// `flush` all that was appended, padded to a block. Each write is to be reported by
    /// [`OpenContainer::write_done`] or [`SealedImage::write_done`].
    pub fn take_writes(&mut self, flush: bool) -> Vec<ContainerWrite> {
        if flush {
            self.pad_to_block();
        }
        let fill_bytes = self.fill_bytes();
        let end = if flush { fill_bytes } else { fill_bytes - fill_bytes % SEGMENT_BYTES };
        if end <= self.handed_bytes {
            return Vec::new();
        }
        let range = self.handed_bytes..end;
        self.handed_bytes = end;
        let container = self.id();
        let parts = self.image.segments.hand_out(range).into_iter();
        let writes: Vec<_> = parts
            .map(|(offset_bytes, bytes)| ContainerWrite { container, offset_bytes, bytes })
            .collect();
        self.image.writes_out += writes.len();
        writes
    }

    /// What was handed out unpacked for `offset_bytes` has been packed.
    pub fn packed(&mut self, offset_bytes: u32) {
        self.image.packed(offset_bytes);
    }

    /// A write that [`OpenContainer::take_writes`] handed out has completed.
    pub fn write_done(&mut self) {
        self.image.write_done();
    }

    /// The bytes of a frame, if it is in memory; None as well for a place where no frame can be.
    #[must_use]
    pub fn read(&self, pba: Pba) -> Option<Cow<'_, [u8]>> {
        self.image.read(pba)
    }

    /// Closes the container: the writes that are still to be made, the directory's last, the bytes
    /// that its frames and padding take, and the frames for as long as the writes are under way.
    #[must_use]
    pub fn seal(mut self, uuid: [u8; UUID_BYTES]) -> Sealed {
        let mut writes = self.take_writes(true);
        let used_bytes = self.fill_bytes();
        let container = self.id();
        if mutant!(DropsDirectoryEntry) {
            self.entries.pop();
        }
        let tail = directory::encode_tail(&self.entries, container, self.sequence, uuid);
        let tail_bytes = tail.len().next_multiple_of(BLOCK_BYTES);
        let mut buf = AlignedBuf::new_zeroed(tail_bytes);
        buf[tail_bytes - tail.len()..].copy_from_slice(&tail);
        let offset_bytes = CONTAINER_BYTES - tail_bytes as u32;
        let bytes = WriteBytes::Packed(buf.into());
        writes.push(ContainerWrite { container, offset_bytes, bytes });
        self.image.writes_out += 1;
        self.entries.clear();
        Sealed { writes, used_bytes, image: self.image, list: self.entries }
    }

    fn pad_to_block(&mut self) {
        let fill_bytes = self.fill_bytes();
        let padded_bytes = next_block(fill_bytes);
        self.image.segments.pad(fill_bytes..padded_bytes);
        self.image.in_memory.end = padded_bytes;
    }
}

impl SealedImage {
    /// The container's number.
    #[must_use]
    pub fn id(&self) -> ContainerId {
        self.id
    }

    /// The bytes of a frame, if it is in memory; None as well for a place where no frame can be.
    #[must_use]
    pub fn read(&self, pba: Pba) -> Option<Cow<'_, [u8]>> {
        let end = pba.offset_bytes.checked_add(pba.length_bytes)?;
        let inside = pba.container == self.id
            && pba.length_bytes > 0
            && self.in_memory.start <= pba.offset_bytes
            && end <= self.in_memory.end;
        if inside { self.segments.read(pba.offset_bytes..end) } else { None }
    }

    /// What was handed out unpacked for `offset_bytes` has been packed.
    pub fn packed(&mut self, offset_bytes: u32) {
        self.segments.packed(offset_bytes);
    }

    /// A write of the container has completed. True when it was the last: the device now has it
    /// all.
    pub fn write_done(&mut self) -> bool {
        self.writes_out = self.writes_out.saturating_sub(1);
        self.writes_out == 0
    }
}

/// Whether a frame fits behind `fill_bytes` of frames with `entries` entries.
fn frame_fits(fill_bytes: usize, entries: usize, length_bytes: usize) -> bool {
    let frames_bytes = (fill_bytes + length_bytes).next_multiple_of(BLOCK_BYTES);
    frames_bytes + directory::tail_bytes(entries + 1) <= CONTAINER_BYTES as usize
}

/// The first block boundary at or after an offset.
pub(crate) fn next_block(offset_bytes: u32) -> u32 {
    offset_bytes.next_multiple_of(BLOCK_BYTES as u32)
}

#[cfg(test)]
mod tests;
