//! What records carry is taken over by the devices, and put into its containers.

use disk::{AlignedBuf, IoError, SharedBuf};
use format::record::Change;
use format::superblock::Geometry;
use format::units::{BLOCK_BYTES, ContainerId, FrameCheck, Pba, Zone};

use crate::devices::Devices;
use crate::placement::carried::Carried;

/// Where frames belong that a record carries.
pub(crate) fn place_of_carried(container: ContainerId, offset_bytes: u32, bytes: &[u8]) -> Pba {
    let (length_bytes, check) = (bytes.len() as u32, FrameCheck::UNKNOWN);
    Pba { container, offset_bytes, length_bytes, check }
}

impl Devices {
    /// Takes the frames that a record carries; from now on they are read.
    pub(crate) fn carry(&mut self, geometry: &Geometry, changes: &[Change]) {
        for change in changes {
            let Change::Carry { container, offset_bytes, bytes } = change else { continue };
            // A record that passes its checks and says otherwise was written by an enemy.
            if !geometry.has_place(place_of_carried(*container, *offset_bytes, bytes)) {
                continue;
            }
            if let Some((zone, start_bytes)) = geometry.container_zone(*container) {
                self.carried.add(zone, start_bytes + u64::from(*offset_bytes), bytes);
            }
        }
    }

    /// Writes what was carried to where it belongs, also if it can be read there already: that may
    /// be from a cache. Nothing is synced. A block that cannot be read is written where that is all
    /// that is stored in it: `frames_end` says where in its zone the frames of the container end in
    /// which a byte lies. What is behind is nobody's.
    ///
    /// # Errors
    /// [`IoError`] of the disk; what is carried is carried still.
    pub(crate) fn place_carried(
        &mut self,
        frames_end: impl Fn(Zone, u64) -> u64,
    ) -> Result<(), IoError> {
        for (zone, offset_bytes, length_bytes) in self.carried.stretches() {
            if self.place_stretch(zone, offset_bytes, length_bytes).is_ok() {
                continue;
            }
            for at in (offset_bytes..).step_by(BLOCK_BYTES).take(length_bytes / BLOCK_BYTES) {
                let Err(error) = self.place_stretch(zone, at, BLOCK_BYTES) else { continue };
                let stored_end = frames_end(zone, at).min(at + BLOCK_BYTES as u64);
                if !self.carried.has(zone, at..stored_end) {
                    return Err(error);
                }
                self.write_carried(zone, at, AlignedBuf::new_zeroed(BLOCK_BYTES))?;
            }
        }
        self.carried = Carried::default();
        Ok(())
    }

    fn place_stretch(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        length_bytes: usize,
    ) -> Result<(), IoError> {
        let there = self.read_below(zone, offset_bytes, length_bytes)?;
        self.write_carried(zone, offset_bytes, there)
    }

    /// Writes what is carried, and around it what is `there`.
    fn write_carried(
        &mut self,
        zone: Zone,
        offset_bytes: u64,
        mut there: AlignedBuf,
    ) -> Result<(), IoError> {
        self.carried.lay_over(zone, offset_bytes, &mut there);
        self.write_now(zone, offset_bytes, SharedBuf::from(there))
    }
}

#[cfg(test)]
mod tests {
    use disk::MemoryDisk;
    use format::record::Change;
    use format::units::{CONTAINER_BYTES, Compression, ContainerId};

    use super::Devices;
    use crate::create::plan;
    use crate::options::CreateOptions;

    #[test]
    fn what_would_reach_beyond_its_container_is_not_taken() {
        let geometry = plan(&CreateOptions {
            capacity_bytes: vec![64 << 20],
            chunk_bytes: 4096,
            compression: Compression::default(),
            detection: Default::default(),
            tables_bytes: None,
            journal_bytes: None,
            uuid: [3; 16],
            bucket_seed: [5; 16],
        })
        .unwrap();
        let zones: Vec<_> = geometry.zones().collect();
        let mut devices = Devices::new(Box::new(MemoryDisk::new(&zones, 1)));
        let mut carry = |container, offset_bytes| {
            let (container, bytes) = (ContainerId(container), vec![1; 4]);
            devices.carry(&geometry, &[Change::Carry { container, offset_bytes, bytes }]);
            devices.carried.stretches().len()
        };
        assert_eq!(carry(0, CONTAINER_BYTES - 3), 0);
        assert_eq!(carry(geometry.containers_total() as u32, 0), 0);
        assert_eq!(carry(0, CONTAINER_BYTES - 4), 1);
    }
}
