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
use crate::core::record::CHANGE_BYTES_MAX;
use crate::engine::Engine;
use crate::pages::wanted::Wanted;
use crate::placement::{Placed, room_of};
use crate::scrub::damage::Evidence;
use crate::scrub::stages::{ContainerPhase, ContainerScrub, Listed};
use crate::scrub::state::{Progress, Running};
use crate::write::buffer::Work;
use crate::write::slot::{Plan, SlotData};

impl Engine {
    /// Heals the damaged chunks one by one, as far as that can be done.
    pub(crate) fn heal_container(
        &mut self,
        running: &mut Running,
        at: &mut ContainerScrub,
    ) -> Progress {
        let Some(&frame) = at.to_heal.last() else {
            at.phase = ContainerPhase::Mending;
            return Progress::Moved;
        };
        let Some(may_change) = self.want_heal(&frame) else { return Progress::Waits };
        if !may_change {
            at.to_heal.pop();
            running.found(problem(&frame, at.id), false);
            return Progress::Moved;
        }
        if self.waits_for_copy(at, &frame) {
            return Progress::Waits;
        }
        at.to_heal.pop();
        if frame.is_copy {
            self.drop_damaged_copy(running, at, &frame);
            return Progress::Moved;
        }
        let stored = pbn_pba::get(&self.core.state.store, frame.pbn);
        let Some(stored) = stored.filter(|stored| stored.pba.is_place_of(frame.pba(at.id))) else {
            if at.suspected == Some(frame.pbn) {
                let (pbn, container) = (frame.pbn.0, at.id.0);
                running.found(Problem::DamagedFrame { pbn, container }, true);
            }
            // It was moved or forgotten: nobody misses this frame.
            return Progress::Moved;
        };
        let evidence = Evidence::of(at.bytes_of(&frame), frame.pbn, stored.pba.check);
        self.core.damage.note(frame.pbn, at.id, evidence);
        let is_dead = stored.references == 0 && !self.core.buffer.held().contains(&frame.pbn);
        let healed = self.core.stopped.is_none()
            && self.core.journal_has_room(2 * CHANGE_BYTES_MAX)
            && (if is_dead {
                self.forget_damaged(&frame)
            } else {
                self.heal_chunk(&frame, stored.pba)
            });
        running.found(problem(&frame, at.id), healed);
        Progress::Moved
    }

    /// Whether a chunk's second copy is still being looked at, to take the damaged frame's place.
    fn waits_for_copy(&mut self, at: &mut ContainerScrub, frame: &Listed) -> bool {
        let stored = pbn_pba::get(&self.core.state.store, frame.pbn);
        let is_here = stored.is_some_and(|stored| stored.pba.is_place_of(frame.pba(at.id)));
        let heals = is_here && frame.verdict == Verdict::Damaged && self.core.stopped.is_none();
        if heals && at.suspected != Some(frame.pbn) {
            at.suspected = Some(frame.pbn);
            self.core.suspect(frame.pbn);
        }
        heals && self.core.copy_lists.is_suspect(frame.pbn)
    }

    /// The chunk itself is elsewhere, and gets another copy; one not seen stays until then.
    fn drop_damaged_copy(&mut self, running: &mut Running, at: &ContainerScrub, frame: &Listed) {
        let copy = second_copies::get(&self.core.state.store, frame.pbn);
        if !copy.is_some_and(|copy| copy.is_place_of(frame.pba(at.id))) {
            return;
        }
        let was_read = at.was_read(frame);
        if !was_read {
            self.core.copy_lists.want_another(frame.pbn);
        }
        let healed =
            was_read && self.core.stopped.is_none() && self.core.journal_has_room(CHANGE_BYTES_MAX);
        if healed {
            self.record(&[Change::DropCopy { pbn: frame.pbn }]);
        }
        running.found(problem(frame, at.id), healed);
    }

    /// Asks for the pages that healing a chunk needs; none while some have to be read. False if
    /// one that says where it is, or its copy, is damaged: then nothing is changed, since a
    /// recovery could not make the change. What only forgetting it needs is asked for again.
    fn want_heal(&mut self, frame: &Listed) -> Option<bool> {
        let mut wanted = Wanted::default();
        let (mut here, may_change) = self.core.state.want_places(frame.pbn, &mut wanted);
        if let Some(fingerprint) = &frame.fingerprint {
            here &= self.core.state.want_forget(frame.pbn, &mut wanted).unwrap_or(true);
            here &= self.core.state.want_lookup(fingerprint, &mut wanted).unwrap_or(true);
        }
        self.core.hold_pages(wanted, |held| &mut held.scrub);
        here.then_some(may_change)
    }

    fn forget_damaged(&mut self, frame: &Listed) -> bool {
        let Some(fingerprint) = frame.fingerprint else { return false };
        let pbn = frame.pbn;
        let mut wanted = Wanted::default();
        let forget = self.core.state.want_forget(pbn, &mut wanted);
        let here = forget
            .and_then(|here| Ok(here & self.core.state.want_lookup(&fingerprint, &mut wanted)?));
        self.core.hold_pages(wanted, |held| &mut held.scrub);
        // Where a page is damaged nothing is changed. An entry under another fingerprint would be
        // left behind; but an unindexed chunk has none, and then its directory has to be believed.
        let found =
            || self.core.state.hash.lookup(&self.core.state.store, &fingerprint) == Some(pbn);
        let may_be_aside = self.core.verifies() || !self.core.state.is_entered(pbn);
        let is_aside = may_be_aside && frame.verdict == Verdict::Damaged;
        if !matches!(here, Ok(true)) || !(is_aside || found()) {
            return false;
        }
        self.record(&[Change::Forget { pbn, fingerprint }]);
        true
    }

    fn heal_chunk(&mut self, frame: &Listed, place: Pba) -> bool {
        let Some(copy) = self.second_copy(frame, place) else { return false };
        let room_bytes = room_of(copy.len() as u64);
        if self.core.placement.is_behind() || !self.core.placement.has_room(room_bytes) {
            return false;
        }
        let Some(fingerprint) = frame.fingerprint else { return false };
        // What is promised to writes would be missed by them: where nothing gives room back, they
        // would wait for ever.
        let healed = self.core.store_reserved(|core| {
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
    fn second_copy(&self, frame: &Listed, place: Pba) -> Option<Vec<u8>> {
        let kept = self.core.placement.read(place);
        let is_sound = |bytes: &[u8]| {
            frame.verdict == Verdict::Damaged && frame::is_meant(bytes, frame.pbn, place.check)
        };
        kept.filter(|kept| is_sound(kept)).map(|kept| kept.into_owned()).or_else(|| {
            let (chunk, domain) = self.buffered_duplicate(frame.pbn)?;
            let plain = chunk.bytes();
            let name = ChunkName { pbn: frame.pbn, domain };
            let mut bytes = vec![0; frame_bytes_max(plain.len())];
            let length_bytes = compress_frame(self.core.state.compression, name, plain, &mut bytes);
            bytes.truncate(length_bytes);
            Some(bytes)
        })
    }

    /// The bytes of a buffered write that is about to be mapped to this chunk, and its domain.
    fn buffered_duplicate(&self, pbn: Pbn) -> Option<(&reduce::ChunkRef, DomainId)> {
        let groups = self.core.buffer.groups.iter();
        let slots = groups.filter(|group| matches!(group.work, Work::Slots(_)));
        slots.flat_map(|group| group.slots()).find_map(|slot| match &slot.data {
            SlotData::Whole(chunk) if slot.plan == Plan::Duplicate(pbn) => {
                Some((chunk, self.core.volumes.domains.of(slot.volume)))
            }
            _ => None,
        })
    }

    /// Writes the directory again from the frames, if it is damaged and they are all known: one
    /// that leaves chunks out is worse than none, in whose place a repair looks at the frames. And
    /// what a device does not give now it may give later, the directory too.
    pub(crate) fn mend_container(
        &mut self,
        running: &mut Running,
        at: &mut ContainerScrub,
    ) -> Progress {
        let is_wanted = at.is_sealed() && !at.directory_is_sound && self.is_in_life(at);
        let is_known = !at.lacks_pages && at.unread_frames_at().is_none();
        if !is_wanted || !is_known || self.core.stopped.is_some() {
            return self.end_container(running, at, None);
        }
        let entries: Vec<DirectoryEntry> = at.frames.iter().filter_map(entry).collect();
        let tail_bytes = tail_bytes(entries.len()).next_multiple_of(BLOCK_BYTES);
        let frames_end = at.life.used_bytes.next_multiple_of(BLOCK_BYTES as u32);
        let Some((zone, start_bytes)) = self.core.geometry.container_zone(at.id) else {
            return self.end_container(running, at, None);
        };
        if frames_end as usize + tail_bytes > CONTAINER_BYTES as usize {
            return self.end_container(running, at, Some(false));
        }
        let tail = encode_tail(&entries, at.id, at.life.sequence, self.core.geometry.uuid);
        let mut buf = AlignedBuf::new_zeroed(tail_bytes);
        buf[tail_bytes - tail.len()..].copy_from_slice(&tail);
        let offset_bytes = start_bytes + u64::from(CONTAINER_BYTES) - tail_bytes as u64;
        self.scrub_write(&mut running.io, zone, offset_bytes, buf);
        at.phase = ContainerPhase::Writing;
        Progress::Moved
    }
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
