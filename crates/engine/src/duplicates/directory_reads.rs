//! Directories are brought in where duplicates come in runs, and asked before buckets are read.
//!
//! *Far* is a duplicate whose bucket was not in memory. Many far ones of one group in one container
//! are a run; its directory is read, then those of the containers that were filled after it, until
//! they name as many chunks as groups on their way may hold: what a directory is to save, it must
//! save before those groups ask for buckets. One is read at a time, its end first, which in most
//! containers is all of it.

use containers::{directory_in_tail, directory_range, footer};
use disk::AlignedBuf;
use format::BLOCK_BYTES;
use format::container_page::ContainerState;
use format::pba_page::PbaEntry;
use format::units::{CONTAINER_BYTES, ContainerId, Fingerprint, Pbn};
use tables::{PageError, Seen, pbn_pba};

use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::devices::Purpose;
use crate::duplicates::Duplicates;
use crate::duplicates::candidates::{Compared, Outcome};
use crate::pages::wanted::Wanted;
use crate::scrub::damage::Evidence;
use crate::write::buffer::Group;
use crate::write::slot::{GROUP_SLOTS, Plan, Slot, SlotData};

/// Far duplicates of one group in one container that are a run. Fewer are read bucket by bucket,
/// for about as many bytes as the directory of a container of half compressible chunks has.
const RUN_MIN: usize = 32;

/// Chunks that directories ahead of a run should name: those of all groups on their way.
const ENTRIES_AHEAD: usize = 16 * GROUP_SLOTS;
/// Containers ahead of a run that are looked at.
const CONTAINERS_AHEAD: u32 = 16;

/// The end of a container that is read first.
const TAIL_BYTES: u32 = 128 << 10;

impl Duplicates {
    /// Asks for the pages that decide what has been seen, and what PBNs a group takes.
    pub(crate) fn want_seen<'a>(
        &mut self,
        core: &mut Core,
        id: u64,
        fingerprints: impl Iterator<Item = &'a Fingerprint>,
        seen: &[Seen],
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        let group = core.buffer.group(id).map_or(&[][..], Group::slots);
        let count = group.iter().filter(|slot| slot.fingerprint.is_some()).count() as u64;
        let pops = (self.lookups.popped_ahead + count).min(core.superblock.free_pbns(&core.state));
        let mut here = core.state.want_free_pop(pops, wanted)?;
        let doubtful = core.placement.space.has_damaged();
        for pbn in seen.iter().filter(|_| doubtful).filter_map(Seen::stored) {
            here &= core.state.want_pba(pbn, wanted).unwrap_or(true);
        }
        if !here || awaits_candidates(core, id) || seen.contains(&Seen::Missing) {
            // All pages are held, or they might take turns in being here. What is denied has none.
            let led = fingerprints.zip(seen).filter(|(_, seen)| **seen != Seen::Denied);
            for (fingerprint, _) in led {
                here &= self.want_stored_chunk(core, fingerprint, wanted)?;
            }
        }
        Ok(here)
    }

    /// Asks for the pages that say whether a fingerprint is stored: the chunk's own where a
    /// directory names it, else those of the Hash-PBN table.
    pub(crate) fn want_stored_chunk(
        &mut self,
        core: &mut Core,
        fingerprint: &Fingerprint,
        wanted: &mut Wanted,
    ) -> Result<bool, PageError> {
        if let Some(listed) = self.directories.find(fingerprint) {
            match core.state.want_pba(listed.entry.pbn, wanted) {
                Ok(false) => return Ok(false),
                Ok(true) if self.listed_chunk(core, fingerprint).is_some() => return Ok(true),
                // Not there any more, or its page is damaged: the table knows.
                _ => self.directories.forget(fingerprint),
            }
        }
        core.state.want_lookup(fingerprint, wanted)
    }

    /// The chunk that a directory names, if it is still where the directory says; its page is here.
    fn listed_chunk(&self, core: &Core, fingerprint: &Fingerprint) -> Option<Pbn> {
        let listed = self.directories.find(fingerprint)?;
        let life = core.state.containers.get(listed.container);
        let is_alive = (life.state, life.sequence) == (ContainerState::Sealed, listed.sequence);
        let pbn = listed.entry.pbn;
        // What is aside stays out of all look-ups: the next duplicate would not find it.
        let entry = pbn_pba::get(&core.state.store, pbn).filter(|entry| !entry.aside)?;
        let is_there = entry.pba.is_place_of(listed.entry.place(listed.container));
        (is_alive && is_there).then_some(pbn)
    }

    /// What a look-up has come to, all that was wanted being here. What is still missing, and in no
    /// directory, does not exist.
    pub(crate) fn stored_chunk(
        &mut self,
        core: &mut Core,
        fingerprint: &Fingerprint,
        seen: Seen,
    ) -> Seen {
        if seen != Seen::Missing {
            return seen;
        }
        let Some(pbn) = self.listed_chunk(core, fingerprint) else { return seen };
        core.counters.chunks_found_by_directory += 1;
        Seen::Stored(pbn)
    }

    /// Brings in what runs of far duplicates need next; their pages are here.
    pub(crate) fn follow_runs(&mut self, core: &mut Core, slots: &[Slot]) {
        // Of a weak kind's chunks a directory may name one that the table does not: a duplicate of
        // the other would not be found.
        let is_exact = core.geometry.detection.kind.is_strong();
        if self.directories.reading || core.table_room.last_is_asked || !is_exact {
            return;
        }
        let mut runs: Vec<(ContainerId, usize)> = Vec::new();
        for slot in slots.iter().filter(|slot| slot.far) {
            let (Plan::Duplicate(pbn), SlotData::Whole(_)) = (slot.plan, &slot.data) else {
                continue;
            };
            let Some(entry) = pbn_pba::get(&core.state.store, pbn) else { continue };
            let container = entry.pba.container;
            match runs.iter_mut().rev().find(|(of, _)| *of == container) {
                Some((_, length)) => *length += 1,
                None => runs.push((container, 1)),
            }
        }
        for (container, _) in runs.into_iter().filter(|(_, length)| *length >= RUN_MIN) {
            self.directories.followed = Some(container);
            self.follow_run(core, container, None);
        }
    }

    /// The directory of this container is to be held, and those behind it; the next of them is
    /// read, if it lies behind `last`. So what follows a read never comes back to where it was,
    /// however little room there is.
    fn follow_run(&mut self, core: &mut Core, first: ContainerId, last: Option<ContainerId>) {
        let ahead_min = ENTRIES_AHEAD.min(self.directories.entries_of_one_max());
        let mut ahead = 0;
        for container in (first.0..).take(1 + CONTAINERS_AHEAD as usize).map(ContainerId) {
            let life = core.state.containers.get(container);
            let is_there = life.state == ContainerState::Sealed
                && !core.placement.is_in_memory(container)
                && (container.0 as usize) < core.state.containers.len();
            if !is_there || ahead >= ahead_min {
                return;
            }
            match self.directories.entries_of(container, life.sequence) {
                Some(entries) => {
                    self.directories.follow(container);
                    ahead += if container == first { 0 } else { entries };
                }
                None if last.is_none_or(|last| container > last) => {
                    return self.read_directory(core, container, life.sequence, TAIL_BYTES);
                }
                None => return,
            }
        }
    }

    fn read_directory(
        &mut self,
        core: &mut Core,
        container: ContainerId,
        sequence: u32,
        tail_bytes: u32,
    ) {
        let Some((zone, start_bytes)) = core.geometry.container_zone(container) else {
            return core.violated(Invariant::ContainersKeepNumbers);
        };
        if self.directories.reading || self.directories.entries_of_one_max() == 0 {
            return;
        }
        self.directories.reading = true;
        core.placement.space.pin(container);
        let offset_bytes = start_bytes + u64::from(CONTAINER_BYTES - tail_bytes);
        let purpose = Purpose::Directory { container, sequence };
        core.devices.read(zone, offset_bytes, tail_bytes as usize, purpose);
    }

    /// The end of a container has come; None when the device did not give it.
    pub(crate) fn directory_read(
        &mut self,
        core: &mut Core,
        container: ContainerId,
        sequence: u32,
        tail: Option<&AlignedBuf>,
    ) {
        core.placement.space.unpin(container);
        self.directories.reading = false;
        let tail = tail.map_or(&[][..], |tail| &tail[..]);
        let found = footer(container, sequence, core.geometry.uuid, tail).ok();
        let listed = found.as_ref().and_then(|found| directory_in_tail(found, tail));
        let tail_start = CONTAINER_BYTES - tail.len() as u32;
        let start = found.map(|found| directory_range(&found).start);
        if let Some(start) = start.filter(|&start| start < tail_start && core.stopped.is_none()) {
            let tail_bytes = (CONTAINER_BYTES - start).next_multiple_of(BLOCK_BYTES as u32);
            return self.read_directory(core, container, sequence, tail_bytes);
        }
        let entries = listed.and_then(Result::ok);
        core.counters.directories_read += 1;
        self.directories.hold(container, sequence, entries.unwrap_or_default());
        let followed = self.directories.followed.filter(|_| !core.table_room.last_is_asked);
        if let Some(first) = followed.filter(|_| core.stopped.is_none()) {
            self.follow_run(core, first, Some(container));
        }
    }
}

/// Whether a group waits for the pages that say where its candidates are. What those push out
/// of a small cache meanwhile would be looked for again, and push out those: for ever.
pub(crate) fn awaits_candidates(core: &Core, id: u64) -> bool {
    let is_due = |compared: &Compared| compared.outcome == Outcome::Due;
    core.buffer.group(id).is_some_and(|group| group.compared.iter().flatten().any(is_due))
}

/// A dead chunk in a container that is damaged may have no frame any more: it is listed as
/// damaged, so that the next write of it has it stored. Its page is here.
pub(crate) fn doubt_dead(core: &mut Core, pbn: Pbn) {
    if let Some(PbaEntry { references: 0, pba, .. }) = pbn_pba::get(&core.state.store, pbn)
        && core.placement.space.is_damaged(pba.container)
    {
        core.damage.note(pbn, pba.container, Evidence::Checksum);
    }
}

/// Remembers which chunks of a group were not seen at first sight.
pub(crate) fn mark_far(core: &mut Core, id: u64, seen: &[Seen]) {
    let Some(group) = core.buffer.group_mut(id) else {
        return core.violated(Invariant::GroupStaysUntilApplied);
    };
    let slots = group.slots_mut().iter_mut().filter(|slot| slot.sought_fingerprint().is_some());
    for (slot, _) in slots.zip(seen).filter(|(_, seen)| **seen == Seen::Missing) {
        slot.far = true;
    }
}
