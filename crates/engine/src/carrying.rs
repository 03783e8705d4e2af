//! What records carry is taken over by the devices, and put into its containers.

use disk::{AlignedBuf, IoError, SharedBuf};
use format::record::Change;
use format::superblock::Geometry;

use crate::carried::Carried;
use crate::devices::Devices;

impl Devices {
    /// Takes the frames that a record carries; from now on they are read.
    pub(crate) fn carry(&mut self, geometry: &Geometry, changes: &[Change]) {
        for change in changes {
            let Change::Carry { container, offset_bytes, bytes } = change else { continue };
            if let Some((zone, start_bytes)) = geometry.container_zone(*container) {
                self.carried.add(zone, start_bytes + u64::from(*offset_bytes), bytes);
            }
        }
    }

    /// Writes what was carried to where it belongs and is not yet. Nothing is synced.
    ///
    /// # Errors
    /// [`IoError`] of the disk; what is carried is carried still.
    pub(crate) fn place_carried(&mut self) -> Result<(), IoError> {
        for (zone, offset_bytes, length_bytes) in self.carried.stretches() {
            let there = self.read_below(zone, offset_bytes, length_bytes)?;
            let mut meant = AlignedBuf::new_stale(length_bytes);
            meant.copy_from_slice(&there);
            self.carried.lay_over(zone, offset_bytes, &mut meant);
            if meant[..] != there[..] {
                self.write_now(zone, offset_bytes, SharedBuf::from(meant))?;
            }
        }
        self.carried = Carried::default();
        Ok(())
    }
}
