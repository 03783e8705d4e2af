//! A group's chunks on their way to be fingerprinted: by workers, or by an accelerator that
//! compresses some of them in the same pass (decision 077).

use accelerator::{Batch, Verdict, batches};
use format::units::Fingerprint;
use reduce::{ChunkBatch, Job, Payload};

use crate::core::invariant::Invariant;
use crate::engine::Engine;
use crate::geometry::fingerprinters;
use crate::volumes::codecs::ChunkCodecs;
use crate::write::buffer::{GROUPS_LOOKED_UP_MAX, Group, Stage, Work};
use crate::write::group::JOB_CHUNKS;
use crate::write::job_tag::{tag, untag};
use crate::write::offloaded::Offloaded;
use crate::write::slot::{Slot, SlotData};

impl Engine {
    /// Adds what fingerprints a group to `jobs`, which are handed in together.
    pub(super) fn send_to_fingerprint(&mut self, id: u64, jobs: &mut Vec<Job>) {
        let Some(group) = self.core.buffer.group_mut(id) else {
            return self.core.violated(Invariant::GroupStaysUntilApplied);
        };
        if !matches!(group.work, Work::Slots(_)) {
            group.stage = Stage::Applying;
            return;
        }
        if self.writes.offload.is_some() {
            return self.submit_group(id);
        }
        let mut domains = self.core.volumes.domains.of_chunks();
        let by = fingerprinters(&self.core.geometry);
        let mut jobs_out = 0;
        for (job, slots) in group.slots().chunks(JOB_CHUNKS).enumerate() {
            let mut chunks = ChunkBatch::with_capacity(slots.len());
            let mut of = Vec::new();
            for slot in slots {
                if let SlotData::Whole(chunk) = &slot.data {
                    chunks.push(chunk);
                    domains.push(slot.volume, &mut of);
                }
            }
            if !chunks.is_empty() {
                jobs_out += 1;
                let (domains, ahead) = (of, Vec::new());
                jobs.push(Job::Fingerprint { tag: tag(id, job), by, chunks, domains, ahead });
            }
        }
        self.core.buffer.fingerprints_wanted(id, jobs_out);
    }

    /// Takes the fingerprints of one job; chunks that turn out to be zeros are dropped.
    pub(crate) fn fingerprints_made(
        &mut self,
        of: u64,
        made: Vec<Option<Fingerprint>>,
        payloads: Vec<Option<Payload>>,
    ) {
        self.submission_ended(of);
        let (id, job) = untag(of);
        let Some(group) = self.core.buffer.group_mut(id) else {
            return self.core.violated(Invariant::GroupStaysUntilApplied);
        };
        let zeros = match group.offloaded.take() {
            Some(mut offloaded) => {
                let zeros = offloaded.take_results(job, group.slots_mut(), made, payloads);
                group.offloaded = Some(offloaded);
                zeros
            }
            None => {
                let slots = group.slots_mut().iter_mut().skip(job * JOB_CHUNKS).take(JOB_CHUNKS);
                let whole = slots.filter(|slot| !matches!(slot.data, SlotData::Zeros));
                let zeros = |(slot, made): (&mut Slot, _)| u64::from(slot.take_fingerprint(made));
                whole.zip(made).map(zeros).sum()
            }
        };
        group.jobs_out -= 1;
        if group.jobs_out == 0 {
            group.stage = Stage::LookingUp;
        }
        self.core.counters.chunks_zero += zeros;
    }

    /// Submits a group's chunks in batches of one verdict.
    fn submit_group(&mut self, id: u64) {
        let Some(offload) = &mut self.writes.offload else { return };
        let Some(group) = self.core.buffer.group_mut(id) else {
            return self.core.violated(Invariant::GroupStaysUntilApplied);
        };
        let mut guess = |data: &SlotData| match data {
            SlotData::Whole(chunk) => Some(offload.guess(chunk.bytes())),
            _ => None,
        };
        let verdicts: Vec<_> = group.slots().iter().map(|slot| guess(&slot.data)).collect();
        let guessed = (0..).zip(&verdicts).filter_map(|(at, verdict)| Some((at, (*verdict)?)));
        let batches = batches(guessed, offload.batch_chunks());
        let by = fingerprinters(&self.core.geometry);
        let mut of_chunks = self.core.volumes.domains.of_chunks();
        let mut codecs = ChunkCodecs::new(&self.core.state, &self.core.geometry);
        let mut job = |number: usize, batch: &Batch| {
            let mut chunks = ChunkBatch::with_capacity(batch.chunks.len());
            let (mut domains, mut ahead) = (Vec::new(), Vec::new());
            for slot in batch.chunks.iter().filter_map(|&at| group.slots().get(usize::from(at))) {
                if let SlotData::Whole(chunk) = &slot.data {
                    chunks.push(chunk);
                    of_chunks.push(slot.volume, &mut domains);
                    if batch.verdict == Verdict::New {
                        ahead.push(codecs.of_chunk(slot.volume));
                    }
                }
            }
            Job::Fingerprint { tag: tag(id, number), by, chunks, domains, ahead }
        };
        let jobs: Vec<Job> = batches.iter().enumerate().map(|(at, batch)| job(at, batch)).collect();
        let jobs_out = jobs.len();
        let slots = batches.into_iter().map(|batch| batch.chunks).collect();
        group.offloaded = Some(Box::new(Offloaded::new(verdicts, slots)));
        self.core.buffer.fingerprints_wanted(id, jobs_out);
        offload.submit(jobs, &self.core.workers, self.core.stages.now());
    }

    /// A job of a group has come back: the device may go on.
    pub(crate) fn submission_ended(&mut self, tag: u64) {
        if let Some(offload) = &mut self.writes.offload {
            offload.ended(tag, &self.core.workers, self.core.stages.now());
        }
    }

    /// Whether as many groups as may have payloads have them, and are not looked up yet.
    pub(crate) fn has_payloads_enough(&self) -> bool {
        let has_payloads = |group: &&Group| group.offloaded.is_some();
        self.writes.offload.is_some()
            && self.core.buffer.groups.iter().filter(has_payloads).count() >= GROUPS_LOOKED_UP_MAX
    }
}
