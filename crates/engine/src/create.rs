//! Making a store: how large each file is, and the first root.

use disk::{AlignedBuf, Disk, IoError, SharedBuf};
use format::BLOCK_BYTES;
use format::byte_count::ByteCount;
use format::detection::FingerprintKind;
use format::root::{HashShape, JournalPosition, Root, STREAMS, Totals};
use format::superblock::{DATA_ZONES_MAX, GEOMETRY_BLOCKS, Geometry, root_block};
use format::units::{CONTAINER_BYTES, Compression, Zone};
use thiserror::Error;

use crate::devices::Devices;
use crate::marks::write_mark;
use crate::options::CreateOptions;

/// Smallest capacity in all: room for the reserve and for writing beside it.
const CAPACITY_BYTES_MIN: u64 = 64 << 20;
const TABLES_BYTES_MIN: u64 = 64 << 20;
const JOURNAL_BYTES_MIN: u64 = 16 << 20;
const JOURNAL_BYTES_DEFAULT_MAX: u64 = 256 << 20;

/// Why a store of these sizes cannot be.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// Too small to work in.
    #[error("{} is too small for a store: give it at least 64M", ByteCount(*.capacity_bytes))]
    TooSmall {
        /// What was asked for, in all.
        capacity_bytes: u64,
    },
    /// More containers than a container number can name.
    #[error("{} is more than one store can hold (16 PiB)", ByteCount(*.capacity_bytes))]
    TooLarge {
        /// What was asked for, in all.
        capacity_bytes: u64,
    },
    /// No such chunk size.
    #[error(
        "a chunk cannot have {:#}: choose 4K, 8K, 16K, 32K or 64K",
        ByteCount((*.chunk_bytes).into())
    )]
    ChunkSize {
        /// What was asked for.
        chunk_bytes: u32,
    },
    /// Two chunks may share such a fingerprint.
    #[error(
        "{kind} alone does not name a chunk, because two chunks may share it: compare bytes as \
         well, or choose blake3"
    )]
    Weak {
        /// What was asked for.
        kind: FingerprintKind,
    },
    /// Too many data files.
    #[error("{zones} data files are too many: use 1 to 64")]
    TooManyZones {
        /// What was asked for.
        zones: usize,
    },
    /// A data file of a share of the capacity that no container fits into.
    #[error("{} is too little for a data file: give each at least 4M", ByteCount(*.zone_bytes))]
    ZoneTooSmall {
        /// What was asked for.
        zone_bytes: u64,
    },
    /// More containers than the tables have room to list.
    #[error(
        "tables of {} are too small for a store of {}: give the tables more room",
        ByteCount(*.tables_bytes), ByteCount(*.capacity_bytes)
    )]
    TablesTooSmall {
        /// What the tables would have.
        tables_bytes: u64,
        /// What was asked for, in all.
        capacity_bytes: u64,
    },
    /// What a store should grow to is not more than it has.
    #[error(
        "the store has room for {} of data already: {} would not be more; a container takes 4M",
        ByteCount(*.present_bytes), ByteCount(*.capacity_bytes)
    )]
    NotLarger {
        /// What was asked for, in all.
        capacity_bytes: u64,
        /// What there is, in all.
        present_bytes: u64,
    },
    /// Only the last data zone can become longer, and it was taken out.
    #[error(
        "the last data file was removed, and only the last can become longer: add one with --data"
    )]
    LastZoneGone,
    /// The journal or the tables are too small to work with.
    #[error("the journal needs at least 16M and the tables at least 64M")]
    MetadataTooSmall,
}

/// Why a store could not be made.
#[derive(Debug, Error)]
#[error("the new store could not be written: {0}")]
pub struct CreateError(#[from] IoError);

/// The sizes of everything in a store of `options`.
///
/// # Errors
/// [`PlanError`] says which size cannot be.
pub fn plan(options: &CreateOptions) -> Result<Geometry, PlanError> {
    let capacity_bytes: u64 = options.capacity_bytes.iter().sum();
    let chunk_bytes = options.chunk_bytes;
    if !(chunk_bytes.is_power_of_two() && (4096..=65536).contains(&chunk_bytes)) {
        return Err(PlanError::ChunkSize { chunk_bytes });
    }
    let detection = options.detection;
    if !detection.is_safe() {
        return Err(PlanError::Weak { kind: detection.kind });
    }
    if capacity_bytes < CAPACITY_BYTES_MIN {
        return Err(PlanError::TooSmall { capacity_bytes });
    }
    let data: Result<Vec<u32>, _> =
        options.capacity_bytes.iter().map(|&bytes| containers_in(bytes)).collect();
    let data = data?;
    check_data(&data)?;
    if let Some((&zone_bytes, _)) =
        options.capacity_bytes.iter().zip(&data).find(|(_, containers)| **containers == 0)
    {
        return Err(PlanError::ZoneTooSmall { zone_bytes });
    }
    let journal_default = (capacity_bytes / 32).clamp(JOURNAL_BYTES_MIN, JOURNAL_BYTES_DEFAULT_MAX);
    let journal_bytes = whole_blocks(options.journal_bytes.unwrap_or(journal_default));
    let tables_bytes = options.tables_bytes.map_or(tables_bytes_for(capacity_bytes), whole_blocks);
    if journal_bytes < JOURNAL_BYTES_MIN || tables_bytes < TABLES_BYTES_MIN {
        return Err(PlanError::MetadataTooSmall);
    }
    can_be(Geometry {
        version: detection.format_version(),
        uuid: options.uuid,
        bucket_seed: options.bucket_seed,
        chunk_bytes,
        container_bytes: CONTAINER_BYTES,
        journal_bytes,
        tables_bytes,
        data,
        detection,
        marked: true,
        features: Default::default(),
    })
}

/// A planned store, if an opening takes it.
pub(crate) fn can_be(geometry: Geometry) -> Result<Geometry, PlanError> {
    let (tables_bytes, total) = (geometry.tables_bytes, geometry.containers_total());
    let capacity_bytes = total * u64::from(CONTAINER_BYTES);
    match geometry.check() {
        Ok(()) => Ok(geometry),
        Err(_) => Err(PlanError::TablesTooSmall { tables_bytes, capacity_bytes }),
    }
}

/// Containers in a data zone of this length.
pub(crate) fn containers_in(zone_bytes: u64) -> Result<u32, PlanError> {
    let containers = u32::try_from(zone_bytes / u64::from(CONTAINER_BYTES));
    containers.map_err(|_| PlanError::TooLarge { capacity_bytes: zone_bytes })
}

/// Whether a store can have data zones of so many containers; their bytes in all.
pub(crate) fn check_data(data: &[u32]) -> Result<u64, PlanError> {
    if data.len() > DATA_ZONES_MAX {
        return Err(PlanError::TooManyZones { zones: data.len() });
    }
    let total: u64 = data.iter().map(|&count| u64::from(count)).sum();
    let capacity_bytes = total * u64::from(CONTAINER_BYTES);
    if total >= u64::from(u32::MAX) {
        return Err(PlanError::TooLarge { capacity_bytes });
    }
    Ok(capacity_bytes)
}

/// Room for pages that a checkpoint writes anew at most: beyond it memory is the bound.
const TABLES_ANEW_BYTES_MAX: u64 = 640 << 20;

/// What the tables of a store of this capacity should have: a sixteenth for their pages, and a
/// little more for those that two checkpoints write anew while roots still name the old ones.
pub(crate) fn tables_bytes_for(capacity_bytes: u64) -> u64 {
    let pages_bytes = capacity_bytes / 16;
    let anew_bytes = (pages_bytes / 4 * 5).min(TABLES_ANEW_BYTES_MAX);
    whole_blocks((pages_bytes + anew_bytes).max(TABLES_BYTES_MIN))
}

fn whole_blocks(bytes: u64) -> u64 {
    bytes / BLOCK_BYTES as u64 * BLOCK_BYTES as u64
}

/// Writes marks, geometry and the first root to the empty files of a new store.
///
/// # Errors
/// [`CreateError`] when the device fails.
pub fn create(
    disk: Box<dyn Disk>,
    geometry: &Geometry,
    compression: Compression,
) -> Result<(), CreateError> {
    let mut devices = Devices::new(disk);
    // Before there is a store that says that they are there.
    let zones = geometry.zones().map(|(zone, _)| zone).filter(|_| geometry.marked);
    let mut marked = zones.filter(|zone| *zone != Zone::Superblock);
    marked.try_for_each(|zone| write_mark(&mut devices, geometry, zone))?;
    for block in GEOMETRY_BLOCKS {
        write_block(&mut devices, block, &geometry.encode())?;
    }
    let root = first_root(compression);
    write_block(&mut devices, root_block(root.generation), &root.encode(geometry.uuid))?;
    devices.sync_now(Zone::Superblock)?;
    Ok(())
}

fn write_block(devices: &mut Devices, block: u64, bytes: &[u8]) -> Result<(), IoError> {
    let buf = AlignedBuf::padded(bytes);
    let offset_bytes = block * BLOCK_BYTES as u64;
    devices.write_now(Zone::Superblock, offset_bytes, SharedBuf::from(buf))
}

fn first_root(compression: Compression) -> Root {
    Root {
        generation: 1,
        clean: true,
        journal: JournalPosition { sequence: 1, offset_bytes: 0, previous_crc: 0 },
        next_incarnation: 1,
        compression,
        trees: Default::default(),
        hash: HashShape::default(),
        next_pbn: 1,
        free_head: 0,
        free_tail: 0,
        next_volume: 1,
        domains: 0,
        catalog_slots: 0,
        open_containers: [None; STREAMS],
        next_container_sequence: 1,
        totals: Totals::default(),
        label: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{PlanError, plan};
    use crate::options::CreateOptions;
    use format::units::Compression;

    #[test]
    fn what_no_opening_takes_is_not_planned() {
        let mut options = CreateOptions {
            capacity_bytes: vec![64 << 20, 1 << 20],
            chunk_bytes: 4096,
            compression: Compression::default(),
            detection: Default::default(),
            tables_bytes: Some(64 << 20),
            journal_bytes: None,
            uuid: [1; 16],
            bucket_seed: [2; 16],
        };
        assert_eq!(plan(&options), Err(PlanError::ZoneTooSmall { zone_bytes: 1 << 20 }));
        options.capacity_bytes = vec![17 << 40];
        assert!(matches!(plan(&options), Err(PlanError::TablesTooSmall { .. })));
    }
}
