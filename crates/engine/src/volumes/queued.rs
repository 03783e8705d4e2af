//! Changes of volumes enter the write buffer, each as one record.
//!
//! Such a group waits until it is the oldest and the journal has room for it, so one that is too
//! long for a record would stand before all others for ever.

use format::record::{BODY_BYTES_MAX, Change};
use format::units::VolumeId;

use crate::core::Core;
use crate::core::record::encoded;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::outcome::VolumeInfo;
use crate::door::volume::{SECTOR_BYTES, VOLUME_BYTES_MAX};
use crate::write::buffer::{AdminAnswer, Work};

/// What is recorded for a request that is answered with nothing.
pub(crate) type Queued = Result<Vec<Change>, RequestError>;

/// What is recorded for a request that is answered with what this volume has become.
pub(crate) type QueuedOf = Result<(Vec<Change>, VolumeId), RequestError>;

/// Queues what a request is to change, or fails it.
pub(crate) fn queue(core: &mut Core, queued: Queued, done: Done<()>) {
    match queued {
        Ok(changes) => queue_changes(core, changes, AdminAnswer::Done(done)),
        Err(error) => done.fail(error),
    }
}

/// The same of one that is answered with a volume.
pub(crate) fn queue_of(core: &mut Core, queued: QueuedOf, done: Done<VolumeInfo>) {
    match queued {
        Ok((changes, id)) => queue_changes(core, changes, AdminAnswer::Volume(done, id)),
        Err(error) => done.fail(error),
    }
}

fn queue_changes(core: &mut Core, changes: Vec<Change>, answer: AdminAnswer) {
    debug_assert!(encoded(&changes).len() <= BODY_BYTES_MAX, "it would wait for ever");
    core.buffer.push_closed(Work::Admin { changes, answer: Some(answer) });
}

/// That a volume may be of this size.
pub(crate) fn check_size(size_bytes: u64) -> Result<(), RequestError> {
    let fits = (SECTOR_BYTES..=VOLUME_BYTES_MAX).contains(&size_bytes);
    if fits && size_bytes.is_multiple_of(SECTOR_BYTES) {
        return Ok(());
    }
    Err(RequestError::BadSize { size_bytes })
}
