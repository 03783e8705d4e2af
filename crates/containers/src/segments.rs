//! The memory of one container while it is written.
//!
//! Sixteen segments of 256 KiB, made as the fill reaches them. A segment that is full is *frozen*:
//! from then on the device and readers share its memory and nothing is copied. A part of a segment
//! that has to be written before it is full is copied out, because what the device holds must not
//! change under it, and the segment goes on filling. So a container costs 4 MiB, however often it
//! is flushed.

use disk::{AlignedBuf, SharedBuf};
use format::units::CONTAINER_BYTES;
use std::borrow::Cow;
use std::ops::Range;

/// Bytes of a segment: large enough for a device to write at full speed.
pub(crate) const SEGMENT_BYTES: u32 = 256 << 10;
const SEGMENTS: usize = (CONTAINER_BYTES / SEGMENT_BYTES) as usize;
const _: () = assert!(CONTAINER_BYTES.is_multiple_of(SEGMENT_BYTES));

/// Touches the memory of so many containers, so that whoever fills them does not wait for it.
pub fn prepare_memory(containers: usize) {
    AlignedBuf::prepare(SEGMENT_BYTES as usize, containers * SEGMENTS);
}

enum Segment {
    /// Contents beyond the container's fill are stale.
    Filling(AlignedBuf),
    Frozen(SharedBuf),
}

impl Segment {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Filling(buf) => buf,
            Self::Frozen(buf) => buf,
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
            segment.bytes().get(part.range)
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

    /// Hands out `range`, which is filled: one buffer and its place per segment.
    pub(crate) fn hand_out(&mut self, range: Range<u32>) -> Vec<(u32, SharedBuf)> {
        parts_of(range).filter_map(|part| self.hand_out_part(part)).collect()
    }

    fn hand_out_part(&mut self, part: Part) -> Option<(u32, SharedBuf)> {
        let offset_bytes = part.offset_bytes();
        let slot = self.segments.get_mut(part.segment)?;
        let buf = match slot.take()? {
            Segment::Filling(buf) if part.range.end < SEGMENT_BYTES as usize => {
                let copy = SharedBuf::from(AlignedBuf::padded(&buf[part.range]));
                *slot = Some(Segment::Filling(buf));
                copy
            }
            Segment::Filling(buf) => {
                let frozen = SharedBuf::from(buf);
                *slot = Some(Segment::Frozen(frozen.clone()));
                frozen.slice(part.range)
            }
            Segment::Frozen(frozen) => {
                let part = frozen.slice(part.range);
                *slot = Some(Segment::Frozen(frozen));
                part
            }
        };
        Some((offset_bytes, buf))
    }

    /// The writable bytes from `at` on, at most `length_bytes` and to the segment's end; makes the
    /// segment.
    fn target(&mut self, at: u32, length_bytes: usize) -> &mut [u8] {
        let segment = (at / SEGMENT_BYTES) as usize;
        let start = (at % SEGMENT_BYTES) as usize;
        let end = (start + length_bytes).min(SEGMENT_BYTES as usize);
        let fresh = || Segment::Filling(AlignedBuf::new_stale(SEGMENT_BYTES as usize));
        match self.segments[segment].get_or_insert_with(fresh) {
            Segment::Filling(buf) => &mut buf[start..end],
            Segment::Frozen(_) => unreachable!("a segment is frozen only when it is full"),
        }
    }
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
    use super::{SEGMENT_BYTES, Segments};

    /// A frame is packed once: what it was packed into is what the device reads.
    #[test]
    fn a_full_segment_is_handed_out_where_it_was_packed() {
        let mut segments = Segments::new();
        segments.write(0, &[7; SEGMENT_BYTES as usize - 8]);
        segments.write(SEGMENT_BYTES - 8, &[8; 16]);
        let packed = segments.read(0..8).unwrap().as_ptr();
        let handed = segments.hand_out(0..SEGMENT_BYTES);
        let [(0, whole)] = handed.as_slice() else { panic!("not one segment") };
        assert_eq!(whole.as_ptr(), packed);
        // What is handed out of one that is not full is a copy: more will be packed into it.
        let begun = segments.read(SEGMENT_BYTES..SEGMENT_BYTES + 8).unwrap().as_ptr();
        let handed = segments.hand_out(SEGMENT_BYTES..SEGMENT_BYTES + 8);
        assert_ne!(handed[0].1.as_ptr(), begun);
    }
}
