//! The directory of a sealed container, read back.
//!
//! It stands at the container's very end: entries, then the footer in the last 64 bytes. Without
//! I/O of its own, in two steps: read the last block and give it to [`footer`], read
//! [`directory_range`] and give it to [`directory()`]. A caller that has the whole container does
//! both at once with [`directory_of`].
//!
//! A footer is not believed on its checksum alone. It has to name this store, this container and
//! this life of it: where a write was lost or went astray, another sound footer stands.

use crate::error::DirectoryError;
use format::directory::{self, DirectoryEntry, Footer};
use format::units::{CONTAINER_BYTES, ContainerId, UUID_BYTES, uuid_prefix};
use format::{FormatError, Structure};
use std::ops::Range;

/// The footer in `tail`, which ends where the container ends.
///
/// # Errors
/// [`DirectoryError`] when there is none, or it is not of life `sequence` of this container.
pub fn footer(
    container: ContainerId,
    sequence: u32,
    uuid: [u8; UUID_BYTES],
    tail: &[u8],
) -> Result<Footer, DirectoryError> {
    let footer = directory::decode_footer(tail)?;
    if footer.uuid_prefix != uuid_prefix(uuid) {
        return Err(DirectoryError::OtherStore { container });
    }
    if footer.container != container {
        return Err(DirectoryError::Misplaced { expected: container, actual: footer.container });
    }
    if footer.sequence != sequence {
        let actual = footer.sequence;
        return Err(DirectoryError::Stale { container, expected: sequence, actual });
    }
    Ok(footer)
}

/// Where in the container its directory is.
#[must_use]
pub fn directory_range(footer: &Footer) -> Range<u32> {
    let start = footer.directory_offset_bytes;
    start..start + footer.directory_bytes()
}

/// The entries in `bytes`, which are those of [`directory_range`].
///
/// # Errors
/// [`DirectoryError`] when they are damaged.
pub fn directory(footer: &Footer, bytes: &[u8]) -> Result<Vec<DirectoryEntry>, DirectoryError> {
    Ok(directory::decode_entries(bytes, footer)?)
}

/// The directory in `tail`, which ends where the container ends; none if it begins before that.
///
/// # Errors
/// As [`directory()`].
#[must_use]
pub fn directory_in_tail(
    footer: &Footer,
    tail: &[u8],
) -> Option<Result<Vec<DirectoryEntry>, DirectoryError>> {
    let Range { start, end } = directory_range(footer);
    let tail_start = (CONTAINER_BYTES as usize).checked_sub(tail.len())?;
    let at = |offset: u32| (offset as usize).checked_sub(tail_start);
    Some(directory(footer, tail.get(at(start)?..at(end)?)?))
}

/// The directory of a container of which `bytes` is all.
///
/// # Errors
/// As [`footer`] and [`directory()`].
pub fn directory_of(
    container: ContainerId,
    sequence: u32,
    uuid: [u8; UUID_BYTES],
    bytes: &[u8],
) -> Result<Vec<DirectoryEntry>, DirectoryError> {
    let footer = footer(container, sequence, uuid, bytes)?;
    directory_in_tail(&footer, bytes).unwrap_or_else(|| {
        Err(DirectoryError::from(FormatError::Length {
            structure: Structure::Directory,
            expected_bytes: u64::from(CONTAINER_BYTES),
            found_bytes: bytes.len() as u64,
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::{directory, directory_in_tail, directory_of, directory_range, footer};
    use crate::error::DirectoryError;
    use crate::open::OpenContainer;
    use format::directory::DirectoryEntry;
    use format::units::{CONTAINER_BYTES, ContainerId, Fingerprint, Pbn};

    const ID: ContainerId = ContainerId(4);
    const UUID: [u8; 16] = [7; 16];

    /// The bytes of a sealed container of 1000 frames, and its directory.
    fn sealed() -> (Vec<u8>, Vec<DirectoryEntry>) {
        let mut open = OpenContainer::new(ID, 30, Vec::new());
        for n in 1..=1000u64 {
            open.append(&[n as u8; 700], Pbn(n), Fingerprint([n as u8; 32])).unwrap();
        }
        let entries = open.entries().to_vec();
        let mut bytes = vec![0; CONTAINER_BYTES as usize];
        for write in open.seal(UUID).writes {
            let start = write.offset_bytes as usize;
            let end = start + write.bytes.length_bytes();
            bytes[start..end].copy_from_slice(&write.bytes.packed());
        }
        (bytes, entries)
    }

    #[test]
    fn the_directory_is_read_in_two_steps_or_one() {
        let (bytes, entries) = sealed();
        let footer = footer(ID, 30, UUID, &bytes[bytes.len() - 4096..]).unwrap();
        let range = directory_range(&footer);
        let read = directory(&footer, &bytes[range.start as usize..range.end as usize]).unwrap();
        assert_eq!(read, entries);
        assert_eq!(directory_of(ID, 30, UUID, &bytes).unwrap(), entries);
        let (before, tail) = bytes.split_at(range.start as usize);
        assert_eq!(directory_in_tail(&footer, tail).unwrap().unwrap(), entries);
        assert!(directory_in_tail(&footer, &bytes[before.len() + 1..]).is_none());
    }

    #[test]
    fn a_sound_footer_in_the_wrong_place_or_time_is_told_apart() {
        let (bytes, _) = sealed();
        let stale = footer(ID, 31, UUID, &bytes).unwrap_err();
        assert!(matches!(stale, DirectoryError::Stale { expected: 31, actual: 30, .. }), "{stale}");
        let misplaced = footer(ContainerId(5), 30, UUID, &bytes).unwrap_err();
        assert!(matches!(misplaced, DirectoryError::Misplaced { .. }), "{misplaced}");
        let foreign = footer(ID, 30, [8; 16], &bytes).unwrap_err();
        assert!(matches!(foreign, DirectoryError::OtherStore { .. }), "{foreign}");
    }

    #[test]
    fn damage_anywhere_in_the_directory_is_an_error() {
        let (mut bytes, _) = sealed();
        let range = directory_range(&footer(ID, 30, UUID, &bytes).unwrap());
        for at in (range.start as usize..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
            bytes[at] ^= 0x20;
            assert!(directory_of(ID, 30, UUID, &bytes).is_err(), "byte {at}");
            bytes[at] ^= 0x20;
        }
    }

    #[test]
    fn too_few_bytes_are_an_error() {
        let (bytes, _) = sealed();
        for length_bytes in [0, 1, 63, 64, 4096, 40_000] {
            let tail = &bytes[bytes.len() - length_bytes..];
            assert!(directory_of(ID, 30, UUID, tail).is_err(), "{length_bytes} bytes");
        }
        let unsealed = vec![0; CONTAINER_BYTES as usize];
        assert!(matches!(footer(ID, 30, UUID, &unsealed), Err(DirectoryError::Format(_))));
    }
}
