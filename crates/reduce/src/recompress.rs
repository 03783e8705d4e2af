//! Frames made anew with another codec, where that makes them shorter.
//!
//! Collection copies what lives anyway, so it can as well spend more processor time on it than the
//! write path may. What does not become shorter keeps the frame it has.

use crate::chunk::ChunkBuf;
use crate::compress::{compress_frame, frame_bytes_max};
use crate::verify::{FramePlace, expand};
use format::frame::ChunkName;
use format::units::Compression;

/// The frames of `image` that become shorter with `compression`, one after the other, and where
/// each ends: those that do not, or are no whole frames of their chunks of `plain_bytes`, have no
/// length. It yields the processor before each: a batch takes milliseconds, and no client waits
/// for it.
#[must_use]
pub fn recompress_frames(
    image: &[u8],
    frames: &[FramePlace],
    compression: Compression,
    plain_bytes: u32,
) -> (ChunkBuf, Vec<u32>) {
    let mut plain = vec![0; plain_bytes as usize];
    let mut made = vec![0; frame_bytes_max(plain.len())];
    let mut bytes = ChunkBuf::pooled(frames.len() * made.len());
    let mut ends = Vec::with_capacity(frames.len());
    let mut end = 0;
    for place in frames {
        threads::yield_processor();
        if let Some(domain) = expand(image, place, &mut plain) {
            let name = ChunkName { pbn: place.pbn, domain };
            let length_bytes = compress_frame(compression, name, &plain, &mut made);
            if length_bytes < place.length_bytes as usize {
                bytes.bytes_mut()[end..end + length_bytes].copy_from_slice(&made[..length_bytes]);
                end += length_bytes;
            }
        }
        ends.push(end as u32);
    }
    (bytes, ends)
}

#[cfg(test)]
mod tests {
    use super::recompress_frames;
    use crate::compress::{compress_frame, expand_frame, frame_bytes_max};
    use crate::verify::FramePlace;
    use format::domain::DomainId;
    use format::frame::ChunkName;
    use format::units::{Codec, Compression, Pbn};

    const RAW: Compression = Compression { codec: Codec::Raw, level: 0 };
    const ZSTD: Compression = Compression { codec: Codec::Zstd, level: 9 };

    /// Every third chunk cannot be compressed.
    fn chunk(n: u64) -> Vec<u8> {
        let mut state = n + 1;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
            (state >> 33) as u8
        };
        let text = |at: u64| (at / (n + 7) % 251 + 1) as u8;
        (0..4096).map(|at| if n.is_multiple_of(3) { noise() } else { text(at) }).collect()
    }

    fn name(n: u64) -> ChunkName {
        ChunkName { pbn: Pbn(n + 1), domain: DomainId::new(n as u16 % 3).unwrap() }
    }

    #[test]
    fn what_becomes_shorter_is_made_anew_and_nothing_else() {
        let (mut image, mut places) = (Vec::new(), Vec::new());
        for n in 0..12 {
            let offset_bytes = image.len() as u32;
            let mut frame = vec![0; frame_bytes_max(4096)];
            let length_bytes = compress_frame(RAW, name(n), &chunk(n), &mut frame) as u32;
            image.extend_from_slice(&frame[..length_bytes as usize]);
            places.push(FramePlace { offset_bytes, length_bytes, pbn: Pbn(n + 1) });
        }
        let damaged_at = places[4].offset_bytes as usize + 20;
        image[damaged_at] ^= 1;
        places[7].pbn = Pbn(99);
        places[10].length_bytes = u32::MAX;
        places.remove(11);
        let (bytes, ends) = recompress_frames(&image, &places, ZSTD, 4096);
        assert_eq!(ends.len(), places.len());
        let mut start = 0;
        for (n, end) in ends.into_iter().enumerate() {
            let frame = &bytes.bytes()[start..end as usize];
            start = end as usize;
            let kept = [0, 3, 4, 6, 7, 9, 10].contains(&n);
            assert_eq!(frame.is_empty(), kept, "frame {n}");
            if !kept {
                let mut plain = vec![0; 4096];
                let header = expand_frame(frame, &mut plain).unwrap();
                let found = ChunkName { pbn: header.pbn, domain: header.domain };
                assert_eq!((found, plain), (name(n as u64), chunk(n as u64)));
            }
        }
    }
}
