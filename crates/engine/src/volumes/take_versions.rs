//! Snapshots, clones and rollbacks as clients ask for them: points in the one prefix order.
//!
//! A snapshot holds exactly what was acknowledged before it was asked for, since it is a group of
//! the write buffer behind all that is in it. Several volumes are one record: their snapshots are
//! of one moment, and more than a record holds are refused. What is new can be opened once it is
//! there, not before: a clone that could be read too early would read as zeros. Its name is claimed
//! at once.
//!
//! A rollback changes everything under a client's feet, and would mix with what is being written in
//! part. So nobody may have the volume open ([`crate::door::opens`]), and no request to it may be
//! left that is not in the write buffer yet: the volume that it is judged by is about to change.

use std::collections::BTreeSet;
use std::sync::Arc;

use format::catalog::Dedup;
use format::record::Change;
use format::units::VolumeId;

use crate::control::{Asked, CloneVolume, Rollback, SnapshotRequest, TakeCopied, Verb};
use crate::core::record::changes_in_a_record;
use crate::door::error::RequestError;
use crate::door::volume::VolumeShared;
use crate::engine::Engine;
use crate::space::waiting::Waiting;
use crate::space::write_room::PAGES_PER_CHUNK_MAX;
use crate::volumes::administer::{Queued, QueuedOf};
use crate::volumes::shared_of;

impl Engine {
    /// Whether the catalog has room for what a request makes, beside what clients are promised. Its
    /// pages stay, and would take for good the blocks that checkpoints need.
    pub(crate) fn has_room_for_versions(&self, verb: &Verb) -> bool {
        let made = verb.versions_made();
        let promised_chunks = self.core.intake.lock().space.spoken_for_chunks();
        made == 0 || self.core.blocks_to_promise() >= promised_chunks * PAGES_PER_CHUNK_MAX + made
    }

    /// That a request for versions could be granted if there were room, as far as can be told now.
    pub(crate) fn check_versions(&self, verb: &Verb) -> Result<(), RequestError> {
        match verb {
            Verb::SnapshotRequest(Asked { verb, .. }) => self.check_snapshots(verb),
            Verb::TakeCopied(Asked { verb, .. }) => self.check_snapshots(&verb.snapshots),
            Verb::CloneVolume(Asked { verb, .. }) => {
                self.snapshot(&verb.snapshot)?;
                self.core.volumes.check_free(&verb.name)
            }
            Verb::NewVolume(Asked { verb, .. }) => self.check_volume(verb),
            _ => Ok(()),
        }
    }

    fn check_snapshots(&self, request: &SnapshotRequest) -> Result<(), RequestError> {
        let SnapshotRequest { volumes, name, .. } = request;
        let check = |volume| self.core.volumes.check_snapshot(volume, name).map(drop);
        volumes.iter().map(String::as_str).try_for_each(check)
    }

    pub(crate) fn take_snapshots(&mut self, request: &SnapshotRequest) -> Queued {
        let SnapshotRequest { volumes, name, taken_unix_s } = request;
        if volumes.is_empty() {
            return Err(RequestError::NoVolumes);
        }
        let mut claimed = BTreeSet::new();
        for volume in volumes {
            let full = self.core.volumes.check_snapshot(volume, name)?;
            if let Some(full) = claimed.replace(full) {
                return Err(RequestError::VolumeExists { name: full });
            }
        }
        let taken = |volume, id| {
            let (taken_unix_s, name) = (*taken_unix_s, name.clone());
            Change::TakeSnapshot { volume, id, taken_unix_s, name }
        };
        let (count, none) = (volumes.len(), VolumeId(0));
        let count_max = changes_in_a_record(&taken(none, none));
        if count > count_max {
            return Err(RequestError::TooManySnapshots { count, count_max });
        }
        let mut changes = Vec::with_capacity(count);
        for volume in volumes {
            let volume = self.core.volumes.get(volume)?.id;
            changes.push(taken(volume, self.core.volumes.take_id()));
        }
        self.core.volumes.claimed.extend(claimed);
        Ok(changes)
    }

    /// The same of one volume whose snapshot is a copy: what it is of goes into the same record.
    pub(crate) fn take_copied(&mut self, verb: &TakeCopied) -> Queued {
        let TakeCopied { snapshots, origin } = verb;
        let (count, count_max) = (snapshots.volumes.len(), 1);
        if count > count_max {
            return Err(RequestError::TooManySnapshots { count, count_max });
        }
        let mut changes = self.take_snapshots(snapshots)?;
        let copies: Vec<Change> = changes
            .iter()
            .filter_map(|change| match change {
                Change::TakeSnapshot { id, .. } => {
                    Some(Change::SetOrigin { id: *id, origin: *origin })
                }
                _ => None,
            })
            .collect();
        changes.extend(copies);
        Ok(changes)
    }

    fn snapshot(&self, name: &str) -> Result<Arc<VolumeShared>, RequestError> {
        let snapshot = self.core.volumes.get(name)?;
        if !snapshot.is_snapshot() {
            return Err(RequestError::NotASnapshot { name: name.to_owned() });
        }
        Ok(Arc::clone(snapshot))
    }

    pub(crate) fn clone_volume(&mut self, verb: &CloneVolume) -> QueuedOf {
        let CloneVolume { snapshot, name } = verb;
        let snapshot = self.snapshot(snapshot)?.id;
        self.core.volumes.check_free(name)?;
        self.core.volumes.claimed.insert(name.clone());
        let id = self.core.volumes.take_id();
        let change = Change::CloneVolume { snapshot, id, name: name.clone() };
        Ok((vec![change], id))
    }

    pub(crate) fn roll_back(&mut self, verb: &Rollback) -> QueuedOf {
        let Rollback { snapshot, volume, id } = verb;
        self.core.volumes.get_meant(snapshot, *id)?;
        let to = self.snapshot(snapshot)?;
        let own = snapshot.split('@').next().unwrap_or_default();
        let name = volume.as_deref().unwrap_or(own);
        let volume = self.core.volumes.get(name)?;
        if volume.is_snapshot() {
            return Err(RequestError::NotAVolume { name: name.to_owned() });
        }
        // The keys of its fingerprints are its domain's.
        if volume.domain != to.domain {
            let (from, to) = (snapshot.clone(), name.to_owned());
            return Err(RequestError::OtherDomain { from, to });
        }
        self.core.volumes.check_still(volume)?;
        volume.check_unopened()?;
        let volume = volume.id;
        if self.has_requests_to(volume) {
            return Err(RequestError::RequestsUnderWay { name: name.to_owned() });
        }
        self.core.volumes.rolling_back.insert(volume);
        let into = self.core.volumes.take_id();
        let change = Change::Rollback { volume, to: to.id, into };
        Ok((vec![change], volume))
    }

    /// Whether a client's request to a volume has no place in the order yet, or has not read all
    /// that it reads. The client that sent it may have closed the volume since.
    pub(crate) fn has_requests_to(&self, volume: VolumeId) -> bool {
        let waits = |waiting: &Waiting| match waiting {
            Waiting::Write(write) => write.volume.id == volume,
            Waiting::Copy(copy) => copy.range.is_of(volume),
            Waiting::Ends { unmap, .. } => unmap.volume.id == volume,
            Waiting::Reserve(reserve) => reserve.volume.id == volume,
            Waiting::Change(..) | Waiting::Promise(_) => false,
        };
        self.requests.iter().any(|request| request.is_to(volume))
            || self.core.intake.has_requests_to(volume)
            || self.core.waiting.iter().any(waits)
            || self.core.quota_line.writes.iter().any(|write| write.volume.id == volume)
            || self.reads.have_clients_of(volume)
    }

    /// Lets clients see what a recorded change has made, and plans what it leaves to be given back.
    pub(crate) fn show_version(&mut self, change: &Change) {
        match change {
            Change::TakeSnapshot { id, .. } | Change::CloneVolume { id, .. } => {
                let Some(entry) = self.core.state.catalog.get(*id) else { return };
                let shared = shared_of(&self.core.state, entry, self.core.geometry.chunk_bytes);
                self.core.volumes.claimed.remove(&shared.name());
                self.core.volumes.seeking.set(*id, entry.dedup);
                self.core.volumes.show(shared);
            }
            Change::Rollback { volume, into, .. } => {
                self.core.volumes.deletions.add(*into);
                self.core.volumes.rolling_back.remove(volume);
                let entry = self.core.state.catalog.get(*volume);
                let shared = self.core.volumes.iter().find(|shared| shared.id == *volume);
                if let Some((entry, shared)) = entry.zip(shared) {
                    shared.set_size_bytes(entry.size_bytes);
                }
            }
            Change::DeleteVolume { id } => {
                self.core.volumes.seeking.set(*id, Dedup::On);
                self.core.volumes.deletions.add(*id);
            }
            _ => {}
        }
    }
}

pub(crate) fn makes_a_version(change: &Change) -> bool {
    matches!(
        change,
        Change::CreateVolume { .. } | Change::TakeSnapshot { .. } | Change::CloneVolume { .. }
    )
}
