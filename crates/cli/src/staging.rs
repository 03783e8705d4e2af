//! What an import has not completed is called by names that nobody else may give, so that the next
//! import may remove what it finds under one: it is never a user's own.

use engine::SnapshotRequest;

use crate::error::CliError;

/// No release before this one ended its own names so, and hardly a user does.
const SUFFIX: &str = "~importing";

/// What `name`, of a volume or a snapshot, is called until it is complete.
pub(crate) fn staging_name(name: &str) -> String {
    format!("{name}{SUFFIX}")
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
