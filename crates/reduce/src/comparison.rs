//! Comparing chunks with what is known: with stored frames, or with chunks that are on their way.
//!
//! A fingerprint that may be another chunk's is a hint and no more. Here the bytes are looked at: a
//! frame is believed only if it is the one that is meant, whole, and expands to a chunk.

use crate::chunk::ChunkBatch;
use crate::verify::{FramePlace, Image, expand, frame_at};
use format::frame;
use format::units::FrameCheck;
use std::sync::Arc;

/// What chunks are compared with, one for each.
#[derive(Debug)]
pub enum Known {
    /// Stored chunks.
    Frames {
        /// What holds the frames.
        image: Arc<dyn Image>,
        /// Where they are.
        frames: Vec<KnownFrame>,
    },
    /// Chunks that are not stored yet.
    Chunks(ChunkBatch),
}

/// A frame to be compared with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct KnownFrame {
    /// Where it is, and of which chunk.
    pub place: FramePlace,
    /// The check that it must have.
    pub check: FrameCheck,
}

/// What comparing came to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Every byte is the same.
    Equal,
    /// Some are not.
    Differs,
    /// The frame is not whole, or not the one that is meant: nothing can be said.
    Damaged,
}

/// Compares each chunk with what is known at its place.
pub(crate) fn compare_batch(chunks: &ChunkBatch, known: &Known) -> Vec<Comparison> {
    match known {
        Known::Chunks(known) => {
            chunks.iter().zip(known.iter()).map(|(chunk, known)| judge(chunk == known)).collect()
        }
        Known::Frames { image, frames } => {
            let mut plain = Plain::default();
            let compare =
                |(chunk, frame): (&[u8], &KnownFrame)| match plain.of(image, frame, chunk.len()) {
                    Some(plain) => judge(plain == chunk),
                    None => Comparison::Damaged,
                };
            chunks.iter().zip(frames).map(compare).collect()
        }
    }
}

fn judge(equal: bool) -> Comparison {
    if equal { Comparison::Equal } else { Comparison::Differs }
}

/// The chunk of one frame, kept: neighbours are mostly compared with the same.
#[derive(Default)]
struct Plain {
    bytes: Vec<u8>,
    of: Option<KnownFrame>,
}

impl Plain {
    fn of(&mut self, image: &[u8], frame: &KnownFrame, plain_bytes: usize) -> Option<&[u8]> {
        if self.of != Some(*frame) || self.bytes.len() != plain_bytes {
            self.of = None;
            self.bytes.resize(plain_bytes, 0);
            let bytes = frame_at(image, &frame.place)?;
            let is_there = expand(image, &frame.place, &mut self.bytes).is_some();
            let is_meant = is_there && frame.check.allows(frame::check_of(bytes));
            self.of = is_meant.then_some(*frame);
            self.of?;
        }
        Some(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Known, KnownFrame, compare_batch};
    use crate::chunk::{ChunkBatch, ChunkBuf, ChunkRef};
    use crate::compress::{compress_frame, frame_bytes_max};
    use crate::verify::FramePlace;
    use format::frame::{self, ChunkName};
    use format::units::{Codec, Compression, FrameCheck, Pbn};
    use std::sync::Arc;

    fn chunk(byte: u8, other_at: Option<usize>) -> ChunkRef {
        let mut bytes = vec![byte; 4096];
        other_at.into_iter().for_each(|at| bytes[at] ^= 1);
        ChunkRef::new(Arc::new(ChunkBuf::new(bytes)), 0, 4096)
    }

    #[test]
    fn a_chunk_is_equal_to_its_own_frame_and_to_no_other() {
        let compression = Compression { codec: Codec::Lz4, level: 0 };
        let (mut image, mut frames) = (Vec::new(), Vec::new());
        for (number, codec) in [(1, Codec::Lz4), (2, Codec::Raw), (3, Codec::Lz4), (4, Codec::Lz4)]
        {
            let chunk = chunk(number as u8, None);
            let mut bytes = vec![0; frame_bytes_max(4096)];
            let compression = Compression { codec, ..compression };
            let length = compress_frame(
                compression,
                ChunkName::unkeyed(Pbn(number)),
                chunk.bytes(),
                &mut bytes,
            );
            let (offset_bytes, length_bytes) = (image.len() as u32, length as u32);
            let place = FramePlace { offset_bytes, length_bytes, pbn: Pbn(number) };
            let check = frame::check_of(&bytes[..length]);
            frames.push(KnownFrame { place, check });
            image.extend_from_slice(&bytes[..length]);
        }
        // The third is damaged, the fourth is not the one that is meant.
        image[frames[2].place.offset_bytes as usize + 20] ^= 1;
        let other = [1, 2].map(FrameCheck::of_crc).into_iter().find(|of| *of != frames[3].check);
        frames[3].check = other.unwrap();
        let asked = [(1, None, 0), (1, Some(4095), 0), (2, None, 1), (2, Some(0), 1)];
        let asked = asked.into_iter().chain([(2, None, 0), (3, None, 2), (4, None, 3)]);
        let (mut chunks, mut known) = (ChunkBatch::default(), Vec::new());
        for (byte, other_at, at) in asked {
            chunks.push(&chunk(byte, other_at));
            known.push(frames[at]);
        }
        let known = Known::Frames { image: Arc::new(image), frames: known };
        use Comparison::{Damaged, Differs, Equal};
        let expected = [Equal, Differs, Equal, Differs, Differs, Damaged, Damaged];
        assert_eq!(compare_batch(&chunks, &known), expected);
    }

    #[test]
    fn chunks_on_their_way_are_compared_byte_by_byte() {
        let [one, last, first] = [chunk(1, None), chunk(1, Some(4095)), chunk(1, Some(0))];
        let chunks: ChunkBatch = [&one, &one, &one].into_iter().collect();
        let known = Known::Chunks([&chunk(1, None), &last, &first].into_iter().collect());
        use Comparison::{Differs, Equal};
        assert_eq!(compare_batch(&chunks, &known), [Equal, Differs, Differs]);
    }
}
