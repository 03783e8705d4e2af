//! The label of a store: its geometry and a root once more, in one block of zone tables.
//!
//! Zone superblock is one file of 64 KiB, so one hit takes both copies of the geometry and both
//! slots of the roots. Hence every root but a store's first names a block in another file where it
//! stands again, with the geometry of that moment. A label is found by its magic, by a repair that
//! reads all of zone tables; nothing has to be known of the superblock for that. It is written when
//! its root is durable in its slot, so what a label says is never newer than what the slots said.
//!
//! Geometry and root have their fields in their first sectors. A label holds these two sectors, as
//! they are, behind one of its own.

use crate::FORMAT_VERSION_COMMON;
use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::{array_at, put_bytes, put_u32, put_u64};
use crate::root::Root;
use crate::superblock::{CRC_AT, Geometry, MAGIC_AT, UUID_AT, VERSION_AT, check_start};
use crate::units::{BLOCK_BYTES, UUID_BYTES};

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"TAMIS-LB");

pub(crate) const START_REST_AT: usize = UUID_AT + UUID_BYTES;
pub(crate) const GEOMETRY_AT: usize = SECTOR;
pub(crate) const ROOT_AT: usize = 2 * SECTOR;
pub(crate) const REST_AT: usize = 3 * SECTOR;

const SECTOR: usize = 512;
const _: () = assert!(crate::superblock::REST_AT <= SECTOR && crate::root::REST_AT <= SECTOR);
const _: () = assert!(START_REST_AT <= GEOMETRY_AT && REST_AT <= BLOCK_BYTES);

/// What a store is made of and where its trees are, at the moment of a checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// As it was when the root became durable.
    pub geometry: Geometry,
    /// As it stands in its slot, too.
    pub root: Root,
}

impl Label {
    /// The block to be written to [`Root::label`] of its root.
    #[must_use]
    pub fn encode(&self) -> [u8; BLOCK_BYTES] {
        let uuid = self.geometry.uuid;
        let mut block = [0; BLOCK_BYTES];
        put_u64(&mut block, MAGIC_AT, MAGIC);
        put_u32(&mut block, VERSION_AT, FORMAT_VERSION_COMMON);
        put_bytes(&mut block, UUID_AT, &uuid);
        put_bytes(&mut block, GEOMETRY_AT, &self.geometry.encode()[..SECTOR]);
        put_bytes(&mut block, ROOT_AT, &self.root.encode(uuid)[..SECTOR]);
        let crc = crc32c(&block[VERSION_AT..]);
        put_u32(&mut block, CRC_AT, crc);
        block
    }

    /// The label of the store named `uuid` in a block.
    ///
    /// # Errors
    /// [`FormatError`] when it holds none, a newer one, a damaged one, or another store's.
    pub fn decode(block: &[u8], uuid: [u8; UUID_BYTES]) -> Result<Self, FormatError> {
        let structure = Structure::Label;
        FormatError::at_least(structure, BLOCK_BYTES, block)?;
        let block = &block[..BLOCK_BYTES];
        check_start(structure, MAGIC, block)?;
        if array_at(block, UUID_AT) != uuid {
            return Err(FormatError::OtherStore { structure });
        }
        let geometry = Geometry::decode(&padded(block, GEOMETRY_AT))?;
        if geometry.uuid != uuid {
            return Err(FormatError::OtherStore { structure });
        }
        let root = Root::decode_in(&padded(block, ROOT_AT), &geometry)?;
        Ok(Self { geometry, root })
    }
}

/// The block of which the sector at `at` is the first; the others are zeros.
fn padded(block: &[u8], at: usize) -> [u8; BLOCK_BYTES] {
    let mut padded = [0; BLOCK_BYTES];
    put_bytes(&mut padded, 0, &block[at..at + SECTOR]);
    padded
}
