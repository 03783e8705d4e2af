//! Making the files of a new store.
//!
//! Nothing that exists is ever overwritten, and whatever fails half-way leaves nothing behind
//! ([`Made`]). The superblock is made last, so that a directory without one is not a store.
//!
//! Every file gets all of its blocks now: a store that runs can then never be told by its file
//! system that there is no room. The journal and the superblock are moreover written with zeros for
//! real. Blocks that were only allocated have to be marked as written when they first are, which
//! makes the file system commit a transaction of its own at each sync; the journal is what is
//! synced all day.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use format::units::{BLOCK_BYTES, Zone};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::buffer::AlignedBuf;
use crate::error::{CreateFilesError, FileError};
use crate::layout::{SUPERBLOCK_BYTES, is_there, zone_path};
use crate::naming::sync_names_in;
use crate::place::{self, Opened, free_bytes};

type Result<T> = std::result::Result<T, CreateFilesError>;

/// Zeros are written in parts of this size.
const ZEROS_BYTES: usize = 1 << 20;
/// A device counts as blank when it begins with so many zeros: partition tables, and all common
/// file systems and volume managers, leave their mark here.
const BLANK_BYTES: usize = 1 << 20;
/// Zones that are written with zeros for real.
pub(crate) const ZEROED_ZONES: [Zone; 2] = [Zone::Superblock, Zone::Journal];
/// Only the owner may read what is stored, or what is left of it.
const MODE: u32 = 0o600;

/// Makes the directory `dir` and a store's files in it.
///
/// `sizes` names the journal, the tables and the data zones 0, 1, ... with their sizes in bytes,
/// whole blocks; the superblock may be named with its own size of 64 KiB, and is made in any case.
/// A zone named in `links` lives at that path instead, and gets a symlink in `dir`: a block device,
/// which must be blank and not in use, or a file, which is made and must not exist.
///
/// # Errors
/// Each variant of [`CreateFilesError`] says what to do about it; nothing is left behind.
pub fn create_store_files(
    dir: &Path,
    sizes: &[(Zone, u64)],
    links: &[(Zone, PathBuf)],
) -> Result<()> {
    let zones = plan(sizes, links)?;
    let data_zones = zones.iter().filter(|(zone, _)| matches!(zone, Zone::Data(_))).count();
    refuse_existing(dir, &zones)?;
    let mut made = Made::default();
    made.directory(dir)?;
    for (zone, size_bytes) in zones {
        let path = zone_path(dir, zone, data_zones);
        let link = links.iter().find(|(linked, _)| *linked == zone);
        made.zone(zone, size_bytes, &path, link.map(|(_, target)| target.as_path()))?;
    }
    sync_directory(dir)?;
    sync_directory(&parent(dir)?)?;
    made.keep();
    Ok(())
}

/// The zones to make, the superblock last.
fn plan(sizes: &[(Zone, u64)], links: &[(Zone, PathBuf)]) -> Result<Vec<(Zone, u64)>> {
    let mut zones: Vec<_> = sizes.to_vec();
    zones.retain(|&named| named != (Zone::Superblock, SUPERBLOCK_BYTES));
    let data_zones = zones.iter().filter(|(zone, _)| matches!(zone, Zone::Data(_))).count();
    let needed = [Zone::Journal, Zone::Tables].into_iter();
    let needed: Vec<_> =
        needed.chain((0..u16::MAX).map(Zone::Data).take(data_zones.max(1))).collect();
    for &zone in &needed {
        if zones.iter().filter(|(named, _)| *named == zone).count() != 1 {
            return Err(CreateFilesError::BadPlan { zone });
        }
    }
    let linked = links.iter().map(|&(zone, _)| zone);
    let odd = zones.iter().map(|&(zone, _)| zone).chain(linked).find(|zone| !needed.contains(zone));
    if let Some(zone) = odd {
        return Err(CreateFilesError::BadPlan { zone });
    }
    for &(zone, size_bytes) in &zones {
        if size_bytes == 0 || !size_bytes.is_multiple_of(BLOCK_BYTES as u64) {
            return Err(CreateFilesError::BadSize { zone, size_bytes });
        }
    }
    zones.push((Zone::Superblock, SUPERBLOCK_BYTES));
    Ok(zones)
}

/// Looks before anything is touched. Making each file checks again, by itself and for good.
fn refuse_existing(dir: &Path, zones: &[(Zone, u64)]) -> Result<()> {
    for &(zone, _) in zones {
        // A lone data file and the first of several have different names: neither may be there.
        for path in [zone_path(dir, zone, 1), zone_path(dir, zone, 2)] {
            if is_there(&path) {
                return Err(CreateFilesError::AlreadyExists { path });
            }
        }
    }
    Ok(())
}

/// What was made so far: removed again unless it is kept.
#[derive(Default)]
pub(crate) struct Made {
    files: Vec<PathBuf>,
    directory: Option<PathBuf>,
}

impl Made {
    fn directory(&mut self, dir: &Path) -> Result<()> {
        match fs::create_dir(dir) {
            Ok(()) => self.directory = Some(dir.to_owned()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && dir.is_dir() => {}
            Err(error) => return Err(refused("make the directory", dir, error)),
        }
        Ok(())
    }

    fn zone(
        &mut self,
        zone: Zone,
        size_bytes: u64,
        path: &Path,
        link: Option<&Path>,
    ) -> Result<()> {
        let zeroed = ZEROED_ZONES.contains(&zone);
        let Some(target) = link else {
            return self.file(path, size_bytes, zeroed);
        };
        let target = absolute(target)?;
        self.target(&target, size_bytes, zeroed)?;
        self.link(&target, path)
    }

    /// Where a symlink leads.
    pub(crate) fn target(&mut self, target: &Path, size_bytes: u64, zeroed: bool) -> Result<()> {
        if place::is_device(target).unwrap_or(false) {
            return claim_device(target, size_bytes, zeroed);
        }
        self.file(target, size_bytes, zeroed)?;
        sync_directory(&parent(target)?)
    }

    pub(crate) fn link(&mut self, target: &Path, path: &Path) -> Result<()> {
        std::os::unix::fs::symlink(target, path)
            .map_err(|error| refused("make the symlink", path, error))?;
        self.files.push(path.to_owned());
        Ok(())
    }

    fn file(&mut self, path: &Path, size_bytes: u64, zeroed: bool) -> Result<()> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(path)
            .map_err(|error| refused("make", path, error))?;
        self.files.push(path.to_owned());
        fill(&file, path, 0..size_bytes, zeroed)
    }

    pub(crate) fn keep(mut self) {
        self.files.clear();
        self.directory = None;
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // Best effort: the error that led here is the one worth telling.
        for path in self.files.drain(..).rev() {
            let _ = fs::remove_file(path);
        }
        if let Some(dir) = self.directory.take() {
            let _ = fs::remove_dir(dir);
        }
    }
}

/// Gives a stretch at the end of a file its blocks; zeros are written to them for real if `zeroed`.
pub(crate) fn fill(file: &File, path: &Path, stretch: Range<u64>, zeroed: bool) -> Result<()> {
    let free = free_bytes(path)?;
    let needed_bytes = stretch.end - stretch.start;
    let result = preallocate(file, &stretch, free).and_then(|allocated| {
        if zeroed || !allocated {
            let Opened { file, .. } = place::open(path)?;
            write_zeros_to(&file, stretch)?;
        }
        file.sync_all()
    });
    result.map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            CreateFilesError::NoSpace { path: path.to_owned(), needed_bytes, free_bytes: free }
        }
        _ => FileError::new("fill", path, error).into(),
    })
}

/// Gives a file its blocks; false when the file system cannot do that without writing them.
fn preallocate(file: &File, stretch: &Range<u64>, free_bytes: u64) -> io::Result<bool> {
    let length_bytes = stretch.end - stretch.start;
    if length_bytes > free_bytes {
        return Err(ErrorKind::StorageFull.into());
    }
    loop {
        match fallocate(file, FallocateFlags::empty(), stretch.start, length_bytes) {
            Ok(()) => return Ok(true),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn write_zeros_to(file: &File, stretch: Range<u64>) -> io::Result<()> {
    let zeros = AlignedBuf::new_zeroed(ZEROS_BYTES);
    let mut offset_bytes = stretch.start;
    while offset_bytes < stretch.end {
        let left = usize::try_from(stretch.end - offset_bytes).unwrap_or(usize::MAX);
        let part = zeros.get(..left).unwrap_or(&zeros);
        file.write_all_at(part, offset_bytes)?;
        offset_bytes += part.len() as u64;
    }
    file.sync_all()
}

/// Makes sure that a device is ours to use.
fn claim_device(path: &Path, size_bytes: u64, zeroed: bool) -> Result<()> {
    let opened = place::open(path).map_err(|error| match error.kind() {
        ErrorKind::ResourceBusy => CreateFilesError::DeviceBusy { path: path.to_owned() },
        _ => refused("open", path, error),
    })?;
    if opened.size_bytes < size_bytes {
        let (path, needed_bytes) = (path.to_owned(), size_bytes);
        let size_bytes = opened.size_bytes;
        return Err(CreateFilesError::DeviceTooSmall { path, size_bytes, needed_bytes });
    }
    if !is_blank(&opened, path)? {
        return Err(CreateFilesError::DeviceNotBlank { path: path.to_owned() });
    }
    if zeroed {
        let written = write_zeros_to(&opened.file, 0..size_bytes);
        written.map_err(|source| FileError::new("write zeros to", path, source))?;
    }
    Ok(())
}

/// Whether nothing of anybody begins there.
pub(crate) fn is_blank(opened: &Opened, path: &Path) -> Result<bool> {
    let begin_bytes = usize::try_from(opened.size_bytes).unwrap_or(usize::MAX).min(BLANK_BYTES);
    let mut begin = AlignedBuf::new_stale(begin_bytes);
    let read = opened.file.read_exact_at(&mut begin, 0);
    read.map_err(|source| FileError::new("read", path, source))?;
    Ok(begin.iter().all(|&byte| byte == 0))
}

pub(crate) fn refused(action: &'static str, path: &Path, error: io::Error) -> CreateFilesError {
    let path = path.to_owned();
    match error.kind() {
        ErrorKind::AlreadyExists => CreateFilesError::AlreadyExists { path },
        ErrorKind::NotFound => CreateFilesError::NoParent { path },
        ErrorKind::PermissionDenied => CreateFilesError::NotPermitted { path },
        _ => FileError::new(action, path, error).into(),
    }
}

fn parent(path: &Path) -> Result<PathBuf> {
    Ok(absolute(path)?.parent().unwrap_or(Path::new("/")).to_owned())
}

pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    let absolute = std::path::absolute(path);
    Ok(absolute.map_err(|source| FileError::new("find the place of", path, source))?)
}

/// A new name is durable only after its directory was synced.
pub(crate) fn sync_directory(dir: &Path) -> Result<()> {
    let synced = sync_names_in(dir);
    synced.map_err(|source| FileError::new("sync the directory", dir, source).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a device is claimed by looks at its bytes and its length only, so that a file does.
    fn claimed(name: &str, length_bytes: u64, mark: Option<usize>) -> (Result<()>, Vec<u8>) {
        let name = format!("tamis-claim-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let file = File::create(&path).unwrap();
        file.set_len(length_bytes).unwrap();
        mark.into_iter().for_each(|at| file.write_all_at(b"X", at as u64).unwrap());
        let result = claim_device(&path, 2 << 20, true);
        let left = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        (result, left)
    }

    #[test]
    fn a_device_that_holds_something_is_not_touched() {
        for at in [0, BLANK_BYTES / 2, BLANK_BYTES - 1] {
            let (result, left) = claimed("held", 4 << 20, Some(at));
            let is_refused = matches!(result, Err(CreateFilesError::DeviceNotBlank { .. }));
            assert!(is_refused, "byte {at}: {result:?}");
            assert_eq!(left[at], b'X');
        }
    }

    #[test]
    fn a_blank_device_is_taken_as_far_as_it_is_asked_for() {
        let (result, left) = claimed("blank", 4 << 20, Some(3 << 20));
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(left[3 << 20], b'X', "behind what was asked for");
    }

    #[test]
    fn a_device_that_is_too_small_is_refused() {
        let (result, _) = claimed("small", 1 << 20, None);
        let sizes = (1 << 20, 2 << 20);
        let Err(CreateFilesError::DeviceTooSmall { size_bytes, needed_bytes, .. }) = result else {
            panic!("{result:?}");
        };
        assert_eq!((size_bytes, needed_bytes), sizes);
    }
}
