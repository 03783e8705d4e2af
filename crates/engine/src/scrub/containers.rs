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

use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::scrub::ScrubPosition;
use crate::scrub::stages::{ContainerPhase, ContainerScrub, Listed};
use crate::scrub::state::{Progress, Running, ScrubRead};

/// One read; what fails in it is read again block by block.
const READ_BYTES: u32 = 512 << 10;

impl ContainerScrub {
    pub(crate) fn scrub_container(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        match self.phase {
            ContainerPhase::Choosing => self.choose_container(core),
            ContainerPhase::Settling { mark } if !core.devices.written_before(mark) => {
                Progress::Waits
            }
            ContainerPhase::Settling { .. } => self.read_container(core, running),
            ContainerPhase::Reading => self.take_container(core, running),
            ContainerPhase::Tracing => self.trace_container(core, running),
            ContainerPhase::Verifying => self.verify_container(core, running),
            ContainerPhase::Judging => self.judge_container(core, running),
            ContainerPhase::Healing => self.heal_container(core, running),
            ContainerPhase::Mending => self.mend_container(core, running),
            ContainerPhase::Writing { .. } | ContainerPhase::Syncing if running.io.writes() => {
                Progress::Waits
            }
            ContainerPhase::Writing { zone } => {
                running.io.sync(&mut core.devices, zone);
                self.phase = ContainerPhase::Syncing;
                Progress::Moved
            }
            ContainerPhase::Syncing => {
                let healed = !running.io.take_write_failed();
                self.end_container(core, running, Some(healed))
            }
        }
    }

    /// The next container that is not free. It is pinned: if it is freed, it is not written again.
    fn choose_container(&mut self, core: &mut Core) -> Progress {
        let containers = core.state.containers.len() as u32;
        let in_use =
            |id: &u32| core.state.containers.get(ContainerId(*id)).state != ContainerState::Free;
        let Some(id) = (self.from..containers).find(in_use) else {
            return Progress::Done(Some(ScrubPosition::Losses { volume: 0, leaf: 0 }));
        };
        self.id = ContainerId(id);
        self.life = core.state.containers.get(self.id);
        core.placement.space.pin(self.id);
        core.live_watch = Some((self.id, false));
        self.length_bytes = CONTAINER_BYTES;
        if self.life.state == ContainerState::Open {
            self.list_open(core);
        }
        self.phase = ContainerPhase::Settling { mark: core.devices.mark() };
        Progress::Moved
    }

    /// What the open container holds, as far as it has been handed to the device.
    fn list_open(&mut self, core: &Core) {
        let Some((handed_bytes, entries)) = core.placement.open_container(self.id) else {
            // It was left as it is when the store was opened, for a frame in it was damaged.
            self.length_bytes = self.life.used_bytes.next_multiple_of(BLOCK_BYTES as u32);
            self.directory_is_sound = false;
            return;
        };
        self.length_bytes = handed_bytes;
        let there =
            |entry: &&DirectoryEntry| entry.offset_bytes + entry.length_bytes <= handed_bytes;
        self.frames = entries.iter().filter(there).map(Listed::from).collect();
    }

    fn read_container(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        if self.length_bytes == 0 {
            return self.end_container(core, running, None);
        }
        let Some((zone, start_bytes)) = core.geometry.container_zone(self.id) else {
            core.violated(Invariant::ContainersKeepNumbers);
            return self.end_container(core, running, None);
        };
        self.filling = vec![0; self.length_bytes as usize];
        for first in (0..self.length_bytes).step_by(READ_BYTES as usize) {
            let length_bytes = READ_BYTES.min(self.length_bytes - first) as usize;
            let offset_bytes = start_bytes + u64::from(first);
            let mark = first as usize;
            running.io.read(ScrubRead { zone, offset_bytes, length_bytes, mark });
        }
        self.phase = ContainerPhase::Reading;
        Progress::Moved
    }

    fn take_container(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        let mut moved = false;
        while let Some((read, buf)) = running.io.take_arrived() {
            self.take_stretch(running, &read, buf);
            moved = true;
        }
        if !running.io.is_over() {
            return if moved { Progress::Moved } else { Progress::Waits };
        }
        running.step.containers += 1;
        self.image = Arc::new(std::mem::take(&mut self.filling));
        if self.is_sealed() {
            let ContainerEntry { sequence, .. } = self.life;
            match directory_of(self.id, sequence, core.geometry.uuid, &self.image) {
                Ok(entries) => self.frames = entries.iter().map(Listed::from).collect(),
                Err(_) => self.directory_is_sound = false,
            }
        }
        self.phase = if self.directory_is_sound {
            ContainerPhase::Verifying
        } else {
            ContainerPhase::Tracing
        };
        Progress::Moved
    }

    /// Takes one stretch; one that could not be read is asked for block by block, and a block that
    /// cannot be read stays zeros, which are no frame and no directory, and is remembered.
    fn take_stretch(&mut self, running: &mut Running, read: &ScrubRead, buf: Option<AlignedBuf>) {
        running.step.bytes_read += read.length_bytes as u64;
        if let Some(buf) = buf {
            let range = read.mark..read.mark + read.length_bytes;
            self.filling[range].copy_from_slice(&buf[..read.length_bytes]);
        } else if read.length_bytes <= BLOCK_BYTES {
            self.unread.insert(read.mark as u32);
        } else {
            for skip in (0..read.length_bytes).step_by(BLOCK_BYTES) {
                let offset_bytes = read.offset_bytes + skip as u64;
                let (length_bytes, mark) = (BLOCK_BYTES, read.mark + skip);
                running.io.read(ScrubRead { zone: read.zone, offset_bytes, length_bytes, mark });
            }
        }
    }
}
