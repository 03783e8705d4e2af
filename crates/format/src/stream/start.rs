//! Whether bytes are the start of a stream, though part of it is damaged: a stream that was hit is
//! refused as one, and never taken for a disk.
//!
//! A stream is known by any one of: its magic, or most of the magic's bytes in their places; its
//! header's checksum; its first section, which carries a number and a checksum of its own. Bytes
//! that end inside the magic are a stream that was cut.

use crate::checksum::crc32c;
use crate::field::{u32_at, u64_at};
use crate::stream::header::{CRC_AT, MAGIC, STREAM_HEADER_BYTES, VERSION_AT};
use crate::stream::section::{
    CRC_AT as SECTION_CRC_AT, DATA_BYTES_MAX, KIND_AT, KIND_DATA, KIND_HOLE, LENGTH_AT, NUMBER_AT,
    OFFSET_AT, SECTION_HEADER_BYTES, ZERO_AT, crc_of,
};

/// Bytes of the magic.
const MAGIC_BYTES: usize = 8;
/// Bytes of the magic that stand for all of it, in their places.
const MAGIC_BYTES_MIN: usize = 5;

/// Bytes from the start by which a stream is known.
pub const STREAM_START_BYTES: usize = STREAM_HEADER_BYTES + SECTION_HEADER_BYTES;

/// What the first bytes of something say.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum StreamStart {
    /// It is a stream, damaged or not.
    Stream,
    /// It is something else.
    Other,
    /// With this many more bytes of it the answer is known.
    Needs(usize),
}

impl StreamStart {
    /// What begins with `first`: [`STREAM_START_BYTES`] of it, or all there is. Where that
    /// [needs](Self::Needs) more bytes, they are asked for once; with fewer the answer is
    /// [`Self::Needs`] again, and the rest is not there.
    #[must_use]
    pub fn of(first: &[u8]) -> Self {
        let magic = MAGIC.to_le_bytes();
        let in_place = first.iter().zip(magic).filter(|(found, magic)| *found == magic).count();
        let is_cut = !first.is_empty() && first.len() < MAGIC_BYTES && in_place == first.len();
        if is_cut || in_place >= MAGIC_BYTES_MIN || is_header_but_for_its_magic(first) {
            return Self::Stream;
        }
        first.get(STREAM_HEADER_BYTES..).map_or(Self::Other, first_section)
    }
}

fn is_header_but_for_its_magic(first: &[u8]) -> bool {
    first
        .get(VERSION_AT..STREAM_HEADER_BYTES)
        .is_some_and(|checked| u64_at(checked, 0) != 0 && u32_at(first, CRC_AT) == crc32c(checked))
}

/// Whether `bytes` begin with the first section of a stream whose header nobody believes.
fn first_section(bytes: &[u8]) -> StreamStart {
    let Some((header, payload)) = bytes.split_at_checked(SECTION_HEADER_BYTES) else {
        return StreamStart::Other;
    };
    let length_bytes = u64_at(header, LENGTH_AT);
    let payload_bytes = match header[KIND_AT] {
        KIND_DATA if length_bytes <= DATA_BYTES_MAX => length_bytes as usize,
        KIND_HOLE => 0,
        _ => return StreamStart::Other,
    };
    let zeros = header[ZERO_AT..NUMBER_AT].iter().all(|byte| *byte == 0);
    let range = [u64_at(header, OFFSET_AT), length_bytes];
    let sectors = range.iter().all(|bytes| bytes.is_multiple_of(512));
    if !zeros || u64_at(header, NUMBER_AT) != 0 || !sectors || length_bytes == 0 {
        return StreamStart::Other;
    }
    match payload.get(..payload_bytes) {
        None => StreamStart::Needs(payload_bytes - payload.len()),
        Some(payload) if u32_at(header, SECTION_CRC_AT) == crc_of(header, payload) => {
            StreamStart::Stream
        }
        Some(_) => StreamStart::Other,
    }
}
