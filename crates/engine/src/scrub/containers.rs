//! Scrub of one container: its frames and its directory.
//!
//! ```text
//! Settling (what was submitted lands) -> Reading -> Verifying (workers) -> Judging (tables)
//!      -> Healing, chunk by chunk -> Mending its directory -> the next container
//!                 Tracing: from Reading, if there is no sound directory;
//!                          from Judging, if more lives here than it lists
//! ```
//!
//! The directory says what is in a sealed container, and the open one knows. Where neither can be
//! had, the PBN-PBA table is gone through for what it places here: slow, and as rare as a damaged
//! directory. From the sound frames among those the directory is written again, in its place.
//!
//! What lives in it is counted while it is judged and compared with what the tables count, unless
//! that changed meanwhile: so no chunk is passed over because a directory does not list it.
//!
//! Where a page of the tables cannot be had, it is not known what they place here. Then less than
//! they count is no reason to doubt a directory, no directory is written, and the container is
//! named: a repair makes the page again from the very directories and frames.
//!
//! Nor is a directory written where a block with frames could not be read: it would leave out what
//! lies there, which may be whole. The block is named, and the next scrub tries again.

use std::sync::Arc;

use containers::directory_of;
use disk::AlignedBuf;
use format::BLOCK_BYTES;
use format::container_page::{ContainerEntry, ContainerState};
use format::directory::DirectoryEntry;
use format::units::{CONTAINER_BYTES, ContainerId};

use crate::check::problem::Problem;
use crate::engine::Engine;
use crate::scrub::ScrubPosition;
use crate::scrub::stages::{ContainerPhase, ContainerScrub, Listed};
use crate::scrub::state::{Progress, Running, ScrubRead};
use crate::zone_name;

/// One read; what fails in it is read again block by block.
const READ_BYTES: u32 = 512 << 10;

impl Engine {
    pub(crate) fn scrub_container(
        &mut self,
        running: &mut Running,
        at: &mut ContainerScrub,
    ) -> Progress {
        match at.phase {
            ContainerPhase::Choosing => self.choose_container(at),
            ContainerPhase::Settling { mark } if !self.core.devices.written_before(mark) => {
                Progress::Waits
            }
            ContainerPhase::Settling { .. } => self.read_container(running, at),
            ContainerPhase::Reading => self.take_container(running, at),
            ContainerPhase::Tracing => self.trace_container(at),
            ContainerPhase::Verifying => self.verify_container(running, at),
            ContainerPhase::Judging => self.judge_container(running, at),
            ContainerPhase::Healing => self.heal_container(running, at),
            ContainerPhase::Mending => self.mend_container(running, at),
            ContainerPhase::Writing | ContainerPhase::Syncing if running.io.writes() => {
                Progress::Waits
            }
            ContainerPhase::Writing => {
                if let Some((zone, _)) = self.core.geometry.container_zone(at.id) {
                    self.scrub_sync(&mut running.io, zone);
                }
                at.phase = ContainerPhase::Syncing;
                Progress::Moved
            }
            ContainerPhase::Syncing => {
                let healed = !running.io.take_write_failed();
                self.end_container(running, at, Some(healed))
            }
        }
    }

    /// The next container that is not free. It is pinned: if it is freed, it is not written again.
    fn choose_container(&mut self, at: &mut ContainerScrub) -> Progress {
        let containers = self.core.state.containers.len() as u32;
        let in_use = |id: &u32| {
            self.core.state.containers.get(ContainerId(*id)).state != ContainerState::Free
        };
        let Some(id) = (at.from..containers).find(in_use) else {
            return Progress::Done(Some(ScrubPosition::Losses { volume: 0, leaf: 0 }));
        };
        at.id = ContainerId(id);
        at.life = self.core.state.containers.get(at.id);
        self.core.placement.space.pin(at.id);
        self.core.live_watch = Some((at.id, false));
        at.length_bytes = CONTAINER_BYTES;
        if at.life.state == ContainerState::Open {
            self.list_open(at);
        }
        at.phase = ContainerPhase::Settling { mark: self.core.devices.mark() };
        Progress::Moved
    }

    /// What the open container holds, as far as it has been handed to the device.
    fn list_open(&self, at: &mut ContainerScrub) {
        let Some((handed_bytes, entries)) = self.core.placement.open_container(at.id) else {
            // It was left as it is when the store was opened, for a frame in it was damaged.
            at.length_bytes = at.life.used_bytes.next_multiple_of(BLOCK_BYTES as u32);
            at.directory_is_sound = false;
            return;
        };
        at.length_bytes = handed_bytes;
        let there =
            |entry: &&DirectoryEntry| entry.offset_bytes + entry.length_bytes <= handed_bytes;
        at.frames = entries.iter().filter(there).map(Listed::from).collect();
    }

    fn read_container(&mut self, running: &mut Running, at: &mut ContainerScrub) -> Progress {
        if at.length_bytes == 0 {
            return self.end_container(running, at, None);
        }
        let Some((zone, start_bytes)) = self.core.geometry.container_zone(at.id) else {
            return self.end_container(running, at, None);
        };
        at.filling = vec![0; at.length_bytes as usize];
        for first in (0..at.length_bytes).step_by(READ_BYTES as usize) {
            let length_bytes = READ_BYTES.min(at.length_bytes - first) as usize;
            let offset_bytes = start_bytes + u64::from(first);
            let mark = first as usize;
            running.io.read(ScrubRead { zone, offset_bytes, length_bytes, mark });
        }
        at.phase = ContainerPhase::Reading;
        Progress::Moved
    }

    fn take_container(&mut self, running: &mut Running, at: &mut ContainerScrub) -> Progress {
        let mut moved = false;
        while let Some((read, buf)) = running.io.take_arrived() {
            take_stretch(running, at, &read, buf);
            moved = true;
        }
        if !running.io.is_over() {
            return if moved { Progress::Moved } else { Progress::Waits };
        }
        running.step.containers += 1;
        at.image = Arc::new(std::mem::take(&mut at.filling));
        if at.is_sealed() {
            let ContainerEntry { sequence, .. } = at.life;
            match directory_of(at.id, sequence, self.core.geometry.uuid, &at.image) {
                Ok(entries) => at.frames = entries.iter().map(Listed::from).collect(),
                Err(_) => at.directory_is_sound = false,
            }
        }
        at.phase =
            if at.directory_is_sound { ContainerPhase::Verifying } else { ContainerPhase::Tracing };
        Progress::Moved
    }

    /// The container has been gone through. `mended` says whether its directory could be written
    /// again, if that was tried.
    pub(crate) fn end_container(
        &mut self,
        running: &mut Running,
        at: &ContainerScrub,
        mended: Option<bool>,
    ) -> Progress {
        self.core.placement.space.unpin(at.id);
        self.core.live_watch = None;
        running.step.frames += at.frames_sound;
        let healed = mended == Some(true);
        if at.is_sealed() && !at.directory_is_sound && self.is_in_life(at) {
            running.found(Problem::Directory { container: at.id.0 }, healed);
        }
        if let Some(unread_at) = at.unread_frames_at().filter(|_| !at.directory_is_sound)
            && let Some((zone, start_bytes)) = self.core.geometry.container_zone(at.id)
        {
            let offset_bytes = start_bytes + u64::from(unread_at);
            running.found(Problem::Unreadable { zone: zone_name(zone), offset_bytes }, false);
        }
        if at.lacks_pages && self.is_in_life(at) {
            running.found(Problem::UnjudgedContainer { container: at.id.0 }, false);
        }
        let is_judged = (at.directory_is_sound || healed) && !at.lacks_pages;
        if is_judged && !self.core.damage.is_in(at.id) {
            self.core.placement.space.mark_sound(at.id);
        }
        Progress::Done(Some(ScrubPosition::Containers { container: at.id.0.saturating_add(1) }))
    }

    /// Whether the container is still what it was when it was chosen.
    pub(crate) fn is_in_life(&self, at: &ContainerScrub) -> bool {
        let now = self.core.state.containers.get(at.id);
        (now.state, now.sequence) == (at.life.state, at.life.sequence)
    }
}

/// Takes one stretch; one that could not be read is asked for block by block, and a block that
/// cannot be read stays zeros, which are no frame and no directory, and is remembered.
fn take_stretch(
    running: &mut Running,
    at: &mut ContainerScrub,
    read: &ScrubRead,
    buf: Option<AlignedBuf>,
) {
    running.step.bytes_read += read.length_bytes as u64;
    if let Some(buf) = buf {
        let target = at.filling.get_mut(read.mark..read.mark + read.length_bytes);
        if let (Some(target), Some(bytes)) = (target, buf.get(..read.length_bytes)) {
            target.copy_from_slice(bytes);
        }
    } else if read.length_bytes <= BLOCK_BYTES {
        at.unread.insert(read.mark as u32);
    } else {
        for skip in (0..read.length_bytes).step_by(BLOCK_BYTES) {
            let offset_bytes = read.offset_bytes + skip as u64;
            let (length_bytes, mark) = (BLOCK_BYTES, read.mark + skip);
            running.io.read(ScrubRead { zone: read.zone, offset_bytes, length_bytes, mark });
        }
    }
}
