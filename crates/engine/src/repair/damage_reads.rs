//! Reads that go on where the medium does not: for checks and repairs, which want to know all, and
//! for openings where what cannot be read may be nobody's.

use disk::{AlignedBuf, IoError, ZoneName};
use format::BLOCK_BYTES;
use format::superblock::Geometry;
use format::units::{CONTAINER_BYTES, ContainerId, Zone};

use crate::devices::Devices;
use crate::problem::Problem;

/// A disk of which blocks that cannot be read are zeros, and are remembered.
pub(crate) struct DamageReads {
    pub(crate) devices: Devices,
    /// Places at which the device failed. What lies behind the end of a short file is not here.
    pub(crate) failed: Vec<IoError>,
}

impl DamageReads {
    pub(crate) fn new(devices: Devices) -> Self {
        Self { devices, failed: Vec::new() }
    }

    /// Bytes of a zone; blocks that cannot be had are zeros.
    pub(crate) fn read(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        length_bytes: usize,
    ) -> AlignedBuf {
        let (bytes, failed) = read_blocks(&mut self.devices, zone, offset_bytes, length_bytes);
        self.failed.extend(failed);
        bytes
    }

    /// A block of a zone.
    pub(crate) fn block(&mut self, zone: Zone, block: u64) -> AlignedBuf {
        self.read(zone, block * BLOCK_BYTES as u64, BLOCK_BYTES)
    }

    /// A whole container; zeros if the store has no such container.
    pub(crate) fn container(&mut self, geometry: &Geometry, id: ContainerId) -> AlignedBuf {
        let (image, failed) = read_with_holes(&mut self.devices, geometry, id);
        self.failed.extend(failed);
        image
    }

    /// The places at which the device failed, as problems.
    pub(crate) fn problems(&self) -> impl Iterator<Item = Problem> {
        self.failed.iter().map(|error| match error {
            IoError::Failed { zone, offset_bytes, .. } | IoError::Lost { zone, offset_bytes } => {
                let (zone, offset_bytes) = (ZoneName(*zone).to_string(), *offset_bytes);
                Problem::Unreadable { zone, offset_bytes }
            }
            other => Problem::Unreadable { zone: other.to_string(), offset_bytes: 0 },
        })
    }
}

/// A whole container, zeros where it cannot be read, and the failures; zeros if the store has no
/// such container.
pub(crate) fn read_with_holes(
    devices: &mut Devices,
    geometry: &Geometry,
    id: ContainerId,
) -> (AlignedBuf, Vec<IoError>) {
    let length_bytes = CONTAINER_BYTES as usize;
    match geometry.container_zone(id) {
        Some((zone, start)) => read_blocks(devices, zone, start, length_bytes),
        None => (AlignedBuf::new_zeroed(length_bytes), Vec::new()),
    }
}

/// Bytes of a zone, zeros where they cannot be read, and the failures. What lies behind the end of
/// the zone is no failure.
pub(crate) fn read_blocks(
    devices: &mut Devices,
    zone: Zone,
    offset_bytes: u64,
    length_bytes: usize,
) -> (AlignedBuf, Vec<IoError>) {
    let mut failed = Vec::new();
    if let Ok(bytes) = devices.read_now(zone, offset_bytes, length_bytes) {
        return (bytes, failed);
    }
    let mut bytes = AlignedBuf::new_zeroed(length_bytes);
    for start in (0..length_bytes).step_by(BLOCK_BYTES) {
        let end = length_bytes.min(start + BLOCK_BYTES);
        match devices.read_now(zone, offset_bytes + start as u64, end - start) {
            Ok(read) => bytes[start..end].copy_from_slice(&read),
            Err(
                IoError::OutOfRange { .. } | IoError::EndOfFile { .. } | IoError::NoSuchZone { .. },
            ) => {}
            Err(error) => failed.push(error),
        }
    }
    // What is carried does not need the device.
    devices.carried.lay_over(zone, offset_bytes, &mut bytes);
    (bytes, failed)
}
