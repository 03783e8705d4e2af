//! Snapshots as the ends of a stream: what either says of itself, and whether it is the one.
//!
//! A snapshot is known by its *origin*, the store in which it was taken and its number there,
//! which its copies keep, from store to store and back. One that says nothing of it was taken here,
//! or has been imported before origins were kept: it cannot be compared with what was taken
//! elsewhere. Name, moment, size and a sample of the bytes are compared always. They alone would
//! take clones of one image for each other, if their snapshots are of one moment.

use admin::GetIdentity;
use engine::{Origin, VolumeInfo};
use format::stream::{StreamVersion, sample_of, sample_ranges};

use crate::control::Store;
use crate::error::CliError;

/// What a stream says of `snapshot`.
pub(crate) fn describe(store: &Store, snapshot: &VolumeInfo) -> Result<StreamVersion, CliError> {
    let name = snapshot.name.split_once('@').map(|(_, name)| name).unwrap_or_default();
    Ok(StreamVersion {
        name: name.to_owned(),
        origin: Some(snapshot.origin.unwrap_or(here(store, snapshot)?)),
        taken_unix_s: snapshot.taken_unix_s.unwrap_or(0),
        size_bytes: snapshot.size_bytes,
        sample: sample(store, &snapshot.name)?,
    })
}

/// The origin of a snapshot that was taken in this store.
fn here(store: &Store, snapshot: &VolumeInfo) -> Result<Origin, CliError> {
    Ok(Origin { uuid: store.ask(GetIdentity {})?.uuid, number: snapshot.id })
}

/// The sample of what a volume or snapshot holds now.
pub(crate) fn sample(store: &Store, name: &str) -> Result<u32, CliError> {
    let volume = store.open(name, "stream")?;
    let (mut bytes, mut part) = (Vec::new(), Vec::new());
    for (offset_bytes, length_bytes) in sample_ranges(volume.size_bytes()) {
        part.resize(usize::try_from(length_bytes).unwrap_or(0), 0);
        volume.read(offset_bytes, &mut part)?;
        bytes.extend_from_slice(&part);
    }
    Ok(sample_of(&bytes))
}

/// Whether `snapshot` is the one that a stream names.
pub(crate) fn is_version(
    store: &Store,
    snapshot: &VolumeInfo,
    named: &StreamVersion,
) -> Result<bool, CliError> {
    if !may_be_of(snapshot.origin, here(store, snapshot)?, named.origin) {
        return Ok(false);
    }
    let found = describe(store, snapshot)?;
    Ok(StreamVersion { origin: named.origin, ..found } == *named)
}

/// Whether a snapshot that `says` of what it is a copy, or would be `here` if it is none, may be
/// what a stream has `named`.
fn may_be_of(says: Option<Origin>, here: Origin, named: Option<Origin>) -> bool {
    match (says, named) {
        (_, None) => true,
        (Some(says), Some(named)) => says == named,
        (None, Some(named)) => named.uuid != here.uuid || named == here,
    }
}

#[cfg(test)]
mod tests {
    use engine::Origin;

    use super::may_be_of;

    #[test]
    fn what_is_known_of_an_origin_must_agree() {
        let origin = |store, number| Origin { uuid: [store; 16], number };
        let here = origin(1, 5);
        for (says, named, agree) in [
            (None, None, true),
            (Some(origin(2, 7)), None, true),
            (Some(origin(2, 7)), Some(origin(2, 7)), true),
            (Some(origin(2, 7)), Some(origin(2, 8)), false),
            (Some(origin(2, 7)), Some(origin(3, 7)), false),
            (None, Some(here), true),
            (None, Some(origin(1, 6)), false),
            // Perhaps it was imported before origins were kept.
            (None, Some(origin(2, 5)), true),
            // Taken here, gone to another store, lost here, and come back.
            (Some(origin(1, 3)), Some(origin(1, 3)), true),
            (Some(origin(1, 3)), Some(here), false),
        ] {
            assert_eq!(may_be_of(says, here, named), agree, "{says:?} {named:?}");
        }
    }
}
