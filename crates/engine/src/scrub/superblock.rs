//! Scrub of the superblock: both copies of the geometry, both root slots.
//!
//! The geometry is in memory, and so is the newest root: they are the second copies. A damaged copy
//! of the geometry is written again, one block and a sync at a time. So is the slot of the newest
//! root, for as long as it is damaged the older slot is the only root: the next checkpoint, which
//! would write over that, waits, and if it cannot be written the writing stops. The other slot is
//! what the next checkpoint writes, so one is asked for.

use disk::AlignedBuf;
use format::BLOCK_BYTES;
use format::root::Root;
use format::superblock::{GEOMETRY_BLOCKS, Geometry, ROOT_BLOCKS, root_block};
use format::units::Zone;

use crate::check::problem::Problem;
use crate::core::Core;
use crate::door::error::RequestError;
use crate::scrub::ScrubPosition;
use crate::scrub::stages::{SuperblockPhase, SuperblockScrub};
use crate::scrub::state::{Progress, Running, ScrubRead};
use crate::zone_name;

const BLOCKS: [u64; 4] = [GEOMETRY_BLOCKS[0], GEOMETRY_BLOCKS[1], ROOT_BLOCKS[0], ROOT_BLOCKS[1]];

impl SuperblockScrub {
    pub(crate) fn scrub_superblock(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        match self.phase {
            SuperblockPhase::Waiting if root_is_coming(core) => Progress::Waits,
            SuperblockPhase::Waiting => {
                self.generation = core.superblock.newest.generation;
                self.blocks.clear();
                for (mark, block) in BLOCKS.into_iter().enumerate() {
                    let offset_bytes = block * BLOCK_BYTES as u64;
                    let (zone, length_bytes) = (Zone::Superblock, BLOCK_BYTES);
                    running.io.read(ScrubRead { zone, offset_bytes, length_bytes, mark });
                }
                self.phase = SuperblockPhase::Reading;
                Progress::Moved
            }
            SuperblockPhase::Reading => self.take_superblock(core, running),
            SuperblockPhase::Mending => self.mend_superblock(core, running),
            SuperblockPhase::Writing(_) | SuperblockPhase::Syncing(_) if running.io.writes() => {
                Progress::Waits
            }
            SuperblockPhase::Writing(block) => {
                running.io.sync(&mut core.devices, Zone::Superblock);
                self.phase = SuperblockPhase::Syncing(block);
                Progress::Moved
            }
            SuperblockPhase::Syncing(block) => {
                if !running.io.take_write_failed() {
                    self.mended.push(block);
                } else if self.is_newest_of_two(block) {
                    stop_for_lost_slot(core);
                }
                self.phase = SuperblockPhase::Mending;
                Progress::Moved
            }
            SuperblockPhase::Checkpoint => self.await_checkpoint(core, running),
        }
    }

    fn take_superblock(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        while let Some((read, buf)) = running.io.take_arrived() {
            self.blocks.push((read.mark, buf));
        }
        if !running.io.is_over() {
            return Progress::Waits;
        }
        let moved_on = core.superblock.newest.generation != self.generation;
        self.phase = SuperblockPhase::Waiting;
        if moved_on || root_is_coming(core) {
            return Progress::Moved;
        }
        running.step.bytes_read += (BLOCKS.len() * BLOCK_BYTES) as u64;
        for (mark, bytes) in std::mem::take(&mut self.blocks) {
            self.judge_block(core, BLOCKS[mark], bytes.as_deref());
        }
        core.superblock.is_mended = core.stopped.is_none() && !self.to_mend.is_empty();
        self.phase = SuperblockPhase::Mending;
        Progress::Moved
    }

    fn judge_block(&mut self, core: &Core, block: u64, bytes: Option<&[u8]>) {
        if GEOMETRY_BLOCKS.contains(&block) {
            let read = bytes.and_then(|bytes| Geometry::decode(bytes).ok());
            if read.as_ref() != Some(&core.geometry) {
                self.damaged.push(block);
                self.to_mend.push_back((block, AlignedBuf::padded(&core.geometry.encode())));
            }
            return;
        }
        let newest = &core.superblock.newest;
        let is_newest = block == root_block(self.generation);
        // The writing stopped in the middle of this slot's root: it may hold anything.
        if !is_newest && core.superblock.is_writing_root {
            return;
        }
        let expected = if is_newest { self.generation } else { self.generation - 1 };
        let read = bytes.and_then(|bytes| Root::decode_in(bytes, &core.geometry).ok());
        // The first root of a store has none before it.
        if expected == 0 || read.is_some_and(|root| root.generation == expected) {
            return;
        }
        self.damaged.push(block);
        if is_newest {
            let bytes = newest.encode(core.geometry.uuid);
            self.to_mend.push_back((block, AlignedBuf::padded(&bytes)));
        }
    }

    fn mend_superblock(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        if core.stopped.is_none()
            && let Some((block, buf)) = self.to_mend.pop_front()
        {
            let offset_bytes = block * BLOCK_BYTES as u64;
            running.io.write(&mut core.devices, Zone::Superblock, offset_bytes, buf);
            self.phase = SuperblockPhase::Writing(block);
            return Progress::Moved;
        }
        core.superblock.is_mended = false;
        let older = root_block(self.generation + 1);
        if self.damaged.contains(&older) && core.stopped.is_none() {
            core.table_room.ask();
            self.phase = SuperblockPhase::Checkpoint;
            return Progress::Moved;
        }
        self.end(running)
    }

    fn await_checkpoint(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        if core.superblock.newest.generation > self.generation {
            self.mended.push(root_block(self.generation + 1));
        } else if core.stopped.is_none() {
            return Progress::Waits;
        }
        self.end(running)
    }

    /// Whether `block` is the slot of the newest root, and the other slot has a sound one. The
    /// first root of a store has none before it.
    fn is_newest_of_two(&self, block: u64) -> bool {
        let older = root_block(self.generation + 1);
        block == root_block(self.generation)
            && self.generation > 1
            && !self.damaged.contains(&older)
    }

    fn end(&self, running: &mut Running) -> Progress {
        for &block in &self.damaged {
            let problem = if GEOMETRY_BLOCKS.contains(&block) {
                Problem::GeometryCopy { block }
            } else {
                Problem::RootSlot { block }
            };
            running.found(problem, self.mended.contains(&block));
        }
        Progress::Done(Some(ScrubPosition::Tables { tree: 0, level: None, index: 0 }))
    }
}

/// Whether a root is being written that will be there: none is once the writing has stopped.
fn root_is_coming(core: &Core) -> bool {
    core.stopped.is_none() && core.superblock.is_writing_root
}

/// The next root would be written over the only one that is left.
fn stop_for_lost_slot(core: &mut Core) {
    let zone = zone_name(Zone::Superblock);
    let reason = "the newest root is damaged and cannot be written again".to_owned();
    core.stop_writing(RequestError::WriteFailed { zone, reason });
}
