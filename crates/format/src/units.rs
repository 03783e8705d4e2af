//! The words of the store as types: addresses, names and sizes that cannot be mixed up.
//!
//! A chunk is found in steps, and each step has its own kind of address:
//!
//! ```text
//! volume + Lba --map--> Pbn --PBN-PBA table--> Pba = container, offset, length --> frame
//!          Fingerprint --Hash-PBN table--> Pbn
//! ```
//!
//! The [`Pbn`] in the middle is the stable one: maps and fingerprints name it, so collection moves
//! a frame by changing one PBA and nothing else.

use std::fmt;
use std::ops::Range;

pub use crate::compression::{Codec, Compression, CompressionNameError};

/// Unit of device I/O; a table page is one block.
pub const BLOCK_BYTES: usize = 4096;

/// Where a block begins in its zone.
#[must_use]
pub const fn block_offset_bytes(block: u64) -> u64 {
    block * BLOCK_BYTES as u64
}

/// What is written sequentially and freed as a whole.
pub const CONTAINER_BYTES: u32 = 4 << 20;

/// Length of the name of a store.
pub const UUID_BYTES: usize = 16;

/// So much of a store's UUID is repeated in its records and containers.
pub const UUID_PREFIX_BYTES: usize = 8;

/// The part of a store's UUID that records and containers repeat.
#[must_use]
pub fn uuid_prefix(uuid: [u8; UUID_BYTES]) -> [u8; UUID_PREFIX_BYTES] {
    crate::field::array_at(&uuid, 0)
}

/// A file or device of a store.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Zone {
    /// Geometry and roots.
    Superblock,
    /// The ring of records.
    Journal,
    /// Table pages.
    Tables,
    /// Containers, on data device number N.
    Data(u16),
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($integer:ty)) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub $integer);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// Logical block address: a chunk's place in a volume, counted in chunks.
    Lba(u64)
}
number! {
    /// Physical block number: the name of a stored unique chunk for as long as it lives. 48 bits.
    Pbn(u64)
}
number! {
    /// A container, counted through all data zones.
    ContainerId(u32)
}
number! {
    /// A volume; never used again after it was deleted.
    VolumeId(u32)
}

impl Pbn {
    /// No chunk: the place reads as zeros.
    pub const NONE: Self = Self(0);

    /// The largest that 48 bits hold.
    pub const MAX: Self = Self((1 << 48) - 1);

    /// Whether this names no chunk.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// What a store calls a chunk by its plain bytes, in the way that the store was made with
/// ([`crate::detection::FingerprintKind`]).
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    /// Of a hash of up to 32 bytes: zeros follow it.
    ///
    /// # Panics
    /// When it is longer.
    #[must_use]
    pub fn padded(hash: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes[..hash.len()].copy_from_slice(hash);
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// A part of a frame's checksum, kept beside its place in the tables.
///
/// A frame proves that it is whole and of its PBN; not that it is the one that was stored here
/// last, if a write was lost and an older frame of the same PBN had lain at the same place. This
/// does, but for one chance in 65535.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FrameCheck(u16);

impl FrameCheck {
    /// Not known, as in what version 1 wrote: any frame will do.
    pub const UNKNOWN: Self = Self(0);

    /// Of a frame with checksum `crc`: its low 16 bits, and 1 where those are 0.
    #[must_use]
    pub const fn of_crc(crc: u32) -> Self {
        let low = crc as u16;
        Self(if low == 0 { 1 } else { low })
    }

    /// Whether nothing is known of the frame.
    #[must_use]
    pub const fn is_unknown(self) -> bool {
        self.0 == 0
    }

    /// Whether a frame whose check is `found` can be the one that is meant.
    #[must_use]
    pub const fn allows(self, found: Self) -> bool {
        self.is_unknown() || self.0 == found.0
    }

    pub(crate) const fn to_bits(self) -> u16 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

/// Physical block address: where a frame is, and which frame is meant. It moves when collection
/// moves the frame.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Pba {
    /// Container that holds it.
    pub container: ContainerId,
    /// From the container's start; less than 16 MiB.
    pub offset_bytes: u32,
    /// Of the whole frame, header included; less than 16 MiB.
    pub length_bytes: u32,
    /// Of the frame; unknown where only a place is meant.
    pub check: FrameCheck,
}

impl Pba {
    /// Whether `other` is the same place, whichever frame either means.
    #[must_use]
    pub const fn is_place_of(self, other: Self) -> bool {
        self.container.0 == other.container.0
            && self.offset_bytes == other.offset_bytes
            && self.length_bytes == other.length_bytes
    }

    /// The bytes of its container that the frame takes.
    #[must_use]
    pub const fn range(self) -> Range<usize> {
        self.offset_bytes as usize..self.offset_bytes as usize + self.length_bytes as usize
    }
}

impl fmt::Display for Pba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { container, offset_bytes, length_bytes, .. } = self;
        write!(f, "{length_bytes} bytes at offset {offset_bytes} of container {container}")
    }
}

/// One of the arrays of pages that together are the tables.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TreeId(pub u32);

impl TreeId {
    /// The volumes.
    pub const CATALOG: Self = Self(0);
    /// Buckets of the Hash-PBN table of format 1: the first opening for writing empties it.
    pub const LINEAR_HASH: Self = Self(1);
    /// Further pages of those of its buckets that are full.
    pub const LINEAR_OVERFLOW: Self = Self(2);
    /// The PBN-PBA table.
    pub const PBN_PBA: Self = Self(3);
    /// The queue of PBNs to be handed out again.
    pub const FREE_PBNS: Self = Self(4);
    /// What each container holds.
    pub const CONTAINERS: Self = Self(5);
    /// Where the second copies of chunks are that many LBAs name.
    pub const COPIES: Self = Self(6);
    /// Buckets of the Hash-PBN table.
    pub const HASH_PBN: Self = Self(7);
    /// Its entries that are in no bucket yet.
    pub const YOUNG: Self = Self(8);
    /// What the filters of its buckets remember.
    pub const HASH_FILTER: Self = Self(9);

    /// Set in the trees of volumes.
    const VOLUME_BIT: u32 = 1 << 31;

    /// The LBA-PBN map of a volume.
    #[must_use]
    pub const fn volume(id: VolumeId) -> Self {
        Self(Self::VOLUME_BIT | id.0)
    }

    /// Whether this is the map of a volume.
    #[must_use]
    pub const fn is_map(self) -> bool {
        self.0 & Self::VOLUME_BIT != 0
    }

    /// The volume whose map this is.
    #[must_use]
    pub const fn volume_id(self) -> Option<VolumeId> {
        if self.0 & Self::VOLUME_BIT == 0 {
            None
        } else {
            Some(VolumeId(self.0 ^ Self::VOLUME_BIT))
        }
    }
}

impl fmt::Display for TreeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.volume_id()) {
            (_, Some(volume)) => write!(f, "the map of volume {volume}"),
            (Self::CATALOG, None) => f.write_str("the volume catalog"),
            (Self::LINEAR_HASH, None) => f.write_str("the Hash-PBN table of format 1"),
            (Self::LINEAR_OVERFLOW, None) => {
                f.write_str("the overflow of the Hash-PBN table of format 1")
            }
            (Self::HASH_PBN, None) => f.write_str("the Hash-PBN table"),
            (Self::YOUNG, None) => f.write_str("the Hash-PBN table's young entries"),
            (Self::HASH_FILTER, None) => f.write_str("the Hash-PBN table's filter"),
            (Self::PBN_PBA, None) => f.write_str("the PBN-PBA table"),
            (Self::FREE_PBNS, None) => f.write_str("the queue of free PBNs"),
            (Self::CONTAINERS, None) => f.write_str("the container table"),
            (Self::COPIES, None) => f.write_str("the table of second copies"),
            (Self(number), None) => write!(f, "the unknown table {number}"),
        }
    }
}

/// A page's name: it stays when the page is written to another block.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageId {
    /// Array that it belongs to.
    pub tree: TreeId,
    /// Height above the leaves, which are 0.
    pub level: u8,
    /// Its place among the pages of its level.
    pub index: u64,
}

impl PageId {
    /// Whether a page that was written as this one may be `other`: the maps of versions of a volume
    /// share pages, each of which keeps the tree that it was first written for.
    #[must_use]
    pub fn stands_for(self, other: Self) -> bool {
        let place = |id: Self| (id.level, id.index);
        let same_tree = self.tree == other.tree || (self.tree.is_map() && other.tree.is_map());
        same_tree && place(self) == place(other)
    }
}

impl fmt::Display for PageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tree, level, index } = self;
        write!(f, "page {index} of level {level} of {tree}")
    }
}

/// Where a page is in zone tables, and which version of it is meant.
///
/// The tag is a part of the page's checksum: a block that holds another page, or an older version
/// of the same one because a write was lost, does not pass for the page that is pointed to.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BlockPtr(u64);

impl BlockPtr {
    /// No page: the subtree is empty. Block 0 is never used.
    pub const NONE: Self = Self(0);

    /// Largest number of a block, plus 1.
    pub const BLOCKS_MAX: u64 = 1 << (64 - Self::TAG_BITS);

    const TAG_BITS: u32 = 24;

    /// The page in `block`, not 0 and less than [`Self::BLOCKS_MAX`], sealed with checksum `crc`.
    #[must_use]
    pub const fn new(block: u64, crc: u32) -> Self {
        assert!(block != 0 && block < Self::BLOCKS_MAX, "no page is in this block");
        Self(block << Self::TAG_BITS | Self::tag_of(crc) as u64)
    }

    /// The tag of a page with checksum `crc`.
    #[must_use]
    pub const fn tag_of(crc: u32) -> u32 {
        crc & ((1 << Self::TAG_BITS) - 1)
    }

    /// Number of the block in zone tables.
    #[must_use]
    pub const fn block(self) -> u64 {
        self.0 >> Self::TAG_BITS
    }

    /// Low 24 bits of the page's checksum.
    #[must_use]
    pub const fn tag(self) -> u32 {
        Self::tag_of(self.0 as u32)
    }

    /// Whether there is no page.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.block() == 0
    }

    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

impl fmt::Debug for BlockPtr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockPtr(block {}, tag {:06x})", self.block(), self.tag())
    }
}

/// An array of pages as a checkpoint knows it.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct TreeRoot {
    /// The topmost page; none when all leaves are absent.
    pub pointer: BlockPtr,
    /// Number of inner levels above the leaves; at least 1 when there is a page.
    pub depth: u8,
}

impl TreeRoot {
    /// So many levels reach more leaves than 64 bits can number.
    pub const DEPTH_MAX: u8 = 8;

    /// Whether a tree can be like this.
    pub(crate) const fn is_sound(self) -> bool {
        self.depth <= Self::DEPTH_MAX && (self.pointer.is_none() || self.depth >= 1)
    }
}
