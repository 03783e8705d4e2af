//! A group on its way to the tables: filled, fingerprinted, looked up, compressed.
//!
//! Filling and looking up happen in group order; hashing and compression of several groups run
//! in parallel in between. A chunk that is looked up and not found is given its PBN at once
//! ([`crate::duplicates::planning`]). A chunk that is found is *held* until its group retains it
//! ([`crate::write::buffer::WriteBuffer::held`]): collection moves held chunks even when nothing
//! refers to them yet.

use format::units::{Fingerprint, FrameCheck};
use mutants::mutant;
use reduce::{ChunkRef, FrameEnd};
use tables::PageError;

use crate::core::invariant::Invariant;
use crate::door::error::RequestError;
use crate::duplicates::dedup::{awaits_mark_of_asides, note_planned};
use crate::engine::Engine;
use crate::pages::prefetch::prefetch_changes;
use crate::stats::stages::CoreStage;
use crate::volumes::codecs::ChunkCodecs;
use crate::write::buffer::{GROUPS_LOOKED_UP_MAX, Group, Stage};
use crate::write::job_tag::tag;
use crate::write::new_chunks::NewChunks;
use crate::write::partial::Base;
use crate::write::slot::{GROUP_SLOTS, Plan, Slot, SlotData};

/// Chunks of one worker job: small enough that a group spreads over the workers.
pub(crate) const JOB_CHUNKS: usize = 64;
const _: () = assert!(GROUP_SLOTS.is_multiple_of(JOB_CHUNKS));

impl Engine {
    /// Moves groups through their stages as far as they go.
    pub(crate) fn advance_groups(&mut self) -> bool {
        let mut moved = self.timed(CoreStage::Groups, Self::fill_slots);
        if self.core.stopped.is_some() {
            return moved;
        }
        moved |= self.timed(CoreStage::Groups, Self::send_filled);
        moved |= self.timed(CoreStage::LookUps, Self::look_up_groups);
        moved |= self.timed(CoreStage::Commits, Self::commit_groups);
        moved
    }

    /// The first group in `stage`, if every group before it is further.
    fn first_in(&self, stage: Stage) -> Option<u64> {
        let group =
            self.core.buffer.groups.iter().find(|group| group.stage as u8 <= stage as u8)?;
        (group.stage == stage).then_some(group.id)
    }

    /// Completes partly written chunks as soon as what is around them is known, in the open group
    /// too, and when nothing is written any more: who wrote them, or reads them, waits for it.
    fn fill_slots(&mut self) -> bool {
        let mut moved = false;
        for (id, at) in std::mem::take(&mut self.core.buffer.unfilled) {
            if self.fill_slot(id, at) {
                moved = true;
            } else {
                self.core.buffer.unfilled.push((id, at));
            }
        }
        moved
    }

    /// Hands whole groups to the workers.
    fn send_filled(&mut self) -> bool {
        let mut moved = false;
        let mut jobs = Vec::new();
        while let Some(id) = self.first_in(Stage::Filling) {
            if self.core.buffer.unfilled.iter().any(|&(of, _)| of == id)
                || self.has_payloads_enough()
            {
                break;
            }
            self.send_to_fingerprint(id, &mut jobs);
            moved = true;
        }
        self.core.workers.submit_all(jobs);
        moved
    }

    /// Completes a chunk; false while what is around it is unknown.
    fn fill_slot(&mut self, id: u64, at: usize) -> bool {
        let Some(slot) = self.core.buffer.slot(id, at) else {
            self.core.violated(Invariant::GroupStaysUntilApplied);
            return true;
        };
        let SlotData::Partial(partial) = &slot.data else {
            // Written as a whole meanwhile: reads may have waited for the rest of it.
            self.reads.retry_parked();
            return true;
        };
        let (volume, lba, base) = (slot.volume, slot.lba, partial.base);
        match base {
            Base::Reading => false,
            Base::Zeros => {
                self.slot_filled(id, at, None);
                true
            }
            Base::Buffered { group, slot } if self.core.buffer.is_buffered(group, slot) => {
                let Some(chunk) = self.buffered_chunk(group, slot) else { return false };
                self.slot_filled(id, at, chunk.as_ref().map(ChunkRef::bytes));
                true
            }
            Base::Copied { group } if self.core.buffer.is_copying(group) => false,
            Base::Copied { .. } => {
                // Mostly it is in the map now. If the writing stopped before, it never will be.
                let base = self.core.buffer.newest_before(id, volume, lba).base();
                if let Some(SlotData::Partial(partial)) = self.slot_data(id, at) {
                    partial.base = base;
                }
                self.fill_slot(id, at)
            }
            Base::Stored | Base::Buffered { .. } => {
                if let Some(SlotData::Partial(partial)) = self.slot_data(id, at) {
                    partial.base = Base::Reading;
                }
                self.read_base(volume, lba, id, at);
                false
            }
        }
    }

    /// The bytes of a slot (inner None: zeros), unless it is partly written itself.
    fn buffered_chunk(&self, group: u64, slot: usize) -> Option<Option<ChunkRef>> {
        match &self.core.buffer.slot(group, slot)?.data {
            SlotData::Whole(chunk) => Some(Some(chunk.clone())),
            SlotData::Zeros => Some(None),
            SlotData::Partial(_) => None,
        }
    }

    fn slot_data(&mut self, id: u64, at: usize) -> Option<&mut SlotData> {
        self.core.buffer.group_mut(id)?.slots_mut().get_mut(at).map(|slot| &mut slot.data)
    }

    /// The read of what is around a partly written chunk has ended. Its slot may have been
    /// overwritten as a whole meanwhile, and is then none of this read's business.
    pub(crate) fn base_read(&mut self, id: u64, at: usize, base: Result<&[u8], RequestError>) {
        let waits = match self.slot_data(id, at) {
            Some(SlotData::Partial(partial)) => partial.base == Base::Reading,
            _ => false,
        };
        if waits {
            match base {
                Ok(bytes) => self.slot_filled(id, at, Some(bytes)),
                Err(error) => self.slot_base_lost(id, at, &error),
            }
        }
        self.reads.retry_parked();
    }

    /// The bytes around a partly written chunk are known (None: zeros).
    fn slot_filled(&mut self, id: u64, at: usize, base: Option<&[u8]>) {
        let Some(data) = self.slot_data(id, at) else {
            return self.core.violated(Invariant::GroupStaysUntilApplied);
        };
        match std::mem::replace(data, SlotData::Zeros) {
            SlotData::Partial(partial) => *data = SlotData::Whole(partial.fill(base)),
            whole => *data = whole,
        }
        self.reads.retry_parked();
    }

    /// The bytes around a partly written chunk cannot be read: the writes to it fail, and the chunk
    /// stays as it is.
    fn slot_base_lost(&mut self, id: u64, at: usize, error: &RequestError) {
        let of = self.core.buffer.slot(id, at).map(|slot| slot.volume);
        let shared = self.core.volumes.iter().find(|shared| Some(shared.id) == of);
        let error = match (error, shared) {
            // The engine read for itself, and knew no name.
            (&RequestError::Damaged { lba, .. }, Some(shared)) => {
                &RequestError::Damaged { volume: shared.name(), lba }
            }
            (error, _) => error,
        };
        if let Some(SlotData::Partial(partial)) = self.slot_data(id, at) {
            partial.acks.iter().for_each(|ack| ack.fail(error));
        }
        self.core.buffer.void_slot(id, at);
    }

    fn look_up_groups(&mut self) -> bool {
        let mut moved = false;
        while let Some(id) = self.first_in(Stage::LookingUp) {
            if self.groups_looked_up() >= GROUPS_LOOKED_UP_MAX {
                break;
            }
            match self.look_up_group(id) {
                Ok(true) => moved = true,
                Ok(false) => {
                    self.duplicates.prefetch_look_ups(&mut self.core, id);
                    break;
                }
                Err(error) => {
                    moved |= self.stop_for(&error);
                    break;
                }
            }
        }
        moved
    }

    /// Groups whose frames are in memory beside their chunks, or not packed yet.
    fn groups_looked_up(&self) -> usize {
        let past = |group: &&Group| group.stage as u8 > Stage::LookingUp as u8;
        let groups = self.core.buffer.groups.iter().take_while(past).count();
        groups + self.core.placement.packing.groups_held()
    }

    /// Decides what becomes of each chunk of a group, once all buckets are here.
    fn look_up_group(&mut self, id: u64) -> Result<bool, PageError> {
        if self.duplicates.awaits_compared(&self.core) {
            return Ok(false);
        }
        if awaits_mark_of_asides(&mut self.core, id) {
            return Ok(false);
        }
        self.duplicates.choose_sought(&mut self.core, id);
        let Some(group) = self.core.buffer.group(id).filter(|group| !group.is_comparing()) else {
            return Ok(false);
        };
        let fingerprints: Vec<Option<Fingerprint>> =
            group.slots().iter().map(Slot::sought_fingerprint).collect();
        let Some(seen) = self.duplicates.seen_chunks(&mut self.core, id, &fingerprints)? else {
            return Ok(false);
        };
        if self.core.verifies()
            && !self.duplicates.compare_group(
                &mut self.core,
                &mut self.ahead,
                id,
                &fingerprints,
                &seen,
            )?
        {
            return Ok(false);
        }
        self.core.state.entries_seen.hash_pbn += seen.len() as u64;
        let plans = self.duplicates.plan_group(&mut self.core, id, &fingerprints, seen);
        note_planned(&mut self.core, id, &plans);
        self.send_to_compress(id, &plans);
        prefetch_changes(&mut self.core, id);
        Ok(true)
    }

    fn send_to_compress(&mut self, id: u64, plans: &[Plan]) {
        let compression = self.core.state.compression;
        let Some(group) = self.core.buffer.group_mut(id) else {
            return self.core.violated(Invariant::GroupStaysUntilApplied);
        };
        let room = plans.len().min(JOB_CHUNKS);
        let mut domains = self.core.volumes.domains.of_chunks();
        let mut codecs = ChunkCodecs::new(&self.core.state, &self.core.geometry);
        let mut offloaded = group.offloaded.take();
        if let (Some(offloaded), Some(offload)) = (&offloaded, &mut self.writes.offload) {
            offloaded.judge(plans, self.core.geometry.chunk_bytes, offload);
        }
        let mut jobs: Vec<NewChunks> = Vec::with_capacity(GROUP_SLOTS / JOB_CHUNKS);
        for (at, (slot, &plan)) in group.slots_mut().iter_mut().zip(plans).enumerate() {
            slot.plan = if slot.plan == Plan::Void { Plan::Void } else { plan };
            if let (Some((pbn, frame)), SlotData::Whole(chunk)) = (plan.stores(), &slot.data) {
                if frame.is_multiple_of(JOB_CHUNKS) {
                    jobs.push(NewChunks::with_capacity(room));
                }
                if let Some(new) = jobs.last_mut() {
                    new.chunks.push(chunk);
                    new.pbns.push(pbn);
                    if !mutant!(ForgetsDomainOfFrame) {
                        domains.push(slot.volume, &mut new.domains);
                    }
                    codecs.push(slot.volume, &mut new.compressions);
                    if let Some(offloaded) = &mut offloaded {
                        let with = codecs.of_chunk(slot.volume);
                        new.ready.push(offloaded.take_payload(at, with));
                    }
                }
            }
        }
        group.jobs_out = jobs.len();
        group.frames.resize_with(group.jobs_out, || None);
        group.stage = Stage::Compressing;
        let jobs = jobs.into_iter().enumerate();
        let jobs = jobs.map(|(job, new)| new.into_job(tag(id, job), compression)).collect();
        match &mut self.writes.offload {
            Some(offload) => offload.submit(jobs, &self.core.workers, self.core.stages.now()),
            None => self.core.workers.submit_all(jobs),
        }
    }

    /// A group whose jobs are all back is ready to be applied.
    pub(crate) fn front_is_ready(&mut self) -> bool {
        let Some(group) = self.core.buffer.groups.front_mut() else { return false };
        if group.stage == Stage::Compressing && group.jobs_out == 0 {
            group.stage = Stage::Applying;
        }
        group.stage == Stage::Applying
    }
}

impl Group {
    /// Frames that workers have made of its chunks.
    pub(crate) fn frames_made(&self) -> usize {
        self.frames.iter().flatten().map(|frames| frames.ends.len()).sum()
    }

    /// The frame of a new chunk: its length, and its check.
    pub(crate) fn frame(&self, frame: usize) -> Option<(u32, FrameCheck)> {
        let frames = self.frames.get(frame / JOB_CHUNKS)?.as_ref()?;
        let at = frame % JOB_CHUNKS;
        let start = if at == 0 { 0 } else { frames.ends.get(at - 1)?.end_bytes };
        let FrameEnd { end_bytes, check } = *frames.ends.get(at)?;
        Some((end_bytes - start, check))
    }
}
