//! What an import has not completed is called by names that nobody else may give, so that the next
//! import may remove what it finds under one: it is never a user's own.

use engine::{SnapshotRequest, VolumeInfo};
use format::catalog::NAME_BYTES_MAX;

use crate::error::CliError;

/// No release before this one ended its own names so, and hardly a user does.
const SUFFIX: &str = "~importing";

/// The end of the name of what an import with `--overwrite` discards when it comes to its end; no
/// longer than the other.
const REPLACED_SUFFIX: &str = "~replaced";

/// What `name`, of a volume or a snapshot, is called until it is complete.
pub(crate) fn staging_name(name: &str) -> String {
    format!("{name}{SUFFIX}")
}

/// The volume that an image goes into until it is complete, for volume `name`, which may have the
/// longest name there is. Two that share one are never filled at once.
pub(crate) fn staging_volume(name: &str) -> String {
    let most_bytes = NAME_BYTES_MAX - SUFFIX.len();
    let bytes = (0..=most_bytes.min(name.len())).rev().find(|at| name.is_char_boundary(*at));
    staging_name(name.get(..bytes.unwrap_or(0)).unwrap_or_default())
}

/// The snapshots that an import which leads to snapshot `name` takes for itself: of what the volume
/// held when the stream began, and of what it held before the base took its place.
pub(crate) fn marks_for(name: &str) -> [String; 2] {
    [staging_name(name), format!("{name}{REPLACED_SUFFIX}")]
}

/// The snapshot that an import was to lead to, if `parent`, of `volume`, is the mark with which the
/// import began.
pub(crate) fn led_to<'a>(volume: &str, parent: &'a str) -> Option<&'a str> {
    let snapshot = parent.strip_suffix(SUFFIX)?;
    snapshot.split_once('@').filter(|(of, _)| *of == volume).map(|_| snapshot)
}

/// Whether what a volume holds began as `snapshot` does, however many were taken of it since.
pub(crate) fn comes_of(volume: &str, snapshot: &str, all: &[VolumeInfo]) -> bool {
    let parent = |name: &str| all.iter().find(|one| one.name == name)?.parent.as_deref();
    std::iter::successors(parent(volume), |name| parent(name)).any(|name| name == snapshot)
}

/// Of `all`, the volumes that an import was to replace and did not come to its end, if they hold no
/// more what they held, each with the snapshot of that.
pub(crate) fn put_aside(all: &[VolumeInfo]) -> impl Iterator<Item = (&str, &str)> {
    let ended = |mark: &str| all.iter().any(|one| one.name == completed_name(mark));
    let replaced = all.iter().map(|one| one.name.as_str());
    let replaced = replaced.filter(|name| is_replaced(name));
    let of_volumes = replaced.filter_map(|name| Some((name.split_once('@')?.0, name)));
    of_volumes.filter(move |(volume, name)| !ended(name) && !comes_of(volume, name, all))
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

/// What the import that took a mark of this name leads to.
pub(crate) fn completed_name(name: &str) -> &str {
    let suffixes = [SUFFIX, REPLACED_SUFFIX];
    suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Of `all`, the snapshots that imports of streams into `volume` have taken for themselves.
pub(crate) fn marks_of<'a>(
    volume: &str,
    all: &'a [VolumeInfo],
) -> impl Iterator<Item = &'a str> + use<'a> {
    let prefix = format!("{volume}@");
    let names = all.iter().map(|one| one.name.as_str());
    names.filter(move |name| name.starts_with(&prefix) && completed_name(name) != *name)
}

/// Whether a mark is of what an import was to replace.
pub(crate) fn is_replaced(mark: &str) -> bool {
    mark.ends_with(REPLACED_SUFFIX)
}

/// Of `all`, the volumes that hold part of a stream, each with the snapshot that it leads to.
pub(crate) fn unfinished(all: &[VolumeInfo]) -> impl Iterator<Item = (&str, &str)> {
    let volumes = all.iter().filter(|volume| volume.taken_unix_s.is_none());
    volumes.filter_map(|volume| Some((volume.name.as_str(), half_of(volume, all)?)))
}

fn half_of<'a>(volume: &'a VolumeInfo, all: &[VolumeInfo]) -> Option<&'a str> {
    let snapshot = led_to(&volume.name, volume.parent.as_deref()?)?;
    let ended = all.iter().any(|other| other.name == snapshot);
    (!ended).then_some(snapshot)
}

/// An error when a user asks for something to be called as an import calls its own.
pub(crate) fn check_name(name: &str) -> Result<(), CliError> {
    match completed_name(name) != name {
        true => Err(CliError::ReservedName { name: name.to_owned() }),
        false => Ok(()),
    }
}

/// The same when that is where a volume is to go back to: it would pass for a half. A rollback
/// may bring back what an import discarded.
pub(crate) fn check_rollback(name: &str) -> Result<(), CliError> {
    if is_replaced(name) { Ok(()) } else { check_name(name) }
}

/// The same of snapshots that are to be taken; what an import has not completed has none but its
/// own, with which it is removed.
pub(crate) fn check_snapshots(request: &SnapshotRequest) -> Result<(), CliError> {
    request.volumes.iter().chain([&request.name]).try_for_each(|name| check_name(name))
}
