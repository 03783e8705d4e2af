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

use format::record::Change;

use crate::control::{Asked, DeleteRequest, ResizeVolume, SetQuota, Verb};
use crate::core::Core;
use crate::core::record::in_records;
use crate::door::error::RequestError;
use crate::door::outcome::VolumeInfo;
use crate::door::volume::VolumeShared;
use crate::space::waiting::Waiting;
use crate::volumes::description::describe;
use crate::volumes::new_volumes::accept_volume;
use crate::volumes::queued::{Queued, QueuedOf, check_size, queue, queue_of};
use crate::volumes::reservations::end_promise;
use crate::volumes::take_versions::{check_versions, clone_volume, take_copied, take_snapshots};
use crate::write::buffer::Work;
use crate::write::trim::shrink;

/// Queues a change that nothing has to come before.
pub(crate) fn accept_change(core: &mut Core, verb: Verb) {
    match verb {
        Verb::ResizeVolume(asked) => match resize(core, &asked.verb) {
            // The rest of a chunk at the new end is written like any other.
            Err(RequestError::NoSpace) => {
                core.waiting.push_back(Waiting::Change(Verb::ResizeVolume(asked)));
            }
            queued => queue_of(core, queued, asked.done),
        },
        Verb::NewVolume(Asked { verb, done }) => accept_volume(core, verb, done),
        Verb::RenameVolume(Asked { verb, done }) => {
            let queued = rename(core, &verb.name, &verb.new_name);
            queue_of(core, queued, done);
        }
        Verb::SetQuota(Asked { verb, done }) => {
            let queued = set_quota(core, &verb);
            queue_of(core, queued, done);
        }
        Verb::DeleteRequest(Asked { verb, done }) => {
            let queued = delete(core, &verb);
            queue(core, queued, done);
        }
        Verb::SnapshotRequest(Asked { verb, done }) => {
            let queued = take_snapshots(core, &verb);
            queue(core, queued, done);
        }
        Verb::TakeCopied(Asked { verb, done }) => {
            let queued = take_copied(core, &verb);
            queue(core, queued, done);
        }
        Verb::CloneVolume(Asked { verb, done }) => {
            let queued = clone_volume(core, &verb);
            queue_of(core, queued, done);
        }
        Verb::SetCompression(Asked { verb, done }) => {
            queue(core, Ok(vec![Change::SetCompression(verb.compression)]), done);
        }
        verb => unreachable!("{:?} changes nothing by itself", mem::discriminant(&verb)),
    }
}

/// Waits for room, unless the request fails with all the room there is.
pub(crate) fn wait_for_versions(core: &mut Core, verb: Verb) {
    match check_versions(core, &verb) {
        Ok(()) => core.waiting.push_back(Waiting::Change(verb)),
        Err(error) => verb.fail(error),
    }
}

pub(crate) fn list_volumes(core: &Core, after: Option<&str>, most: usize) -> Vec<VolumeInfo> {
    let volumes = core.volumes.iter_after(after).take(most);
    volumes.map(|volume| describe(core, volume)).collect()
}

fn resize(core: &mut Core, verb: &ResizeVolume) -> QueuedOf {
    let ResizeVolume { ref name, size_bytes, may_shrink, even_if_open } = *verb;
    check_size(size_bytes)?;
    let volume = Arc::clone(core.volumes.volume(name)?);
    core.volumes.check_still(&volume)?;
    volume.check_reserved(size_bytes)?;
    if size_bytes < volume.size_bytes() {
        if !may_shrink {
            let (size_bytes, asked_bytes) = (volume.size_bytes(), size_bytes);
            return Err(RequestError::WouldShrink { name: volume.name(), size_bytes, asked_bytes });
        }
        if !even_if_open {
            volume.check_unopened()?;
        }
        shrink(core, &volume, size_bytes)?;
    }
    volume.set_size_bytes(size_bytes);
    let change = Change::ResizeVolume { id: volume.id, size_bytes };
    Ok((vec![change], volume.id))
}

fn set_quota(core: &mut Core, verb: &SetQuota) -> QueuedOf {
    let SetQuota { ref name, quota_bytes } = *verb;
    let volume = Arc::clone(core.volumes.volume(name)?);
    let chunk_bytes = core.geometry.chunk_bytes;
    if quota_bytes.is_some_and(|bytes| bytes < u64::from(chunk_bytes)) {
        return Err(RequestError::BadQuota { chunk_bytes });
    }
    volume.check_reserved(quota_bytes.unwrap_or(u64::MAX))?;
    let quota_bytes = quota_bytes.unwrap_or(0);
    {
        // From now on: what stands behind this request in the queue is under it, and no door is
        // between its look at the quota and an acknowledgement.
        let _intake = core.intake.lock();
        volume.set_quota_bytes(quota_bytes);
    }
    let change = Change::SetQuota { id: volume.id, quota_bytes };
    Ok((vec![change], volume.id))
}

fn rename(core: &mut Core, name: &str, new_name: &str) -> QueuedOf {
    core.volumes.volume(name)?;
    core.volumes.check_free(new_name)?;
    core.volumes.check_settled(name)?;
    for snapshot in core.volumes.snapshots_of(name) {
        let own = snapshot.split_at(name.len()).1;
        core.volumes.rename(&snapshot, format!("{new_name}{own}"));
    }
    let Some(id) = core.volumes.rename(name, new_name.to_owned()) else {
        return Err(RequestError::NoSuchVolume { name: name.to_owned() });
    };
    let change = Change::RenameVolume { id, name: new_name.to_owned() };
    Ok((vec![change], id))
}

fn delete(core: &mut Core, request: &DeleteRequest) -> Queued {
    let DeleteRequest { name, with_snapshots, id, newest, even_if_open } = request;
    core.volumes.get_meant(name, *id)?;
    core.volumes.check_settled(name)?;
    let mut names = core.volumes.snapshots_of(name);
    if !names.is_empty() && !with_snapshots {
        let (name, count) = (name.clone(), names.len());
        return Err(RequestError::HasSnapshots { name, count });
    }
    names.push(name.clone());
    let ids = names.iter().filter_map(|name| Some(core.volumes.by_name.get(name)?.id.0));
    if newest.is_some_and(|newest| ids.max() > Some(newest)) {
        return Err(RequestError::NewSnapshots { name: name.clone() });
    }
    if !even_if_open {
        names.iter().try_for_each(|name| core.volumes.get(name)?.check_unopened())?;
    }
    let gone: Vec<_> = names.iter().filter_map(|name| core.volumes.by_name.remove(name)).collect();
    gone.iter().for_each(|volume| end_promise(core, volume));
    let delete = |volume: Arc<VolumeShared>| {
        volume.set_gone();
        Change::DeleteVolume { id: volume.id }
    };
    let mut records = in_records(gone.into_iter().map(delete).collect());
    let last = records.pop().unwrap_or_default();
    for changes in records {
        core.buffer.push_closed(Work::Admin { changes, answer: None });
    }
    Ok(last)
}
