//! One request of a trace.

use crate::digest::Digest;

/// The unit of addresses in traces.
pub const SECTOR_BYTES: u64 = 512;
/// The unit of contents in most traces.
pub const BLOCK_BYTES: u64 = 4096;
/// Sectors of a block.
pub const BLOCK_SECTORS: u64 = BLOCK_BYTES / SECTOR_BYTES;

/// Which way the bytes went.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    /// To the client.
    #[default]
    Read,
    /// From the client.
    Write,
}

/// How much content a digest names.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Grain {
    /// 4096 bytes.
    #[default]
    Block,
    /// 512 bytes.
    Sector,
}

impl Grain {
    /// Sectors that one digest names.
    #[must_use]
    pub fn sectors(self) -> u64 {
        match self {
            Self::Block => BLOCK_SECTORS,
            Self::Sector => 1,
        }
    }

    /// Bytes that one digest names.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.sectors() * SECTOR_BYTES
    }
}

/// One request: `digests` name its content in order, each [`Grain::bytes`] of it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Request {
    /// When it was made, in nanoseconds of the trace's own clock.
    pub time_ns: u64,
    /// Who made it.
    pub pid: u32,
    /// Who made it, by name: one word.
    pub process: String,
    /// Where it begins, in sectors.
    pub first_sector: u64,
    /// How long it is, in sectors; at least one, and a whole number of digests.
    pub sectors: u32,
    /// Which way.
    pub direction: Direction,
    /// The device, by its numbers.
    pub major: u32,
    /// The same.
    pub minor: u32,
    /// What a digest names.
    pub grain: Grain,
    /// What was written, or read.
    pub digests: Vec<Digest>,
}

impl Request {
    /// Where it begins, in bytes.
    #[must_use]
    pub fn offset_bytes(&self) -> u64 {
        self.first_sector * SECTOR_BYTES
    }

    /// How long it is, in bytes.
    #[must_use]
    pub fn length_bytes(&self) -> u64 {
        u64::from(self.sectors) * SECTOR_BYTES
    }
}
