//! Directories that did not outlive a crash are written again.
//!
//! A record that seals a container after the last known sync may have outlived the container's
//! directory, and what stands in its place may be the directory of a life that was cut: same
//! container, same sequence, other chunks. Or it is right, and in a cache only. So it is written
//! from what the container's frames and the tables say together.

use disk::AlignedBuf;
use format::BLOCK_BYTES;
use format::container_page::{ContainerEntry, ContainerState};
use format::directory::{DirectoryEntry, encode_tail};
use format::frame;
use format::superblock::Geometry;
use format::units::{CONTAINER_BYTES, ContainerId, Pba};
use mutants::mutant;
use tables::{pbn_pba, second_copies};

use crate::open::frame_walk::entries_by_scan;
use crate::open::loading::Loading;
use crate::open::open_error::OpenError;

impl Loading {
    /// Writes the directories of these containers again.
    pub(crate) fn mend_directories(
        &mut self,
        geometry: &Geometry,
        sealed: &[ContainerId],
    ) -> Result<(), OpenError> {
        for &id in sealed {
            let ContainerEntry { sequence, used_bytes, state, .. } = self.state.containers.get(id);
            if state != ContainerState::Sealed || mutant!(SkipsMending) {
                continue;
            }
            let Some((zone, start_bytes)) = geometry.container_zone(id) else { continue };
            let length_bytes = used_bytes.clamp(1, CONTAINER_BYTES);
            let length_bytes = length_bytes.next_multiple_of(BLOCK_BYTES as u32);
            let image = self.devices.read_now(zone, start_bytes, length_bytes as usize)?;
            let used = image.get(..used_bytes as usize).unwrap_or(&image);
            let scanned = entries_by_scan(id, used, geometry);
            let (entries, _) = self.placed_here(id, used, scanned.entries)?;
            let tail = encode_tail(&entries, id, sequence, geometry.uuid);
            let mut buf = AlignedBuf::new_zeroed(tail.len().next_multiple_of(BLOCK_BYTES));
            let padding_bytes = buf.len() - tail.len();
            buf[padding_bytes..].copy_from_slice(&tail);
            let offset_bytes = start_bytes + u64::from(CONTAINER_BYTES) - buf.len() as u64;
            self.devices.write_now(zone, offset_bytes, buf.into())?;
        }
        Ok(())
    }

    /// The entries whose chunks, or their second copies, the tables place where the entry says, if
    /// theirs is the frame in the container's `image`, and how many bytes of them live.
    pub(crate) fn placed_here(
        &mut self,
        container: ContainerId,
        image: &[u8],
        scanned: Vec<DirectoryEntry>,
    ) -> Result<(Vec<DirectoryEntry>, u64), OpenError> {
        let mut entries = Vec::with_capacity(scanned.len());
        let mut live_bytes = 0;
        for together in scanned.chunks(self.batches.frames()) {
            let wanted = self.wait_for(|state, wanted| {
                let mut pbns = together.iter().map(|entry| entry.pbn);
                pbns.try_fold(true, |here, pbn| Ok(here & state.want_move(pbn, wanted)?))
            })?;
            live_bytes += self.live_bytes_here(container, image, together, &mut entries);
            self.state.store.release_pins(wanted.pins);
        }
        Ok((entries, live_bytes))
    }

    /// Of these entries, whose pages are here, adds those to `to` that the tables place where the
    /// entry says, and says how many bytes of them live.
    fn live_bytes_here(
        &self,
        container: ContainerId,
        image: &[u8],
        scanned: &[DirectoryEntry],
        to: &mut Vec<DirectoryEntry>,
    ) -> u64 {
        let mut live_bytes = 0;
        for entry in scanned {
            let here = entry.place(container);
            let stored = pbn_pba::get(&self.state.store, entry.pbn);
            let copy = second_copies::get(&self.state.store, entry.pbn);
            let frame = image.get(entry.offset_bytes as usize..).unwrap_or_default();
            let is_here =
                |pba: Pba| pba.is_place_of(here) && pba.check.allows(frame::check_of(frame));
            let lives = match stored.filter(|stored| is_here(stored.pba)) {
                Some(stored) => stored.references > 0,
                None if copy.is_some_and(is_here) => true,
                None => continue,
            };
            live_bytes += if lives { u64::from(entry.length_bytes) } else { 0 };
            to.push(*entry);
        }
        live_bytes
    }
}
