//! A group becomes part of the store: frames placed, one journal record, tables changed.
//!
//! This is the only step that changes tables for clients, and it runs to its end: every page it
//! needs is resident, the journal has room for the record and the containers for the frames before
//! the first byte moves. Live and in recovery the same [`Change`]s are applied.

use containers::NewFrame;
use format::record::Change;
use format::root::Stream;
use format::units::{Lba, Pbn, VolumeId};
use hashbrown::HashSet;
use mutants::mutant;
use tables::PageError;

use crate::copy_range::commit_copy;
use crate::core::invariant::Invariant;
use crate::core::record::{CHANGE_BYTES_MAX, encoded};
use crate::engine::Engine;
use crate::pages::wanted::Wanted;
use crate::placement::room_of;
use crate::stats::stages::CoreStage;
use crate::volumes::description::answer_of;
use crate::volumes::take_versions::show_version;
use crate::volumes::versions::copied_versions;
use crate::write::buffer::{Group, Work};
use crate::write::group::JOB_CHUNKS;
use crate::write::slot::{Plan, Slot, SlotPlace};
use crate::write::unmap::commit_unmap;

/// Groups, or pieces of one long unmap, that one step applies: reads go in between.
const COMMITS_PER_STEP: usize = 4;

/// A run of this many chunks is not prefetched: neighbours share cache lines.
const RUN_CHUNKS_MIN: usize = 8;

/// Frames of a group that its record may carry: what is written twice has to cost less than the
/// write and the sync that it saves.
const CARRIED_BYTES_MAX: u64 = 64 << 10;

impl Engine {
    /// Applies groups from the oldest on.
    pub(crate) fn commit_groups(&mut self) -> bool {
        for committed in 0..COMMITS_PER_STEP {
            if self.core.stopped.is_some() || !self.front_is_ready() {
                return committed > 0;
            }
            match self.commit_front() {
                Ok(true) => {}
                Ok(false) => return committed > 0,
                Err(error) => return self.stop_for(&error) || committed > 0,
            }
        }
        true
    }

    fn commit_front(&mut self) -> Result<bool, PageError> {
        if self.core.devices.journal_is_behind() {
            return Ok(false);
        }
        let Some(group) = self.core.buffer.groups.front() else {
            self.core.violated(Invariant::GroupStaysUntilApplied);
            return Ok(false);
        };
        match &group.work {
            Work::Slots(_) => self.commit_slots(),
            Work::Unmap { volume, first, end } => {
                let (volume, first, end) = (volume.id, *first, *end);
                let applied =
                    commit_unmap(&mut self.core, &mut self.writes.pins, volume, first, end);
                self.answer_stop();
                applied
            }
            Work::Copy(range) => {
                let range = range.clone();
                let moved = commit_copy(&mut self.core, &mut self.writes.pins, &range);
                self.answer_stop();
                if moved {
                    // Who waited for what it has copied, or for its end.
                    self.reads.retry_parked();
                }
                Ok(moved)
            }
            Work::Admin { changes, .. } => {
                let changes = changes.clone();
                self.commit_admin(&changes)
            }
        }
    }

    fn commit_slots(&mut self) -> Result<bool, PageError> {
        if self.core.state.store.awaits(&self.writes.pins) {
            return Ok(false);
        }
        if self.core.placement.is_behind() || self.core.groups_wait_for_tables() {
            return Ok(false);
        }
        let Some(group) = self.core.buffer.groups.pop_front() else {
            self.core.violated(Invariant::GroupStaysUntilApplied);
            return Ok(false);
        };
        let mut maps = self.map_changes(group.slots());
        let outcome = self.try_commit_slots(&group, &mut maps);
        self.core.state.scratch.maps = self.core.state.scratch.emptied(maps);
        self.core.buffer.groups.push_front(group);
        if let Ok(true) = outcome {
            self.core.finish_group();
        }
        outcome
    }

    /// Applies a group with what it maps, if all that this takes is here.
    fn try_commit_slots(
        &mut self,
        group: &Group,
        maps: &mut Vec<Change>,
    ) -> Result<bool, PageError> {
        let stores = new_chunks(group);
        let heals = healed_chunks(group);
        if stores.len() != group.frames_made() {
            self.core.violated(Invariant::FrameForEachStore);
            return Ok(false);
        }
        if maps.len() * RUN_CHUNKS_MIN > group.slots().len() {
            self.core.state.touch_mapped(maps);
        }
        if !self.want_commit(maps, &stores, &heals)? {
            return Ok(false);
        }
        let body_bytes = CHANGE_BYTES_MAX * (group.slots().len() + stores.len() + 2);
        let frame_bytes: u64 = stores.iter().map(|new| room_of(new.length_bytes.into())).sum();
        let carried = self.carries(group.id, frame_bytes);
        let carried_bytes = if carried { frame_bytes as usize } else { 0 };
        if !self.core.journal_has_room(body_bytes + carried_bytes) {
            return Ok(false);
        }
        if !self.core.placement.has_room(frame_bytes) {
            // It was promised, and nobody else takes it: to wait would be for ever.
            self.core.violated(Invariant::PromisedRoomIsThere);
            return Ok(false);
        }
        let mut changes = std::mem::take(&mut self.core.state.scratch.changes);
        changes.reserve(maps.len() + stores.len() + 2);
        let begun = self.core.stages.now();
        for (frames, new) in group.frames.iter().flatten().zip(stores.chunks(JOB_CHUNKS)) {
            let (placement, bytes) = (&mut self.core.placement, &frames.bytes);
            let placed = match carried {
                true => placement.place_carried(bytes, new, &mut changes),
                false => placement.place_all(bytes, new, &mut changes),
            };
            if placed.is_none() {
                self.core.violated(Invariant::PromisedRoomIsThere);
                return Ok(false);
            }
        }
        self.core.stages.within(CoreStage::Pack, begun);
        store_otherwise(&mut changes, &heals, &chunks_unindexed(group), self.core.verifies());
        let half = changes.len() + maps.len() / 2;
        changes.append(maps);
        let popped = self.popped(&stores, heals.len());
        let rest = mutant!(SplitsGroup).then(|| changes.split_off(half));
        let durability = self.core.log.durability_of_next(carried);
        self.record_with(&changes, durability);
        rest.into_iter().for_each(|rest| self.record(&rest));
        self.core.state.scratch.changes = self.core.state.scratch.emptied(changes);
        self.let_go(group, (stores.len() - heals.len()) as u64, popped);
        self.duplicates.follow_runs(&mut self.core, group.slots());
        self.core.counters.chunks_healed += heals.len() as u64;
        heals.iter().for_each(|&pbn| self.core.note_popular(pbn));
        let stored_bytes = stores.iter().map(|new| u64::from(new.length_bytes));
        self.core.counters.frame_bytes_stored += stored_bytes.sum::<u64>();
        self.core.volumes.written.count(group, u64::from(self.core.geometry.chunk_bytes));
        Ok(true)
    }

    /// Records the administrative changes at the front of the write buffer.
    pub(crate) fn commit_admin(&mut self, changes: &[Change]) -> Result<bool, PageError> {
        if !self.core.journal_has_room(encoded(changes).len()) {
            return Ok(false);
        }
        let copies = changes.iter().flat_map(copied_versions).next().is_some();
        if copies && !self.core.copies_have_room() {
            return Ok(false);
        }
        self.record(changes);
        if self.core.stopped.is_some() {
            // It is not recorded: nobody sees it, and the group fails with the others.
            return Ok(false);
        }
        changes.iter().for_each(|change| show_version(&mut self.core, change));
        let group = self.core.buffer.applied_group() + 1;
        let answer = match self.core.buffer.groups.front_mut().map(|front| &mut front.work) {
            Some(Work::Admin { answer, .. }) => answer.take(),
            _ => {
                self.core.violated(Invariant::GroupStaysUntilApplied);
                None
            }
        };
        if let Some(answer) = answer {
            let answer = answer_of(&self.core, answer);
            self.core.flushes.wait_for(group, answer);
        }
        self.core.finish_group();
        Ok(true)
    }

    /// Whether the group's frames, of so many bytes with their directory entries, go along in its
    /// record: somebody waits for them, or will. In vain if the next round places frames anyway.
    fn carries(&self, group: u64, frame_bytes: u64) -> bool {
        let waited_for = self.core.flushes.is_expected(self.core.counters.writes)
            || self.core.flushes.is_waited_for(group);
        waited_for
            && frame_bytes <= CARRIED_BYTES_MAX
            && !self.core.placement.has_loose_frames()
            && self.core.placement.open_room_bytes(Stream::Clients) >= frame_bytes
    }

    /// How many of the chunks have their PBNs from the queue of free ones.
    fn popped(&self, stores: &[NewFrame], heals: usize) -> u64 {
        let known = stores.iter().filter(|new| new.pbn.0 < self.core.state.next_pbn);
        (known.count() - heals) as u64
    }

    /// Runs of what the group maps; chunks of volumes deleted meanwhile are left out, because
    /// nobody would give them back.
    fn map_changes(&mut self, slots: &[Slot]) -> Vec<Change> {
        let mut changes = std::mem::take(&mut self.core.state.scratch.maps);
        for slot in slots {
            if !self.is_mapped_somewhere(slot) {
                continue;
            }
            let pbn = match slot.plan {
                Plan::Duplicate(pbn)
                | Plan::New { pbn, .. }
                | Plan::Aside { pbn, .. }
                | Plan::Heal { pbn, .. } => pbn,
                _ => Pbn::NONE,
            };
            self.push_map(&mut changes, slot.volume, slot.lba, pbn);
        }
        changes
    }

    /// Neighbours become one run.
    fn push_map(&mut self, changes: &mut Vec<Change>, volume: VolumeId, lba: Lba, pbn: Pbn) {
        if let Some(Change::Map { volume: of, first, pbns }) = changes.last_mut()
            && *of == volume
            && first.0 + pbns.len() as u64 == lba.0
        {
            pbns.push(pbn);
            return;
        }
        let pbns = self.core.state.scratch.run_of(pbn);
        changes.push(Change::Map { volume, first: lba, pbns });
    }

    fn is_mapped_somewhere(&self, slot: &Slot) -> bool {
        slot.plan != Plan::Void && self.core.state.is_live(slot.volume)
    }

    fn want_commit(
        &mut self,
        maps: &[Change],
        stores: &[NewFrame],
        heals: &[Pbn],
    ) -> Result<bool, PageError> {
        let mut wanted = Wanted::default();
        let here = self.want_changes(maps, stores, heals, &mut wanted);
        self.core.hold_in(&mut self.writes.pins, wanted);
        here
    }

    fn want_changes(
        &mut self,
        maps: &[Change],
        stores: &[NewFrame],
        heals: &[Pbn],
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        let mut here = self.core.state.want_inserts(stores.len() as u64, wanted)?;
        for new in stores {
            here &= self.core.state.want_pba(new.pbn, wanted)?;
        }
        for &pbn in heals {
            here &= self.core.state.want_move(pbn, wanted)?;
        }
        let pops = self.popped(stores, heals.len());
        here &= self.core.state.want_free_pop(pops, wanted)?;
        for map in maps {
            here &= self.core.state.want_change(map, wanted)?;
        }
        Ok(here)
    }

    /// What looked-up chunks held is let go: they are in the tables now.
    fn let_go(&mut self, group: &Group, stored: u64, popped: u64) {
        for (at, slot) in group.slots().iter().enumerate() {
            if let (Plan::New { .. }, Some(fingerprint)) = (slot.plan, &slot.fingerprint) {
                let hash = self.core.state.hash.hash_of(fingerprint);
                self.duplicates.lookups.pending.remove(hash, SlotPlace::new(group.id, at));
            }
        }
        self.duplicates.lookups.popped_ahead -= popped;
        self.duplicates.lookups.fresh_ahead -= stored - popped;
    }
}

/// The chunks that a group stores, new ones and those it heals, in the order of their frames.
fn new_chunks(group: &Group) -> Vec<NewFrame> {
    let new_chunk = |slot: &Slot| {
        let (pbn, frame) = slot.plan.stores()?;
        let (fingerprint, (length_bytes, check)) = (slot.fingerprint?, group.frame(frame)?);
        Some(NewFrame { pbn, fingerprint, length_bytes, check })
    };
    group.slots().iter().filter_map(new_chunk).collect()
}

/// The chunks among those that are stored already, and whose frames are damaged.
fn healed_chunks(group: &Group) -> Vec<Pbn> {
    let healed = |slot: &Slot| match slot.plan {
        Plan::Heal { pbn, .. } => Some(pbn),
        _ => None,
    };
    group.slots().iter().filter_map(healed).collect()
}

/// The chunks among those that no look-up is to find.
fn chunks_unindexed(group: &Group) -> HashSet<Pbn> {
    let aside = |slot: &Slot| match slot.plan {
        Plan::Aside { pbn, .. } => Some(pbn),
        _ => None,
    };
    group.slots().iter().filter_map(aside).collect()
}

/// What is stored already only gets another place, which is `named` by its fingerprint where bytes
/// are compared; what is aside is not entered into the Hash-PBN table.
fn store_otherwise(changes: &mut [Change], heals: &[Pbn], asides: &HashSet<Pbn>, named: bool) {
    for change in changes.iter_mut().filter(|_| !heals.is_empty() || !asides.is_empty()) {
        let Change::Store { pbn, fingerprint, pba } = change else { continue };
        let (pbn, fingerprint, pba) = (*pbn, *fingerprint, *pba);
        if heals.contains(&pbn) {
            let fingerprint = named.then_some(fingerprint);
            *change = Change::Move { pbn, to: pba, fingerprint };
        } else if asides.contains(&pbn) {
            *change = Change::StoreAside { pbn, fingerprint, pba };
        }
    }
}
