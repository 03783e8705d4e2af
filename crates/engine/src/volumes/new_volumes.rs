//! Volumes are made, in a keyed domain or in none, and of every kind.
//!
//! The first domain of a store needs a secret in the geometry, durable in both its blocks before
//! the volume is recorded, as a growth is (`enlarge.rs`): no frame, then, says that it is of a
//! domain whose key nobody knows. So does the first volume of another kind than block need its
//! feature there: no program, then, takes a bucket for a disk.

use std::collections::BTreeSet;

use format::domain::Domain;
use format::record::Change;

use crate::control::NewVolume;
use crate::core::Core;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::outcome::VolumeInfo;
use crate::door::volume::VolumeShared;
use crate::grow::enlarging::{Then, Wish};
use crate::grow::wanted_geometry::allows;
use crate::volumes::queued::{QueuedOf, check_size, queue_of};

/// Queues the making of a volume, or what has to come before.
pub(crate) fn accept_volume(core: &mut Core, volume: NewVolume, done: Done<VolumeInfo>) {
    if allows(&core.geometry, &volume) {
        let queued = create_volume(core, volume);
        return queue_of(core, queued, done);
    }
    match check_volume(core, &volume) {
        Ok(()) => {
            let then = Then::Make(volume, done);
            core.superblock.wishes.push_back(Wish::Geometry(then));
        }
        Err(error) => done.fail(error),
    }
}

pub(crate) fn check_volume(core: &Core, volume: &NewVolume) -> Result<(), RequestError> {
    core.volumes.check_free(&volume.name)?;
    check_size(volume.size_bytes)?;
    match &volume.domain {
        Some(domain) if !Domain::is_name(domain) => {
            Err(RequestError::BadDomain { name: domain.clone() })
        }
        _ => Ok(()),
    }
}

fn create_volume(core: &mut Core, volume: NewVolume) -> QueuedOf {
    check_volume(core, &volume)?;
    let NewVolume { name, size_bytes, read_only, domain, kind } = volume;
    let domain = domain.map(|name| domain_called(core, name)).transpose()?;
    let id = core.volumes.take_id();
    let chunk_bytes = core.geometry.chunk_bytes;
    let in_domain = domain.clone();
    let shared = VolumeShared::new(id, &name, size_bytes, read_only, chunk_bytes, in_domain, kind);
    core.volumes.show(shared);
    let change = Change::CreateVolume { id, size_bytes, read_only, name, domain, kind };
    Ok((vec![change], id))
}

/// The domain that some version is in, or a new one.
fn domain_called(core: &mut Core, name: String) -> Result<Domain, RequestError> {
    // What is on its way into the catalog is shown already; what is not shown any more, or not
    // yet, has the version that it came from in the catalog.
    let shown = core.volumes.iter().filter_map(|volume| volume.domain.as_ref());
    let listed = core.state.catalog.iter().filter_map(|entry| entry.domain.as_ref());
    if let Some(domain) = shown.chain(listed).find(|domain| domain.name == name) {
        return Ok(domain.clone());
    }
    let id = core.volumes.take_domain().ok_or(RequestError::TooManyDomains)?;
    Ok(Domain { id, name })
}

/// Keyed domains that some volume or snapshot is in.
pub(crate) fn count_domains(core: &Core) -> u64 {
    let ids = core.volumes.iter().filter_map(|volume| Some(volume.domain.as_ref()?.id));
    ids.collect::<BTreeSet<_>>().len() as u64
}
