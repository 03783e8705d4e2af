//! Making the files of a store larger, and adding data files to it; making one that was cut short
//! as long again as it was.
//!
//! A store does not care how long a file is beyond what its geometry says, nor for data files that
//! it does not know, so whatever was done when this fails half-way harms nobody; it is undone as
//! far as that goes. What a kill has left all the same, or a growth whose geometry was never
//! written, the next growth takes over or replaces ([`LeftOver`]). What is added is marked as this
//! store's before the geometry names it ([`crate::claim`]). Nothing that anybody has written
//! is overwritten, and every file gets all of its blocks now, as when the store was made.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use format::mark::Mark;
use format::superblock::DATA_ZONES_MAX;
use format::units::{BLOCK_BYTES, UUID_BYTES, Zone};
use rustix::fs::{FlockOperation, flock};

use crate::claim::{Claimant, is_free, write_mark};
use crate::create::{Made, ZEROED_ZONES, absolute, fill, open_again, sync_directory};
use crate::error::{CreateFilesError, FileError, refused};
use crate::layout::{ZoneName, is_there, zone_file, zone_path};
use crate::place;

type Result<T> = std::result::Result<T, CreateFilesError>;

/// How the files of a store are to change.
#[derive(Clone, Debug, Default)]
pub struct FileGrowth {
    /// The store's, with which added zones are marked.
    pub uuid: [u8; UUID_BYTES],
    /// Data zones that there are, as the store's geometry says.
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
    let [lone, first] = [1, 2].map(|zones| zone_path(dir, Zone::Data(0), zones));
    let rename = growth.data_zones == 1 && !growth.added.is_empty() && lone != first;
    if rename && is_there(&first) {
        return Err(CreateFilesError::AlreadyExists { path: first });
    }
    let mut left_over = LeftOver::default();
    if !growth.added.is_empty() {
        left_over.clear_the_way(dir, growth)?;
    }
    let claimant = Claimant::growing(growth.uuid, growth.data_zones);
    let mut made = Made::of(claimant);
    for (zone, size_bytes, target) in &growth.added {
        // Never a lone one: it stands beside others.
        let path = zone_path(dir, *zone, 2);
        let target = absolute(target)?;
        if target == absolute(&path)? {
            return Err(CreateFilesError::OwnName { path });
        }
        let linked = leads_to(&path, &target);
        if is_there(&path) && !linked {
            return Err(CreateFilesError::AlreadyExists { path });
        }
        if left_over.is_file_of(&target) {
            take_over(&target, *size_bytes, *zone, claimant)?;
        } else {
            made.target(*zone, &target, *size_bytes)?;
        }
        if !linked {
            made.link(&target, &path)?;
        }
    }
    for &(zone, size_bytes) in &growth.longer {
        lengthen(&zone_path(dir, zone, growth.data_zones), size_bytes, false)?;
    }
    if rename {
        fs::rename(&lone, &first).map_err(|error| refused("rename", &lone, error))?;
    }
    sync_directory(dir)?;
    made.keep();
    left_over.unlinked.clear();
    Ok(())
}

fn leads_to(path: &Path, target: &Path) -> bool {
    fs::read_link(path).is_ok_and(|link| link == target)
}

/// What a growth has left that did not come to its end: symlinks of data zones that the geometry
/// does not know. Those that were taken away are put back when this growth fails as well.
#[derive(Default)]
struct LeftOver {
    /// Where all of them lead.
    places: Vec<PathBuf>,
    /// Those that were taken away, and where they led.
    unlinked: Vec<(PathBuf, PathBuf)>,
}

impl LeftOver {
    /// Takes away all but those that this growth would make again: two that led to one place would
    /// keep the store from being opened. What they lead to is not touched.
    fn clear_the_way(&mut self, dir: &Path, growth: &FileGrowth) -> Result<()> {
        for zone in (0..DATA_ZONES_MAX as u16).skip(growth.data_zones).map(Zone::Data) {
            let path = zone_path(dir, zone, 2);
            let Ok(target) = fs::read_link(&path) else { continue };
            self.places.extend(path.canonicalize());
            let mut added = growth.added.iter().filter(|(added, ..)| *added == zone);
            if added.any(|(_, _, place)| absolute(place).is_ok_and(|place| place == target)) {
                continue;
            }
            fs::remove_file(&path).map_err(|error| refused("remove", &path, error))?;
            self.unlinked.push((path, target));
        }
        Ok(())
    }

    /// Whether this is a file that one of them leads to.
    fn is_file_of(&self, target: &Path) -> bool {
        target.is_file() && target.canonicalize().is_ok_and(|place| self.places.contains(&place))
    }
}

impl Drop for LeftOver {
    fn drop(&mut self) {
        for (path, target) in self.unlinked.drain(..) {
            let _ = std::os::unix::fs::symlink(target, path);
        }
    }
}

/// Makes a file that was left over a data zone, unless somebody has written to it since, or has it
/// open: then it is theirs.
fn take_over(path: &Path, size_bytes: u64, zone: Zone, claimant: Claimant) -> Result<()> {
    let opened = open_again(path)?;
    let length = opened.file.metadata().map_err(|error| refused("look at", path, error))?.len();
    let is_unused = flock(&opened.file, FlockOperation::NonBlockingLockExclusive).is_ok();
    // We make whole blocks, and nothing else of a file is looked at.
    if !is_unused || length != opened.size_bytes || !is_free(&opened, path, claimant)? {
        return Err(CreateFilesError::AlreadyExists { path: path.to_owned() });
    }
    lengthen(path, size_bytes, false)?;
    write_mark(&opened, path, Mark { uuid: claimant.uuid, zone })
}

/// A zone that [`lengthen_zone`] made longer.
#[derive(Debug)]
pub struct LongerZone {
    zone_name: String,
    path: PathBuf,
    before_bytes: u64,
}

impl LongerZone {
    /// Its name, as [`lengthen_zone`] was given it.
    #[must_use]
    pub fn zone_name(&self) -> &str {
        &self.zone_name
    }

    /// How long it was.
    #[must_use]
    pub fn before_bytes(&self) -> u64 {
        self.before_bytes
    }

    /// Makes it as long as it was: nothing was written where it was not.
    ///
    /// # Errors
    /// [`FileError`]; what it was made longer by is zeros.
    pub fn cut_back(self) -> std::result::Result<(), FileError> {
        shorten(self.path, self.before_bytes)
    }
}

/// Gives a zone the length back that it had before [`lengthen_zone`], durably.
///
/// # Errors
/// [`FileError`]; the file is as long as it was.
pub fn shorten_zone(
    dir: &Path,
    zone_name: &str,
    size_bytes: u64,
) -> std::result::Result<(), FileError> {
    shorten(zone_file(dir, zone_name), size_bytes)
}

fn shorten(path: PathBuf, size_bytes: u64) -> std::result::Result<(), FileError> {
    let file = OpenOptions::new().write(true).open(&path);
    let cut = file.and_then(|file| file.set_len(size_bytes).and_then(|()| file.sync_all()));
    cut.map_err(|source| FileError::new("shorten", path, source))
}

/// Gives a zone that was cut short the length that it was made with, durably; of the store in
/// `dir`, which nobody has open, and by the name of its file or its [`ZoneName`]. What was cut off
/// is zeros.
///
/// # Errors
/// [`CreateFilesError`]; the file is as long as it was.
pub fn lengthen_zone(dir: &Path, zone_name: &str, size_bytes: u64) -> Result<LongerZone> {
    let path = zone_file(dir, zone_name);
    if place::is_device(&path).unwrap_or(false) {
        let fixed = io::Error::new(ErrorKind::Unsupported, "a block device is as long as it is");
        return Err(FileError::new("lengthen", path, fixed).into());
    }
    let zeroed = ZEROED_ZONES.iter().any(|&zone| ZoneName(zone).to_string() == zone_name);
    let found = fs::metadata(&path).map_err(|error| refused("look at", &path, error))?;
    lengthen(&path, size_bytes, zeroed)?;
    let (zone_name, before_bytes) = (zone_name.to_owned(), found.len());
    Ok(LongerZone { zone_name, path, before_bytes })
}

/// Makes a file `size_bytes` long, if it is shorter. A device has the length that it has.
fn lengthen(path: &Path, size_bytes: u64, zeroed: bool) -> Result<()> {
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
    // What is there of a last block that is not whole stays.
    let start_bytes = present_bytes.next_multiple_of(BLOCK_BYTES as u64);
    let whole = file.set_len(start_bytes).and_then(|()| file.sync_all());
    let whole = whole.map_err(|error| refused("lengthen", path, error));
    let filled = whole.and_then(|()| match start_bytes < size_bytes {
        true => fill(&file, path, start_bytes..size_bytes, zeroed),
        false => Ok(()),
    });
    filled.inspect_err(|_| {
        // Back to what it was, or what was got so far would be lost to everybody.
        let _ = file.set_len(present_bytes);
    })
}
