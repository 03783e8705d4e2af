//! The mark of a zone: whose it is, before anything else that stands in it says so.
//!
//! It stands in the first block. The first record of the journal and the first frame of a data zone
//! are written over it, and they say then whose the zone is; in zone tables
//! no page ever takes that block, and the mark stays.

use crate::BLOCK_BYTES;
use crate::FORMAT_VERSION_COMMON;
use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::{array_at, put_bytes, put_u32, put_u64, u32_at};
use crate::superblock::{CRC_AT, DATA_ZONES_MAX, MAGIC_AT, UUID_AT, VERSION_AT, check_start};
use crate::units::{UUID_BYTES, Zone};

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"TAMIS-ZN");

pub(crate) const ZONE_AT: usize = 32;
pub(crate) const REST_AT: usize = 36;

const _: () = assert!(ZONE_AT + 4 == REST_AT && REST_AT <= 512, "a mark fits one sector");

const SUPERBLOCK: u32 = 0;
const JOURNAL: u32 = 1;
const TABLES: u32 = 2;
const DATA: u32 = 16;

/// Whose a zone is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Of the store.
    pub uuid: [u8; UUID_BYTES],
    /// Which of its zones; never the superblock, which has no mark.
    pub zone: Zone,
}

impl Mark {
    /// The first block of the zone.
    ///
    /// # Panics
    /// When it is the superblock: its first block is the geometry's.
    #[must_use]
    pub fn encode(&self) -> [u8; BLOCK_BYTES] {
        assert_ne!(self.zone, Zone::Superblock, "the superblock has no mark");
        let number = number_of(self.zone);
        let mut block = [0; BLOCK_BYTES];
        put_u64(&mut block, MAGIC_AT, MAGIC);
        put_u32(&mut block, VERSION_AT, FORMAT_VERSION_COMMON);
        put_bytes(&mut block, UUID_AT, &self.uuid);
        put_u32(&mut block, ZONE_AT, number);
        let crc = crc32c(&block[VERSION_AT..]);
        put_u32(&mut block, CRC_AT, crc);
        block
    }

    /// The mark in the first block of a zone.
    ///
    /// # Errors
    /// [`FormatError`] when it holds none, a newer one, or a damaged one.
    pub fn decode(block: &[u8]) -> Result<Self, FormatError> {
        let structure = Structure::Mark;
        FormatError::at_least(structure, BLOCK_BYTES, block)?;
        let block = &block[..BLOCK_BYTES];
        check_start(structure, MAGIC, block)?;
        let number = u32_at(block, ZONE_AT);
        let zone = numbered(number).filter(|zone| *zone != Zone::Superblock);
        let zone = zone.ok_or(FormatError::field(structure, "zone", u64::from(number)))?;
        Ok(Self { uuid: array_at(block, UUID_AT), zone })
    }
}

/// The number by which a zone is named on disk.
pub(crate) fn number_of(zone: Zone) -> u32 {
    match zone {
        Zone::Superblock => SUPERBLOCK,
        Zone::Journal => JOURNAL,
        Zone::Tables => TABLES,
        Zone::Data(number) => DATA + u32::from(number),
    }
}

/// The zone of this number, if there can be one.
pub(crate) fn numbered(number: u32) -> Option<Zone> {
    match (number, number.checked_sub(DATA)) {
        (SUPERBLOCK, _) => Some(Zone::Superblock),
        (JOURNAL, _) => Some(Zone::Journal),
        (TABLES, _) => Some(Zone::Tables),
        (_, Some(number)) if number < DATA_ZONES_MAX as u32 => Some(Zone::Data(number as u16)),
        _ => None,
    }
}
