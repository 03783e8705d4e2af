//! What an import has not completed is called by names that nobody else may give, so that the next
//! import may remove what it finds under one: it is never a user's own.

use engine::{SnapshotRequest, VolumeInfo};
use format::catalog::NAME_BYTES_MAX;

use crate::error::CliError;

/// No release before this one ended its own names so, and hardly a user does.
const SUFFIX: &str = "~importing";

/// What `name`, of a volume or a snapshot, is called until it is complete.
pub(crate) fn staging_name(name: &str) -> String {
    format!("{name}{SUFFIX}")
}

/// An error when `name`, of a volume or a snapshot of one, leaves no room for what it is called
/// until it is complete.
pub(crate) fn check_room(name: &str) -> Result<(), CliError> {
    let most_bytes = NAME_BYTES_MAX - SUFFIX.len();
    match name.len() > most_bytes {
        true => Err(CliError::NameTooLong { name: name.to_owned(), most_bytes }),
        false => Ok(()),
    }
}

/// What is called `name` until it is complete will be called this.
pub(crate) fn completed_name(name: &str) -> &str {
    name.strip_suffix(SUFFIX).unwrap_or(name)
}

/// Of `all`, the snapshots that imports of streams into `volume` have taken for themselves.
pub(crate) fn marks_of<'a>(
    volume: &str,
    all: &'a [VolumeInfo],
) -> impl Iterator<Item = &'a str> + use<'a> {
    let prefix = format!("{volume}@");
    let names = all.iter().map(|one| one.name.as_str());
    names.filter(move |name| name.starts_with(&prefix) && name.ends_with(SUFFIX))
}

/// Of `all`, the volumes that hold part of a stream, each with the snapshot that it leads to.
pub(crate) fn unfinished(all: &[VolumeInfo]) -> impl Iterator<Item = (&str, &str)> {
    let volumes = all.iter().filter(|volume| volume.taken_unix_s.is_none());
    volumes.filter_map(|volume| Some((volume.name.as_str(), half_of(volume, all)?)))
}

fn half_of<'a>(volume: &'a VolumeInfo, all: &[VolumeInfo]) -> Option<&'a str> {
    let snapshot = volume.parent.as_deref()?.strip_suffix(SUFFIX)?;
    let (of, _) = snapshot.split_once('@')?;
    let ended = all.iter().any(|other| other.name == snapshot);
    (of == volume.name && !ended).then_some(snapshot)
}

/// An error when a user asks for something to be called as an import calls its own.
pub(crate) fn check_name(name: &str) -> Result<(), CliError> {
    match name.ends_with(SUFFIX) {
        true => Err(CliError::ReservedName { name: name.to_owned() }),
        false => Ok(()),
    }
}

/// The same of snapshots; what an import has not completed has none but its own, with which it is
/// removed.
pub(crate) fn check_snapshots(request: &SnapshotRequest) -> Result<(), CliError> {
    request.volumes.iter().chain([&request.name]).try_for_each(|name| check_name(name))
}
