//! The undo file of a repair: what stood where the repair wrote.
//!
//! ```text
//! start | entry, bytes | entry, bytes | ... | entry without bytes
//! ```
//!
//! Start and entries are one block each. An entry is durable before the store is written to, so the
//! bytes of the last entries may be all that a repair came to. The entry without bytes says that it
//! came to its end: without it, what follows the last whole entry was never needed.

use crate::FORMAT_VERSION_COMMON;
use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::{put_u32, put_u64, u32_at, u64_at};
use crate::frame::SECTOR_BYTES;
use crate::mark::{number_of, numbered};
use crate::superblock::{CRC_AT, DATA_ZONES_MAX, MAGIC_AT, VERSION_AT, check_start};
use crate::units::{BLOCK_BYTES, Zone};

const START_MAGIC: u64 = u64::from_le_bytes(*b"TAMIS-UF");
const ENTRY_MAGIC: u64 = u64::from_le_bytes(*b"TAMIS-UE");

pub(crate) const SUPERBLOCK_CRC_AT: usize = 16;
pub(crate) const JOURNAL_CRC_AT: usize = 20;
pub(crate) const SHORT_COUNT_AT: usize = 24;
#[cfg(test)]
pub(crate) const START_ZERO_AT: usize = 28;
pub(crate) const SHORT_AT: usize = 32;
pub(crate) const START_REST_AT: usize = SHORT_AT + SHORT_BYTES * SHORT_MAX;
/// Zone and length of a file that was cut short.
const SHORT_BYTES: usize = 16;
const LENGTH_IN_SHORT: usize = 8;
/// Superblock, journal, tables, and each data zone.
const SHORT_MAX: usize = 3 + DATA_ZONES_MAX;

pub(crate) const ZONE_AT: usize = 16;
pub(crate) const LENGTH_AT: usize = 20;
pub(crate) const OFFSET_AT: usize = 24;
pub(crate) const OLD_CRC_AT: usize = 32;
#[cfg(test)]
pub(crate) const ENTRY_ZERO_AT: usize = 36;
pub(crate) const NUMBER_AT: usize = 40;
pub(crate) const NEW_CRCS_AT: usize = 48;
pub(crate) const ENTRY_REST_AT: usize = NEW_CRCS_AT + CRC_BYTES * UNDO_SECTORS;
const CRC_BYTES: usize = 4;

/// Bytes of one entry, at most: a reader keeps them in memory.
pub const UNDO_BYTES_MAX: u32 = 16 << 20;

/// Sectors of a block: each is written whole or not at all.
pub const UNDO_SECTORS: usize = BLOCK_BYTES / SECTOR_BYTES as usize;

const _: () = assert!(START_REST_AT <= BLOCK_BYTES && ENTRY_REST_AT <= BLOCK_BYTES);

/// The first block of an undo file: the store as it was before the repair.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UndoStart {
    /// Checksum of zone superblock.
    pub superblock_crc: u32,
    /// Checksum of zone journal, of the length that the repair gave it.
    pub journal_crc: u32,
    /// Files that the repair made longer, with their bytes before.
    pub short: Vec<(Zone, u64)>,
}

impl UndoStart {
    /// The block.
    ///
    /// # Panics
    /// When more files are short than a store has.
    #[must_use]
    pub fn encode(&self) -> [u8; BLOCK_BYTES] {
        assert!(self.short.len() <= SHORT_MAX, "a store has no more zones");
        let mut block = [0; BLOCK_BYTES];
        put_u32(&mut block, SUPERBLOCK_CRC_AT, self.superblock_crc);
        put_u32(&mut block, JOURNAL_CRC_AT, self.journal_crc);
        put_u32(&mut block, SHORT_COUNT_AT, self.short.len() as u32);
        for (number, (zone, length_bytes)) in self.short.iter().enumerate() {
            let at = SHORT_AT + number * SHORT_BYTES;
            put_u32(&mut block, at, number_of(*zone));
            put_u64(&mut block, at + LENGTH_IN_SHORT, *length_bytes);
        }
        sealed(block, START_MAGIC)
    }

    /// The start of an undo file.
    ///
    /// # Errors
    /// [`FormatError`] when the block is none, a newer one, or damaged.
    pub fn decode(block: &[u8]) -> Result<Self, FormatError> {
        let structure = Structure::Undo;
        FormatError::at_least(structure, BLOCK_BYTES, block)?;
        let block = &block[..BLOCK_BYTES];
        check_start(structure, START_MAGIC, block)?;
        let count = u32_at(block, SHORT_COUNT_AT);
        if count as usize > SHORT_MAX {
            return Err(FormatError::field(structure, "count of short files", u64::from(count)));
        }
        let short = (0..count as usize).map(|number| {
            let at = SHORT_AT + number * SHORT_BYTES;
            Ok((zone_at(block, at)?, u64_at(block, at + LENGTH_IN_SHORT)))
        });
        let short = short.collect::<Result<_, FormatError>>()?;
        let superblock_crc = u32_at(block, SUPERBLOCK_CRC_AT);
        Ok(Self { superblock_crc, journal_crc: u32_at(block, JOURNAL_CRC_AT), short })
    }
}

/// What stands before the bytes of one place that a repair wrote to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct UndoEntry {
    /// How many entries come before it.
    pub number: u64,
    /// Where the repair wrote.
    pub zone: Zone,
    /// From the start of the zone, whole blocks.
    pub offset_bytes: u64,
    /// How much, whole blocks; 0: the repair has ended.
    pub length_bytes: u32,
    /// Checksum of what stood there: of the bytes behind this block.
    pub old_crc: u32,
    /// Checksums of the sectors of the first block of what the repair wrote there.
    pub new_crcs: [u32; UNDO_SECTORS],
}

/// Checksums of the sectors of the first block of some bytes; 0 where there are none.
#[must_use]
pub fn sector_crcs(bytes: &[u8]) -> [u32; UNDO_SECTORS] {
    let mut crcs = [0; UNDO_SECTORS];
    let sectors = bytes.chunks_exact(SECTOR_BYTES as usize);
    crcs.iter_mut().zip(sectors).for_each(|(crc, sector)| *crc = crc32c(sector));
    crcs
}

impl UndoEntry {
    /// The block.
    #[must_use]
    pub fn encode(&self) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        put_u32(&mut block, ZONE_AT, number_of(self.zone));
        put_u32(&mut block, LENGTH_AT, self.length_bytes);
        put_u64(&mut block, OFFSET_AT, self.offset_bytes);
        put_u32(&mut block, OLD_CRC_AT, self.old_crc);
        put_u64(&mut block, NUMBER_AT, self.number);
        for (number, crc) in self.new_crcs.iter().enumerate() {
            put_u32(&mut block, NEW_CRCS_AT + number * CRC_BYTES, *crc);
        }
        sealed(block, ENTRY_MAGIC)
    }

    /// An entry.
    ///
    /// # Errors
    /// [`FormatError`] when the block is none, a newer one, or damaged.
    pub fn decode(block: &[u8]) -> Result<Self, FormatError> {
        let structure = Structure::Undo;
        FormatError::at_least(structure, BLOCK_BYTES, block)?;
        let block = &block[..BLOCK_BYTES];
        check_start(structure, ENTRY_MAGIC, block)?;
        let (offset_bytes, length_bytes) = (u64_at(block, OFFSET_AT), u32_at(block, LENGTH_AT));
        let is_whole = |bytes: u64| bytes.is_multiple_of(BLOCK_BYTES as u64);
        if !is_whole(offset_bytes) || offset_bytes.checked_add(u64::from(length_bytes)).is_none() {
            return Err(FormatError::field(structure, "offset", offset_bytes));
        }
        if !is_whole(u64::from(length_bytes)) || length_bytes > UNDO_BYTES_MAX {
            return Err(FormatError::field(structure, "length", u64::from(length_bytes)));
        }
        Ok(Self {
            number: u64_at(block, NUMBER_AT),
            zone: zone_at(block, ZONE_AT)?,
            offset_bytes,
            length_bytes,
            old_crc: u32_at(block, OLD_CRC_AT),
            new_crcs: std::array::from_fn(|number| u32_at(block, NEW_CRCS_AT + number * CRC_BYTES)),
        })
    }
}

fn sealed(mut block: [u8; BLOCK_BYTES], magic: u64) -> [u8; BLOCK_BYTES] {
    put_u64(&mut block, MAGIC_AT, magic);
    put_u32(&mut block, VERSION_AT, FORMAT_VERSION_COMMON);
    let crc = crc32c(&block[VERSION_AT..]);
    put_u32(&mut block, CRC_AT, crc);
    block
}

fn zone_at(block: &[u8], at: usize) -> Result<Zone, FormatError> {
    let number = u32_at(block, at);
    numbered(number).ok_or(FormatError::field(Structure::Undo, "zone", u64::from(number)))
}

#[cfg(test)]
mod tests {
    use super::{UNDO_BYTES_MAX, UndoEntry, UndoStart, sector_crcs};
    use crate::units::{BLOCK_BYTES, Zone};

    fn each_bit_counts(block: &[u8; BLOCK_BYTES], is_sound: impl Fn(&[u8]) -> bool) {
        assert!(is_sound(block));
        for at in (0..64).chain([BLOCK_BYTES - 1]) {
            let mut damaged = *block;
            damaged[at] ^= 1;
            assert!(!is_sound(&damaged), "byte {at}");
        }
    }

    #[test]
    fn what_is_written_is_read_and_damage_is_seen() {
        let short = vec![(Zone::Journal, 8191), (Zone::Data(3), 1 << 40)];
        let start = UndoStart { superblock_crc: 7, journal_crc: 9, short };
        assert_eq!(UndoStart::decode(&start.encode()), Ok(start.clone()));
        each_bit_counts(&start.encode(), |block| UndoStart::decode(block).is_ok());
        let entry = UndoEntry {
            number: 5,
            zone: Zone::Superblock,
            offset_bytes: 8192,
            length_bytes: 4096,
            old_crc: 1,
            new_crcs: sector_crcs(&[7; BLOCK_BYTES]),
        };
        assert_eq!(UndoEntry::decode(&entry.encode()), Ok(entry));
        each_bit_counts(&entry.encode(), |block| UndoEntry::decode(block).is_ok());
        for bad in [
            UndoEntry { offset_bytes: 1, ..entry },
            UndoEntry { length_bytes: 5, ..entry },
            UndoEntry { length_bytes: UNDO_BYTES_MAX + 4096, ..entry },
        ] {
            assert!(UndoEntry::decode(&bad.encode()).is_err(), "{bad:?}");
        }
    }
}
