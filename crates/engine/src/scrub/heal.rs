//! Scrub of one container, last part: what is damaged heals where a second copy exists.
//!
//! A chunk's second copy is in the memory of the open container, or in the write buffer, in a
//! duplicate that had been looked up before the damage was known (one that is looked up later
//! heals by itself: `Plan::Heal`). It is stored at a new place, as collection does: a `Move`. A
//! dead chunk needs no copy; it is forgotten, so that no duplicate is mapped to it any more. What
//! is stored twice heals by its other frame ([`crate::copies`]), whichever of both is damaged.

use disk::AlignedBuf;
use format::BLOCK_BYTES;
use format::directory::{DirectoryEntry, encode_tail, tail_bytes};
use format::domain::DomainId;
use format::frame::{self, ChunkName};
use format::record::Change;
use format::root::Stream;
use format::units::{CONTAINER_BYTES, ContainerId, Fingerprint, Pba, Pbn};
use reduce::{Verdict, compress_frame, frame_bytes_max};
use tables::{pbn_pba, second_copies};

use crate::check::problem::Problem;
use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::core::record::CHANGE_BYTES_MAX;
use crate::pages::wanted::Wanted;
use crate::placement::{Placed, room_of};
use crate::scrub::ScrubPosition;
use crate::scrub::damage::Evidence;
use crate::scrub::stages::{ContainerPhase, ContainerScrub, Listed};
use crate::scrub::state::{Progress, Running};
use crate::write::buffer::Work;
use crate::write::slot::{Plan, SlotData};
use crate::zone_name;

impl ContainerScrub {
    /// Heals the damaged chunks one by one, as far as that can be done.
    pub(crate) fn heal_container(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        let Some(&frame) = self.to_heal.last() else {
            self.phase = ContainerPhase::Mending;
            return Progress::Moved;
        };
        let Some(may_change) = want_heal(core, running, &frame) else { return Progress::Waits };
        if !may_change {
            self.to_heal.pop();
            running.found(problem(&frame, self.id), false);
            return Progress::Moved;
        }
        if self.waits_for_copy(core, &frame) {
            return Progress::Waits;
        }
        self.to_heal.pop();
        if frame.is_copy {
            self.drop_damaged_copy(core, running, &frame);
            return Progress::Moved;
        }
        let stored = pbn_pba::get(&core.state.store, frame.pbn);
        let Some(stored) = stored.filter(|stored| stored.pba.is_place_of(frame.pba(self.id)))
        else {
            if self.suspected == Some(frame.pbn) {
                let (pbn, container) = (frame.pbn.0, self.id.0);
                running.found(Problem::DamagedFrame { pbn, container }, true);
            }
            // It was moved or forgotten: nobody misses this frame.
            return Progress::Moved;
        };
        let evidence = Evidence::of(self.bytes_of(&frame), frame.pbn, stored.pba.check);
        core.damage.note(frame.pbn, self.id, evidence);
        let is_dead = stored.references == 0 && !core.buffer.held().contains(&frame.pbn);
        let healed = core.stopped.is_none()
            && core.journal_has_room(2 * CHANGE_BYTES_MAX)
            && (if is_dead {
                forget_damaged(core, running, &frame)
            } else {
                heal_chunk(core, &frame, stored.pba)
            });
        running.found(problem(&frame, self.id), healed);
        Progress::Moved
    }

    /// Whether a chunk's second copy is still being looked at, to take the damaged frame's place.
    fn waits_for_copy(&mut self, core: &mut Core, frame: &Listed) -> bool {
        let stored = pbn_pba::get(&core.state.store, frame.pbn);
        let is_here = stored.is_some_and(|stored| stored.pba.is_place_of(frame.pba(self.id)));
        let heals = is_here && frame.verdict == Verdict::Damaged && core.stopped.is_none();
        if heals && self.suspected != Some(frame.pbn) {
            self.suspected = Some(frame.pbn);
            core.suspect(frame.pbn);
        }
        heals && core.copy_lists.is_suspect(frame.pbn)
    }

    /// The chunk itself is elsewhere, and gets another copy; one not seen stays until then.
    fn drop_damaged_copy(&self, core: &mut Core, running: &mut Running, frame: &Listed) {
        let copy = second_copies::get(&core.state.store, frame.pbn);
        if !copy.is_some_and(|copy| copy.is_place_of(frame.pba(self.id))) {
            return;
        }
        let was_read = self.was_read(frame);
        if !was_read {
            core.copy_lists.want_another(frame.pbn);
        }
        let healed = was_read && core.stopped.is_none() && core.journal_has_room(CHANGE_BYTES_MAX);
        if healed {
            core.record(&[Change::DropCopy { pbn: frame.pbn }]);
        }
        running.found(problem(frame, self.id), healed);
    }

    /// Writes the directory again from the frames, if it is damaged and they are all known: one
    /// that leaves chunks out is worse than none, in whose place a repair looks at the frames. And
    /// what a device does not give now it may give later, the directory too.
    pub(crate) fn mend_container(&mut self, core: &mut Core, running: &mut Running) -> Progress {
        let is_wanted = self.is_sealed() && !self.directory_is_sound && self.is_in_life(core);
        let is_known = !self.lacks_pages && self.unread_frames_at().is_none();
        if !is_wanted || !is_known || core.stopped.is_some() {
            return self.end_container(core, running, None);
        }
        let entries: Vec<DirectoryEntry> = self.frames.iter().filter_map(entry).collect();
        let tail_bytes = tail_bytes(entries.len()).next_multiple_of(BLOCK_BYTES);
        let frames_end = self.life.used_bytes.next_multiple_of(BLOCK_BYTES as u32);
        let Some((zone, start_bytes)) = core.geometry.container_zone(self.id) else {
            core.violated(Invariant::ContainersKeepNumbers);
            return self.end_container(core, running, None);
        };
        if frames_end as usize + tail_bytes > CONTAINER_BYTES as usize {
            return self.end_container(core, running, Some(false));
        }
        let tail = encode_tail(&entries, self.id, self.life.sequence, core.geometry.uuid);
        let mut buf = AlignedBuf::new_zeroed(tail_bytes);
        buf[tail_bytes - tail.len()..].copy_from_slice(&tail);
        let offset_bytes = start_bytes + u64::from(CONTAINER_BYTES) - tail_bytes as u64;
        running.io.write(&mut core.devices, zone, offset_bytes, buf);
        self.phase = ContainerPhase::Writing { zone };
        Progress::Moved
    }

    /// The container has been gone through. `mended` says whether its directory could be written
    /// again, if that was tried.
    pub(crate) fn end_container(
        &self,
        core: &mut Core,
        running: &mut Running,
        mended: Option<bool>,
    ) -> Progress {
        core.placement.space.unpin(self.id);
        core.live_watch = None;
        running.step.frames += self.frames_sound;
        let healed = mended == Some(true);
        if self.is_sealed() && !self.directory_is_sound && self.is_in_life(core) {
            running.found(Problem::Directory { container: self.id.0 }, healed);
        }
        if let Some(unread_at) = self.unread_frames_at().filter(|_| !self.directory_is_sound)
            && let Some((zone, start_bytes)) = core.geometry.container_zone(self.id)
        {
            let offset_bytes = start_bytes + u64::from(unread_at);
            running.found(Problem::Unreadable { zone: zone_name(zone), offset_bytes }, false);
        }
        if self.lacks_pages && self.is_in_life(core) {
            running.found(Problem::UnjudgedContainer { container: self.id.0 }, false);
        }
        let is_judged = (self.directory_is_sound || healed) && !self.lacks_pages;
        if is_judged && !core.damage.is_in(self.id) {
            core.placement.space.mark_sound(self.id);
        }
        Progress::Done(Some(ScrubPosition::Containers { container: self.id.0.saturating_add(1) }))
    }

    /// Whether the container is still what it was when it was chosen.
    pub(crate) fn is_in_life(&self, core: &Core) -> bool {
        let now = core.state.containers.get(self.id);
        (now.state, now.sequence) == (self.life.state, self.life.sequence)
    }
}

/// Asks for the pages that healing a chunk needs; none while some have to be read. False if
/// one that says where it is, or its copy, is damaged: then nothing is changed, since a
/// recovery could not make the change. What only forgetting it needs is asked for again.
fn want_heal(core: &mut Core, running: &mut Running, frame: &Listed) -> Option<bool> {
    let mut wanted = Wanted::default();
    let (mut here, may_change) = core.state.want_places(frame.pbn, &mut wanted);
    if let Some(fingerprint) = &frame.fingerprint {
        here &= core.state.want_forget(frame.pbn, &mut wanted).unwrap_or(true);
        here &= core.state.want_lookup(fingerprint, &mut wanted).unwrap_or(true);
    }
    core.hold_in(&mut running.pins, wanted);
    here.then_some(may_change)
}

fn forget_damaged(core: &mut Core, running: &mut Running, frame: &Listed) -> bool {
    let Some(fingerprint) = frame.fingerprint else { return false };
    let pbn = frame.pbn;
    let mut wanted = Wanted::default();
    let forget = core.state.want_forget(pbn, &mut wanted);
    let here =
        forget.and_then(|here| Ok(here & core.state.want_lookup(&fingerprint, &mut wanted)?));
    core.hold_in(&mut running.pins, wanted);
    // Where a page is damaged nothing is changed. An entry under another fingerprint would be
    // left behind; but an unindexed chunk has none, and then its directory has to be believed.
    let found = || core.state.hash.lookup(&core.state.store, &fingerprint) == Some(pbn);
    let may_be_aside = core.verifies() || !core.state.is_entered(pbn);
    let is_aside = may_be_aside && frame.verdict == Verdict::Damaged;
    if !matches!(here, Ok(true)) || !(is_aside || found()) {
        return false;
    }
    core.record(&[Change::Forget { pbn, fingerprint }]);
    true
}

fn heal_chunk(core: &mut Core, frame: &Listed, place: Pba) -> bool {
    let Some(copy) = second_copy(core, frame, place) else { return false };
    let room_bytes = room_of(copy.len() as u64);
    if core.placement.is_behind() || !core.placement.has_room(room_bytes) {
        return false;
    }
    let Some(fingerprint) = frame.fingerprint else { return false };
    // What is promised to writes would be missed by them: where nothing gives room back, they
    // would wait for ever.
    let healed = core.store_reserved(|core| {
        let mut changes = Vec::new();
        let placed = Placed { frame: &copy, pbn: frame.pbn, fingerprint };
        let to = core.placement.place(Stream::Clients, &placed, &mut changes)?;
        changes.push(core.moved(frame.pbn, to, &fingerprint));
        core.damage.begin_heal(frame.pbn);
        core.record(&changes);
        Some(())
    });
    healed.flatten().is_some()
}

/// A sound frame of the chunk from memory.
fn second_copy(core: &Core, frame: &Listed, place: Pba) -> Option<Vec<u8>> {
    let kept = core.placement.read(place);
    let is_sound = |bytes: &[u8]| {
        frame.verdict == Verdict::Damaged && frame::is_meant(bytes, frame.pbn, place.check)
    };
    kept.filter(|kept| is_sound(kept)).map(|kept| kept.into_owned()).or_else(|| {
        let (chunk, domain) = buffered_duplicate(core, frame.pbn)?;
        let plain = chunk.bytes();
        let name = ChunkName { pbn: frame.pbn, domain };
        let mut bytes = vec![0; frame_bytes_max(plain.len())];
        let length_bytes = compress_frame(core.state.compression, name, plain, &mut bytes);
        bytes.truncate(length_bytes);
        Some(bytes)
    })
}

/// The bytes of a buffered write that is about to be mapped to this chunk, and its domain.
fn buffered_duplicate(core: &Core, pbn: Pbn) -> Option<(&reduce::ChunkRef, DomainId)> {
    let groups = core.buffer.groups.iter();
    let slots = groups.filter(|group| matches!(group.work, Work::Slots(_)));
    slots.flat_map(|group| group.slots()).find_map(|slot| match &slot.data {
        SlotData::Whole(chunk) if slot.plan == Plan::Duplicate(pbn) => {
            Some((chunk, core.volumes.domains.of(slot.volume)))
        }
        _ => None,
    })
}

/// What is wrong with a frame that was judged to be damaged.
fn problem(frame: &Listed, container: ContainerId) -> Problem {
    let (pbn, container) = (frame.pbn.0, container.0);
    match frame.verdict {
        _ if frame.is_copy => Problem::DamagedCopy { pbn, container },
        Verdict::Damaged => Problem::DamagedFrame { pbn, container },
        _ => Problem::WrongFingerprint { pbn, container },
    }
}

/// What the directory is to say of a frame; nothing of one that is damaged or means nothing.
fn entry(frame: &Listed) -> Option<DirectoryEntry> {
    let Listed { pbn, offset_bytes, length_bytes, fingerprint, verdict, placed, .. } = *frame;
    let fingerprint: Fingerprint = fingerprint.filter(|_| placed && verdict != Verdict::Damaged)?;
    Some(DirectoryEntry { fingerprint, pbn, offset_bytes, length_bytes })
}
