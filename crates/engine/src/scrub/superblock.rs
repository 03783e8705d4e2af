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
use crate::door::error::RequestError;
use crate::engine::Engine;
use crate::scrub::ScrubPosition;
use crate::scrub::stages::{SuperblockPhase, SuperblockScrub};
use crate::scrub::state::{Progress, Running, ScrubRead};
use crate::zone_name;

const BLOCKS: [u64; 4] = [GEOMETRY_BLOCKS[0], GEOMETRY_BLOCKS[1], ROOT_BLOCKS[0], ROOT_BLOCKS[1]];

impl Engine {
    pub(crate) fn scrub_superblock(
        &mut self,
        running: &mut Running,
        at: &mut SuperblockScrub,
    ) -> Progress {
        match at.phase {
            SuperblockPhase::Waiting if self.root_is_coming() => Progress::Waits,
            SuperblockPhase::Waiting => {
                at.generation = self.core.superblock.newest.generation;
                at.blocks.clear();
                for (mark, block) in BLOCKS.into_iter().enumerate() {
                    let offset_bytes = block * BLOCK_BYTES as u64;
                    let (zone, length_bytes) = (Zone::Superblock, BLOCK_BYTES);
                    running.io.read(ScrubRead { zone, offset_bytes, length_bytes, mark });
                }
                at.phase = SuperblockPhase::Reading;
                Progress::Moved
            }
            SuperblockPhase::Reading => self.take_superblock(running, at),
            SuperblockPhase::Mending => self.mend_superblock(running, at),
            SuperblockPhase::Writing(_) | SuperblockPhase::Syncing(_) if running.io.writes() => {
                Progress::Waits
            }
            SuperblockPhase::Writing(block) => {
                self.scrub_sync(&mut running.io, Zone::Superblock);
                at.phase = SuperblockPhase::Syncing(block);
                Progress::Moved
            }
            SuperblockPhase::Syncing(block) => {
                if !running.io.take_write_failed() {
                    at.mended.push(block);
                } else if at.is_newest_of_two(block) {
                    self.stop_for_lost_slot();
                }
                at.phase = SuperblockPhase::Mending;
                Progress::Moved
            }
            SuperblockPhase::Checkpoint => self.await_checkpoint(running, at),
        }
    }

    /// Whether a root is being written that will be there: none is once the writing has stopped.
    fn root_is_coming(&self) -> bool {
        self.core.stopped.is_none() && self.core.superblock.is_writing_root
    }

    fn take_superblock(&mut self, running: &mut Running, at: &mut SuperblockScrub) -> Progress {
        while let Some((read, buf)) = running.io.take_arrived() {
            at.blocks.push((read.mark, buf));
        }
        if !running.io.is_over() {
            return Progress::Waits;
        }
        let moved_on = self.core.superblock.newest.generation != at.generation;
        at.phase = SuperblockPhase::Waiting;
        if moved_on || self.root_is_coming() {
            return Progress::Moved;
        }
        running.step.bytes_read += (BLOCKS.len() * BLOCK_BYTES) as u64;
        for (mark, bytes) in std::mem::take(&mut at.blocks) {
            self.judge_block(at, BLOCKS[mark], bytes.as_deref());
        }
        self.core.superblock.is_mended = self.core.stopped.is_none() && !at.to_mend.is_empty();
        at.phase = SuperblockPhase::Mending;
        Progress::Moved
    }

    fn judge_block(&self, at: &mut SuperblockScrub, block: u64, bytes: Option<&[u8]>) {
        if GEOMETRY_BLOCKS.contains(&block) {
            let read = bytes.and_then(|bytes| Geometry::decode(bytes).ok());
            if read.as_ref() != Some(&self.core.geometry) {
                at.damaged.push(block);
                at.to_mend.push_back((block, AlignedBuf::padded(&self.core.geometry.encode())));
            }
            return;
        }
        let newest = &self.core.superblock.newest;
        let is_newest = block == root_block(at.generation);
        // The writing stopped in the middle of this slot's root: it may hold anything.
        if !is_newest && self.core.superblock.is_writing_root {
            return;
        }
        let expected = if is_newest { at.generation } else { at.generation - 1 };
        let read = bytes.and_then(|bytes| Root::decode_in(bytes, &self.core.geometry).ok());
        // The first root of a store has none before it.
        if expected == 0 || read.is_some_and(|root| root.generation == expected) {
            return;
        }
        at.damaged.push(block);
        if is_newest {
            let bytes = newest.encode(self.core.geometry.uuid);
            at.to_mend.push_back((block, AlignedBuf::padded(&bytes)));
        }
    }

    fn mend_superblock(&mut self, running: &mut Running, at: &mut SuperblockScrub) -> Progress {
        if self.core.stopped.is_none()
            && let Some((block, buf)) = at.to_mend.pop_front()
        {
            let offset_bytes = block * BLOCK_BYTES as u64;
            self.scrub_write(&mut running.io, Zone::Superblock, offset_bytes, buf);
            at.phase = SuperblockPhase::Writing(block);
            return Progress::Moved;
        }
        self.core.superblock.is_mended = false;
        let older = root_block(at.generation + 1);
        if at.damaged.contains(&older) && self.core.stopped.is_none() {
            self.core.table_room.ask();
            at.phase = SuperblockPhase::Checkpoint;
            return Progress::Moved;
        }
        end(running, at)
    }

    /// The next root would be written over the only one that is left.
    fn stop_for_lost_slot(&mut self) {
        let zone = zone_name(Zone::Superblock);
        let reason = "the newest root is damaged and cannot be written again".to_owned();
        self.stop_writing(RequestError::WriteFailed { zone, reason });
    }

    fn await_checkpoint(&mut self, running: &mut Running, at: &mut SuperblockScrub) -> Progress {
        if self.core.superblock.newest.generation > at.generation {
            at.mended.push(root_block(at.generation + 1));
        } else if self.core.stopped.is_none() {
            return Progress::Waits;
        }
        end(running, at)
    }
}

impl SuperblockScrub {
    /// Whether `block` is the slot of the newest root, and the other slot has a sound one. The
    /// first root of a store has none before it.
    fn is_newest_of_two(&self, block: u64) -> bool {
        let older = root_block(self.generation + 1);
        block == root_block(self.generation)
            && self.generation > 1
            && !self.damaged.contains(&older)
    }
}

fn end(running: &mut Running, at: &SuperblockScrub) -> Progress {
    for &block in &at.damaged {
        let problem = if GEOMETRY_BLOCKS.contains(&block) {
            Problem::GeometryCopy { block }
        } else {
            Problem::RootSlot { block }
        };
        running.found(problem, at.mended.contains(&block));
    }
    Progress::Done(Some(ScrubPosition::Tables { tree: 0, level: None, index: 0 }))
}
