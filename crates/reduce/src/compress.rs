//! Frames: a chunk as it is stored, and back.
//!
//! A frame is a header (`format::frame`: codec, lengths, PBN, checksum over all of it) and the
//! payload. The codec is what the store asks for, unless that saves less than one sixteenth of the
//! chunk: then the payload is the chunk itself, [`Codec::Raw`]. So a frame is never longer than the
//! chunk and its header, and what hardly compresses is read back at the speed of memory. The
//! figures behind one sixteenth, and behind the libraries: `docs/decisions/003-codecs.md`. In what
//! looks like noise a slow codec is not even tried ([`noise`]).
//!
//! Making a frame cannot fail: a codec that refuses for whatever reason leaves the chunk
//! uncompressed. Expanding one trusts nothing: the checksum is verified before the payload is
//! looked at, and the codecs are given exactly the chunk's room, so hostile bytes end in an error.

mod codec;
mod noise;

use crate::error::ReduceError;
use format::frame::{self, ChunkName, FRAME_HEADER_BYTES, FrameHeader};
use format::units::{Codec, Compression, FrameCheck};

/// A codec has to save this fraction of a chunk, 1 in so many bytes, or it is not used.
const SAVING_MIN: usize = 16;

/// Bytes that a frame of a chunk of `plain_bytes` takes at most.
#[must_use]
pub const fn frame_bytes_max(plain_bytes: usize) -> usize {
    FRAME_HEADER_BYTES + plain_bytes
}

/// Makes the frame of chunk `plain`, called `name`, at the start of `out`; returns the frame's
/// length in bytes. What `out` holds behind it means nothing.
///
/// # Panics
/// When `plain` is no chunk (empty, longer than 64 KiB or not of whole 512-byte sectors), or `out`
/// is shorter than [`frame_bytes_max`] of it.
pub fn compress_frame(
    compression: Compression,
    name: ChunkName,
    plain: &[u8],
    out: &mut [u8],
) -> usize {
    make_frame(compression, name, plain, out).frame_bytes
}

/// A frame among others that lie one after the other. Its maker says what is in its header:
/// another thread that looked there would wait for memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct FrameEnd {
    /// Where it ends.
    pub end_bytes: u32,
    /// The part of its checksum that the tables repeat beside its place.
    pub check: FrameCheck,
}

/// A frame that was made.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Made {
    /// Its length.
    pub(crate) frame_bytes: usize,
    /// The part of its checksum that the tables repeat beside its place.
    pub(crate) check: FrameCheck,
    /// Whether the chunk is uncompressed because of how it looks, its codec not tried.
    pub(crate) spared: bool,
}

/// [`compress_frame`], and whether the codec was spared.
pub(crate) fn make_frame(
    compression: Compression,
    name: ChunkName,
    plain: &[u8],
    out: &mut [u8],
) -> Made {
    let out = &mut out[..frame_bytes_max(plain.len())];
    let payload = &mut out[FRAME_HEADER_BYTES..];
    let packed = pack(compression, plain, payload);
    if packed.codec == Codec::Raw {
        payload.copy_from_slice(plain);
    }
    name_frame(packed, name, plain.len(), out)
}

/// What a chunk was compressed to, before it has a name.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packed {
    /// [`Codec::Raw`]: the payload is the chunk itself.
    pub(crate) codec: Codec,
    /// Length of the payload.
    pub(crate) stored_bytes: usize,
    /// Whether the codec was spared.
    pub(crate) spared: bool,
}

/// Compresses a chunk into `payload`, which is as long; where that saves too little nothing in it
/// means anything.
pub(crate) fn pack(compression: Compression, plain: &[u8], payload: &mut [u8]) -> Packed {
    let payload_bytes_max = plain.len() - plain.len() / SAVING_MIN;
    let spared = noise::is_spared(compression, plain, payload);
    let packed = if spared {
        None
    } else {
        codec::pack(compression, plain, &mut payload[..payload_bytes_max])
    };
    let codec = if packed.is_some() { compression.codec } else { Codec::Raw };
    Packed { codec, stored_bytes: packed.unwrap_or(plain.len()), spared }
}

/// Writes the header of a frame whose payload lies in `out` already.
pub(crate) fn name_frame(
    packed: Packed,
    name: ChunkName,
    plain_bytes: usize,
    out: &mut [u8],
) -> Made {
    let Packed { codec, stored_bytes, spared } = packed;
    let header = FrameHeader {
        codec,
        stored_bytes: stored_bytes as u32,
        plain_bytes: plain_bytes as u32,
        pbn: name.pbn,
        domain: name.domain,
    };
    let frame_bytes = FRAME_HEADER_BYTES + stored_bytes;
    frame::write_header(&mut out[..frame_bytes], &header);
    Made { frame_bytes, check: frame::check_of(out), spared }
}

/// Verifies `frame` and expands it into `plain_out`, which is exactly as long as the chunk.
///
/// # Errors
/// [`ReduceError`] when the frame is damaged or holds a chunk of another length; what `plain_out`
/// holds then means nothing.
pub fn expand_frame(frame: &[u8], plain_out: &mut [u8]) -> Result<FrameHeader, ReduceError> {
    let (header, payload) = frame::decode(frame)?;
    let plain_bytes = header.plain_bytes;
    if plain_bytes as usize != plain_out.len() {
        let (expected_bytes, actual_bytes) = (plain_out.len(), plain_bytes as usize);
        return Err(ReduceError::Length { expected_bytes, actual_bytes });
    }
    match codec::unpack(header.codec, payload, plain_out) {
        Some(length_bytes) if length_bytes == plain_out.len() => Ok(header),
        _ => Err(ReduceError::Payload { codec: header.codec, plain_bytes: plain_out.len() }),
    }
}

#[cfg(test)]
mod tests;
