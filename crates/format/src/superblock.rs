//! The geometry: what a store is made of, written when it is created and when it grows.
//!
//! Zone superblock is 16 blocks. Blocks 0 and 3 hold the same geometry: one may be damaged.
//! Blocks 1 and 2 are the slots of the roots ([`crate::root`]), generation `g` in block
//! `1 + g % 2`: writing a root never touches the one before. The other blocks are zeros.
//!
//! The version is looked at before anything else, its checksum included, so that a program too old
//! for a store says so, whatever newer versions do with the rest.

use std::ops::Range;

use crate::checksum::crc32c;
use crate::detection::Detection;
use crate::error::{FormatError, Structure};
use crate::features::{self, Features};
use crate::field::{array_at, put_bytes, put_u32, put_u64, u32_at, u64_at};
use crate::record::RECORD_BYTES_MAX;
use crate::units::{
    BLOCK_BYTES, BlockPtr, CONTAINER_BYTES, ContainerId, Pba, Pbn, UUID_BYTES, Zone,
};
use crate::{
    FORMAT_VERSION, FORMAT_VERSION_COMMON, FORMAT_VERSION_DETECTION, container_page, pba_page,
};

/// Length of zone superblock.
pub const SUPERBLOCK_BYTES: u64 = 16 * BLOCK_BYTES as u64;

/// Blocks of zone superblock that hold the geometry.
pub const GEOMETRY_BLOCKS: [u64; 2] = [0, 3];

/// Blocks of zone superblock that hold roots.
pub const ROOT_BLOCKS: [u64; 2] = [1, 2];

/// The block of zone superblock where the root of this generation goes.
#[must_use]
pub const fn root_block(generation: u64) -> u64 {
    ROOT_BLOCKS[(generation % 2) as usize]
}

/// Chunks are at least a block and at most this long.
pub const CHUNK_BYTES_MAX: u32 = 64 << 10;

/// A store has at most so many data zones.
pub const DATA_ZONES_MAX: usize = 64;

/// A journal takes at least the largest record and one that leads to it.
pub const JOURNAL_BYTES_MIN: u64 = 2 * RECORD_BYTES_MAX as u64;

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"TAMIS-SB");

/// Programs that know of no marks do not look at it, and write none where they write a geometry.
const FLAG_MARKED: u8 = 1;

pub(crate) const MAGIC_AT: usize = 0;
pub(crate) const CRC_AT: usize = 8;
pub(crate) const VERSION_AT: usize = 12;
pub(crate) const UUID_AT: usize = 16;
pub(crate) const BUCKET_SEED_AT: usize = 32;
pub(crate) const CHUNK_BYTES_AT: usize = 48;
pub(crate) const CONTAINER_BYTES_AT: usize = 52;
pub(crate) const JOURNAL_BYTES_AT: usize = 56;
pub(crate) const TABLES_BYTES_AT: usize = 64;
pub(crate) const DATA_COUNT_AT: usize = 72;
pub(crate) const DETECTION_KIND_AT: usize = 76;
pub(crate) const DETECTION_FLAGS_AT: usize = 77;
pub(crate) const DETECTION_FILTER_AT: usize = 78;
pub(crate) const FLAGS_AT: usize = 79;
pub(crate) const DATA_AT: usize = 80;
pub(crate) const DATA_ENTRY_BYTES: usize = 4;
pub(crate) const SECRET_AT: usize = 336;
pub(crate) const REST_AT: usize = features::END_AT;

const _: () = assert!(DATA_COUNT_AT + 4 == DETECTION_KIND_AT && FLAGS_AT + 1 == DATA_AT);
const _: () = assert!(DATA_AT + DATA_ZONES_MAX * DATA_ENTRY_BYTES == SECRET_AT);
const _: () = assert!(SECRET_AT + 32 == features::COMPATIBLE_AT);
const _: () = assert!(REST_AT <= 512, "an update of the geometry fits one sector");

/// What a store is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Format version of the store.
    pub version: u32,
    /// The store's name for machines; records and containers repeat a part of it.
    pub uuid: [u8; UUID_BYTES],
    /// Key of the hash that chooses buckets: nobody can aim chunks at one bucket.
    pub bucket_seed: [u8; 16],
    /// Length of a volume's chunks: a power of two from 4 to 64 KiB.
    pub chunk_bytes: u32,
    /// Length of a container; in this version always [`CONTAINER_BYTES`].
    pub container_bytes: u32,
    /// Length of zone journal: whole blocks.
    pub journal_bytes: u64,
    /// Length of zone tables: whole blocks.
    pub tables_bytes: u64,
    /// Containers in each data zone.
    pub data: Vec<u32>,
    /// How duplicates are found.
    pub detection: Detection,
    /// Whether every zone was marked before anything else was written to it ([`crate::mark`]).
    pub marked: bool,
    /// What it has beyond version 3.
    pub features: Features,
}

impl Geometry {
    /// The block to be written to each of [`GEOMETRY_BLOCKS`].
    ///
    /// # Panics
    /// When there are more than [`DATA_ZONES_MAX`] data zones; see [`Geometry::check`].
    #[must_use]
    pub fn encode(&self) -> [u8; BLOCK_BYTES] {
        assert!(self.data.len() <= DATA_ZONES_MAX, "a geometry is checked before it is written");
        let mut block = [0; BLOCK_BYTES];
        put_u64(&mut block, MAGIC_AT, MAGIC);
        put_u32(&mut block, VERSION_AT, self.version);
        put_bytes(&mut block, UUID_AT, &self.uuid);
        put_bytes(&mut block, BUCKET_SEED_AT, &self.bucket_seed);
        put_u32(&mut block, CHUNK_BYTES_AT, self.chunk_bytes);
        put_u32(&mut block, CONTAINER_BYTES_AT, self.container_bytes);
        put_u64(&mut block, JOURNAL_BYTES_AT, self.journal_bytes);
        put_u64(&mut block, TABLES_BYTES_AT, self.tables_bytes);
        put_u32(&mut block, DATA_COUNT_AT, self.data.len() as u32);
        let [kind, flags, filter] = self.detection.to_bytes();
        block[DETECTION_KIND_AT] = kind;
        block[DETECTION_FLAGS_AT] = flags;
        block[DETECTION_FILTER_AT] = filter;
        block[FLAGS_AT] = if self.marked { FLAG_MARKED } else { 0 };
        self.features.encode(&mut block);
        if let Some(secret) = &self.detection.secret {
            put_bytes(&mut block, SECRET_AT, &secret.0);
        }
        for (zone, &containers) in self.data.iter().enumerate() {
            put_u32(&mut block, DATA_AT + zone * DATA_ENTRY_BYTES, containers);
        }
        let crc = crc32c(&block[VERSION_AT..]);
        put_u32(&mut block, CRC_AT, crc);
        block
    }

    /// The geometry in a block.
    ///
    /// # Errors
    /// [`FormatError`] when it holds none, a newer one, or a damaged one.
    pub fn decode(block: &[u8]) -> Result<Self, FormatError> {
        let structure = Structure::Superblock;
        FormatError::at_least(structure, BLOCK_BYTES, block)?;
        let block = &block[..BLOCK_BYTES];
        check_start(structure, MAGIC, block)?;
        check_features(block)?;
        let count = u32_at(block, DATA_COUNT_AT);
        if count as usize > DATA_ZONES_MAX {
            return Err(FormatError::field(structure, "count of data zones", u64::from(count)));
        }
        let containers_in = |zone| u32_at(block, DATA_AT + zone * DATA_ENTRY_BYTES);
        let geometry = Self {
            version: u32_at(block, VERSION_AT),
            uuid: array_at(block, UUID_AT),
            bucket_seed: array_at(block, BUCKET_SEED_AT),
            chunk_bytes: u32_at(block, CHUNK_BYTES_AT),
            container_bytes: u32_at(block, CONTAINER_BYTES_AT),
            journal_bytes: u64_at(block, JOURNAL_BYTES_AT),
            tables_bytes: u64_at(block, TABLES_BYTES_AT),
            data: (0..count as usize).map(containers_in).collect(),
            detection: Detection::from_bytes(
                [block[DETECTION_KIND_AT], block[DETECTION_FLAGS_AT], block[DETECTION_FILTER_AT]],
                array_at(block, SECRET_AT),
            )?,
            marked: block[FLAGS_AT] & FLAG_MARKED != 0,
            features: match has_features(block) {
                true => Features::decode(block)?,
                false => Features::default(),
            },
        };
        geometry.check()?;
        Ok(geometry)
    }

    /// Whether a store of this version can be like this.
    ///
    /// # Errors
    /// [`FormatError::Field`] with the first field that cannot.
    pub fn check(&self) -> Result<(), FormatError> {
        let block = BLOCK_BYTES as u64;
        let chunk_bytes = self.chunk_bytes;
        let is_chunk = chunk_bytes.is_power_of_two()
            && (BLOCK_BYTES as u32..=CHUNK_BYTES_MAX).contains(&chunk_bytes);
        let is_journal =
            self.journal_bytes.is_multiple_of(block) && self.journal_bytes >= JOURNAL_BYTES_MIN;
        let is_tables = self.tables_bytes.is_multiple_of(block)
            && self.tables_bytes != 0
            && self.tables_bytes / block <= BlockPtr::BLOCKS_MAX;
        let zones = self.data.len();
        let total = self.containers_total();
        let is_version = (1..=FORMAT_VERSION).contains(&self.version)
            && (self.version >= self.least_version()
                || self.least_version() == FORMAT_VERSION_COMMON);
        let kind = self.detection.kind as u8;
        let container_bytes = self.container_bytes;
        for (sound, field, found) in [
            (is_version, "version", u64::from(self.version)),
            (self.detection.is_safe(), "fingerprint without comparison", u64::from(kind)),
            (is_chunk, "chunk length", u64::from(chunk_bytes)),
            (container_bytes == CONTAINER_BYTES, "container length", u64::from(container_bytes)),
            (is_journal, "journal length", self.journal_bytes),
            (is_tables, "tables length", self.tables_bytes),
            ((1..=DATA_ZONES_MAX).contains(&zones), "count of data zones", zones as u64),
            (self.data.iter().all(|&containers| containers != 0), "empty data zone", 0),
            (self.has_data(), "data zones that are gone", self.features.zones_gone),
            (total <= self.containers_max(), "count of containers", total),
        ] {
            if !sound {
                return Err(FormatError::field(Structure::Superblock, field, found));
            }
        }
        self.features.check()
    }

    /// The version of a store that has what this one has: the lowest, so that older programs go on
    /// reading all that they know.
    #[must_use]
    pub fn least_version(&self) -> u32 {
        if self.features.any() { FORMAT_VERSION } else { self.detection.format_version() }
    }

    /// Blocks of zone tables, the first of them, which is never used, among them.
    #[must_use]
    pub const fn tables_blocks(&self) -> u64 {
        self.tables_bytes / BLOCK_BYTES as u64
    }

    /// As many containers as have numbers, and a place in the tables each.
    fn containers_max(&self) -> u64 {
        let listed = self.tables_blocks() * container_page::SLOTS as u64;
        listed.min(u64::from(u32::MAX))
    }

    /// Whether a chunk can have this name: the tables have room to say where it is. A loop that
    /// counts up to a name that was read must not count for ever, nor take memory for all below it.
    #[must_use]
    pub fn has_pbn(&self, pbn: Pbn) -> bool {
        pbn.0 / (pba_page::SLOTS as u64) < self.tables_blocks()
    }

    /// Whether a data zone is left, and none is gone that never was.
    fn has_data(&self) -> bool {
        let beyond =
            u32::try_from(self.data.len()).ok().and_then(|zones| u64::MAX.checked_shl(zones));
        let gone = self.features.zones_gone;
        gone & beyond.unwrap_or(0) == 0 && (gone.count_ones() as usize) < self.data.len()
    }

    /// Whether this data zone is there: not one that was taken out.
    #[must_use]
    pub fn has_data_zone(&self, number: u16) -> bool {
        usize::from(number) < self.data.len() && !self.features.is_zone_gone(number)
    }

    /// The numbers of the containers of a data zone, also of one that is gone; none where there
    /// never was a zone.
    #[must_use]
    pub fn containers_of(&self, number: u16) -> Range<u32> {
        let Some(&containers) = self.data.get(usize::from(number)) else { return 0..0 };
        let first: u32 = self.data.iter().take(usize::from(number)).sum();
        first..first + containers
    }

    /// Whether the container is in a data zone that is there.
    #[must_use]
    pub fn has_container(&self, id: ContainerId) -> bool {
        matches!(self.container_zone(id), Some((Zone::Data(zone), _)) if self.has_data_zone(zone))
    }

    /// Containers in the data zones that are there.
    #[must_use]
    pub fn containers_present(&self) -> u64 {
        let there = (0..).zip(&self.data).filter(|(number, _)| self.has_data_zone(*number));
        there.map(|(_, &containers)| u64::from(containers)).sum()
    }

    /// Containers in all data zones, those that are gone included; their ids are the numbers below
    /// it.
    #[must_use]
    pub fn containers_total(&self) -> u64 {
        self.data.iter().map(|&containers| u64::from(containers)).sum()
    }

    /// Room for frames: what all data zones have that are there.
    #[must_use]
    pub fn capacity_bytes(&self) -> u64 {
        self.containers_present() * u64::from(self.container_bytes)
    }

    /// Every zone of the store and its length, superblock first, data zones last; none of those
    /// that are gone. A file or device may be longer.
    pub fn zones(&self) -> impl Iterator<Item = (Zone, u64)> {
        let fixed = [
            (Zone::Superblock, SUPERBLOCK_BYTES),
            (Zone::Journal, self.journal_bytes),
            (Zone::Tables, self.tables_bytes),
        ];
        let container_bytes = u64::from(self.container_bytes);
        let there = (0..).zip(&self.data).filter(|(number, _)| self.has_data_zone(*number));
        let data = there.map(move |(number, &containers)| {
            (Zone::Data(number), u64::from(containers) * container_bytes)
        });
        fixed.into_iter().chain(data)
    }

    /// Length of a zone; 0 when the store does not have it.
    #[must_use]
    pub fn zone_bytes(&self, zone: Zone) -> u64 {
        self.zones().find(|(present, _)| *present == zone).map_or(0, |(_, bytes)| bytes)
    }

    /// Where a container is: its zone, which may be gone, and its first byte there. None when no
    /// container has this number.
    #[must_use]
    pub fn container_zone(&self, id: ContainerId) -> Option<(Zone, u64)> {
        let mut place = id.0;
        for (zone, &containers) in (0..).zip(&self.data) {
            match place.checked_sub(containers) {
                None => {
                    let offset_bytes = u64::from(place) * u64::from(self.container_bytes);
                    return Some((Zone::Data(zone), offset_bytes));
                }
                Some(beyond) => place = beyond,
            }
        }
        None
    }

    /// The container in which a byte of a zone lies.
    #[must_use]
    pub fn container_at(&self, zone: Zone, offset_bytes: u64) -> Option<ContainerId> {
        let Zone::Data(number) = zone else { return None };
        let (before, from) = self.data.split_at_checked(usize::from(number))?;
        let place = u32::try_from(offset_bytes / u64::from(self.container_bytes)).ok()?;
        let containers = *from.first()?;
        let first = before.iter().try_fold(0_u32, |sum, &more| sum.checked_add(more))?;
        first.checked_add(place).filter(|_| place < containers).map(ContainerId)
    }

    /// Whether a frame can be at `pba`. A page that passes its checks and says otherwise was
    /// written by a bug or an enemy: a reader must not follow it.
    #[must_use]
    pub fn has_place(&self, pba: Pba) -> bool {
        let end_bytes = u64::from(pba.offset_bytes) + u64::from(pba.length_bytes);
        self.has_container(pba.container) && end_bytes <= u64::from(self.container_bytes)
    }
}

/// That a newer program has made a geometry, or given it what this one does not know, said by a
/// block of it that is whole. Another block may say nothing of it yet, or have been lost: a store
/// is the newer program's as soon as one does.
#[must_use]
pub fn made_by_newer(block: &[u8]) -> Option<FormatError> {
    let block = block.get(..BLOCK_BYTES)?;
    let start = check_start(Structure::Superblock, MAGIC, block);
    let error = start.and_then(|()| check_features(block)).err()?;
    let is_whole = u32_at(block, CRC_AT) == crc32c(&block[VERSION_AT..]);
    Some(error).filter(|error| is_whole && error.asks_for_a_newer_program())
}

fn has_features(block: &[u8]) -> bool {
    u32_at(block, VERSION_AT) > FORMAT_VERSION_DETECTION
}

/// Whether this program knows enough of a geometry, whose start is sound, to read the rest of it.
fn check_features(block: &[u8]) -> Result<(), FormatError> {
    if has_features(block) { features::check_known(block) } else { Ok(()) }
}

/// What both structures of zone superblock begin with: magic, version, and a checksum over the
/// rest of the block from the version on.
pub(crate) fn check_start(
    structure: Structure,
    magic: u64,
    block: &[u8],
) -> Result<(), FormatError> {
    let found = u64_at(block, MAGIC_AT);
    if found != magic {
        return Err(FormatError::Magic { structure, expected: magic, found });
    }
    let found = u32_at(block, VERSION_AT);
    if found > FORMAT_VERSION {
        return Err(FormatError::NewerVersion { structure, supported: FORMAT_VERSION, found });
    }
    let crc = crc32c(&block[VERSION_AT..]);
    FormatError::checksum(structure, u32_at(block, CRC_AT), crc)
}
