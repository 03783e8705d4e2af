//! Snapshots as the ends of a stream: what either says of itself, and whether it is the one.

use engine::{Client, VolumeInfo};
use format::stream::{StreamVersion, sample_of, sample_ranges};

use crate::error::CliError;

/// What a stream says of `snapshot`.
pub(crate) fn describe(client: &Client, snapshot: &VolumeInfo) -> Result<StreamVersion, CliError> {
    let name = snapshot.name.split_once('@').map(|(_, name)| name).unwrap_or_default();
    Ok(StreamVersion {
        name: name.to_owned(),
        number: snapshot.id,
        taken_unix_s: snapshot.taken_unix_s.unwrap_or(0),
        size_bytes: snapshot.size_bytes,
        sample: sample(client, &snapshot.name)?,
    })
}

/// The sample of what a volume or snapshot holds now.
pub(crate) fn sample(client: &Client, name: &str) -> Result<u32, CliError> {
    let volume = client.volume(name)?;
    let mut bytes = Vec::new();
    for (offset_bytes, length_bytes) in sample_ranges(volume.size_bytes()) {
        let start = bytes.len();
        bytes.resize(start + usize::try_from(length_bytes).unwrap_or(0), 0);
        client.read_at(&volume, offset_bytes, bytes.get_mut(start..).unwrap_or_default())?;
    }
    Ok(sample_of(&bytes))
}

/// Whether `snapshot` is the one that a stream names, whatever its number here.
pub(crate) fn is_version(
    client: &Client,
    snapshot: &VolumeInfo,
    named: &StreamVersion,
) -> Result<bool, CliError> {
    let found = describe(client, snapshot)?;
    Ok(StreamVersion { number: named.number, ..found } == *named)
}
