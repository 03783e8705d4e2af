//! Volumes whose chunks are looked up, or are not (`duplicates/dedup.rs`): the switch.

use format::catalog::Dedup;
use format::record::Change;

use crate::control::SetDedup;
use crate::core::Core;
use crate::door::done::Done;
use crate::door::outcome::VolumeInfo;
use crate::grow::enlarging::{Then, Wish};
use crate::volumes::queued::{QueuedOf, queue_of};

/// Queues a volume's switch, or what has to come before.
pub(crate) fn accept_dedup(core: &mut Core, verb: SetDedup, done: Done<VolumeInfo>) {
    if verb.dedup == Dedup::On || core.geometry.detection.asides {
        let queued = set_dedup(core, &verb);
        return queue_of(core, queued, done);
    }
    match core.volumes.volume(&verb.name) {
        Ok(_) => {
            let then = Then::LeaveAside(verb, done);
            core.superblock.wishes.push_back(Wish::Geometry(then));
        }
        Err(error) => done.fail(error),
    }
}

fn set_dedup(core: &mut Core, verb: &SetDedup) -> QueuedOf {
    let SetDedup { ref name, dedup } = *verb;
    let id = core.volumes.volume(name)?.id;
    core.volumes.seeking.set(id, dedup);
    Ok((vec![Change::SetDedup { id, dedup }], id))
}
