//! Comparing: in a store that verifies, bytes decide what a fingerprint only suggests.
//!
//! The look-up of a group names *candidates*: what is stored under the fingerprint of a slot, what
//! is on its way under it, or an earlier slot of the same group. Each slot is compared with its
//! candidate, byte by byte, before anything is decided:
//!
//! ```text
//! look-up -> candidates -> pages of PBN-PBA -> frames, gathered as a read gathers them -> workers
//!               ^                                                                           |
//!               +-- looked up once more; who has an outcome for each candidate is planned <-+
//! ```
//!
//! What is equal is a duplicate. What is not, or could not be compared, is stored *aside*
//! ([`crate::write::slot::Plan::Aside`]): its fingerprint goes on leading to the other chunk, and
//! no look-up finds it.
//!
//! An outcome says of a slot and one PBN whether their bytes are the same. It stays true as long as
//! the PBN is held ([`crate::write::buffer::WriteBuffer::held`]), which it is from the moment it
//! becomes a candidate: collection may move the chunk meanwhile, but not forget it. The frame that
//! is read stays where it was until the read has ended, since its container is pinned. So the
//! tables may change while bytes are on their way, and the group is looked up once more before it
//! is planned: who by then has another candidate is compared again.
//!
//! PBNs are given at the planning, in group order, as in every store: a collision that is found
//! late takes no other group's place.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use disk::AlignedBuf;
use format::units::{ContainerId, Fingerprint, Pba, Pbn};
use hashbrown::HashMap;
use mutants::mutant;
use reduce::{ChunkBatch, Comparison, Image, Job, Known, KnownFrame};
use tables::{PageError, Seen, pbn_pba};

use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::devices::Purpose;
use crate::duplicates::Duplicates;
use crate::duplicates::candidates::{Candidate, Compared, Outcome};
use crate::duplicates::comparisons::{CompareJob, KnownRead, StoredFrames};
use crate::duplicates::known::{Due, known_frame};
use crate::pages::wanted::Wanted;
use crate::read::ahead::Ahead;
use crate::read::frame_cache::Ticket;
use crate::read::reads::{Span, SpanPart, add_to_spans};
use crate::scrub::damage::Evidence;
use crate::write::buffer::Group;
use crate::write::group::JOB_CHUNKS;
use crate::write::slot::SlotData;

impl Duplicates {
    /// Whether every slot of a group that has a candidate has been compared with it; if not, that
    /// is begun, or goes on.
    pub(crate) fn compare_group(
        &mut self,
        core: &mut Core,
        ahead: &mut Ahead,
        id: u64,
        fingerprints: &[Option<Fingerprint>],
        seen: &[Seen],
    ) -> Result<bool, PageError> {
        let candidates = self.candidates(core, fingerprints, seen);
        let Some(group) = core.buffer.group_mut(id) else {
            core.violated(Invariant::GroupStaysUntilApplied);
            return Ok(false);
        };
        let mut due = Vec::new();
        group.compared.resize(candidates.len(), None);
        for (at, (slot, candidate)) in group.compared.iter_mut().zip(&candidates).enumerate() {
            if slot.map(|compared| compared.with) != *candidate {
                *slot = candidate.map(|with| Compared { with, outcome: Outcome::Due });
            }
            if let Some(Compared { with, outcome: Outcome::Due }) = slot {
                due.push((at, *with));
            }
        }
        if due.is_empty() {
            return Ok(true);
        }
        if !self.want_known(core, &due)? {
            return Ok(false);
        }
        self.begin_comparing(core, ahead, id, &due);
        // Where nothing can be read there is nothing to wait for.
        Ok(!core.buffer.group(id).is_some_and(Group::is_comparing))
    }

    /// What each chunk of a group may be a duplicate of.
    fn candidates(
        &self,
        core: &Core,
        fingerprints: &[Option<Fingerprint>],
        seen: &[Seen],
    ) -> Vec<Option<Candidate>> {
        let mut seen = seen.iter();
        let mut new = HashMap::with_capacity(fingerprints.len());
        let candidate = |(at, fingerprint): (usize, &Option<Fingerprint>)| {
            let fingerprint = fingerprint.as_ref()?;
            if let Some(Seen::Stored(pbn)) = seen.next() {
                return Some(Candidate::Chunk(*pbn));
            }
            if let Some((pbn, _)) = self.pending_chunk(core, fingerprint) {
                return Some(Candidate::Chunk(pbn));
            }
            let first = *new.entry(*fingerprint).or_insert(at);
            (first != at).then_some(Candidate::Slot(first))
        };
        fingerprints.iter().enumerate().map(candidate).collect()
    }

    /// Asks for the pages that say where the candidates are; false while some are missing.
    fn want_known(
        &mut self,
        core: &mut Core,
        due: &[(usize, Candidate)],
    ) -> Result<bool, PageError> {
        let mut wanted = Wanted::default();
        let mut here = Ok(true);
        for (_, with) in due {
            if let (Candidate::Chunk(pbn), Ok(so_far)) = (with, &here) {
                here = core.state.want_pba(*pbn, &mut wanted).map(|is_here| is_here & so_far);
            }
        }
        core.hold_in(&mut self.compared_pins, wanted);
        here
    }

    fn begin_comparing(
        &mut self,
        core: &mut Core,
        ahead: &mut Ahead,
        id: u64,
        due: &[(usize, Candidate)],
    ) {
        let mut known = Due::default();
        for &(at, with) in due {
            let outcome = self.find_known(core, ahead, id, at, with, &mut known);
            set_outcome(core, id, at, outcome);
        }
        let Due { chunks, image, frames, mut parts, waiting, places } = known;
        if let Some(group) = core.buffer.group_mut(id) {
            group.comparisons_out = chunks.len() + frames.len() + parts.len() + waiting;
        }
        for some in chunks.chunks(JOB_CHUNKS) {
            let slots = some.iter().map(|(at, _)| *at).collect();
            let known = Known::Chunks(some.iter().map(|(_, chunk)| chunk).collect());
            self.submit_comparison(core, CompareJob { group: id, slots, stored: None }, known);
        }
        self.compare_frames(core, id, &frames, &(Arc::new(image) as Arc<dyn Image>), None);
        parts.sort_unstable_by_key(|part| (part.pba.container, part.pba.offset_bytes, part.at));
        let mut spans: Vec<Span> = Vec::new();
        parts.into_iter().for_each(|part| add_to_spans(&mut spans, part));
        spans.into_iter().for_each(|span| self.read_known(core, id, span));
        ahead.follow_comparisons(core, &places);
    }

    pub(crate) fn read_known(&mut self, core: &mut Core, group: u64, span: Span) {
        let container = span.container;
        let place = core.geometry.container_zone(container);
        let (first_bytes, end_bytes) = (span.first_bytes, span.end_bytes);
        let slots: Vec<usize> = span.parts.iter().map(|part| part.at).collect();
        let Some((zone, start_bytes)) = place else {
            core.violated(Invariant::ContainersKeepNumbers);
            return slots.into_iter().for_each(|at| end_comparison(core, group, at, None));
        };
        core.counters.comparison_reads += 1;
        core.counters.comparison_bytes_read += u64::from(end_bytes - first_bytes);
        core.counters.chunks_read_to_compare += slots.len() as u64;
        core.placement.space.pin(container);
        let ticket = core.frames.ticket();
        span.parts.iter().for_each(|part| core.frames.expect(part.pbn, ticket));
        let read = self.comparisons.begin_read(KnownRead { group, span, ticket });
        let offset_bytes = start_bytes + u64::from(first_bytes);
        let length_bytes = (end_bytes - first_bytes) as usize;
        core.devices.read(zone, offset_bytes, length_bytes, Purpose::Known { read, container });
    }

    /// A stretch of a container has come; None when the device did not give it.
    pub(crate) fn known_frames_read(
        &mut self,
        core: &mut Core,
        read: u64,
        buf: Option<AlignedBuf>,
    ) {
        let Some(KnownRead { group, span, ticket }) = self.comparisons.end_read(read) else {
            return core.violated(Invariant::OnePending);
        };
        let Some(buf) = buf else {
            // Who reads these chunks is told. Here nothing is known of them, not even damage.
            return span.parts.iter().for_each(|part| {
                core.frames.arrive(part.pbn, ticket, None);
                end_comparison(core, group, part.at, None);
            });
        };
        let frame = |part: &SpanPart| known_frame(*part, span.first_bytes);
        let frames: Vec<_> = span.parts.iter().map(frame).collect();
        self.compare_frames(core, group, &frames, &(Arc::new(buf) as Arc<dyn Image>), Some(ticket));
    }

    pub(crate) fn compare_frames(
        &mut self,
        core: &mut Core,
        group: u64,
        frames: &[(usize, KnownFrame, Pba)],
        image: &Arc<dyn Image>,
        ticket: Option<Ticket>,
    ) {
        for some in frames.chunks(JOB_CHUNKS) {
            let slots = some.iter().map(|(at, ..)| *at).collect();
            let placed = some.iter().map(|(_, frame, pba)| (*frame, pba.container)).collect();
            let image = Arc::clone(image);
            let stored = StoredFrames { image: Arc::clone(&image), frames: placed, ticket };
            let stored = Some(stored);
            let frames = some.iter().map(|(_, frame, _)| *frame).collect();
            let known = Known::Frames { image, frames };
            self.submit_comparison(core, CompareJob { group, slots, stored }, known);
        }
    }

    fn submit_comparison(&mut self, core: &mut Core, job: CompareJob, known: Known) {
        let slots = job.slots.iter().filter_map(|&at| core.buffer.slot(job.group, at));
        let chunks: ChunkBatch = slots
            .filter_map(|slot| match &slot.data {
                SlotData::Whole(chunk) => Some(chunk),
                _ => None,
            })
            .collect();
        if chunks.len() != job.slots.len() {
            core.violated(Invariant::OutcomeForEachCandidate);
        }
        let tag = self.comparisons.begin_job(job);
        core.workers.submit(Job::Compare { tag, chunks, known });
    }

    /// Workers have compared some slots.
    pub(crate) fn compared(&mut self, core: &mut Core, tag: u64, comparisons: &[Comparison]) {
        let Some(job) = self.comparisons.end_job(tag) else {
            return core.violated(Invariant::OnePending);
        };
        let CompareJob { group, slots, stored } = job;
        for (number, &at) in slots.iter().enumerate() {
            let comparison = comparisons.get(number).copied();
            if let Some(stored) = &stored
                && let Some(comparison) = comparison
            {
                frame_compared(core, stored, number, comparison);
            }
            end_comparison(core, group, at, comparison);
        }
    }
}

/// A stored frame has been compared with: workers have verified it as well.
fn frame_compared(core: &mut Core, stored: &StoredFrames, number: usize, comparison: Comparison) {
    let Some((frame, container)) = stored.frames.get(number) else { return };
    let (pbn, is_damaged) = (frame.place.pbn, comparison == Comparison::Damaged);
    if let Some(ticket) = stored.ticket {
        core.frames.arrive(pbn, ticket, stored.bytes(frame).filter(|_| !is_damaged));
    }
    if is_damaged {
        let bytes = stored.bytes(frame).unwrap_or_default();
        let evidence = Evidence::of(bytes, pbn, frame.check);
        note_damaged_candidate(core, pbn, *container, evidence);
    }
}

fn end_comparison(core: &mut Core, id: u64, at: usize, comparison: Option<Comparison>) {
    let outcome = match comparison {
        Some(Comparison::Equal) => Outcome::Equal,
        Some(Comparison::Differs) if mutant!(ComparesNothing) => Outcome::Equal,
        Some(Comparison::Differs) => Outcome::Differs,
        Some(Comparison::Damaged) => Outcome::Damaged,
        None => Outcome::Unreadable,
    };
    set_outcome(core, id, at, outcome);
    if let Some(group) = core.buffer.group_mut(id) {
        group.comparisons_out -= 1;
    }
}

fn set_outcome(core: &mut Core, id: u64, at: usize, outcome: Outcome) {
    let group = core.buffer.group_mut(id);
    if let Some(Some(compared)) = group.and_then(|group| group.compared.get_mut(at)) {
        compared.outcome = outcome;
    }
}

/// What a read tells the caller, a comparison tells the list of what is damaged.
fn note_damaged_candidate(core: &mut Core, pbn: Pbn, container: ContainerId, evidence: Evidence) {
    core.intake.expanding.damaged.fetch_add(1, Ordering::Relaxed);
    let entry = pbn_pba::get(&core.state.store, pbn);
    // It may have been moved meanwhile, and its page may have left the cache.
    if entry.is_some_and(|entry| entry.pba.container == container) {
        core.damage.note(pbn, container, evidence);
    }
    if core.may_have_copy(pbn) {
        core.copy_lists.suspect(pbn);
    }
}

impl Group {
    /// Whether some of its slots are still being compared.
    pub(crate) fn is_comparing(&self) -> bool {
        self.comparisons_out > 0
    }
}

#[cfg(test)]
mod tests {
    use crate::door::opens::Opener;
    use crate::duplicates::known::REFERENCES_FULL;
    use crate::small_store::{MIB, beside, store};
    use crate::{Detection, FingerprintKind};
    use format::pba_page::PbaEntry;
    use reduce::Fingerprinter;
    use tables::pbn_pba;

    /// A count never goes over its end: the chunk is stored once more, aside, and the count stays.
    #[test]
    fn a_chunk_whose_count_is_full_gets_no_more_references() {
        let kind = FingerprintKind::Md5;
        let detection = Detection { kind, verify: true, ..Default::default() };
        let (mut engine, client) = store(detection);
        let chunk = vec![9; 4096];
        let volume = beside(&mut engine, &client, |client| {
            client.create_volume("v", 64 * MIB, false).unwrap();
            let volume = client.open_volume("v", Opener::new("a test", 0)).unwrap();
            client.write_at(&volume, 0, &chunk).unwrap();
            client.flush_blocking().unwrap();
            volume
        });
        let fingerprint = Fingerprinter::new(FingerprintKind::Md5).one(&chunk).unwrap();
        let pbn = engine.core.state.hash.lookup(&engine.core.state.store, &fingerprint).unwrap();
        for (lba, references, asides) in [(1, REFERENCES_FULL - 1, 0), (2, REFERENCES_FULL, 1)] {
            let entry = pbn_pba::get(&engine.core.state.store, pbn).unwrap();
            pbn_pba::set(&mut engine.core.state.store, pbn, PbaEntry { references, ..entry });
            let (read, stats) = beside(&mut engine, &client, |client| {
                client.write_at(&volume, lba * 4096, &chunk).unwrap();
                client.flush_blocking().unwrap();
                let mut read = vec![0; 4096];
                client.read_at(&volume, lba * 4096, &mut read).unwrap();
                (read, client.stats().unwrap())
            });
            assert!(read == chunk, "other bytes at {references}");
            assert_eq!(stats.counters.chunks_unindexed, asides, "at {references}");
            let after = pbn_pba::get(&engine.core.state.store, pbn).unwrap();
            assert_eq!(after.references, REFERENCES_FULL, "at {references}");
        }
    }
}
