//! Payloads: chunks that were compressed before it was known whether they are new.
//!
//! A frame's header has the chunk's PBN in it, and its checksum covers all. A pass
//! ahead of the look-up knows no PBN: it makes the payload alone, beside the fingerprint.
//! If the chunk turns out to be new, the payload is copied behind its header. Both ways go through
//! [`pack`] and [`name_frame`], so the frame is the same, byte for byte.

use std::sync::Arc;

use format::frame::{ChunkName, FRAME_HEADER_BYTES};
use format::units::{Codec, Compression, Fingerprint};

use crate::chunk::{ChunkBatch, ChunkBuf};
use crate::compress::{Made, Packed, frame_bytes_max, name_frame, pack};

/// The payload of one chunk, in the memory of its batch.
#[derive(Clone, Debug)]
pub struct Payload {
    batch: Arc<ChunkBuf>,
    start_bytes: u32,
    compression: Compression,
    packed: Packed,
}

impl Payload {
    /// What the chunk was to be compressed with.
    #[must_use]
    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// Makes the frame of `plain`, whose payload this is, at the start of `out`.
    pub(crate) fn make_frame(&self, name: ChunkName, plain: &[u8], out: &mut [u8]) -> Made {
        let out = &mut out[..frame_bytes_max(plain.len())];
        let payload = match self.packed.codec {
            Codec::Raw => plain,
            _ => {
                let start = self.start_bytes as usize;
                &self.batch.bytes()[start..start + self.packed.stored_bytes]
            }
        };
        out[FRAME_HEADER_BYTES..][..payload.len()].copy_from_slice(payload);
        name_frame(self.packed, name, plain.len(), out)
    }
}

/// The payload of each chunk, `compressions` saying with what; None for a chunk of zeros, which
/// has no fingerprint.
pub(crate) fn pack_batch(
    chunks: &ChunkBatch,
    fingerprints: &[Option<Fingerprint>],
    compressions: &[Compression],
) -> Vec<Option<Payload>> {
    let mut bytes = ChunkBuf::pooled(chunks.length_bytes());
    let (mut end, mut made) = (0, Vec::with_capacity(chunks.len()));
    for ((plain, fingerprint), &with) in chunks.iter().zip(fingerprints).zip(compressions) {
        made.push(fingerprint.map(|_| {
            let packed = pack(with, plain, &mut bytes.bytes_mut()[end..end + plain.len()]);
            let start = end;
            end += if packed.codec == Codec::Raw { 0 } else { packed.stored_bytes };
            (start as u32, with, packed)
        }));
    }
    let batch = Arc::new(bytes);
    let payload = |(start_bytes, compression, packed)| Payload {
        batch: Arc::clone(&batch),
        start_bytes,
        compression,
        packed,
    };
    made.into_iter().map(|made| made.map(payload)).collect()
}
