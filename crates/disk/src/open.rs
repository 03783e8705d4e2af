//! Opening a store's files: find, open, lock, and choose what drives them.
//!
//! The lock is an exclusive `flock` on every file of the store, the superblock first, and a shared
//! one for those who only read: the kernel drops it with the process, whatever its end, so that no
//! stale lock is ever left. It lives as long as the disk does, because the disk holds the files.

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

use format::units::Zone;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::ahead::{AllocationAhead, SparseZone};
use crate::allocating::AllocatingDisk;
use crate::doorbell::Doorbell;
use crate::error::{FileError, OpenError};
use crate::growth::ZoneGrowth;
use crate::io::Disk;
use crate::layout::{zone_path, zones_present};
use crate::place::{self, Access, Opened};
use crate::psync::PsyncDisk;
use crate::retrying::{RetryPolicy, RetryingDisk};
use crate::sparse_file::FileRoom;
use crate::uring::UringDisk;
use crate::zone_files::{FurtherFiles, ZoneFile, ZoneFiles};

/// What drives the files.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum IoEngine {
    /// io_uring if the kernel lets us, else threads.
    #[default]
    Auto,
    /// io_uring or an error.
    Uring,
    /// Threads.
    Psync,
}

/// How a store's files are being driven, for people to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskIdentity {
    /// `"io_uring"` or `"psync"`.
    pub engine: &'static str,
    /// Whether all zones bypass the page cache.
    pub direct: bool,
    /// What is slower than it could be, and why, in a sentence.
    pub note: Option<String>,
}

/// A store's files, open and locked until the disk is dropped.
pub struct StoreFiles {
    /// All zones.
    pub disk: Box<dyn Disk>,
    /// How they are driven.
    pub identity: DiskIdentity,
}

/// Opens and locks all files of the store in `dir` for `access`. Completions will ring `doorbell`.
/// What fails for a passing reason is tried again for a while ([`RetryPolicy`]).
///
/// # Errors
/// Each variant of [`OpenError`] says what to do about it.
pub fn open_store_files(
    dir: &Path,
    access: Access,
    engine: IoEngine,
    doorbell: &Doorbell,
) -> Result<StoreFiles, OpenError> {
    let mut files = Vec::new();
    let mut buffered = None;
    let mut room = SparseFiles::default();
    for (zone, path) in zones_present(dir) {
        let Opened { file, size_bytes, direct } = open_zone(dir, zone, &path, access)?;
        if !direct && buffered.is_none() {
            buffered = Some(path.clone());
        }
        let file = ZoneFile::new(file, size_bytes);
        if let (Zone::Data(number), Access::ReadWrite) = (zone, access) {
            room.look_at(number, &file, &path)?;
        }
        files.push(file);
    }
    let Some(files) = ZoneFiles::new(files) else {
        return Err(OpenError::NoStore { dir: dir.to_owned() });
    };
    let (disk, engine, slower) = drive(files, engine, doorbell)?;
    let direct = buffered.is_none();
    let cached = buffered.map(|path| {
        format!(
            "{} does not take direct I/O, so everything is kept in the page cache as well",
            path.display()
        )
    });
    let notes: Vec<_> = slower.into_iter().chain(cached).chain(room.unpromised.take()).collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    let disk = Box::new(RetryingDisk::new(disk, RetryPolicy::default(), doorbell));
    let disk = room.allocate_over(disk, doorbell)?;
    Ok(StoreFiles { disk, identity: DiskIdentity { engine, direct, note } })
}

/// Data files that do not have all of their room.
#[derive(Default)]
struct SparseFiles {
    zones: Vec<SparseZone>,
    /// What is to be said of those whose file system cannot be asked for room.
    unpromised: Option<String>,
}

impl SparseFiles {
    fn look_at(&mut self, number: u16, zone: &ZoneFile, path: &Path) -> Result<(), OpenError> {
        let length_bytes = zone.size_bytes;
        let room = FileRoom::of(&zone.file, length_bytes)
            .map_err(|source| FileError::new("look at", path, source))?;
        match room {
            FileRoom::Whole => {}
            FileRoom::Prefix(medium, allocated_bytes) => {
                let medium = Box::new(medium);
                self.zones.push(SparseZone { number, allocated_bytes, length_bytes, medium });
            }
            FileRoom::Unpromised => {
                self.unpromised.get_or_insert_with(|| {
                    format!(
                        "the file system of {} cannot allocate room ahead (fallocate), so nothing \
                         promises that it has room for what is not written yet: while it is full, \
                         writes wait",
                        path.display()
                    )
                });
            }
        }
        Ok(())
    }

    fn allocate_over(
        self,
        disk: Box<dyn Disk>,
        doorbell: &Doorbell,
    ) -> Result<Box<dyn Disk>, OpenError> {
        if self.zones.is_empty() {
            return Ok(disk);
        }
        let ahead = AllocationAhead::start(self.zones, doorbell).map_err(|source| {
            OpenError::Process { action: "start a thread for the disk", source }
        })?;
        Ok(Box::new(AllocatingDisk::new(disk, ahead)))
    }
}

/// Opens and locks the data files in `dir` with these numbers, for a disk of [`open_store_files`]
/// that is open already.
///
/// # Errors
/// As [`open_store_files`].
pub fn open_further_files(dir: &Path, numbers: Range<u16>) -> Result<ZoneGrowth, OpenError> {
    let open = |number| {
        let zone = Zone::Data(number);
        let Opened { file, size_bytes, .. } =
            open_zone(dir, zone, &zone_path(dir, zone, 2), Access::ReadWrite)?;
        Ok((number, ZoneFile::new(file, size_bytes)))
    };
    let data: Result<Vec<_>, OpenError> = numbers.map(open).collect();
    Ok(ZoneGrowth::of(FurtherFiles { data: data? }))
}

fn open_zone(dir: &Path, zone: Zone, path: &Path, access: Access) -> Result<Opened, OpenError> {
    let opened = place::open(path, access).map_err(|source| explain(dir, zone, path, source))?;
    lock(&opened, path, access)?;
    // Any other can be mended: how long it should be is written in this one.
    if zone == Zone::Superblock && opened.size_bytes == 0 {
        return Err(OpenError::Empty { path: path.to_owned() });
    }
    Ok(opened)
}

fn lock(opened: &Opened, path: &Path, access: Access) -> Result<(), OpenError> {
    let lock = match access {
        Access::ReadWrite => FlockOperation::NonBlockingLockExclusive,
        Access::ReadOnly => FlockOperation::NonBlockingLockShared,
    };
    flock(&opened.file, lock).map_err(|errno| match errno {
        Errno::WOULDBLOCK => OpenError::Locked { path: path.to_owned() },
        _ => FileError::new("lock", path, errno).into(),
    })
}

/// Why a zone could not be opened, by what can be done about it.
fn explain(dir: &Path, zone: Zone, path: &Path, source: io::Error) -> OpenError {
    let path = path.to_owned();
    match source.kind() {
        ErrorKind::NotFound => match fs::read_link(&path) {
            Ok(target) => OpenError::Dangling { path, target },
            Err(_) if zone == Zone::Superblock => OpenError::NoStore { dir: dir.to_owned() },
            Err(_) => OpenError::Missing { path },
        },
        ErrorKind::ResourceBusy => OpenError::DeviceBusy { path: target_of(path) },
        ErrorKind::PermissionDenied => OpenError::NotPermitted { path: target_of(path) },
        ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnlyMedium { path: target_of(path) },
        _ => FileError::new("open", path, source).into(),
    }
}

fn target_of(path: PathBuf) -> PathBuf {
    fs::read_link(&path).unwrap_or(path)
}

type Driven = (Box<dyn Disk>, &'static str, Option<String>);

fn drive(files: ZoneFiles, engine: IoEngine, doorbell: &Doorbell) -> Result<Driven, OpenError> {
    let (files, why) = match engine {
        IoEngine::Psync => (files, None),
        IoEngine::Auto | IoEngine::Uring => match UringDisk::new(files, doorbell) {
            Ok(disk) => return Ok((Box::new(disk), "io_uring", None)),
            Err(error) if engine == IoEngine::Uring => {
                return Err(OpenError::NoUring { source: error.source });
            }
            Err(error) => (error.files, Some(error.source)),
        },
    };
    let slower = why.map(|why| {
        format!("io_uring is not available ({why}), so threads are used, which are slower")
    });
    let disk = PsyncDisk::new(files, doorbell)
        .map_err(|source| OpenError::Process { action: "start threads for the disk", source })?;
    Ok((Box::new(disk), "psync", slower))
}
