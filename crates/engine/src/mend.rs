//! Directories that did not outlive a crash are written again.
//!
//! A record that seals a container after the last known sync may have outlived the container's
//! directory. The frames are all there, or the record would have been cut; the directory is made
//! from them.

use containers::directory_of;
use disk::AlignedBuf;
use format::BLOCK_BYTES;
use format::container_page::ContainerEntry;
use format::directory::encode_tail;
use format::units::CONTAINER_BYTES;

use crate::open::Opened;
use crate::open_error::OpenError;
use crate::recovery::entries_by_scan;

impl Opened {
    /// Writes the directories again that did not outlive the crash.
    pub(crate) fn mend_directories(&mut self) -> Result<(), OpenError> {
        for id in std::mem::take(&mut self.recovered.sealed) {
            let Some((zone, start_bytes)) = self.geometry.container_zone(id) else { continue };
            let length_bytes = CONTAINER_BYTES as usize;
            let image = self.devices.read_now(zone, start_bytes, length_bytes)?;
            let ContainerEntry { sequence, used_bytes, .. } = self.state.containers.get(id);
            if directory_of(id, sequence, self.geometry.uuid, &image).is_ok() {
                continue;
            }
            let used = image.get(..used_bytes as usize).unwrap_or(&image);
            let entries = entries_by_scan(id, used, self.geometry.chunk_bytes);
            let tail = encode_tail(&entries, id, sequence, self.geometry.uuid);
            let mut buf = AlignedBuf::new_zeroed(tail.len().next_multiple_of(BLOCK_BYTES));
            let padding_bytes = buf.len() - tail.len();
            buf[padding_bytes..].copy_from_slice(&tail);
            let offset_bytes = start_bytes + u64::from(CONTAINER_BYTES) - buf.len() as u64;
            self.devices.write_now(zone, offset_bytes, buf.into())?;
        }
        Ok(())
    }
}
