//! What becomes of each chunk of a group, once all that its look-ups need is here.
//!
//! A chunk that is not found is given its PBN at once and stands in
//! [`crate::duplicates::lookups::Lookups::pending`] until its group is applied, so that a second
//! copy of it, in a later group, finds it: two concurrent writes of the same content make one PBN.
//! PBNs are given in the order of groups, and of the slots in a group.

use format::units::{Fingerprint, Pbn};
use mutants::mutant;
use tables::{PageError, Seen};

use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::duplicates::Duplicates;
use crate::duplicates::candidates::{Candidate, Compared, Outcome};
use crate::duplicates::directory_reads::{doubt_dead, mark_far};
use crate::pages::wanted::Wanted;
use crate::state::State;
use crate::write::slot::{Plan, Planned, SlotPlace};

/// A chunk whose fingerprint was looked up.
struct Looked<'a> {
    place: SlotPlace,
    fingerprint: &'a Fingerprint,
    hash: u64,
    seen: Seen,
}

impl Duplicates {
    /// Whether pages are on their way that say where candidates of the group are.
    pub(crate) fn awaits_compared(&self, core: &Core) -> bool {
        core.state.store.awaits(&self.compared_pins)
    }

    /// What the Hash-PBN table says of the fingerprints that are there; None while pages are
    /// missing.
    pub(crate) fn seen_chunks(
        &mut self,
        core: &mut Core,
        id: u64,
        fingerprints: &[Option<Fingerprint>],
    ) -> Result<Option<Vec<Seen>>, PageError> {
        if core.state.store.awaits(&self.look_up_pins) {
            return Ok(None);
        }
        let fingerprints = fingerprints.iter().flatten();
        let mut seen = Vec::with_capacity(fingerprints.clone().count());
        let mut pages = Vec::with_capacity(seen.capacity());
        let note = |tree, leaf| pages.push((tree, leaf));
        let State { hash, store, .. } = &core.state;
        hash.look_up_group(store, fingerprints.clone(), &mut seen, note);
        mark_far(core, id, &seen);
        let mut wanted = Wanted::default();
        let here = self.want_seen(core, id, fingerprints.clone(), &seen, &mut wanted);
        core.hold_in(&mut self.look_up_pins, wanted);
        if !here? {
            return Ok(None);
        }
        for (tree, leaf) in pages {
            core.state.store.count_accesses(tree, leaf, 1);
        }
        let seen = fingerprints.zip(seen);
        let seen: Vec<Seen> = seen.map(|(of, seen)| self.stored_chunk(core, of, seen)).collect();
        if core.placement.space.has_damaged() {
            seen.iter().filter_map(Seen::stored).for_each(|pbn| doubt_dead(core, pbn));
        }
        Ok(Some(seen))
    }

    /// What becomes of each chunk of a group.
    pub(crate) fn plan_group(
        &mut self,
        core: &mut Core,
        id: u64,
        fingerprints: &[Option<Fingerprint>],
        seen: Vec<Seen>,
    ) -> Vec<Plan> {
        let mut hashes = std::mem::take(&mut self.lookups.hashes);
        hashes.clear();
        hashes.extend(fingerprints.iter().flatten().map(|one| core.state.hash.hash_of(one)));
        self.lookups.pending.touch_all(&hashes);
        if hashes.len() != seen.len() {
            core.violated(Invariant::OutcomeForEachCandidate);
        }
        let mut sought = hashes.iter().zip(seen);
        let mut planned = Planned::nothing(fingerprints.len());
        for (at, fingerprint) in fingerprints.iter().enumerate() {
            let looked = fingerprint.as_ref().and_then(|fingerprint| {
                let (&hash, seen) = sought.next()?;
                Some(Looked { place: SlotPlace::new(id, at), fingerprint, hash, seen })
            });
            let plan = match looked {
                Some(looked) => self.plan(core, &looked, &mut planned),
                None if holds_chunk(core, id, at) => self.plan_unindexed(core, &mut planned),
                None => Plan::Unmap,
            };
            planned.plans.push(plan);
        }
        self.lookups.hashes = hashes;
        planned.plans
    }

    /// What becomes of a chunk, behind those before it in its group.
    fn plan(&mut self, core: &mut Core, looked: &Looked<'_>, planned: &mut Planned) -> Plan {
        let Looked { place, hash, seen, .. } = *looked;
        let group = core.buffer.group(place.group());
        if let Some(compared) = group.and_then(|group| group.compared(place.slot())) {
            return self.plan_compared(core, compared, planned);
        }
        if let Some(pbn) = seen.stored().or_else(|| self.pending_pbn(core, looked, planned)) {
            return plan_duplicate(core, pbn, planned);
        }
        core.counters.chunks_unique += 1;
        match seen {
            Seen::Denied => core.counters.lookups_denied += 1,
            _ => core.counters.lookups_absent += 1,
        }
        let pbn = self.allocate_pbn(core);
        self.lookups.pending.insert(hash, place);
        Plan::New { pbn, frame: planned.next_frame() }
    }

    /// The PBN of the pending chunk that has the same fingerprint, if there is one.
    fn pending_pbn(&self, core: &Core, looked: &Looked<'_>, planned: &Planned) -> Option<Pbn> {
        let Looked { hash, fingerprint, .. } = *looked;
        let pending = self.lookups.pending.find(hash, fingerprint, &core.buffer)?;
        let plan = match planned.plans.get(pending.slot()) {
            Some(plan) if pending.group() == looked.place.group() => *plan,
            _ => core.buffer.slot(pending.group(), pending.slot())?.plan,
        };
        let pbn = plan.stores().map(|(pbn, _)| pbn);
        pbn.filter(|_| !mutant!(MissesPendingDuplicate))
    }

    /// A chunk that is not looked for is stored, whatever is stored already.
    fn plan_unindexed(&mut self, core: &mut Core, planned: &mut Planned) -> Plan {
        core.counters.chunks_unique += 1;
        core.counters.lookups_skipped += 1;
        Plan::Aside { pbn: self.allocate_pbn(core), frame: planned.next_frame() }
    }

    /// A freed PBN if one is past its checkpoint, else a fresh one.
    pub(crate) fn allocate_pbn(&mut self, core: &mut Core) -> Pbn {
        if self.lookups.popped_ahead < core.superblock.free_pbns(&core.state)
            && let Some(pbn) = core.state.free.peek(&core.state.store, self.lookups.popped_ahead)
        {
            self.lookups.popped_ahead += 1;
            return pbn;
        }
        self.lookups.fresh_ahead += 1;
        Pbn(core.state.next_pbn + self.lookups.fresh_ahead - 1)
    }

    /// What becomes of a chunk that has been compared with its candidate, behind those before it
    /// in its group.
    pub(crate) fn plan_compared(
        &mut self,
        core: &mut Core,
        compared: Compared,
        planned: &mut Planned,
    ) -> Plan {
        let pbn = match compared.with {
            Candidate::Chunk(pbn) => Some(pbn),
            Candidate::Slot(at) => match planned.plans.get(at) {
                Some(Plan::New { pbn, .. }) => Some(*pbn),
                _ => None,
            },
        };
        let is_strong = core.geometry.detection.kind.is_strong();
        match (compared.outcome, pbn) {
            (Outcome::Equal, Some(pbn)) => {
                core.counters.lookups_equal += 1;
                plan_duplicate(core, pbn, planned)
            }
            // A fingerprint that names the chunk is enough to make its frame anew.
            (Outcome::Damaged, Some(pbn)) if is_strong && core.damage.begin_heal(pbn) => {
                core.counters.chunks_duplicate += 1;
                Plan::Heal { pbn, frame: planned.next_frame() }
            }
            (outcome, _) => {
                core.counters.lookups_differ += u64::from(outcome == Outcome::Differs);
                core.counters.chunks_unique += 1;
                core.counters.chunks_unindexed += 1;
                Plan::Aside { pbn: self.allocate_pbn(core), frame: planned.next_frame() }
            }
        }
    }
}

/// A chunk is the one that is stored under `pbn`, or on its way under it.
fn plan_duplicate(core: &mut Core, pbn: Pbn, planned: &mut Planned) -> Plan {
    core.counters.chunks_duplicate += 1;
    if core.damage.begin_heal(pbn) {
        return Plan::Heal { pbn, frame: planned.next_frame() };
    }
    Plan::Duplicate(pbn)
}

/// Whether a slot has something to store.
fn holds_chunk(core: &Core, group: u64, slot: usize) -> bool {
    core.buffer.slot(group, slot).is_some_and(|slot| slot.fingerprint.is_some())
}
