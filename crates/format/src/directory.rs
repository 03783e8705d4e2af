//! The end of a sealed container: a directory of its frames, and a footer.
//!
//! ```text
//! | frames ... | unused | directory: 44 B per frame | footer 64 B |   the container ends here
//! ```
//!
//! A directory tells the fingerprint and PBN of every frame: on a duplicate found here it predicts
//! the next ones, and from all directories together the Hash-PBN and PBN-PBA tables can be built
//! again. Of two directories that name the same PBN or fingerprint, the container with the higher
//! sequence was written later.

use std::ops::Range;

use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::{
    array_at, put_bytes, put_u24, put_u32, put_u48, put_u64, u24_at, u32_at, u48_at, u64_at,
};
use crate::units::{
    CONTAINER_BYTES, ContainerId, Fingerprint, Pba, Pbn, UUID_BYTES, UUID_PREFIX_BYTES, uuid_prefix,
};
use crate::{FORMAT_VERSION, FORMAT_VERSION_COMMON};

/// One frame in a directory.
pub const DIRECTORY_ENTRY_BYTES: usize = 44;

/// The last bytes of a sealed container.
pub const FOOTER_BYTES: usize = 64;

const MAGIC: u64 = u64::from_le_bytes(*b"TAMIS-CT");

pub(crate) const MAGIC_AT: usize = 0;
pub(crate) const VERSION_AT: usize = 8;
pub(crate) const CONTAINER_AT: usize = 12;
pub(crate) const SEQUENCE_AT: usize = 16;
pub(crate) const COUNT_AT: usize = 20;
pub(crate) const DIRECTORY_OFFSET_AT: usize = 24;
pub(crate) const DIRECTORY_CRC_AT: usize = 28;
pub(crate) const UUID_PREFIX_AT: usize = 32;
pub(crate) const ZERO_AT: usize = 40;
pub(crate) const CRC_AT: usize = 60;

pub(crate) const ENTRY_FINGERPRINT_AT: usize = 0;
pub(crate) const ENTRY_PBN_AT: usize = 32;
pub(crate) const ENTRY_OFFSET_AT: usize = 38;
pub(crate) const ENTRY_LENGTH_AT: usize = 41;

const _: () = assert!(CRC_AT + 4 == FOOTER_BYTES);
const _: () = assert!(UUID_PREFIX_AT + UUID_PREFIX_BYTES == ZERO_AT);
const _: () = assert!(ENTRY_LENGTH_AT + 3 == DIRECTORY_ENTRY_BYTES);
const _: () = assert!(CONTAINER_BYTES <= 1 << 24, "offsets in a container fit 24 bits");

/// A frame as its container's directory knows it.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct DirectoryEntry {
    /// Of the chunk's plain bytes.
    pub fingerprint: Fingerprint,
    /// The chunk's name.
    pub pbn: Pbn,
    /// Of the frame, from the container's start.
    pub offset_bytes: u32,
    /// Of the frame, header included.
    pub length_bytes: u32,
}

impl DirectoryEntry {
    /// Where the frame is, in the container whose directory this is; which frame is meant there the
    /// tables say.
    #[must_use]
    pub fn place(&self, container: ContainerId) -> Pba {
        let Self { offset_bytes, length_bytes, .. } = *self;
        Pba { container, offset_bytes, length_bytes, ..Pba::default() }
    }

    /// The bytes of the container that the frame takes.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.offset_bytes as usize..self.offset_bytes as usize + self.length_bytes as usize
    }
}

/// What the end of a container says of it.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Footer {
    /// Which container this is.
    pub container: ContainerId,
    /// Number of its opening.
    pub sequence: u32,
    /// Frames in the directory.
    pub count: u32,
    /// Where the directory starts; it ends where the footer starts.
    pub directory_offset_bytes: u32,
    /// Checksum of the directory.
    pub directory_crc: u32,
    /// Of the store.
    pub uuid_prefix: [u8; UUID_PREFIX_BYTES],
}

impl Footer {
    /// Length of the directory.
    #[must_use]
    pub fn directory_bytes(&self) -> u32 {
        CONTAINER_BYTES - FOOTER_BYTES as u32 - self.directory_offset_bytes
    }
}

/// Length of directory and footer of a container with so many frames.
#[must_use]
pub const fn tail_bytes(count: usize) -> usize {
    count * DIRECTORY_ENTRY_BYTES + FOOTER_BYTES
}

/// Directory and footer of a container: its last bytes.
///
/// # Panics
/// When there are more entries than fit a container, or a value does not fit its field.
#[must_use]
pub fn encode_tail(
    entries: &[DirectoryEntry],
    id: ContainerId,
    sequence: u32,
    uuid: [u8; UUID_BYTES],
) -> Vec<u8> {
    let length_bytes = tail_bytes(entries.len());
    assert!(length_bytes <= CONTAINER_BYTES as usize, "a directory fits its container");
    let mut tail = vec![0; length_bytes];
    let (directory, footer) = tail.split_at_mut(length_bytes - FOOTER_BYTES);
    for (entry, bytes) in entries.iter().zip(directory.chunks_exact_mut(DIRECTORY_ENTRY_BYTES)) {
        put_bytes(bytes, ENTRY_FINGERPRINT_AT, &entry.fingerprint.0);
        put_u48(bytes, ENTRY_PBN_AT, entry.pbn.0);
        put_u24(bytes, ENTRY_OFFSET_AT, entry.offset_bytes);
        put_u24(bytes, ENTRY_LENGTH_AT, entry.length_bytes);
    }
    put_u64(footer, MAGIC_AT, MAGIC);
    put_u32(footer, VERSION_AT, FORMAT_VERSION_COMMON);
    put_u32(footer, CONTAINER_AT, id.0);
    put_u32(footer, SEQUENCE_AT, sequence);
    put_u32(footer, COUNT_AT, entries.len() as u32);
    put_u32(footer, DIRECTORY_OFFSET_AT, CONTAINER_BYTES - length_bytes as u32);
    put_u32(footer, DIRECTORY_CRC_AT, crc32c(directory));
    put_bytes(footer, UUID_PREFIX_AT, &uuid_prefix(uuid));
    let crc = crc32c(&footer[..CRC_AT]);
    put_u32(footer, CRC_AT, crc);
    tail
}

/// The footer in the last [`FOOTER_BYTES`] of `end`, which ends where a container ends.
///
/// # Errors
/// [`FormatError`] when there is none, a newer one or a damaged one: the container was not sealed.
pub fn decode_footer(end: &[u8]) -> Result<Footer, FormatError> {
    let structure = Structure::ContainerFooter;
    FormatError::at_least(structure, FOOTER_BYTES, end)?;
    let footer = &end[end.len() - FOOTER_BYTES..];
    let found = u64_at(footer, MAGIC_AT);
    if found != MAGIC {
        return Err(FormatError::Magic { structure, expected: MAGIC, found });
    }
    let found = u32_at(footer, VERSION_AT);
    if found > FORMAT_VERSION {
        return Err(FormatError::NewerVersion { structure, supported: FORMAT_VERSION, found });
    }
    let crc = crc32c(&footer[..CRC_AT]);
    FormatError::checksum(structure, u32_at(footer, CRC_AT), crc)?;
    let count = u32_at(footer, COUNT_AT);
    let directory_offset_bytes = u32_at(footer, DIRECTORY_OFFSET_AT);
    let tail = u64::from(count) * DIRECTORY_ENTRY_BYTES as u64 + FOOTER_BYTES as u64;
    if u64::from(directory_offset_bytes) + tail != u64::from(CONTAINER_BYTES) {
        return Err(FormatError::field(structure, "count of frames", u64::from(count)));
    }
    Ok(Footer {
        container: ContainerId(u32_at(footer, CONTAINER_AT)),
        sequence: u32_at(footer, SEQUENCE_AT),
        count,
        directory_offset_bytes,
        directory_crc: u32_at(footer, DIRECTORY_CRC_AT),
        uuid_prefix: array_at(footer, UUID_PREFIX_AT),
    })
}

/// The entries of a directory: the [`Footer::directory_bytes`] in front of its footer.
///
/// # Errors
/// [`FormatError`] when it is damaged, or has another length than the footer says.
pub fn decode_entries(
    directory: &[u8],
    footer: &Footer,
) -> Result<Vec<DirectoryEntry>, FormatError> {
    let structure = Structure::Directory;
    let expected_bytes = u64::from(footer.count) * DIRECTORY_ENTRY_BYTES as u64;
    let found_bytes = directory.len() as u64;
    if expected_bytes != found_bytes {
        return Err(FormatError::Length { structure, expected_bytes, found_bytes });
    }
    FormatError::checksum(structure, footer.directory_crc, crc32c(directory))?;
    let frames_end = footer.directory_offset_bytes;
    directory
        .chunks_exact(DIRECTORY_ENTRY_BYTES)
        .map(|bytes| decode_entry(bytes, frames_end))
        .collect()
}

fn decode_entry(bytes: &[u8], frames_end: u32) -> Result<DirectoryEntry, FormatError> {
    let entry = DirectoryEntry {
        fingerprint: Fingerprint(array_at(bytes, ENTRY_FINGERPRINT_AT)),
        pbn: Pbn(u48_at(bytes, ENTRY_PBN_AT)),
        offset_bytes: u24_at(bytes, ENTRY_OFFSET_AT),
        length_bytes: u24_at(bytes, ENTRY_LENGTH_AT),
    };
    if entry.offset_bytes + entry.length_bytes > frames_end {
        let offset = u64::from(entry.offset_bytes);
        return Err(FormatError::field(Structure::Directory, "frame offset", offset));
    }
    Ok(entry)
}
