//! The marks of zones on disk.

use disk::{AlignedBuf, IoError};
use format::BLOCK_BYTES;
use format::mark::Mark;
use format::superblock::Geometry;
use format::units::Zone;

use crate::devices::Devices;

/// Marks a zone of which nothing is in use as this store's, durably.
pub(crate) fn write_mark(
    devices: &mut Devices,
    geometry: &Geometry,
    zone: Zone,
) -> Result<(), IoError> {
    let mark = Mark { uuid: geometry.uuid, zone };
    devices.write_now(zone, 0, AlignedBuf::padded(&mark.encode()).into())?;
    devices.sync_now(zone)
}

/// The mark of a zone, if its first block is one.
pub(crate) fn read_mark(devices: &mut Devices, zone: Zone) -> Result<Option<Mark>, IoError> {
    Ok(Mark::decode(&devices.read_now(zone, 0, BLOCK_BYTES)?).ok())
}
