//! Making the files of a store larger, and adding data files to it.
//!
//! A store does not care how long a file is beyond what its geometry says, so whatever was done
//! when this fails half-way harms nobody; it is undone as far as that goes. Nothing that exists is
//! overwritten, and every file gets all of its blocks now, as when the store was made.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use format::units::Zone;

use crate::create::{Made, fill, refused, sync_directory};
use crate::error::{CreateFilesError, FileError};
use crate::layout::zone_path;
use crate::place;

type Result<T> = std::result::Result<T, CreateFilesError>;

/// How the files of a store are to change.
#[derive(Clone, Debug, Default)]
pub struct FileGrowth {
    /// Data zones that there are.
    pub data_zones: usize,
    /// Zones that become longer, and the lengths that they get.
    pub longer: Vec<(Zone, u64)>,
    /// Data zones to be made, numbered on from those that there are, with their lengths and where
    /// each lives.
    pub added: Vec<(Zone, u64, PathBuf)>,
}

/// Whether a zone of the store in `dir` is a block device, whose length is not ours to choose.
///
/// # Errors
/// [`FileError`] when it cannot be looked at.
pub fn zone_is_device(
    dir: &Path,
    zone: Zone,
    data_zones: usize,
) -> std::result::Result<bool, FileError> {
    let path = zone_path(dir, zone, data_zones);
    place::is_device(&path).map_err(|source| FileError::new("look at", path, source))
}

/// How long a zone of the store in `dir` is now.
///
/// # Errors
/// [`FileError`] when it cannot be looked at.
pub fn zone_length_bytes(
    dir: &Path,
    zone: Zone,
    data_zones: usize,
) -> std::result::Result<u64, FileError> {
    let path = zone_path(dir, zone, data_zones);
    let length = fs::File::open(&path).and_then(|mut file| file.seek(SeekFrom::End(0)));
    length.map_err(|source| FileError::new("look at", path, source))
}

/// Makes the files of the store in `dir` larger, durably. The caller holds the store's lock.
///
/// # Errors
/// As [`crate::create_store_files`]; the store is as it was.
pub fn grow_store_files(dir: &Path, growth: &FileGrowth) -> Result<()> {
    let mut made = Made::default();
    for (zone, size_bytes, target) in &growth.added {
        // Never a lone one: it stands beside others.
        let path = zone_path(dir, *zone, 2);
        if path.symlink_metadata().is_ok() {
            return Err(CreateFilesError::AlreadyExists { path });
        }
        made.zone(*zone, *size_bytes, &path, Some(target))?;
    }
    for &(zone, size_bytes) in &growth.longer {
        lengthen(&zone_path(dir, zone, growth.data_zones), size_bytes)?;
    }
    if growth.data_zones == 1 && !growth.added.is_empty() {
        let [lone, first] = [1, 2].map(|zones| zone_path(dir, Zone::Data(0), zones));
        fs::rename(&lone, &first).map_err(|error| refused("rename", &lone, error))?;
    }
    sync_directory(dir)?;
    made.keep();
    Ok(())
}

/// Makes a file `size_bytes` long, if it is shorter. A device has the length that it has.
fn lengthen(path: &Path, size_bytes: u64) -> Result<()> {
    if place::is_device(path).unwrap_or(false) {
        return Ok(());
    }
    let file = OpenOptions::new().write(true).open(path);
    let file = file.map_err(|error| refused("open", path, error))?;
    let metadata = file.metadata().map_err(|error| refused("look at", path, error))?;
    let present_bytes = metadata.len();
    if present_bytes >= size_bytes {
        return Ok(());
    }
    fill(&file, path, present_bytes..size_bytes, false).inspect_err(|_| {
        // Back to what it was, or what was got so far would be lost to everybody.
        let _ = file.set_len(present_bytes);
    })
}
