//! What a client learns of a volume or a snapshot.

use format::catalog::{Lineage, VolumeState};

use crate::core::Core;
use crate::core::flush_queue::Answer;
use crate::door::outcome::VolumeInfo;
use crate::door::volume::VolumeShared;
use crate::volumes::shared_of;
use crate::write::buffer::AdminAnswer;

pub(crate) fn describe(core: &Core, volume: &VolumeShared) -> VolumeInfo {
    let entry = core.state.catalog.get(volume.id);
    let mapped_chunks = entry.map_or(0, |entry| entry.mapped_chunks);
    let lineage = entry.map(|entry| &entry.lineage);
    let is_snapshot = lineage.is_some_and(|lineage| lineage.snapshot_of.is_some());
    VolumeInfo {
        name: volume.name(),
        id: volume.id.0,
        size_bytes: volume.size_bytes(),
        mapped_bytes: mapped_chunks * u64::from(core.geometry.chunk_bytes),
        read_only: volume.read_only,
        quota_bytes: volume.quota_bytes(),
        reservation_bytes: volume.reservation_bytes(),
        kind: volume.kind,
        dedup: entry.map(|entry| entry.dedup).unwrap_or_default(),
        compression: entry.and_then(|entry| entry.compression),
        dedup_active: core.volumes.seeking.dedup_active(volume.id),
        unindexed_chunks: core.volumes.seeking.unindexed_chunks(volume.id),
        domain: volume.domain.as_ref().map(|domain| domain.name.clone()),
        taken_unix_s: lineage.filter(|_| is_snapshot).map(|lineage| lineage.taken_unix_s),
        parent: lineage.and_then(|lineage| visible_parent(core, lineage)),
        origin: lineage.and_then(|lineage| lineage.origin),
    }
}

/// The next snapshot above a version that clients can see.
fn visible_parent(core: &Core, lineage: &Lineage) -> Option<String> {
    let mut above = lineage.parent;
    while let Some(entry) = above.and_then(|id| core.state.catalog.get(id)) {
        if entry.state == VolumeState::Live {
            return Some(core.state.full_name(entry));
        }
        above = entry.lineage.parent;
    }
    None
}

/// The answer to a change that was just recorded. Volumes are described by the catalog: what
/// stands behind in the queue may have taken a name from it.
pub(crate) fn answer_of(core: &Core, answer: AdminAnswer) -> Answer {
    match answer {
        AdminAnswer::Done(done) => Answer::Done(done),
        AdminAnswer::Volume(done, id) => {
            let Some(entry) = core.state.catalog.get(id) else {
                unreachable!("volume {} was changed and is not in the catalog", id.0);
            };
            let volume = shared_of(&core.state, entry, core.geometry.chunk_bytes);
            Answer::Volume(done, Box::new(describe(core, &volume)))
        }
    }
}
