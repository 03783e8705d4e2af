//! The geometry on disk: two blocks of zone superblock that say the same.

use disk::{AlignedBuf, IoError, SharedBuf};
use format::BLOCK_BYTES;
use format::label::Label;
use format::mark::Mark;
use format::root::Root;
use format::superblock::{self, GEOMETRY_BLOCKS, Geometry};
use format::units::{Zone, block_offset_bytes};

use reduce::Fingerprinters;

use crate::devices::Devices;
use crate::open::open_error::OpenError;

/// What makes the fingerprints of a store, in whatever domain.
pub(crate) fn fingerprinters(geometry: &Geometry) -> Fingerprinters {
    Fingerprinters::new(&geometry.detection)
}

/// The block at `offset_bytes` of the superblock. Where it cannot be had, an older one is believed
/// and written over it: a device that fails once is asked again.
pub(crate) fn read_superblock(
    devices: &mut Devices,
    offset_bytes: u64,
) -> Result<AlignedBuf, IoError> {
    let mut read = || devices.read_now(Zone::Superblock, offset_bytes, BLOCK_BYTES);
    read().or_else(|_| read())
}

/// The geometry in the first block that holds one, if none is of a version that is not known here.
pub(crate) fn read_geometry(devices: &mut Devices) -> Result<Geometry, OpenError> {
    let mut failure = None;
    let mut blank = true;
    let blocks = GEOMETRY_BLOCKS.map(|block| read_superblock(devices, block * BLOCK_BYTES as u64));
    refuse_newer(blocks.iter().flatten().map(|block| &**block))?;
    for block in blocks {
        blank &= block.as_ref().is_ok_and(|block| block.iter().all(|&byte| byte == 0));
        match block.map(|block| Geometry::decode(&block)) {
            Ok(Ok(geometry)) => return Ok(geometry),
            Ok(Err(_)) if blank => failure = Some(OpenError::Unfinished),
            Ok(Err(error)) => failure = Some(OpenError::Geometry(error)),
            Err(error) => failure = failure.or(Some(OpenError::Io(error))),
        }
    }
    Err(failure.unwrap_or(OpenError::Memory { memory_bytes: 0 }))
}

/// What a blank superblock means: nothing was stored yet, or it is lost. The first record of a
/// journal is written over its mark.
pub(crate) fn of_blank(error: OpenError, devices: &mut Devices) -> OpenError {
    if !matches!(error, OpenError::Unfinished) {
        return error;
    }
    let first = devices.read_now(Zone::Journal, 0, BLOCK_BYTES);
    let is_written = |block: &[u8]| block.iter().any(|&byte| byte != 0);
    match first {
        Ok(block) if Mark::decode(&block).is_err() && is_written(&block) => {
            OpenError::SuperblockLost
        }
        _ => error,
    }
}

/// The label of a root that names a block for it: where in zone tables it is written, and its
/// bytes.
pub(crate) fn label_of(geometry: &Geometry, root: &Root) -> (u64, SharedBuf) {
    assert_ne!(root.label, 0, "the root has a block for its label");
    let label = Label { geometry: geometry.clone(), root: root.clone() };
    (block_offset_bytes(root.label), AlignedBuf::padded(&label.encode()).into())
}

/// Refuses to write to a store that has a feature which a writer must know, and this program does
/// not.
pub(crate) fn refuse_to_write(geometry: &Geometry) -> Result<(), OpenError> {
    geometry.features.check_writable().map_err(OpenError::Newer)
}

/// Refuses a store of which any block of the geometry, whole, says that it is a newer program's:
/// that may have written what is not known here, whatever the other block says.
pub(crate) fn refuse_newer<'a>(
    mut blocks: impl Iterator<Item = &'a [u8]>,
) -> Result<(), OpenError> {
    match blocks.find_map(superblock::made_by_newer) {
        Some(error) => Err(OpenError::Newer(error)),
        None => Ok(()),
    }
}

/// Whether all zones are as long as the geometry says; they may be longer.
pub(crate) fn check_zones(devices: &Devices, geometry: &Geometry) -> Result<(), OpenError> {
    for (zone, expected_bytes) in geometry.zones() {
        let found_bytes = devices.size_bytes(zone);
        if found_bytes < expected_bytes {
            return Err(OpenError::ZoneTooShort { zone, expected_bytes, found_bytes });
        }
    }
    Ok(())
}

/// Makes all blocks of the geometry say the same, where one says something else that is sound: the
/// store was growing when the power went. One that the device does not give may say so, too, and be
/// read next time. The one that is believed is written again before the others: it may be in a
/// cache only, its sync having failed. Damaged ones are a scrub's business.
pub(crate) fn agree_on_geometry(devices: &mut Devices, geometry: &Geometry) -> Result<(), IoError> {
    let mut read = |block| match read_superblock(devices, block * BLOCK_BYTES as u64) {
        Ok(bytes) => Geometry::decode(&bytes).ok().map(|other| other == *geometry),
        Err(_) => Some(false),
    };
    let agree = GEOMETRY_BLOCKS.map(|block| (block, read(block)));
    if agree.iter().all(|(_, agrees)| *agrees != Some(false)) {
        return Ok(());
    }
    for agrees in [true, false] {
        for (block, _) in agree.iter().filter(|(_, is_so)| *is_so == Some(agrees)) {
            write_geometry(devices, *block, geometry)?;
        }
    }
    Ok(())
}

/// Makes a store that an earlier program made one of the version that its like has today, in all
/// blocks of its geometry, each durable before the next. To be done before anything is written that
/// such a program would misread: from the first block on it refuses the store.
pub(crate) fn raise_version(devices: &mut Devices, geometry: &mut Geometry) -> Result<(), IoError> {
    let version = geometry.least_version();
    if geometry.version >= version {
        return Ok(());
    }
    geometry.version = version;
    GEOMETRY_BLOCKS.iter().try_for_each(|&block| write_geometry(devices, block, geometry))
}

/// Writes one of the geometry's blocks, durably.
pub(crate) fn write_geometry(
    devices: &mut Devices,
    block: u64,
    geometry: &Geometry,
) -> Result<(), IoError> {
    let buf = AlignedBuf::padded(&geometry.encode());
    devices.write_now(Zone::Superblock, block * BLOCK_BYTES as u64, buf.into())?;
    devices.sync_now(Zone::Superblock)
}
