//! Taking an empty data zone out of a store that is open in this process, and then its file.

use std::path::Path;

use admin::DataRemoved;
use engine::{Client, RequestError, RetireZone};

use crate::error::CliError;

/// Takes the data zone out of the store at `path`, whose engine `client` asks. Of one that is gone
/// already only the file is cut: the command that did it was killed before.
pub(crate) fn remove_zone(
    path: &Path,
    client: &Client,
    zone: u16,
) -> Result<DataRemoved, CliError> {
    let before = client.geometry()?;
    if usize::from(zone) >= before.data.len() {
        let reason = "the store has no such data file".to_owned();
        return Err(RequestError::CannotRemove { reason }.into());
    }
    let after = match before.has_data_zone(zone) {
        true => client.ask(RetireZone { zone })?,
        false => before.clone(),
    };
    Ok(DataRemoved {
        capacity_bytes: after.capacity_bytes(),
        capacity_bytes_before: before.capacity_bytes(),
        place: disk::retire_zone_file(path, zone)?,
    })
}
