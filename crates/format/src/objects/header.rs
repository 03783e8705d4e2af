//! Header of a bucket, and how long its index is.
//!
//! Both stand twice, so that one copy may be damaged. The header is written once; the length of the
//! index whenever that changes.

use crate::BLOCK_BYTES;
use crate::checksum::crc32c;
use crate::error::{FormatError, Structure};
use crate::field::{array_at, put_bytes, put_u32, put_u64, u32_at, u64_at};
use crate::units::UUID_BYTES;

/// The newest version of a bucket that this program reads.
pub const BUCKET_VERSION: u32 = 1;

/// Where the two copies of the header begin.
pub const HEADER_COPIES_AT_BYTES: [u64; 2] = [0, 32 << 10];

/// Where the ring of the log begins.
pub const RING_AT_BYTES: u64 = 64 << 10;

/// Where the two copies of the index begin: one block with its length, then its pages.
pub const INDEX_COPIES_AT_BYTES: [u64; 2] = [1 << 40, 8 << 40];

/// Pages of an index take no more than this.
pub const INDEX_BYTES_MAX: u64 = (7 << 40) - BLOCK_BYTES as u64;

/// Where values begin.
pub const VALUES_AT_BYTES: u64 = 16 << 40;

/// Lengths that a ring may have.
pub const RING_BYTES_MIN: u64 = 64 << 10;

/// The longest ring.
pub const RING_BYTES_MAX: u64 = 512 << 30;

const _: () = assert!(HEADER_COPIES_AT_BYTES[1] + BLOCK_BYTES as u64 <= RING_AT_BYTES);
const _: () = assert!(RING_AT_BYTES + RING_BYTES_MAX <= INDEX_COPIES_AT_BYTES[0]);
const _: () = assert!(
    INDEX_COPIES_AT_BYTES[0] + BLOCK_BYTES as u64 + INDEX_BYTES_MAX <= INDEX_COPIES_AT_BYTES[1]
);
const _: () =
    assert!(INDEX_COPIES_AT_BYTES[1] + BLOCK_BYTES as u64 + INDEX_BYTES_MAX <= VALUES_AT_BYTES);

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"TAMIS-BK");
pub(crate) const LENGTH_MAGIC: u64 = u64::from_le_bytes(*b"TAMIS-BX");

pub(crate) const MAGIC_AT: usize = 0;
pub(crate) const CRC_AT: usize = 8;
pub(crate) const VERSION_AT: usize = 12;
pub(crate) const UUID_AT: usize = 16;
pub(crate) const RING_BYTES_AT: usize = 32;
pub(crate) const LENGTH_BYTES_AT: usize = 32;
pub(crate) const REST_AT: usize = 40;

const _: () = assert!(LENGTH_BYTES_AT == RING_BYTES_AT && RING_BYTES_AT + 8 == REST_AT);

/// What a bucket is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketHeader {
    /// The bucket's name for machines; whatever belongs to it repeats it.
    pub uuid: [u8; UUID_BYTES],
    /// Length of the ring of the log: whole blocks.
    pub ring_bytes: u64,
}

impl BucketHeader {
    /// The block to be written to both of [`HEADER_COPIES_AT_BYTES`].
    #[must_use]
    pub fn encode(&self) -> [u8; BLOCK_BYTES] {
        encode(MAGIC, &self.uuid, self.ring_bytes)
    }

    /// The header in a block.
    ///
    /// # Errors
    /// [`FormatError`] when it holds none, a newer one, or a damaged one.
    pub fn decode(block: &[u8]) -> Result<Self, FormatError> {
        let structure = Structure::BucketHeader;
        let (uuid, ring_bytes) = decode(structure, MAGIC, block)?;
        let whole = ring_bytes.is_multiple_of(BLOCK_BYTES as u64);
        if !whole || !(RING_BYTES_MIN..=RING_BYTES_MAX).contains(&ring_bytes) {
            return Err(FormatError::field(structure, "ring", ring_bytes));
        }
        Ok(Self { uuid, ring_bytes })
    }
}

/// How long the pages of a bucket's index are, one behind the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexLength {
    /// Of the bucket.
    pub uuid: [u8; UUID_BYTES],
    /// Whole blocks.
    pub length_bytes: u64,
}

impl IndexLength {
    /// The first block of the index.
    #[must_use]
    pub fn encode(&self) -> [u8; BLOCK_BYTES] {
        encode(LENGTH_MAGIC, &self.uuid, self.length_bytes)
    }

    /// The length in a block.
    ///
    /// # Errors
    /// [`FormatError`] when it holds none, a newer one, or a damaged one.
    pub fn decode(block: &[u8]) -> Result<Self, FormatError> {
        let structure = Structure::BucketIndexLength;
        let (uuid, length_bytes) = decode(structure, LENGTH_MAGIC, block)?;
        let whole = length_bytes.is_multiple_of(BLOCK_BYTES as u64);
        if !whole || length_bytes > INDEX_BYTES_MAX {
            return Err(FormatError::field(structure, "length", length_bytes));
        }
        Ok(Self { uuid, length_bytes })
    }
}

fn encode(magic: u64, uuid: &[u8; UUID_BYTES], number: u64) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    put_u64(&mut block, MAGIC_AT, magic);
    put_u32(&mut block, VERSION_AT, BUCKET_VERSION);
    put_bytes(&mut block, UUID_AT, uuid);
    put_u64(&mut block, RING_BYTES_AT, number);
    let crc = crc32c(&block[VERSION_AT..]);
    put_u32(&mut block, CRC_AT, crc);
    block
}

fn decode(
    structure: Structure,
    magic: u64,
    block: &[u8],
) -> Result<([u8; UUID_BYTES], u64), FormatError> {
    FormatError::at_least(structure, BLOCK_BYTES, block)?;
    let block = &block[..BLOCK_BYTES];
    let found = u64_at(block, MAGIC_AT);
    if found != magic {
        return Err(FormatError::Magic { structure, expected: magic, found });
    }
    let version = u32_at(block, VERSION_AT);
    if version > BUCKET_VERSION {
        let (supported, found) = (BUCKET_VERSION, version);
        return Err(FormatError::NewerVersion { structure, supported, found });
    }
    FormatError::checksum(structure, u32_at(block, CRC_AT), crc32c(&block[VERSION_AT..]))?;
    if version == 0 {
        return Err(FormatError::field(structure, "version", 0));
    }
    Ok((array_at(block, UUID_AT), u64_at(block, RING_BYTES_AT)))
}
