//! The memory of one container while it is written.
//!
//! Sixteen segments of 256 KiB, made as the fill reaches them:
//!
//! ```text
//! laid --full--> unpacked --packed by an idle worker---+
//!   | a small frame, padding, a part to be written      +--> frozen
//!   +--> filling --full---------------------------------+
//! ```
//!
//! A segment that only large batches go into holds none of their bytes until it is full
//! ([`crate::unpacked`]); anything else *settles* it, and from then on frames are copied into it.
//! One that is *frozen* the device and readers share, and nothing is copied. A part of a segment
//! that has to be written before it is full is copied out, because what the device holds must not
//! change under it, and the segment goes on filling. So a container costs 4 MiB, however often it
//! is flushed, and what is laid as much as its makers hold for it.

use crate::unpacked::{Pieces, SharedBytes, Unpacked};
use disk::{AlignedBuf, SharedBuf};
use format::units::CONTAINER_BYTES;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a segment: large enough for a device to write at full speed.
pub(crate) const SEGMENT_BYTES: u32 = 256 << 10;
const SEGMENTS: usize = (CONTAINER_BYTES / SEGMENT_BYTES) as usize;
const _: () = assert!(CONTAINER_BYTES.is_multiple_of(SEGMENT_BYTES));

/// Touches the memory of this number of containers, so that no writer waits for it.
pub fn prepare_memory(containers: usize) {
    AlignedBuf::prepare(SEGMENT_BYTES as usize, containers * SEGMENTS);
}

/// Bytes of a segment that are to be written.
#[derive(Clone, Debug)]
pub enum WriteBytes {
    /// As the device takes them.
    Packed(SharedBuf),
    /// Of a whole segment, which a worker has to pack, and says when it has.
    Unpacked(Arc<Unpacked>),
}

impl WriteBytes {
    /// How many.
    #[must_use]
    pub fn length_bytes(&self) -> usize {
        match self {
            Self::Packed(buf) => buf.len(),
            Self::Unpacked(_) => SEGMENT_BYTES as usize,
        }
    }

    /// As the device takes them; packed now if need be.
    #[must_use]
    pub fn packed(&self) -> SharedBuf {
        match self {
            Self::Packed(buf) => buf.clone(),
            Self::Unpacked(unpacked) => unpacked.packed(),
        }
    }
}

enum Segment {
    Laid(Pieces),
    Unpacked(Arc<Unpacked>),
    /// Contents beyond the container's fill are stale.
    Filling(AlignedBuf),
    Frozen(SharedBuf),
}

impl Segment {
    fn get(&self, range: Range<usize>) -> Option<&[u8]> {
        match self {
            Self::Laid(pieces) => pieces.get(range),
            Self::Unpacked(unpacked) => unpacked.get(range),
            Self::Filling(buf) => buf.get(range),
            Self::Frozen(buf) => buf.get(range),
        }
    }
}

/// Byte ranges in here are inside the container; the owner keeps track of what is filled.
pub(crate) struct Segments {
    segments: [Option<Segment>; SEGMENTS],
}

impl Segments {
    pub(crate) fn new() -> Self {
        Self { segments: [const { None }; SEGMENTS] }
    }

    /// Copies `bytes` to `offset_bytes`, with one copy per segment.
    pub(crate) fn write(&mut self, offset_bytes: u32, bytes: &[u8]) {
        let (mut at, mut rest) = (offset_bytes, bytes);
        while !rest.is_empty() {
            let target = self.target(at, rest.len());
            let (now, later) = rest.split_at(target.len());
            target.copy_from_slice(now);
            at += now.len() as u32;
            rest = later;
        }
    }

    /// Lays a range of `bytes` at `offset_bytes`, where the fill ends; copies it into segments that
    /// have copies already.
    pub(crate) fn lay(&mut self, offset_bytes: u32, bytes: &SharedBytes, range: Range<usize>) {
        let mut start = range.start;
        let parts = parts_of(offset_bytes..offset_bytes + range.len() as u32);
        for part in parts.filter(|part| !part.range.is_empty()) {
            let piece = start..start + part.range.len();
            start = piece.end;
            let slot = &mut self.segments[part.segment];
            if slot.is_none() && part.range.start == 0 {
                *slot = Some(Segment::Laid(Pieces::default()));
            }
            match slot {
                Some(Segment::Laid(pieces)) => pieces.push(bytes, piece),
                _ => self.write(part.offset_bytes(), &(**bytes).as_ref()[piece]),
            }
        }
    }

    /// The segment at `offset_bytes`, which was handed out unpacked, has been packed: those who
    /// made its frames need not hold them any more.
    pub(crate) fn packed(&mut self, offset_bytes: u32) {
        let slot = self.segments.get_mut((offset_bytes / SEGMENT_BYTES) as usize);
        if let Some(Some(segment)) = slot
            && let Segment::Unpacked(unpacked) = segment
        {
            *segment = Segment::Frozen(unpacked.packed());
        }
    }

    /// Zeros up to the end of a block, which never crosses a segment.
    pub(crate) fn pad(&mut self, range: Range<u32>) {
        if !range.is_empty() {
            self.target(range.start, range.len()).fill(0);
        }
    }

    /// The bytes, borrowed when they lie in one segment; None when a segment of them was never
    /// written.
    pub(crate) fn read(&self, range: Range<u32>) -> Option<Cow<'_, [u8]>> {
        let mut parts = parts_of(range.clone()).map(|part| {
            let segment = self.segments.get(part.segment)?.as_ref()?;
            segment.get(part.range)
        });
        let first = parts.next()??;
        if first.len() == range.len() {
            return Some(Cow::Borrowed(first));
        }
        let mut whole = Vec::with_capacity(range.len());
        whole.extend_from_slice(first);
        for part in parts {
            whole.extend_from_slice(part?);
        }
        Some(Cow::Owned(whole))
    }

    /// Hands out `range`, which is filled: its bytes and their place, by segment.
    pub(crate) fn hand_out(&mut self, range: Range<u32>) -> Vec<(u32, WriteBytes)> {
        parts_of(range).filter_map(|part| self.hand_out_part(part)).collect()
    }

    fn hand_out_part(&mut self, part: Part) -> Option<(u32, WriteBytes)> {
        let offset_bytes = part.offset_bytes();
        let slot = self.segments.get_mut(part.segment)?;
        let is_full = part.range.end == SEGMENT_BYTES as usize;
        let (bytes, segment) = match slot.take()? {
            Segment::Laid(pieces) if is_full => {
                let unpacked = Arc::new(Unpacked::new(pieces));
                (WriteBytes::Unpacked(Arc::clone(&unpacked)), Segment::Unpacked(unpacked))
            }
            Segment::Laid(pieces) => copied_out(settled(&pieces), part.range),
            Segment::Filling(buf) if is_full => {
                let frozen = SharedBuf::from(buf);
                (WriteBytes::Packed(frozen.slice(part.range)), Segment::Frozen(frozen))
            }
            Segment::Filling(buf) => copied_out(buf, part.range),
            Segment::Frozen(frozen) => {
                (WriteBytes::Packed(frozen.slice(part.range)), Segment::Frozen(frozen))
            }
            Segment::Unpacked(_) => unreachable!("what was handed out is not handed out again"),
        };
        *slot = Some(segment);
        Some((offset_bytes, bytes))
    }

    /// The writable bytes from `at` on, at most `length_bytes` and to the segment's end; makes or
    /// settles the segment.
    fn target(&mut self, at: u32, length_bytes: usize) -> &mut [u8] {
        let segment = (at / SEGMENT_BYTES) as usize;
        let start = (at % SEGMENT_BYTES) as usize;
        let end = (start + length_bytes).min(SEGMENT_BYTES as usize);
        let slot = &mut self.segments[segment];
        if let Some(Segment::Laid(pieces)) = slot {
            *slot = Some(Segment::Filling(settled(pieces)));
        }
        let fresh = || Segment::Filling(AlignedBuf::new_stale(SEGMENT_BYTES as usize));
        match slot.get_or_insert_with(fresh) {
            Segment::Filling(buf) => &mut buf[start..end],
            _ => unreachable!("a segment takes nothing more only when it is full"),
        }
    }
}

/// What was laid, in memory that takes more.
fn settled(pieces: &Pieces) -> AlignedBuf {
    pieces.pack(SEGMENT_BYTES as usize)
}

/// A part of a segment that goes on filling.
fn copied_out(buf: AlignedBuf, range: Range<usize>) -> (WriteBytes, Segment) {
    let copy = SharedBuf::from(AlignedBuf::padded(&buf[range]));
    (WriteBytes::Packed(copy), Segment::Filling(buf))
}

/// The share of one segment in a range of the container.
struct Part {
    segment: usize,
    range: Range<usize>,
}

impl Part {
    fn offset_bytes(&self) -> u32 {
        (self.segment * SEGMENT_BYTES as usize + self.range.start) as u32
    }
}

fn parts_of(range: Range<u32>) -> impl Iterator<Item = Part> {
    let segments = range.start / SEGMENT_BYTES..range.end.div_ceil(SEGMENT_BYTES);
    segments.map(move |segment| {
        let base = segment * SEGMENT_BYTES;
        let start = range.start.max(base) - base;
        let end = range.end.min(base + SEGMENT_BYTES) - base;
        Part { segment: segment as usize, range: start as usize..end as usize }
    })
}

#[cfg(test)]
mod tests {
    use super::{SEGMENT_BYTES, Segments, WriteBytes};

    /// A frame is packed once: what it was packed into is what the device reads.
    #[test]
    fn a_full_segment_is_handed_out_where_it_was_packed() {
        let mut segments = Segments::new();
        segments.write(0, &[7; SEGMENT_BYTES as usize - 8]);
        segments.write(SEGMENT_BYTES - 8, &[8; 16]);
        let packed = segments.read(0..8).unwrap().as_ptr();
        let handed = segments.hand_out(0..SEGMENT_BYTES);
        let [(0, WriteBytes::Packed(whole))] = handed.as_slice() else { panic!("not one segment") };
        assert_eq!(whole.as_ptr(), packed);
        // What is handed out of one that is not full is a copy: more will be packed into it.
        let begun = segments.read(SEGMENT_BYTES..SEGMENT_BYTES + 8).unwrap().as_ptr();
        let handed = segments.hand_out(SEGMENT_BYTES..SEGMENT_BYTES + 8);
        assert_ne!(handed[0].1.packed().as_ptr(), begun);
    }
}
