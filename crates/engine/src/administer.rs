//! Volumes and settings: changes that are points in the one prefix order.
//!
//! Creating, resizing, renaming and deleting are groups of the write buffer like writes, recorded
//! in the same journal, and answered when they are durable. Names are claimed when the request is
//! taken, so two requests for one name cannot both succeed.
//!
//! Deleting marks the volume and answers; its chunks are let go in the background, piece by piece,
//! and its slot in the catalog last. A crash in between goes on where it was. Shrinking first
//! forbids the tail, then unmaps it, then changes the size, in this order of the write buffer: a
//! volume that grows again reads zeros.

use std::sync::Arc;

use format::record::Change;
use format::units::VolumeId;
use tables::PageError;

use crate::buffer::{AdminAnswer, Work};
use crate::done::Done;
use crate::engine::{Closing, Engine};
use crate::error::RequestError;
use crate::intake::AdminRequest;
use crate::outcome::{Reply, VolumeInfo};
use crate::partial::Ack;
use crate::record::CHANGE_BYTES_MAX;
use crate::unmap::Piece;
use crate::volume::{SECTOR_BYTES, VOLUME_BYTES_MAX, VolumeHandle, VolumeShared};

fn check_size(size_bytes: u64) -> Result<(), RequestError> {
    let fits = (SECTOR_BYTES..=VOLUME_BYTES_MAX).contains(&size_bytes);
    if fits && size_bytes.is_multiple_of(SECTOR_BYTES) {
        return Ok(());
    }
    Err(RequestError::BadSize { size_bytes })
}

impl Engine {
    /// Answers or queues an administrative request.
    pub(crate) fn accept_admin(&mut self, request: AdminRequest, done: Done) {
        let queued = match request {
            AdminRequest::OpenVolume { name } => {
                let volume = self.volumes.get(&name).cloned();
                return done.finish(volume.map(|volume| Reply::Volume(VolumeHandle(volume))));
            }
            AdminRequest::ListVolumes => return done.reply(Reply::Volumes(self.list_volumes())),
            AdminRequest::Compression => {
                return done.reply(Reply::Compression(self.state.compression));
            }
            AdminRequest::Stats => return done.reply(Reply::Stats(Box::new(self.stats()))),
            AdminRequest::Geometry => {
                return done.reply(Reply::Geometry(Box::new(self.geometry.clone())));
            }
            AdminRequest::Grow { options, files } => {
                return self.accept_grow(options, files, done);
            }
            AdminRequest::Explain { volume, address } => {
                return self.accept_explain(volume, address, done);
            }
            AdminRequest::Scrub(request) => return self.accept_scrub(request, done),
            AdminRequest::Close => return self.begin_close(done),
            AdminRequest::CreateVolume { name, size_bytes, read_only } => {
                self.create_volume(&name, size_bytes, read_only)
            }
            AdminRequest::ResizeVolume { name, size_bytes } => self.resize(&name, size_bytes),
            AdminRequest::RenameVolume { name, new_name } => self.rename(&name, &new_name),
            AdminRequest::DeleteVolume { name } => self.delete(&name),
            AdminRequest::SetCompression(compression) => {
                Ok((Change::SetCompression(compression), AdminAnswer::Done))
            }
        };
        match queued {
            Ok((change, answer)) => {
                self.buffer.push_closed(Work::Admin { change, answer: Some((done, answer)) });
            }
            Err(error) => done.fail(error),
        }
    }

    fn list_volumes(&self) -> Vec<VolumeInfo> {
        self.volumes.iter().map(|volume| self.describe(volume)).collect()
    }

    fn describe(&self, volume: &VolumeShared) -> VolumeInfo {
        let mapped_chunks =
            self.state.catalog.get(volume.id).map_or(0, |entry| entry.mapped_chunks);
        VolumeInfo {
            name: volume.name(),
            id: volume.id.0,
            size_bytes: volume.size_bytes(),
            mapped_bytes: mapped_chunks * u64::from(self.geometry.chunk_bytes),
            read_only: volume.read_only,
        }
    }

    fn create_volume(
        &mut self,
        name: &str,
        size_bytes: u64,
        read_only: bool,
    ) -> Result<(Change, AdminAnswer), RequestError> {
        self.volumes.check_free(name)?;
        check_size(size_bytes)?;
        let id = VolumeId(self.volumes.next_id);
        self.volumes.next_id += 1;
        let chunk_bytes = self.geometry.chunk_bytes;
        let shared = VolumeShared::new(id, name, size_bytes, read_only, chunk_bytes);
        self.volumes.by_name.insert(name.to_owned(), shared);
        let name = name.to_owned();
        let change = Change::CreateVolume { id, size_bytes, read_only, name };
        Ok((change, AdminAnswer::VolumeInfo(id)))
    }

    fn resize(
        &mut self,
        name: &str,
        size_bytes: u64,
    ) -> Result<(Change, AdminAnswer), RequestError> {
        check_size(size_bytes)?;
        let volume = Arc::clone(self.volumes.get(name)?);
        let old_bytes = volume.size_bytes();
        volume.set_size_bytes(size_bytes);
        if size_bytes < old_bytes {
            let ack = Ack::new(None);
            self.buffer_unmap(&volume, size_bytes, old_bytes - size_bytes, &ack);
        }
        Ok((Change::ResizeVolume { id: volume.id, size_bytes }, AdminAnswer::VolumeInfo(volume.id)))
    }

    fn rename(
        &mut self,
        name: &str,
        new_name: &str,
    ) -> Result<(Change, AdminAnswer), RequestError> {
        self.volumes.get(name)?;
        self.volumes.check_free(new_name)?;
        let Some(volume) = self.volumes.by_name.remove(name) else {
            return Err(RequestError::NoSuchVolume { name: name.to_owned() });
        };
        volume.rename(new_name);
        let id = volume.id;
        self.volumes.by_name.insert(new_name.to_owned(), volume);
        let change = Change::RenameVolume { id, name: new_name.to_owned() };
        Ok((change, AdminAnswer::VolumeInfo(id)))
    }

    fn delete(&mut self, name: &str) -> Result<(Change, AdminAnswer), RequestError> {
        let Some(volume) = self.volumes.by_name.remove(name) else {
            return Err(RequestError::NoSuchVolume { name: name.to_owned() });
        };
        volume.set_gone();
        Ok((Change::DeleteVolume { id: volume.id }, AdminAnswer::Done))
    }

    /// Records the administrative change at the front of the write buffer.
    pub(crate) fn commit_admin(&mut self, change: Change) -> Result<bool, PageError> {
        if !self.journal_has_room(CHANGE_BYTES_MAX + format::BLOCK_BYTES) {
            return Ok(false);
        }
        self.record(std::slice::from_ref(&change));
        if let Change::DeleteVolume { id } = change {
            self.volumes.deletions.push_back(id);
        }
        let group = self.buffer.applied_group() + 1;
        if let Some(front) = self.buffer.groups.front_mut()
            && let Work::Admin { answer, .. } = &mut front.work
            && let Some((done, answer)) = answer.take()
        {
            let by_id = |id| self.volumes.iter().find(|volume| volume.id == id);
            let describe = |id| by_id(id).map(|volume| Reply::VolumeInfo(self.describe(volume)));
            let reply = answer.reply(describe);
            self.flushing.wait_for_reply(group, done, reply);
        }
        self.finish_group();
        Ok(true)
    }

    /// Lets a deleted volume's chunks go, one piece a step.
    pub(crate) fn advance_deletions(&mut self) -> bool {
        let Some(&id) = self.volumes.deletions.front() else { return false };
        if self.stopped.is_some() {
            return false;
        }
        match self.unmap_piece(id, 0, u64::MAX, |lookups| &mut lookups.background_pins) {
            Ok(Piece::Waits) => false,
            Ok(Piece::Applied(_)) => true,
            Ok(Piece::Finished) => self.drop_volume(id),
            Err(error) => {
                self.stop_for(&error);
                true
            }
        }
    }

    fn drop_volume(&mut self, id: VolumeId) -> bool {
        if !self.journal_has_room(CHANGE_BYTES_MAX) {
            return false;
        }
        self.record(&[Change::DropVolume { id }]);
        self.volumes.deletions.pop_front();
        true
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
            && self.requests.is_empty()
            && !self.reads.any()
            && !self.collection.is_busy()
            && !self.scrub.is_busy()
            && !self.explaining.any()
            && !self.enlarging.any();
        let ready = self.stopped.is_some() || (drained && self.checkpoints.close());
        if !ready || (self.stopped.is_some() && self.devices.in_flight() > 0) {
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
