//! Frames: one stored chunk, and what is needed to get it back.
//!
//! ```text
//! | header 16 B: checksum, codec, lengths, PBN, domain | payload |
//! ```
//!
//! Frames lie in containers one after another, on any byte. The checksum covers all but itself, the
//! PBN included: a frame that lies where another is expected is found out, so that a wrong PBA is
//! an error and never another chunk's bytes. A table that says where a frame is repeats a part of
//! its checksum ([`FrameCheck`]), so that an older frame of the same PBN is found out too.
//!
//! A frame says of which domain its chunk is, in bits that were zeros before there were domains:
//! a reader that has the frame and the store's secret can make the chunk's fingerprint again.

use crate::checksum::crc32c;
use crate::domain::DomainId;
use crate::error::{FormatError, Structure};
use crate::field::{put_u24, put_u32, put_u48, u24_at, u32_at, u48_at};
use crate::superblock::CHUNK_BYTES_MAX;
use crate::units::{Codec, FrameCheck, Pbn};

/// Header of a frame.
pub const FRAME_HEADER_BYTES: usize = 16;

/// Longest frame: a chunk that could not be compressed.
pub const FRAME_BYTES_MAX: usize = FRAME_HEADER_BYTES + CHUNK_BYTES_MAX as usize;

/// A chunk's length is counted in these.
pub const SECTOR_BYTES: u32 = 512;

pub(crate) const CRC_AT: usize = 0;
pub(crate) const CRC_END: usize = 4;
pub(crate) const STORED_BYTES_AT: usize = 4;
pub(crate) const CODEC_AT: usize = 7;
pub(crate) const PBN_AT: usize = 8;
pub(crate) const PLAIN_SECTORS_AT: usize = 14;
pub(crate) const DOMAIN_AT: usize = 15;

/// The codec is in the lowest bits of its byte; above it are the upper bits of the domain.
const CODEC_BITS: u32 = 2;

const _: () = assert!((FRAME_BYTES_MAX as u32) < crate::pba_page::ASIDE_FLAG);
const _: () = assert!(DOMAIN_AT + 1 == FRAME_HEADER_BYTES);
const _: () = assert!(DomainId::COUNT_MAX >> 8 == u8::MAX as u16 >> CODEC_BITS);

/// What a stored chunk is called, and whose it is.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct ChunkName {
    /// The chunk's name.
    pub pbn: Pbn,
    /// The domain in which it has its fingerprint.
    pub domain: DomainId,
}

impl ChunkName {
    /// A chunk of the default domain.
    #[must_use]
    pub const fn unkeyed(pbn: Pbn) -> Self {
        Self { pbn, domain: DomainId::DEFAULT }
    }
}

/// What a frame says of its chunk.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct FrameHeader {
    /// How the payload was made from the chunk.
    pub codec: Codec,
    /// Of the payload; not more than `plain_bytes`.
    pub stored_bytes: u32,
    /// Of the chunk: a multiple of [`SECTOR_BYTES`] up to 64 KiB.
    pub plain_bytes: u32,
    /// The chunk's name.
    pub pbn: Pbn,
    /// The domain in which it has its fingerprint.
    pub domain: DomainId,
}

/// Writes the header in front of the payload, which is in `frame` already, with the checksum of
/// both.
///
/// # Panics
/// When the header does not fit the frame, or a value does not fit its field.
pub fn write_header(frame: &mut [u8], header: &FrameHeader) {
    let length_bytes = FRAME_HEADER_BYTES + header.stored_bytes as usize;
    assert!(frame.len() == length_bytes, "the header tells the payload's length");
    assert!(check(header).is_ok(), "a frame is of a chunk, and not longer");
    put_u24(frame, STORED_BYTES_AT, header.stored_bytes);
    let [domain_low, domain_high] = header.domain.number().to_le_bytes();
    frame[CODEC_AT] = header.codec as u8 | domain_high << CODEC_BITS;
    put_u48(frame, PBN_AT, header.pbn.0);
    frame[PLAIN_SECTORS_AT] = (header.plain_bytes / SECTOR_BYTES) as u8;
    frame[DOMAIN_AT] = domain_low;
    let crc = crc32c(&frame[CRC_END..]);
    put_u32(frame, CRC_AT, crc);
}

/// The header and payload of a whole frame.
///
/// # Errors
/// [`FormatError`] when the bytes are not one whole, unharmed frame and nothing else.
pub fn decode(frame: &[u8]) -> Result<(FrameHeader, &[u8]), FormatError> {
    let structure = Structure::Frame;
    FormatError::at_least(structure, FRAME_HEADER_BYTES, frame)?;
    let crc = crc32c(&frame[CRC_END..]);
    FormatError::checksum(structure, u32_at(frame, CRC_AT), crc)?;
    let header = header_in(frame)?;
    let (_, payload) = frame.split_at(FRAME_HEADER_BYTES);
    if payload.len() != header.stored_bytes as usize {
        return Err(FormatError::Length {
            structure,
            expected_bytes: FRAME_HEADER_BYTES as u64 + u64::from(header.stored_bytes),
            found_bytes: frame.len() as u64,
        });
    }
    Ok((header, payload))
}

/// Whether these bytes begin with a whole frame, unharmed.
#[must_use]
pub fn begins_whole(bytes: &[u8]) -> bool {
    let frame = claimed_bytes(bytes).and_then(|length_bytes| bytes.get(..length_bytes));
    frame.is_some_and(|frame| decode(frame).is_ok())
}

/// Whether these can be the first bytes of a frame: its payload and its checksum are not looked at.
/// For what a crash may have left of one.
#[must_use]
pub fn may_begin(bytes: &[u8]) -> bool {
    bytes.len() >= FRAME_HEADER_BYTES && header_in(bytes).is_ok()
}

fn header_in(frame: &[u8]) -> Result<FrameHeader, FormatError> {
    let structure = Structure::Frame;
    let codec = frame[CODEC_AT] & ((1 << CODEC_BITS) - 1);
    let domain = u16::from_le_bytes([frame[DOMAIN_AT], frame[CODEC_AT] >> CODEC_BITS]);
    let header = FrameHeader {
        codec: Codec::from_number(codec)
            .ok_or_else(|| FormatError::field(structure, "codec", u64::from(codec)))?,
        stored_bytes: u24_at(frame, STORED_BYTES_AT),
        plain_bytes: u32::from(frame[PLAIN_SECTORS_AT]) * SECTOR_BYTES,
        pbn: Pbn(u48_at(frame, PBN_AT)),
        domain: DomainId::new(domain)
            .ok_or_else(|| FormatError::field(structure, "domain", u64::from(domain)))?,
    };
    check(&header)?;
    Ok(header)
}

/// The check by which the frame that may begin here is known; unknown when there is no room for
/// one. Nothing is verified.
#[must_use]
pub fn check_of(bytes: &[u8]) -> FrameCheck {
    match bytes.get(..FRAME_HEADER_BYTES) {
        Some(header) => FrameCheck::of_crc(u32_at(header, CRC_AT)),
        None => FrameCheck::UNKNOWN,
    }
}

/// The header of the frame that is meant: whole, unharmed, of this chunk and with this check; none
/// when `bytes` are not it.
#[must_use]
pub fn meant(bytes: &[u8], pbn: Pbn, check: FrameCheck) -> Option<FrameHeader> {
    let (header, _) = decode(bytes).ok().filter(|_| check.allows(check_of(bytes)))?;
    (header.pbn == pbn).then_some(header)
}

/// Whether `bytes` are the frame that is meant, as [`meant`] says.
#[must_use]
pub fn is_meant(bytes: &[u8], pbn: Pbn, check: FrameCheck) -> bool {
    meant(bytes, pbn, check).is_some()
}

/// Whether `bytes` say that they are the frame that is meant: as [`is_meant`], but the payload is
/// not looked at. For who hands them to somebody that verifies them.
#[must_use]
pub fn claims_to_be(bytes: &[u8], pbn: Pbn, check: FrameCheck) -> bool {
    claimed_bytes(bytes) == Some(bytes.len())
        && pbn.0 == u48_at(bytes, PBN_AT)
        && check.allows(check_of(bytes))
}

/// How long the frame claims to be that may begin here, its header included; None when there is no
/// room for a header. Nothing is checked: for walks over places that may hold no frame.
#[must_use]
pub fn claimed_bytes(bytes: &[u8]) -> Option<usize> {
    let header = bytes.get(..FRAME_HEADER_BYTES)?;
    Some(FRAME_HEADER_BYTES + u24_at(header, STORED_BYTES_AT) as usize)
}

fn check(header: &FrameHeader) -> Result<(), FormatError> {
    let FrameHeader { codec, stored_bytes, plain_bytes, .. } = *header;
    let is_chunk = plain_bytes.is_multiple_of(SECTOR_BYTES)
        && (SECTOR_BYTES..=CHUNK_BYTES_MAX).contains(&plain_bytes);
    if !is_chunk {
        return Err(FormatError::field(Structure::Frame, "chunk length", u64::from(plain_bytes)));
    }
    let is_payload = match codec {
        Codec::Raw => stored_bytes == plain_bytes,
        Codec::Lz4 | Codec::Zstd => (1..=plain_bytes).contains(&stored_bytes),
    };
    if !is_payload {
        let stored_bytes = u64::from(stored_bytes);
        return Err(FormatError::field(Structure::Frame, "payload length", stored_bytes));
    }
    Ok(())
}
