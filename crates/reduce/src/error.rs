//! Why a frame could not be expanded. To the caller all of them mean: this chunk is damaged.

use format::FormatError;
use format::units::Codec;
use thiserror::Error;

/// A frame whose bytes are not what was written, or not what was asked for.
#[derive(Debug, Error)]
pub enum ReduceError {
    /// The header, a length or the checksum is wrong.
    #[error("the frame is damaged: {0}")]
    Frame(#[from] FormatError),
    /// The frame is sound, but of a chunk of another length than the caller reads.
    #[error("the frame holds a chunk of {actual_bytes} bytes where {expected_bytes} were expected")]
    Length {
        /// Bytes of the caller's chunk.
        expected_bytes: usize,
        /// Bytes of the chunk in the frame.
        actual_bytes: usize,
    },
    /// The checksum holds, but the payload does not expand to the chunk: it was written wrong.
    #[error(
        "the frame's payload is not valid {} data for a chunk of {plain_bytes} bytes",
        name(*codec)
    )]
    Payload {
        /// The codec that the header names.
        codec: Codec,
        /// Bytes of the chunk that should have come out.
        plain_bytes: usize,
    },
}

fn name(codec: Codec) -> &'static str {
    match codec {
        Codec::Raw => "uncompressed",
        Codec::Lz4 => "LZ4",
        Codec::Zstd => "Zstandard",
    }
}
