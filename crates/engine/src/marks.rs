//! The marks of zones on disk.

use disk::{AlignedBuf, IoError, ZoneName};
use format::BLOCK_BYTES;
use format::mark::Mark;
use format::superblock::Geometry;
use format::units::Zone;

use crate::devices::Devices;
use crate::holds::Holds;

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

/// What the first block of a zone says of whose it is.
pub(crate) enum Marked {
    Ours,
    Other(Holds),
    /// There is no mark.
    No,
    /// The device does not give it.
    Unread,
}

/// Whose a zone is by its mark.
pub(crate) fn marked(devices: &mut Devices, geometry: &Geometry, zone: Zone) -> Marked {
    let Ok(block) = devices.read_below(zone, 0, BLOCK_BYTES) else { return Marked::Unread };
    match Mark::decode(&block) {
        Err(_) => Marked::No,
        Ok(mark) if mark.uuid != geometry.uuid => Marked::Other(Holds::OtherStore),
        Ok(mark) if mark.zone == zone => Marked::Ours,
        Ok(mark) => Marked::Other(Holds::OtherZone(ZoneName(mark.zone).to_string())),
    }
}
