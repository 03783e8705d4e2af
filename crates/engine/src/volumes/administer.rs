//! Volumes and settings: changes that are points in the one prefix order.
//!
//! Creating, resizing, renaming and deleting are groups of the write buffer like writes, recorded
//! in the same journal, and answered when they are durable. Names are claimed when the request is
//! taken (what makes versions may wait for room before), so two requests for one name cannot both
//! succeed. Such a group is one record, so whoever queues one sees to it that it fits into one: it
//! would stand before all others for ever.
//!
//! Who decides looks at a volume first, or asks a person, and by then its name may be another's. So
//! what destroys says what it is about, by numbers, and is judged here where nothing comes between:
//! only that is deleted or given up, and nothing shrinks that was to grow.
//!
//! Deleting marks the volume and answers; it is given back in the background, piece by piece
//! (`versions.rs`), and its slot in the catalog last. With more snapshots than a record holds it
//! is several groups, the volume in the last of them. A crash in between goes on where it was.
//! Shrinking first forbids the tail, then unmaps it, then changes the size, in this order of the
//! write buffer: a volume that grows again reads zeros.

use std::sync::Arc;

use format::catalog::{Lineage, VolumeState};
use format::record::{BODY_BYTES_MAX, Change};
use format::units::VolumeId;
use tables::PageError;

use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::outcome::{Reply, VolumeInfo};
use crate::door::requests::{AdminRequest, DeleteRequest};
use crate::door::volume::{SECTOR_BYTES, VOLUME_BYTES_MAX, VolumeShared};
use crate::engine::{Closing, Engine};
use crate::space::waiting::Waiting;
use crate::volumes::shared_of;
use crate::volumes::versions::copied_versions;
use crate::write::buffer::{AdminAnswer, Work};
use crate::write::record::{encoded, in_records};
use crate::write::unmap::Piece;

/// What is recorded for a request, and how it is answered.
pub(crate) type Queued = Result<(Vec<Change>, AdminAnswer), RequestError>;

pub(crate) fn check_size(size_bytes: u64) -> Result<(), RequestError> {
    let fits = (SECTOR_BYTES..=VOLUME_BYTES_MAX).contains(&size_bytes);
    if fits && size_bytes.is_multiple_of(SECTOR_BYTES) {
        return Ok(());
    }
    Err(RequestError::BadSize { size_bytes })
}

impl Engine {
    /// Answers or queues an administrative request.
    pub(crate) fn accept_admin(&mut self, request: AdminRequest, done: Done) {
        if !self.has_room_for_versions(&request) {
            return self.wait_for_versions(request, done);
        }
        let queued = match request {
            AdminRequest::OpenVolume { name, opener } => {
                return done.finish(self.volumes.open(&name, opener).map(Reply::Volume));
            }
            AdminRequest::Opens { name } => {
                let opens = self.volumes.get(&name).map(|volume| volume.opens.list());
                return done.finish(opens.map(Reply::Opens));
            }
            AdminRequest::ListVolumes { after, most } => {
                return done.reply(Reply::Volumes(self.list_volumes(after.as_deref(), most)));
            }
            AdminRequest::Compression => {
                return done.reply(Reply::Compression(self.state.compression));
            }
            AdminRequest::Stats => return done.reply(Reply::Stats(Box::new(self.stats()))),
            AdminRequest::Geometry => {
                return done.reply(Reply::Geometry(Box::new(self.geometry.clone())));
            }
            AdminRequest::CreateVolume(volume) => return self.accept_volume(volume, done),
            AdminRequest::Grow { options, files } => {
                return self.accept_grow(options, files, done);
            }
            AdminRequest::Explain { volume, address } => {
                return self.accept_explain(volume, address, done);
            }
            AdminRequest::Difference(request) => {
                return self.accept_walk(self.begin_difference(&request), done);
            }
            AdminRequest::Weigh(request) => {
                return self.accept_walk(self.begin_weighing(request), done);
            }
            AdminRequest::Scrub(request) => return self.accept_scrub(request, done),
            AdminRequest::Collect(request) => return self.accept_collect(request, done),
            AdminRequest::Close => return self.begin_close(done),
            AdminRequest::ResizeVolume { ref name, size_bytes, may_shrink } => {
                match self.resize(name, size_bytes, may_shrink) {
                    // The rest of a chunk at the new end is written like any other.
                    Err(RequestError::NoSpace) => {
                        return self.waiting.push_back(Waiting::Change(request, done));
                    }
                    queued => queued,
                }
            }
            AdminRequest::RenameVolume { name, new_name } => self.rename(&name, &new_name),
            AdminRequest::SetQuota { name, quota_bytes } => self.set_quota(&name, quota_bytes),
            AdminRequest::SetDedup { name, dedup } => return self.accept_dedup(name, dedup, done),
            AdminRequest::DeleteVolume(request) => self.delete(&request),
            AdminRequest::TakeSnapshots(request) => self.take_snapshots(&request),
            AdminRequest::TakeCopied(request, origin) => self.take_copied(&request, origin),
            AdminRequest::CloneVolume { snapshot, name } => self.clone_volume(&snapshot, &name),
            AdminRequest::Rollback { snapshot, id } => self.roll_back(&snapshot, id),
            AdminRequest::SetCompression(compression) => {
                Ok((vec![Change::SetCompression(compression)], AdminAnswer::Done))
            }
        };
        self.queue(queued, done);
    }

    /// Waits for room, unless the request fails with all the room there is.
    fn wait_for_versions(&mut self, request: AdminRequest, done: Done) {
        match self.check_versions(&request) {
            Ok(()) => self.waiting.push_back(Waiting::Change(request, done)),
            Err(error) => done.fail(error),
        }
    }

    /// Queues what a request is to change, or fails it.
    pub(crate) fn queue(&mut self, queued: Queued, done: Done) {
        match queued {
            Ok((changes, answer)) => {
                debug_assert!(encoded(&changes).len() <= BODY_BYTES_MAX, "it would wait for ever");
                self.buffer.push_closed(Work::Admin { changes, answer: Some((done, answer)) });
            }
            Err(error) => done.fail(error),
        }
    }

    fn list_volumes(&self, after: Option<&str>, most: usize) -> Vec<VolumeInfo> {
        let volumes = self.volumes.iter_after(after).take(most);
        volumes.map(|volume| self.describe(volume)).collect()
    }

    fn describe(&self, volume: &VolumeShared) -> VolumeInfo {
        let entry = self.state.catalog.get(volume.id);
        let mapped_chunks = entry.map_or(0, |entry| entry.mapped_chunks);
        let lineage = entry.map(|entry| &entry.lineage);
        let is_snapshot = lineage.is_some_and(|lineage| lineage.snapshot_of.is_some());
        VolumeInfo {
            name: volume.name(),
            id: volume.id.0,
            size_bytes: volume.size_bytes(),
            mapped_bytes: mapped_chunks * u64::from(self.geometry.chunk_bytes),
            read_only: volume.read_only,
            quota_bytes: volume.quota_bytes(),
            dedup: entry.map(|entry| entry.dedup).unwrap_or_default(),
            looks_up: self.volumes.seeking.looks_up(volume.id),
            unsought_chunks: self.volumes.seeking.unsought_chunks(volume.id),
            domain: volume.domain.as_ref().map(|domain| domain.name.clone()),
            taken_unix_s: lineage.filter(|_| is_snapshot).map(|lineage| lineage.taken_unix_s),
            parent: lineage.and_then(|lineage| self.visible_parent(lineage)),
            origin: lineage.and_then(|lineage| lineage.origin),
        }
    }

    /// The next snapshot above a version that clients can see.
    fn visible_parent(&self, lineage: &Lineage) -> Option<String> {
        let mut above = lineage.parent;
        while let Some(entry) = above.and_then(|id| self.state.catalog.get(id)) {
            if entry.state == VolumeState::Live {
                return Some(self.state.full_name(entry));
            }
            above = entry.lineage.parent;
        }
        None
    }

    fn resize(&mut self, name: &str, size_bytes: u64, may_shrink: bool) -> Queued {
        check_size(size_bytes)?;
        let volume = Arc::clone(self.volumes.volume(name)?);
        self.volumes.check_still(&volume)?;
        if size_bytes < volume.size_bytes() {
            if !may_shrink {
                let (size_bytes, asked_bytes) = (volume.size_bytes(), size_bytes);
                return Err(RequestError::WouldShrink {
                    name: volume.name(),
                    size_bytes,
                    asked_bytes,
                });
            }
            self.shrink(&volume, size_bytes)?;
        }
        volume.set_size_bytes(size_bytes);
        let change = Change::ResizeVolume { id: volume.id, size_bytes };
        Ok((vec![change], AdminAnswer::VolumeInfo(volume.id)))
    }

    fn set_quota(&mut self, name: &str, quota_bytes: Option<u64>) -> Queued {
        let volume = Arc::clone(self.volumes.volume(name)?);
        if quota_bytes == Some(0) {
            return Err(RequestError::BadQuota);
        }
        let quota_bytes = quota_bytes.unwrap_or(0);
        {
            // From now on: what stands behind this request in the queue is under it, and no door is
            // between its look at the quota and an acknowledgement.
            let _intake = self.intake.lock();
            volume.set_quota_bytes(quota_bytes);
        }
        let change = Change::SetQuota { id: volume.id, quota_bytes };
        Ok((vec![change], AdminAnswer::VolumeInfo(volume.id)))
    }

    fn rename(&mut self, name: &str, new_name: &str) -> Queued {
        self.volumes.volume(name)?;
        self.volumes.check_free(new_name)?;
        self.volumes.check_settled(name)?;
        for snapshot in self.volumes.snapshots_of(name) {
            let own = snapshot.split_at(name.len()).1;
            self.volumes.rename(&snapshot, format!("{new_name}{own}"));
        }
        let Some(id) = self.volumes.rename(name, new_name.to_owned()) else {
            return Err(RequestError::NoSuchVolume { name: name.to_owned() });
        };
        let change = Change::RenameVolume { id, name: new_name.to_owned() };
        Ok((vec![change], AdminAnswer::VolumeInfo(id)))
    }

    fn delete(&mut self, request: &DeleteRequest) -> Queued {
        let DeleteRequest { name, with_snapshots, id, newest } = request;
        self.volumes.get_meant(name, *id)?;
        self.volumes.check_settled(name)?;
        let mut names = self.volumes.snapshots_of(name);
        if !names.is_empty() && !with_snapshots {
            let (name, count) = (name.clone(), names.len());
            return Err(RequestError::HasSnapshots { name, count });
        }
        names.push(name.clone());
        let ids = names.iter().filter_map(|name| Some(self.volumes.by_name.get(name)?.id.0));
        if newest.is_some_and(|newest| ids.max() > Some(newest)) {
            return Err(RequestError::NewSnapshots { name: name.clone() });
        }
        let gone = names.iter().filter_map(|name| self.volumes.by_name.remove(name));
        let delete = |volume: Arc<VolumeShared>| {
            volume.set_gone();
            Change::DeleteVolume { id: volume.id }
        };
        let mut records = in_records(gone.map(delete).collect());
        let last = records.pop().unwrap_or_default();
        for changes in records {
            self.buffer.push_closed(Work::Admin { changes, answer: None });
        }
        Ok((last, AdminAnswer::Done))
    }

    /// Records the administrative changes at the front of the write buffer.
    pub(crate) fn commit_admin(&mut self, changes: &[Change]) -> Result<bool, PageError> {
        if !self.journal_has_room(encoded(changes).len()) {
            return Ok(false);
        }
        let copies = changes.iter().flat_map(copied_versions).next().is_some();
        if copies && !self.copies_have_room() {
            return Ok(false);
        }
        self.record(changes);
        changes.iter().for_each(|change| self.show_version(change));
        let group = self.buffer.applied_group() + 1;
        if let Some(front) = self.buffer.groups.front_mut()
            && let Work::Admin { answer, .. } = &mut front.work
            && let Some((done, answer)) = answer.take()
        {
            // By the catalog: what stands behind in the queue may have taken its name from it.
            let describe = |id| {
                let entry = self.state.catalog.get(id)?;
                let volume = shared_of(&self.state, entry, self.geometry.chunk_bytes);
                Some(Reply::VolumeInfo(self.describe(&volume)))
            };
            let reply = answer.reply(describe);
            self.flushing.wait_for_reply(group, done, reply);
        }
        self.finish_group();
        Ok(true)
    }

    /// What is being given back now. A store that is being closed goes on with it when it is
    /// opened again.
    pub(crate) fn deletion_going_on(&mut self) -> Option<VolumeId> {
        if self.closing_now() { None } else { self.volumes.deletions.next(&self.state.catalog) }
    }

    /// Gives back what was deleted, one piece a step.
    pub(crate) fn advance_deletions(&mut self) -> bool {
        if self.stopped.is_some() {
            return false;
        }
        let Some(id) = self.deletion_going_on() else { return false };
        match self.give_back_piece(id) {
            Ok(Piece::Waits) => false,
            Ok(Piece::Applied(_)) => {
                self.volumes.deletions.began(id);
                true
            }
            Ok(Piece::Finished) => {
                self.volumes.deletions.ended(id);
                true
            }
            Err(error) => self.stop_for(&error),
        }
    }

    fn begin_close(&mut self, done: Done) {
        self.intake.refuse(RequestError::Closing);
        // What slipped in just before is part of what is drained.
        self.intake.take(&mut self.requests);
        self.buffer.close_open();
        match &mut self.closing {
            Closing::Draining(waiters) => waiters.push(done),
            Closing::Closed => done.reply(Reply::Done),
            Closing::No => self.closing = Closing::Draining(vec![done]),
        }
    }

    /// Drains, checkpoints and ends, once a close was asked for.
    pub(crate) fn advance_closing(&mut self) -> bool {
        if !matches!(self.closing, Closing::Draining(_)) {
            return false;
        }
        let drained = self.buffer.groups.is_empty()
            && self.waiting.is_empty()
            && self.quota_line.is_empty()
            && self.requests.is_empty()
            && !self.reads.any()
            && !self.collection.is_busy()
            && !self.scrub.is_busy()
            && !self.copies.any()
            && !self.explaining.any()
            && !self.walks.any()
            && !self.enlarging.any();
        let ready = self.stopped.is_some() || (drained && self.checkpoints.close());
        // Not even a read that nobody wants any more may arrive at whoever opens the disk next.
        if !ready || self.devices.in_flight() > 0 {
            return false;
        }
        if let Closing::Draining(waiters) = std::mem::replace(&mut self.closing, Closing::Closed) {
            for done in waiters {
                done.finish(self.stopped.clone().map_or(Ok(Reply::Done), Err));
            }
        }
        true
    }
}
