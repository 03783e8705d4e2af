//! Verifying stored frames in bulk: the checksum of each, and on request the fingerprint of what
//! it expands to.
//!
//! A frame is asked for by the place where its chunk is said to be. It is sound when a whole frame
//! of that very chunk lies there. The checksum finds what the medium did to it; the fingerprint
//! finds as well what happened before the checksum was made.

use crate::compress::expand_frame;
use crate::fingerprint::Fingerprinters;
use format::domain::DomainId;
use format::frame;
use format::units::{Fingerprint, Pbn};
use std::fmt::Debug;
use std::ops::Deref;

/// Bytes that outlive their job, whatever thread holds them.
pub trait Image: Deref<Target = [u8]> + Debug + Send + Sync {}

impl<T: Deref<Target = [u8]> + Debug + Send + Sync> Image for T {}

/// A frame to be verified.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FramePlace {
    /// In the image.
    pub offset_bytes: u32,
    /// Of the frame, header included.
    pub length_bytes: u32,
    /// The chunk that it should be of.
    pub pbn: Pbn,
}

/// What became of a frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is not a whole frame of its chunk.
    Damaged,
    /// Its checksum is right.
    Sound,
    /// So it is, and the chunk has this fingerprint.
    Fingerprinted(Fingerprint),
}

/// Chunks that are fingerprinted in one go: as many as the widest vectors have lanes.
const GROUP: usize = 16;

/// Verifies each frame of `image`; with `plain_bytes`, the length of its chunks, it is expanded and
/// fingerprinted with `by`, in the domain that it names, as well.
#[must_use]
pub fn verify_frames(
    image: &[u8],
    frames: &[FramePlace],
    plain_bytes: Option<u32>,
    by: Fingerprinters,
) -> Vec<Verdict> {
    let Some(plain_bytes) = plain_bytes else {
        return frames.iter().map(|place| verify(image, place)).collect();
    };
    let mut plain = vec![0; GROUP * plain_bytes as usize];
    let mut verdicts = Vec::with_capacity(frames.len());
    for group in frames.chunks(GROUP) {
        let chunks = plain.chunks_exact_mut(plain_bytes as usize);
        let expanded = group.iter().zip(chunks).map(|(place, chunk)| {
            let domain = expand(image, place, chunk);
            // Chunks of zeros are never stored: where there is no chunk, there is no fingerprint.
            if domain.is_none() {
                chunk.fill(0);
            }
            (&*chunk, domain.unwrap_or_default())
        });
        let (expanded, domains): (Vec<&[u8]>, Vec<DomainId>) = expanded.unzip();
        let mut made = Vec::with_capacity(GROUP);
        by.batch(&expanded, &domains, &mut made);
        let verdict = |made: Option<_>| made.map_or(Verdict::Damaged, Verdict::Fingerprinted);
        verdicts.extend(made.into_iter().map(verdict));
    }
    verdicts
}

fn verify(image: &[u8], place: &FramePlace) -> Verdict {
    let frame = frame_at(image, place).and_then(|bytes| frame::decode(bytes).ok());
    let sound = frame.is_some_and(|(header, _)| header.pbn == place.pbn);
    if sound { Verdict::Sound } else { Verdict::Damaged }
}

/// The domain of the chunk, if its frame is there; `chunk` is its bytes then.
pub(crate) fn expand(image: &[u8], place: &FramePlace, chunk: &mut [u8]) -> Option<DomainId> {
    let header = frame_at(image, place).and_then(|bytes| expand_frame(bytes, chunk).ok())?;
    (header.pbn == place.pbn).then_some(header.domain)
}

/// The bytes of a frame, whatever they are.
pub(crate) fn frame_at<'a>(image: &'a [u8], place: &FramePlace) -> Option<&'a [u8]> {
    let start = place.offset_bytes as usize;
    image.get(start..start.saturating_add(place.length_bytes as usize))
}

#[cfg(test)]
mod tests {
    use super::{FramePlace, Verdict, verify_frames};
    use crate::compress::{compress_frame, frame_bytes_max};
    use crate::fingerprint::Fingerprinters;
    use format::detection::{Detection, FingerprintKind};
    use format::domain::{DomainId, DomainSecret};
    use format::frame::ChunkName;
    use format::units::{Codec, Compression, Pbn};

    #[test]
    fn each_frame_is_judged_by_itself() {
        let kind = FingerprintKind::Sha256;
        let secret = Some(DomainSecret([7; 32]));
        let by = Fingerprinters::new(&Detection { kind, secret, ..Detection::default() });
        let compression = Compression { codec: Codec::Lz4, level: 0 };
        let (mut image, mut places, mut expected) = (Vec::new(), Vec::new(), Vec::new());
        for n in 1..=20u64 {
            let chunk: Vec<u8> = (0..4096u64).map(|at| (at / (n + 7) % 251 + 1) as u8).collect();
            let offset_bytes = image.len() as u32;
            let mut frame = vec![0; frame_bytes_max(chunk.len())];
            let name = ChunkName { pbn: Pbn(n), domain: DomainId::new(n as u16 / 2 % 3).unwrap() };
            let length_bytes = compress_frame(compression, name, &chunk, &mut frame) as u32;
            image.extend_from_slice(&frame[..length_bytes as usize]);
            places.push(FramePlace { offset_bytes, length_bytes, pbn: Pbn(n) });
            expected.push(by.of(name.domain).one(&chunk));
        }
        let damaged_at = (places[4].offset_bytes + 20) as usize;
        image[damaged_at] ^= 1;
        places[7].pbn = Pbn(99);
        places[19].length_bytes += 1;
        let is_bad = |at: usize| [4, 7, 19].contains(&at);
        for (at, verdict) in verify_frames(&image, &places, None, by).into_iter().enumerate() {
            assert_eq!(verdict == Verdict::Damaged, is_bad(at), "frame {at}: {verdict:?}");
        }
        for (at, verdict) in verify_frames(&image, &places, Some(4096), by).into_iter().enumerate()
        {
            let sound = expected[at].map(Verdict::Fingerprinted);
            let verdict_expected = if is_bad(at) { Some(Verdict::Damaged) } else { sound };
            assert_eq!(Some(verdict), verdict_expected, "frame {at}");
        }
    }
}
