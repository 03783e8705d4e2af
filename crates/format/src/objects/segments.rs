//! Lists of segments: where the bytes of a value are.
//!
//! A list has entries in the order of the value's bytes. An entry is a run of chunks or a subtree:
//! a block of the value space that holds further entries. Levels fall strictly on the way down, so
//! a walk ends whatever the bytes are; neighbours may differ in level.
//!
//! ```text
//! record: | run | subtree, level 2 | run |
//!                      |
//!               block, level 2: | subtree, level 1 | subtree, level 1 | run |
//!                                       |
//!                                block, level 1: | run | run | ... |
//! ```
//!
//! A block carries its own address, its length and a checksum, and the entry that leads to it
//! carries the checksum as well: a stale or misplaced block is never taken for the one meant.

use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::objects::{CHUNK_BYTES, CHUNKS_END, OBJECT_BYTES_MAX};
use crate::units::BLOCK_BYTES;

/// Length of an entry.
pub const ENTRY_BYTES: usize = 24;
/// Length of a block: a chunk.
pub const SEGMENT_BLOCK_BYTES: usize = BLOCK_BYTES;
/// Header of a block.
pub const SEGMENT_BLOCK_HEADER_BYTES: usize = 32;
/// Most entries of a block.
pub const BLOCK_ENTRIES_MAX: usize =
    (SEGMENT_BLOCK_BYTES - SEGMENT_BLOCK_HEADER_BYTES) / ENTRY_BYTES;
/// Most entries of a list in a record.
pub const LIST_ENTRIES_MAX: usize = 64;
/// Highest level of a block.
pub const LEVEL_MAX: u8 = 16;

const MAGIC: u32 = u32::from_le_bytes(*b"TmSL");

pub(crate) const LEVEL_AT: usize = 0;
pub(crate) const ENTRY_ZERO_AT: usize = 1;
pub(crate) const SKIP_AT: usize = 2;
pub(crate) const ENTRY_CRC_AT: usize = 4;
pub(crate) const LENGTH_AT: usize = 8;
pub(crate) const CHUNK_AT: usize = 16;

pub(crate) const CRC_AT: usize = 0;
pub(crate) const CRC_END: usize = 4;
pub(crate) const MAGIC_AT: usize = 4;
pub(crate) const BLOCK_LEVEL_AT: usize = 8;
pub(crate) const BLOCK_ZERO_AT: usize = 9;
pub(crate) const COUNT_AT: usize = 10;
pub(crate) const BLOCK_PADDING_AT: usize = 12;
pub(crate) const BLOCK_LENGTH_AT: usize = 16;
pub(crate) const BLOCK_CHUNK_AT: usize = 24;
pub(crate) const ENTRIES_AT: usize = SEGMENT_BLOCK_HEADER_BYTES;

const _: () = assert!(CHUNK_AT + 8 == ENTRY_BYTES && LENGTH_AT + 8 == CHUNK_AT);
const _: () = assert!(BLOCK_CHUNK_AT + 8 == ENTRIES_AT && BLOCK_PADDING_AT + 4 == BLOCK_LENGTH_AT);
const _: () = assert!(BLOCK_LEVEL_AT + 1 == BLOCK_ZERO_AT && BLOCK_ZERO_AT + 1 == COUNT_AT);
const _: () = assert!(ENTRIES_AT + BLOCK_ENTRIES_MAX * ENTRY_BYTES <= SEGMENT_BLOCK_BYTES);
const _: () = assert!(SEGMENT_BLOCK_BYTES as u64 == CHUNK_BYTES && BLOCK_ENTRIES_MAX == 169);

/// Bytes of a value in chunks that follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Bytes of the value in it.
    pub length_bytes: u64,
    /// Its first chunk.
    pub first_chunk: u64,
    /// Bytes of the first chunk before the value's first byte.
    pub skip_bytes: u16,
}

impl Run {
    /// Chunks that hold a byte of it.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        (u64::from(self.skip_bytes) + self.length_bytes).div_ceil(CHUNK_BYTES)
    }

    /// The chunk behind it.
    #[must_use]
    pub fn end_chunk(&self) -> u64 {
        self.first_chunk + self.chunks()
    }

    /// Whether `next` begins at the byte of the value space behind this run.
    #[must_use]
    pub fn is_continued_by(&self, next: &Self) -> bool {
        let end_bytes = u64::from(self.skip_bytes) + self.length_bytes;
        end_bytes.is_multiple_of(CHUNK_BYTES)
            && next.skip_bytes == 0
            && next.first_chunk == self.end_chunk()
    }
}

/// A block of entries in the value space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subtree {
    /// Bytes of the value below it.
    pub length_bytes: u64,
    /// The chunk that holds it.
    pub block_chunk: u64,
    /// 1 when its entries are runs; more than the level of each subtree in it.
    pub level: u8,
    /// Checksum of the block.
    pub crc: u32,
}

/// One entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ListEntry {
    /// Chunks of the value.
    Run(Run),
    /// A block of further entries.
    Subtree(Subtree),
}

impl ListEntry {
    /// Bytes of the value in or below it.
    #[must_use]
    pub fn length_bytes(&self) -> u64 {
        match self {
            Self::Run(run) => run.length_bytes,
            Self::Subtree(subtree) => subtree.length_bytes,
        }
    }

    /// 0 of a run, else that of the block.
    #[must_use]
    pub fn level(&self) -> u8 {
        match self {
            Self::Run(_) => 0,
            Self::Subtree(subtree) => subtree.level,
        }
    }

    /// The chunks that the entry itself names: of a run all, of a subtree its block.
    #[must_use]
    pub fn chunks(&self) -> std::ops::Range<u64> {
        match self {
            Self::Run(run) => run.first_chunk..run.end_chunk(),
            Self::Subtree(subtree) => subtree.block_chunk..subtree.block_chunk + 1,
        }
    }

    /// Writes the entry into `bytes`, which are [`ENTRY_BYTES`].
    ///
    /// # Panics
    /// When it is no entry that [`ListEntry::decode`] takes.
    pub fn encode(&self, bytes: &mut [u8]) {
        assert!(bytes.len() == ENTRY_BYTES, "an entry has a length");
        bytes.fill(0);
        put_u64(bytes, LENGTH_AT, self.length_bytes());
        bytes[LEVEL_AT] = self.level();
        match self {
            Self::Run(run) => {
                put_u16(bytes, SKIP_AT, run.skip_bytes);
                put_u64(bytes, CHUNK_AT, run.first_chunk);
            }
            Self::Subtree(subtree) => {
                put_u32(bytes, ENTRY_CRC_AT, subtree.crc);
                put_u64(bytes, CHUNK_AT, subtree.block_chunk);
            }
        }
        assert!(Self::decode(bytes) == Ok(*self), "{self:?} is an entry");
    }

    /// The entry in `bytes`.
    ///
    /// # Errors
    /// [`FormatError`] when they are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let structure = Structure::ListEntry;
        FormatError::at_least(structure, ENTRY_BYTES, bytes)?;
        let impossible = |field, found| Err(FormatError::field(structure, field, found));
        let (length_bytes, chunk) = (u64_at(bytes, LENGTH_AT), u64_at(bytes, CHUNK_AT));
        let (level, skip_bytes) = (bytes[LEVEL_AT], u16_at(bytes, SKIP_AT));
        let crc = u32_at(bytes, ENTRY_CRC_AT);
        if length_bytes == 0 || length_bytes > OBJECT_BYTES_MAX {
            return impossible("length", length_bytes);
        }
        if chunk >= CHUNKS_END {
            return impossible("chunk", chunk);
        }
        if bytes[ENTRY_ZERO_AT] != 0 {
            return impossible("zero", u64::from(bytes[ENTRY_ZERO_AT]));
        }
        if level > LEVEL_MAX {
            return impossible("level", u64::from(level));
        }
        if level > 0 {
            let subtree = Subtree { length_bytes, block_chunk: chunk, level, crc };
            let is_whole = skip_bytes == 0;
            return if is_whole {
                Ok(Self::Subtree(subtree))
            } else {
                impossible("skip", u64::from(skip_bytes))
            };
        }
        let run = Run { length_bytes, first_chunk: chunk, skip_bytes };
        if u64::from(skip_bytes) >= CHUNK_BYTES {
            return impossible("skip", u64::from(skip_bytes));
        }
        if crc != 0 {
            return impossible("checksum", u64::from(crc));
        }
        if run.end_chunk() > CHUNKS_END {
            return impossible("chunk", chunk);
        }
        Ok(Self::Run(run))
    }
}

/// Bytes of the value in all of `entries`; none when they are more than an object has.
#[must_use]
pub fn total_bytes(entries: &[ListEntry]) -> Option<u64> {
    let lengths = entries.iter().map(ListEntry::length_bytes);
    let sum = lengths.fold(0_u64, u64::saturating_add);
    (sum <= OBJECT_BYTES_MAX).then_some(sum)
}

/// The level of a block of `entries`.
#[must_use]
pub fn block_level(entries: &[ListEntry]) -> u8 {
    entries.iter().map(ListEntry::level).max().map_or(1, |level| level.saturating_add(1))
}

/// A block of `entries` for `block_chunk`: its bytes, and the entry that leads to it.
///
/// # Panics
/// When there are none, more than [`BLOCK_ENTRIES_MAX`], more bytes than an object has, or when it
/// would be higher than [`LEVEL_MAX`]: the caller looks at [`block_level`] before.
#[must_use]
pub fn encode_block(entries: &[ListEntry], block_chunk: u64) -> (Vec<u8>, Subtree) {
    assert!((1..=BLOCK_ENTRIES_MAX).contains(&entries.len()), "a block has 1 to 169 entries");
    let Some(length_bytes) = total_bytes(entries) else {
        panic!("a block has no more bytes than an object");
    };
    let level = block_level(entries);
    assert!(level <= LEVEL_MAX, "a block of level {level}");
    let mut bytes = vec![0; SEGMENT_BLOCK_BYTES];
    put_u32(&mut bytes, MAGIC_AT, MAGIC);
    bytes[BLOCK_LEVEL_AT] = level;
    put_u16(&mut bytes, COUNT_AT, entries.len() as u16);
    put_u64(&mut bytes, BLOCK_LENGTH_AT, length_bytes);
    put_u64(&mut bytes, BLOCK_CHUNK_AT, block_chunk);
    for (entry, place) in entries.iter().zip(bytes[ENTRIES_AT..].chunks_exact_mut(ENTRY_BYTES)) {
        entry.encode(place);
    }
    let crc = crc32c(&bytes[CRC_END..]);
    put_u32(&mut bytes, CRC_AT, crc);
    (bytes, Subtree { length_bytes, block_chunk, level, crc })
}

/// The entries of the block that `subtree` leads to, from the bytes of its chunk.
///
/// # Errors
/// [`FormatError`] when they are not that block.
pub fn decode_block(subtree: &Subtree, bytes: &[u8]) -> Result<Vec<ListEntry>, FormatError> {
    let structure = Structure::SegmentBlock;
    FormatError::at_least(structure, SEGMENT_BLOCK_BYTES, bytes)?;
    let bytes = &bytes[..SEGMENT_BLOCK_BYTES];
    let found = u32_at(bytes, MAGIC_AT);
    if found != MAGIC {
        let (expected, found) = (u64::from(MAGIC), u64::from(found));
        return Err(FormatError::Magic { structure, expected, found });
    }
    FormatError::checksum(structure, u32_at(bytes, CRC_AT), crc32c(&bytes[CRC_END..]))?;
    FormatError::checksum(structure, subtree.crc, u32_at(bytes, CRC_AT))?;
    let expect = |field, found: u64, expected: u64| match found == expected {
        true => Ok(()),
        false => Err(FormatError::field(structure, field, found)),
    };
    expect("level", bytes[BLOCK_LEVEL_AT].into(), subtree.level.into())?;
    expect("chunk", u64_at(bytes, BLOCK_CHUNK_AT), subtree.block_chunk)?;
    expect("length", u64_at(bytes, BLOCK_LENGTH_AT), subtree.length_bytes)?;
    let count = usize::from(u16_at(bytes, COUNT_AT));
    if !(1..=BLOCK_ENTRIES_MAX).contains(&count) {
        return Err(FormatError::field(structure, "number of entries", count as u64));
    }
    let places = bytes[ENTRIES_AT..].chunks_exact(ENTRY_BYTES).take(count);
    let entries: Vec<ListEntry> = places.map(ListEntry::decode).collect::<Result<_, _>>()?;
    expect("level", block_level(&entries).into(), subtree.level.into())?;
    expect("length", total_bytes(&entries).unwrap_or(u64::MAX), subtree.length_bytes)?;
    Ok(entries)
}

#[cfg(test)]
mod tests;
