//! A group on its way to the tables: filled, fingerprinted, looked up, compressed.
//!
//! Filling and looking up happen in group order; hashing and compression of several groups run
//! in parallel in between. A chunk that is looked up and not found is given its PBN at once and
//! stands in [`crate::duplicates::lookups::Lookups::pending`] until its group is applied, so that a
//! second copy of it, in whatever later group, finds it: two concurrent writes of the same content
//! make one PBN. A chunk that is found is *held* until its group retains it
//! ([`crate::write::buffer::WriteBuffer::held`]): collection moves held chunks even when nothing
//! refers to them yet.

use format::units::{Fingerprint, FrameCheck, Pbn};
use mutants::mutant;
use reduce::{ChunkRef, FrameEnd};
use tables::{PageError, Seen};

use crate::core::invariant::Invariant;
use crate::door::error::RequestError;
use crate::engine::Engine;
use crate::pages::wanted::Wanted;
use crate::state::State;
use crate::stats::stages::CoreStage;
use crate::volumes::codecs::ChunkCodecs;
use crate::write::buffer::{GROUPS_LOOKED_UP_MAX, Group, Stage};
use crate::write::job_tag::tag;
use crate::write::new_chunks::NewChunks;
use crate::write::partial::Base;
use crate::write::slot::{GROUP_SLOTS, Plan, Planned, Slot, SlotData, SlotPlace};

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
                    self.prefetch_look_ups(id);
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
        if self.core.state.store.awaits(&self.core.held_pages.compared) {
            return Ok(false);
        }
        if self.awaits_mark_of_asides(id) {
            return Ok(false);
        }
        self.choose_sought(id);
        let Some(group) = self.core.buffer.group(id).filter(|group| !group.is_comparing()) else {
            return Ok(false);
        };
        let fingerprints: Vec<Option<Fingerprint>> =
            group.slots().iter().map(Slot::sought_fingerprint).collect();
        let Some(seen) = self.seen_chunks(id, &fingerprints)? else { return Ok(false) };
        if self.core.verifies() && !self.compare_group(id, &fingerprints, &seen)? {
            return Ok(false);
        }
        self.core.state.entries_seen.hash_pbn += seen.len() as u64;
        let plans = self.plan_group(id, &fingerprints, seen);
        self.note_planned(id, &plans);
        self.send_to_compress(id, &plans);
        self.prefetch_changes(id);
        Ok(true)
    }

    /// What the Hash-PBN table says of the fingerprints that are there; None while pages are
    /// missing.
    fn seen_chunks(
        &mut self,
        id: u64,
        fingerprints: &[Option<Fingerprint>],
    ) -> Result<Option<Vec<Seen>>, PageError> {
        if self.core.state.store.awaits(&self.core.held_pages.look_up) {
            return Ok(None);
        }
        let fingerprints = fingerprints.iter().flatten();
        let mut seen = Vec::with_capacity(fingerprints.clone().count());
        let mut pages = Vec::with_capacity(seen.capacity());
        let note = |tree, leaf| pages.push((tree, leaf));
        let State { hash, store, .. } = &self.core.state;
        hash.look_up_group(store, fingerprints.clone(), &mut seen, note);
        self.mark_far(id, &seen);
        let mut wanted = Wanted::default();
        let here = self.want_seen(id, fingerprints.clone(), &seen, &mut wanted);
        self.core.hold_pages(wanted, |held| &mut held.look_up);
        if !here? {
            return Ok(None);
        }
        for (tree, leaf) in pages {
            self.core.state.store.count_accesses(tree, leaf, 1);
        }
        let seen = fingerprints.zip(seen);
        let seen: Vec<Seen> = seen.map(|(of, seen)| self.stored_chunk(of, seen)).collect();
        if self.core.placement.space.has_damaged() {
            seen.iter().filter_map(Seen::stored).for_each(|pbn| self.doubt_dead(pbn));
        }
        Ok(Some(seen))
    }

    /// What becomes of each chunk of a group.
    fn plan_group(
        &mut self,
        id: u64,
        fingerprints: &[Option<Fingerprint>],
        seen: Vec<Seen>,
    ) -> Vec<Plan> {
        let mut hashes = std::mem::take(&mut self.lookups.hashes);
        hashes.clear();
        hashes.extend(fingerprints.iter().flatten().map(|one| self.core.state.hash.hash_of(one)));
        self.lookups.pending.touch_all(&hashes);
        if hashes.len() != seen.len() {
            self.core.violated(Invariant::OutcomeForEachCandidate);
        }
        let mut sought = hashes.iter().zip(seen);
        let mut planned = Planned::nothing(fingerprints.len());
        for (at, fingerprint) in fingerprints.iter().enumerate() {
            let looked = fingerprint.as_ref().and_then(|fingerprint| {
                let (&hash, seen) = sought.next()?;
                Some(Looked { place: SlotPlace::new(id, at), fingerprint, hash, seen })
            });
            let plan = match looked {
                Some(looked) => self.plan(&looked, &mut planned),
                None if self.holds_chunk(id, at) => self.plan_unindexed(&mut planned),
                None => Plan::Unmap,
            };
            planned.plans.push(plan);
        }
        self.lookups.hashes = hashes;
        planned.plans
    }

    /// What becomes of a chunk, behind those before it in its group.
    fn plan(&mut self, looked: &Looked<'_>, planned: &mut Planned) -> Plan {
        let Looked { place, hash, seen, .. } = *looked;
        let group = self.core.buffer.group(place.group());
        if let Some(compared) = group.and_then(|group| group.compared(place.slot())) {
            return self.plan_compared(compared, planned);
        }
        if let Some(pbn) = seen.stored().or_else(|| self.pending_pbn(looked, planned)) {
            return self.plan_duplicate(pbn, planned);
        }
        self.core.counters.chunks_unique += 1;
        match seen {
            Seen::Denied => self.core.counters.lookups_denied += 1,
            _ => self.core.counters.lookups_absent += 1,
        }
        let pbn = self.allocate_pbn();
        self.lookups.pending.insert(hash, place);
        Plan::New { pbn, frame: planned.next_frame() }
    }

    /// The PBN of the pending chunk that has the same fingerprint, if there is one.
    fn pending_pbn(&self, looked: &Looked<'_>, planned: &Planned) -> Option<Pbn> {
        let Looked { hash, fingerprint, .. } = *looked;
        let pending = self.lookups.pending.find(hash, fingerprint, &self.core.buffer)?;
        let plan = match planned.plans.get(pending.slot()) {
            Some(plan) if pending.group() == looked.place.group() => *plan,
            _ => self.core.buffer.slot(pending.group(), pending.slot())?.plan,
        };
        let pbn = plan.stores().map(|(pbn, _)| pbn);
        pbn.filter(|_| !mutant!(MissesPendingDuplicate))
    }

    /// Whether a slot has something to store.
    fn holds_chunk(&self, group: u64, slot: usize) -> bool {
        self.core.buffer.slot(group, slot).is_some_and(|slot| slot.fingerprint.is_some())
    }

    /// A chunk that is not looked for is stored, whatever is stored already.
    fn plan_unindexed(&mut self, planned: &mut Planned) -> Plan {
        self.core.counters.chunks_unique += 1;
        self.core.counters.lookups_skipped += 1;
        Plan::Aside { pbn: self.allocate_pbn(), frame: planned.next_frame() }
    }

    /// A chunk is the one that is stored under `pbn`, or on its way under it.
    pub(crate) fn plan_duplicate(&mut self, pbn: Pbn, planned: &mut Planned) -> Plan {
        self.core.counters.chunks_duplicate += 1;
        if self.core.damage.begin_heal(pbn) {
            return Plan::Heal { pbn, frame: planned.next_frame() };
        }
        Plan::Duplicate(pbn)
    }

    /// A freed PBN if one is past its checkpoint, else a fresh one.
    pub(crate) fn allocate_pbn(&mut self) -> Pbn {
        if self.lookups.popped_ahead < self.core.superblock.free_pbns(&self.core.state)
            && let Some(pbn) =
                self.core.state.free.peek(&self.core.state.store, self.lookups.popped_ahead)
        {
            self.lookups.popped_ahead += 1;
            return pbn;
        }
        self.lookups.fresh_ahead += 1;
        Pbn(self.core.state.next_pbn + self.lookups.fresh_ahead - 1)
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
        if let (Some(offloaded), Some(offload)) = (&offloaded, &mut self.offload) {
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
        match &mut self.offload {
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

/// A chunk whose fingerprint was looked up.
struct Looked<'a> {
    place: SlotPlace,
    fingerprint: &'a Fingerprint,
    hash: u64,
    seen: Seen,
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
