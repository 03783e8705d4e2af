//! Volumes and settings: changes that are points in the one prefix order.
//!
//! Creating, resizing, renaming and deleting are groups of the write buffer like writes, recorded
//! in the same journal, and answered when they are durable. Names are claimed when the request is
//! taken (what makes versions may wait for room before), so two requests for one name cannot both
//! succeed. Such a group is one record, so the code that queues one sees to it that it fits into
//! one: it would stand before all others for ever.
//!
//! Who decides looks at a volume first, or asks a person, and by then its name may be another's. So
//! what destroys says what it is about, by numbers, and is judged here where nothing comes between:
//! only that is deleted or abandoned, and nothing shrinks that was to grow.
//!
//! Deleting marks the volume and answers; it is given back in the background, piece by piece
//! (`versions.rs`), and its slot in the catalog last. With more snapshots than a record holds it
//! is several groups, the volume in the last of them. A crash in between goes on where it was.
//! Shrinking first forbids the tail, then unmaps it, then changes the size, in this order of the
//! write buffer: a volume that grows again reads zeros.

use std::mem;
use std::sync::Arc;

use format::catalog::{Lineage, VolumeState};
use format::record::{BODY_BYTES_MAX, Change};
use format::units::VolumeId;
use tables::PageError;

use crate::control::{Asked, DeleteRequest, ResizeVolume, SetQuota, Verb};
use crate::core::flush_queue::Answer;
use crate::core::record::{encoded, in_records};
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::outcome::VolumeInfo;
use crate::door::volume::{SECTOR_BYTES, VOLUME_BYTES_MAX, VolumeShared};
use crate::engine::{Closing, Engine};
use crate::evacuate::leaving::list_zones;
use crate::grow::enlarging::{Then, Wish};
use crate::space::waiting::Waiting;
use crate::volumes::shared_of;
use crate::volumes::versions::copied_versions;
use crate::write::buffer::{AdminAnswer, Work};
use crate::write::unmap::Piece;

/// What is recorded for a request that is answered with nothing.
pub(crate) type Queued = Result<Vec<Change>, RequestError>;

/// What is recorded for a request that is answered with what this volume has become.
pub(crate) type QueuedOf = Result<(Vec<Change>, VolumeId), RequestError>;

pub(crate) fn check_size(size_bytes: u64) -> Result<(), RequestError> {
    let fits = (SECTOR_BYTES..=VOLUME_BYTES_MAX).contains(&size_bytes);
    if fits && size_bytes.is_multiple_of(SECTOR_BYTES) {
        return Ok(());
    }
    Err(RequestError::BadSize { size_bytes })
}

impl Engine {
    /// Carries out or queues what was asked in the control language.
    pub(crate) fn accept_verb(&mut self, verb: Verb) {
        if !self.has_room_for_versions(&verb) {
            return self.wait_for_versions(verb);
        }
        match verb {
            Verb::Open(Asked { verb, done }) => {
                done.finish(self.core.volumes.open(&verb.name, verb.opener));
            }
            Verb::ListOpens(Asked { verb, done }) => {
                done.finish(self.core.volumes.get(&verb.name).map(|volume| volume.opens.list()));
            }
            Verb::CloseOpens(Asked { verb, done }) => {
                let volume = self.core.volumes.get(&verb.name);
                done.finish(volume.map(|volume| volume.opens.close(verb.ending)));
            }
            Verb::ListVolumes(Asked { verb, done }) => {
                done.reply(self.list_volumes(verb.after.as_deref(), verb.most));
            }
            Verb::GetCompression(asked) => asked.done.reply(self.core.state.compression),
            Verb::GetStats(asked) => asked.done.reply(self.stats()),
            Verb::GetGeometry(asked) => asked.done.reply(self.core.geometry.clone()),
            Verb::NewVolume(Asked { verb, done }) => self.accept_volume(verb, done),
            Verb::Grow(asked) => self.core.superblock.wishes.push_back(Wish::Growth(asked)),
            Verb::Explain(asked) => self.explaining.accept(asked),
            Verb::DifferenceRequest(asked) => self.walks.accept_difference(&self.core, asked),
            Verb::WeightRequest(asked) => self.walks.accept_weight(&self.core, asked),
            Verb::ScrubRequest(Asked { verb, done }) => self.scrub.accept(verb, done),
            Verb::CollectRequest(Asked { verb, done }) => {
                self.collection.accept(&self.core, verb, done)
            }
            Verb::ListZones(asked) => asked.done.reply(list_zones(&self.core)),
            Verb::EvacuateZone(asked) => self.collection.accept_evacuation(&self.core, asked),
            Verb::KeepZone(asked) => self.evacuation.accept_keep(&mut self.core, asked),
            Verb::RetireZone(asked) => self.evacuation.accept(&self.core, asked),
            Verb::Close(asked) => self.begin_close(asked.done),
            Verb::SetDedup(Asked { verb, done }) => self.accept_dedup(verb, done),
            Verb::SetVolumeCompression(Asked { verb, done }) => self.accept_codec(verb, done),
            Verb::SetReservation(asked) => self.accept_reservation(asked),
            verb => self.accept_change(verb),
        }
    }

    /// Goes on with what another geometry had to come before.
    pub(crate) fn go_on(&mut self, then: Then) {
        match then {
            // A request before it may have taken the room that it found.
            Then::Make(verb, done) => self.accept_verb(Verb::NewVolume(Asked { verb, done })),
            Then::LeaveAside(verb, done) => self.accept_dedup(verb, done),
            Then::HaveCodec(verb, done) => self.accept_codec(verb, done),
            Then::Reserve(asked) => self.accept_reservation(asked),
            // The group looks for the mark itself.
            Then::GoOn => {}
        }
    }

    /// Queues a change that nothing has to come before.
    fn accept_change(&mut self, verb: Verb) {
        match verb {
            Verb::ResizeVolume(asked) => match self.resize(&asked.verb) {
                // The rest of a chunk at the new end is written like any other.
                Err(RequestError::NoSpace) => {
                    self.core.waiting.push_back(Waiting::Change(Verb::ResizeVolume(asked)));
                }
                queued => self.queue_of(queued, asked.done),
            },
            Verb::RenameVolume(Asked { verb, done }) => {
                let queued = self.rename(&verb.name, &verb.new_name);
                self.queue_of(queued, done);
            }
            Verb::SetQuota(Asked { verb, done }) => {
                let queued = self.set_quota(&verb);
                self.queue_of(queued, done);
            }
            Verb::DeleteRequest(Asked { verb, done }) => {
                let queued = self.delete(&verb);
                self.queue(queued, done);
            }
            Verb::SnapshotRequest(Asked { verb, done }) => {
                let queued = self.take_snapshots(&verb);
                self.queue(queued, done);
            }
            Verb::TakeCopied(Asked { verb, done }) => {
                let queued = self.take_copied(&verb);
                self.queue(queued, done);
            }
            Verb::CloneVolume(Asked { verb, done }) => {
                let queued = self.clone_volume(&verb);
                self.queue_of(queued, done);
            }
            Verb::Rollback(Asked { verb, done }) => {
                let queued = self.roll_back(&verb);
                self.queue_of(queued, done);
            }
            Verb::SetCompression(Asked { verb, done }) => {
                self.queue(Ok(vec![Change::SetCompression(verb.compression)]), done);
            }
            verb => unreachable!("{:?} changes nothing by itself", mem::discriminant(&verb)),
        }
    }

    /// Waits for room, unless the request fails with all the room there is.
    fn wait_for_versions(&mut self, verb: Verb) {
        match self.check_versions(&verb) {
            Ok(()) => self.core.waiting.push_back(Waiting::Change(verb)),
            Err(error) => verb.fail(error),
        }
    }

    /// Queues what a request is to change, or fails it.
    pub(crate) fn queue(&mut self, queued: Queued, done: Done<()>) {
        match queued {
            Ok(changes) => self.queue_changes(changes, AdminAnswer::Done(done)),
            Err(error) => done.fail(error),
        }
    }

    /// The same of one that is answered with a volume.
    pub(crate) fn queue_of(&mut self, queued: QueuedOf, done: Done<VolumeInfo>) {
        match queued {
            Ok((changes, id)) => self.queue_changes(changes, AdminAnswer::Volume(done, id)),
            Err(error) => done.fail(error),
        }
    }

    fn queue_changes(&mut self, changes: Vec<Change>, answer: AdminAnswer) {
        debug_assert!(encoded(&changes).len() <= BODY_BYTES_MAX, "it would wait for ever");
        self.core.buffer.push_closed(Work::Admin { changes, answer: Some(answer) });
    }

    fn list_volumes(&self, after: Option<&str>, most: usize) -> Vec<VolumeInfo> {
        let volumes = self.core.volumes.iter_after(after).take(most);
        volumes.map(|volume| self.describe(volume)).collect()
    }

    pub(crate) fn describe(&self, volume: &VolumeShared) -> VolumeInfo {
        let entry = self.core.state.catalog.get(volume.id);
        let mapped_chunks = entry.map_or(0, |entry| entry.mapped_chunks);
        let lineage = entry.map(|entry| &entry.lineage);
        let is_snapshot = lineage.is_some_and(|lineage| lineage.snapshot_of.is_some());
        VolumeInfo {
            name: volume.name(),
            id: volume.id.0,
            size_bytes: volume.size_bytes(),
            mapped_bytes: mapped_chunks * u64::from(self.core.geometry.chunk_bytes),
            read_only: volume.read_only,
            quota_bytes: volume.quota_bytes(),
            reservation_bytes: volume.reservation_bytes(),
            kind: volume.kind,
            dedup: entry.map(|entry| entry.dedup).unwrap_or_default(),
            compression: entry.and_then(|entry| entry.compression),
            dedup_active: self.core.volumes.seeking.dedup_active(volume.id),
            unindexed_chunks: self.core.volumes.seeking.unindexed_chunks(volume.id),
            domain: volume.domain.as_ref().map(|domain| domain.name.clone()),
            taken_unix_s: lineage.filter(|_| is_snapshot).map(|lineage| lineage.taken_unix_s),
            parent: lineage.and_then(|lineage| self.visible_parent(lineage)),
            origin: lineage.and_then(|lineage| lineage.origin),
        }
    }

    /// The next snapshot above a version that clients can see.
    fn visible_parent(&self, lineage: &Lineage) -> Option<String> {
        let mut above = lineage.parent;
        while let Some(entry) = above.and_then(|id| self.core.state.catalog.get(id)) {
            if entry.state == VolumeState::Live {
                return Some(self.core.state.full_name(entry));
            }
            above = entry.lineage.parent;
        }
        None
    }

    fn resize(&mut self, verb: &ResizeVolume) -> QueuedOf {
        let ResizeVolume { ref name, size_bytes, may_shrink, even_if_open } = *verb;
        check_size(size_bytes)?;
        let volume = Arc::clone(self.core.volumes.volume(name)?);
        self.core.volumes.check_still(&volume)?;
        volume.check_reserved(size_bytes)?;
        if size_bytes < volume.size_bytes() {
            if !may_shrink {
                let (size_bytes, asked_bytes) = (volume.size_bytes(), size_bytes);
                return Err(RequestError::WouldShrink {
                    name: volume.name(),
                    size_bytes,
                    asked_bytes,
                });
            }
            if !even_if_open {
                volume.check_unopened()?;
            }
            self.shrink(&volume, size_bytes)?;
        }
        volume.set_size_bytes(size_bytes);
        let change = Change::ResizeVolume { id: volume.id, size_bytes };
        Ok((vec![change], volume.id))
    }

    fn set_quota(&mut self, verb: &SetQuota) -> QueuedOf {
        let SetQuota { ref name, quota_bytes } = *verb;
        let volume = Arc::clone(self.core.volumes.volume(name)?);
        let chunk_bytes = self.core.geometry.chunk_bytes;
        if quota_bytes.is_some_and(|bytes| bytes < u64::from(chunk_bytes)) {
            return Err(RequestError::BadQuota { chunk_bytes });
        }
        volume.check_reserved(quota_bytes.unwrap_or(u64::MAX))?;
        let quota_bytes = quota_bytes.unwrap_or(0);
        {
            // From now on: what stands behind this request in the queue is under it, and no door is
            // between its look at the quota and an acknowledgement.
            let _intake = self.core.intake.lock();
            volume.set_quota_bytes(quota_bytes);
        }
        let change = Change::SetQuota { id: volume.id, quota_bytes };
        Ok((vec![change], volume.id))
    }

    fn rename(&mut self, name: &str, new_name: &str) -> QueuedOf {
        self.core.volumes.volume(name)?;
        self.core.volumes.check_free(new_name)?;
        self.core.volumes.check_settled(name)?;
        for snapshot in self.core.volumes.snapshots_of(name) {
            let own = snapshot.split_at(name.len()).1;
            self.core.volumes.rename(&snapshot, format!("{new_name}{own}"));
        }
        let Some(id) = self.core.volumes.rename(name, new_name.to_owned()) else {
            return Err(RequestError::NoSuchVolume { name: name.to_owned() });
        };
        let change = Change::RenameVolume { id, name: new_name.to_owned() };
        Ok((vec![change], id))
    }

    fn delete(&mut self, request: &DeleteRequest) -> Queued {
        let DeleteRequest { name, with_snapshots, id, newest, even_if_open } = request;
        self.core.volumes.get_meant(name, *id)?;
        self.core.volumes.check_settled(name)?;
        let mut names = self.core.volumes.snapshots_of(name);
        if !names.is_empty() && !with_snapshots {
            let (name, count) = (name.clone(), names.len());
            return Err(RequestError::HasSnapshots { name, count });
        }
        names.push(name.clone());
        let ids = names.iter().filter_map(|name| Some(self.core.volumes.by_name.get(name)?.id.0));
        if newest.is_some_and(|newest| ids.max() > Some(newest)) {
            return Err(RequestError::NewSnapshots { name: name.clone() });
        }
        if !even_if_open {
            names.iter().try_for_each(|name| self.core.volumes.get(name)?.check_unopened())?;
        }
        let gone: Vec<_> =
            names.iter().filter_map(|name| self.core.volumes.by_name.remove(name)).collect();
        gone.iter().for_each(|volume| self.end_promise(volume));
        let delete = |volume: Arc<VolumeShared>| {
            volume.set_gone();
            Change::DeleteVolume { id: volume.id }
        };
        let mut records = in_records(gone.into_iter().map(delete).collect());
        let last = records.pop().unwrap_or_default();
        for changes in records {
            self.core.buffer.push_closed(Work::Admin { changes, answer: None });
        }
        Ok(last)
    }

    /// Records the administrative changes at the front of the write buffer.
    pub(crate) fn commit_admin(&mut self, changes: &[Change]) -> Result<bool, PageError> {
        if !self.core.journal_has_room(encoded(changes).len()) {
            return Ok(false);
        }
        let copies = changes.iter().flat_map(copied_versions).next().is_some();
        if copies && !self.copies_have_room() {
            return Ok(false);
        }
        self.record(changes);
        changes.iter().for_each(|change| self.show_version(change));
        let group = self.core.buffer.applied_group() + 1;
        let answer = match self.core.buffer.groups.front_mut().map(|front| &mut front.work) {
            Some(Work::Admin { answer, .. }) => answer.take(),
            _ => None,
        };
        if let Some(answer) = answer {
            let answer = self.answer_of(answer);
            self.core.flushes.wait_for(group, answer);
        }
        self.finish_group();
        Ok(true)
    }

    /// The answer to a change that was just recorded. Volumes are described by the catalog: what
    /// stands behind in the queue may have taken a name from it.
    fn answer_of(&self, answer: AdminAnswer) -> Answer {
        match answer {
            AdminAnswer::Done(done) => Answer::Done(done),
            AdminAnswer::Volume(done, id) => {
                let Some(entry) = self.core.state.catalog.get(id) else {
                    unreachable!("volume {} was changed and is not in the catalog", id.0);
                };
                let volume = shared_of(&self.core.state, entry, self.core.geometry.chunk_bytes);
                Answer::Volume(done, Box::new(self.describe(&volume)))
            }
        }
    }

    /// What is being given back now. A store that is being closed goes on with it when it is
    /// opened again.
    pub(crate) fn deletion_going_on(&mut self) -> Option<VolumeId> {
        if self.core.is_closing {
            None
        } else {
            self.core.volumes.deletions.next(&self.core.state.catalog)
        }
    }

    /// Gives back what was deleted, one piece a step.
    pub(crate) fn advance_deletions(&mut self) -> bool {
        if self.core.stopped.is_some() {
            return false;
        }
        let Some(id) = self.deletion_going_on() else { return false };
        match self.give_back_piece(id) {
            Ok(Piece::Waits) => false,
            Ok(Piece::Applied(_)) => {
                self.core.volumes.deletions.began(id);
                true
            }
            Ok(Piece::Finished) => {
                self.core.volumes.deletions.ended(id);
                self.core.volumes.written.forget(id);
                true
            }
            Err(error) => self.stop_for(&error),
        }
    }

    fn begin_close(&mut self, done: Done<()>) {
        self.core.intake.refuse(RequestError::Closing);
        // What slipped in just before is part of what is drained.
        self.core.intake.take(&mut self.requests);
        self.core.buffer.close_open();
        match &mut self.closing {
            Closing::Draining(waiters) => waiters.push(done),
            Closing::Closed => done.reply(()),
            Closing::No => {
                self.core.is_closing = true;
                self.closing = Closing::Draining(vec![done]);
            }
        }
    }

    /// Asks for the last, clean checkpoint; true once it is durable.
    fn close_tables(&mut self) -> bool {
        self.core.table_room.last_is_asked = true;
        self.checkpoints.clean
    }

    /// Drains, checkpoints and ends, once a close was asked for.
    pub(crate) fn advance_closing(&mut self) -> bool {
        if !matches!(self.closing, Closing::Draining(_)) {
            return false;
        }
        let drained = self.core.buffer.groups.is_empty()
            && self.core.waiting.is_empty()
            && self.core.quota_line.is_empty()
            && self.requests.is_empty()
            && !self.reads.any()
            && self.parts().iter().all(|part| part.is_idle(&self.core));
        let ready = self.core.stopped.is_some() || (drained && self.close_tables());
        // Not even a read that nobody wants any more may reach the next that opens the disk.
        if !ready || self.core.devices.in_flight() > 0 {
            return false;
        }
        if let Closing::Draining(waiters) = mem::replace(&mut self.closing, Closing::Closed) {
            for done in waiters {
                done.finish(self.failure().map_or(Ok(()), Err));
            }
        }
        true
    }
}
