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
use crate::core::Core;
use crate::core::invariant::Invariant;
use crate::core::record::changes_in_a_record;
use crate::door::error::RequestError;
use crate::door::volume::VolumeShared;
use crate::space::waiting::Waiting;
use crate::volumes::new_volumes::check_volume;
use crate::volumes::queued::{Queued, QueuedOf};
use crate::volumes::shared_of;

/// That a request for versions could be granted if there were room, as far as can be told now.
pub(crate) fn check_versions(core: &Core, verb: &Verb) -> Result<(), RequestError> {
    match verb {
        Verb::SnapshotRequest(Asked { verb, .. }) => check_snapshots(core, verb),
        Verb::TakeCopied(Asked { verb, .. }) => check_snapshots(core, &verb.snapshots),
        Verb::CloneVolume(Asked { verb, .. }) => {
            snapshot_called(core, &verb.snapshot)?;
            core.volumes.check_free(&verb.name)
        }
        Verb::NewVolume(Asked { verb, .. }) => check_volume(core, verb),
        _ => Ok(()),
    }
}

fn check_snapshots(core: &Core, request: &SnapshotRequest) -> Result<(), RequestError> {
    let SnapshotRequest { volumes, name, .. } = request;
    let check = |volume| core.volumes.check_snapshot(volume, name).map(drop);
    volumes.iter().map(String::as_str).try_for_each(check)
}

pub(crate) fn take_snapshots(core: &mut Core, request: &SnapshotRequest) -> Queued {
    let SnapshotRequest { volumes, name, taken_unix_s } = request;
    if volumes.is_empty() {
        return Err(RequestError::NoVolumes);
    }
    let mut claimed = BTreeSet::new();
    for volume in volumes {
        let full = core.volumes.check_snapshot(volume, name)?;
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
        let volume = core.volumes.get(volume)?.id;
        changes.push(taken(volume, core.volumes.take_id()));
    }
    core.volumes.claimed.extend(claimed);
    Ok(changes)
}

/// The same of one volume whose snapshot is a copy: what it is of goes into the same record.
pub(crate) fn take_copied(core: &mut Core, verb: &TakeCopied) -> Queued {
    let TakeCopied { snapshots, origin } = verb;
    let (count, count_max) = (snapshots.volumes.len(), 1);
    if count > count_max {
        return Err(RequestError::TooManySnapshots { count, count_max });
    }
    let mut changes = take_snapshots(core, snapshots)?;
    let copies: Vec<Change> = changes
        .iter()
        .filter_map(|change| match change {
            Change::TakeSnapshot { id, .. } => Some(Change::SetOrigin { id: *id, origin: *origin }),
            _ => None,
        })
        .collect();
    changes.extend(copies);
    Ok(changes)
}

fn snapshot_called(core: &Core, name: &str) -> Result<Arc<VolumeShared>, RequestError> {
    let snapshot = core.volumes.get(name)?;
    if !snapshot.is_snapshot() {
        return Err(RequestError::NotASnapshot { name: name.to_owned() });
    }
    Ok(Arc::clone(snapshot))
}

pub(crate) fn clone_volume(core: &mut Core, verb: &CloneVolume) -> QueuedOf {
    let CloneVolume { snapshot, name } = verb;
    let snapshot = snapshot_called(core, snapshot)?.id;
    core.volumes.check_free(name)?;
    core.volumes.claimed.insert(name.clone());
    let id = core.volumes.take_id();
    let change = Change::CloneVolume { snapshot, id, name: name.clone() };
    Ok((vec![change], id))
}

pub(crate) fn roll_back(
    core: &mut Core,
    verb: &Rollback,
    is_asked: impl Fn(VolumeId) -> bool,
) -> QueuedOf {
    let Rollback { snapshot, volume, id } = verb;
    core.volumes.get_meant(snapshot, *id)?;
    let to = snapshot_called(core, snapshot)?;
    let own = snapshot.split('@').next().unwrap_or_default();
    let name = volume.as_deref().unwrap_or(own);
    let volume = core.volumes.get(name)?;
    if volume.is_snapshot() {
        return Err(RequestError::NotAVolume { name: name.to_owned() });
    }
    // The keys of its fingerprints are its domain's.
    if volume.domain != to.domain {
        let (from, to) = (snapshot.clone(), name.to_owned());
        return Err(RequestError::OtherDomain { from, to });
    }
    core.volumes.check_still(volume)?;
    volume.check_unopened()?;
    let volume = volume.id;
    if is_asked(volume) || has_requests_to(core, volume) {
        return Err(RequestError::RequestsUnderWay { name: name.to_owned() });
    }
    core.volumes.rolling_back.insert(volume);
    let into = core.volumes.take_id();
    let change = Change::Rollback { volume, to: to.id, into };
    Ok((vec![change], volume))
}

/// Whether a client's request to a volume has no place in the order yet, or has not read all
/// that it reads. The client that sent it may have closed the volume since.
fn has_requests_to(core: &Core, volume: VolumeId) -> bool {
    let waits = |waiting: &Waiting| match waiting {
        Waiting::Write(write) => write.volume.id == volume,
        Waiting::Copy(copy) => copy.range.is_of(volume),
        Waiting::Ends { unmap, .. } => unmap.volume.id == volume,
        Waiting::Reserve(reserve) => reserve.volume.id == volume,
        Waiting::Change(..) | Waiting::Promise(_) => false,
    };
    core.intake.has_requests_to(volume)
        || core.waiting.iter().any(waits)
        || core.quota_line.writes.iter().any(|write| write.volume.id == volume)
}

/// Lets clients see what a recorded change has made, and plans what it leaves to be given back.
pub(crate) fn show_version(core: &mut Core, change: &Change) {
    match change {
        Change::TakeSnapshot { id, .. } | Change::CloneVolume { id, .. } => {
            let Some(entry) = core.state.catalog.get(*id) else {
                return core.violated(Invariant::CatalogFollows);
            };
            let shared = shared_of(&core.state, entry, core.geometry.chunk_bytes);
            core.volumes.claimed.remove(&shared.name());
            core.volumes.seeking.set(*id, entry.dedup);
            core.volumes.show(shared);
        }
        Change::Rollback { volume, into, .. } => {
            core.volumes.deletions.add(*into);
            core.volumes.rolling_back.remove(volume);
            let entry = core.state.catalog.get(*volume);
            let shared = core.volumes.iter().find(|shared| shared.id == *volume);
            // A deletion that came behind it may have taken the volume from doors.
            if let Some((entry, shared)) = entry.zip(shared) {
                shared.set_size_bytes(entry.size_bytes);
            }
        }
        Change::DeleteVolume { id } => {
            core.volumes.seeking.set(*id, Dedup::On);
            core.volumes.deletions.add(*id);
        }
        _ => {}
    }
}

pub(crate) fn makes_a_version(change: &Change) -> bool {
    matches!(
        change,
        Change::CreateVolume { .. } | Change::TakeSnapshot { .. } | Change::CloneVolume { .. }
    )
}
