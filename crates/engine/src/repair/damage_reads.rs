//! Reads that go on where the medium does not: for checks and repairs, which want to know all, and
//! for openings where what cannot be read may be nobody's.

use std::collections::BTreeMap;

use disk::{AlignedBuf, IoError, ZoneName};
use format::BLOCK_BYTES;
use format::superblock::Geometry;
use format::units::{CONTAINER_BYTES, ContainerId, Zone};

use crate::check::problem::Problem;
use crate::devices::Devices;

/// A disk of which blocks that cannot be read are zeros, and are remembered.
pub(crate) struct DamageReads {
    pub(crate) devices: Devices,
    /// Places at which the device failed. What lies behind the end of a short file is not here.
    pub(crate) failed: Vec<IoError>,
    /// Where zone journal ended before it was made longer, if it was.
    journal_cut_at: Option<u64>,
}

/// Blocks that were read together.
pub(crate) struct BlocksAhead {
    /// By their first blocks.
    runs: BTreeMap<u64, AlignedBuf>,
}

impl BlocksAhead {
    /// A block; none where it did not come.
    pub(crate) fn get(&self, block: u64) -> Option<&[u8]> {
        let (first, bytes) = self.runs.range(..=block).next_back()?;
        bytes.chunks_exact(BLOCK_BYTES).nth((block - first) as usize)
    }
}

impl DamageReads {
    pub(crate) fn new(devices: Devices) -> Self {
        Self { devices, failed: Vec::new(), journal_cut_at: None }
    }

    /// Zone journal was cut short at this byte and has been made longer since: what stands behind
    /// it was not written by the store.
    pub(crate) fn cut_journal_at(&mut self, at_bytes: Option<u64>) {
        self.journal_cut_at = at_bytes;
    }

    /// How much of zone journal is as the store left it.
    pub(crate) fn journal_bytes(&self) -> u64 {
        let size_bytes = self.devices.size_bytes(Zone::Journal);
        self.journal_cut_at.map_or(size_bytes, |at_bytes| at_bytes.min(size_bytes))
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

    /// Reads blocks of a zone together, neighbours as one. What does not come is no failure yet:
    /// what needs it asks for it with [`Self::block`].
    pub(crate) fn blocks_ahead(&mut self, zone: Zone, mut blocks: Vec<u64>) -> BlocksAhead {
        blocks.sort_unstable();
        let runs: Vec<&[u64]> = blocks.chunk_by(|block, next| block + 1 == *next).collect();
        let place = |run: &&[u64]| (run[0] * BLOCK_BYTES as u64, run.len() * BLOCK_BYTES);
        let read = self.devices.read_all_now(zone, runs.iter().map(place));
        let came = runs.iter().zip(read).filter_map(|(run, bytes)| Some((run[0], bytes.ok()?)));
        BlocksAhead { runs: came.collect() }
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
