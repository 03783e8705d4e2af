//! Making the files of a new store.
//!
//! Nothing that exists is ever overwritten, and whatever fails half-way leaves nothing behind
//! ([`Made`]). The superblock is made last, so that a directory without one is not a store.
//!
//! Every file gets all of its blocks now: a store that runs can then never be told by its file
//! system that there is no room. Data files may instead begin *sparse*, with as much as is
//! allocated ahead of use ([`crate::ahead`]).
//!
//! The journal and the superblock are moreover written with zeros for real. Blocks that were only
//! allocated have to be marked as written when they first are, which makes the file system commit a
//! transaction of its own at each sync; the journal is what is synced all day.
//!
//! What a link leads to is marked as the store's, a device while it is claimed ([`crate::claim`]):
//! who comes next with the same device finds that it is taken.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use format::mark::Mark;
use format::units::{BLOCK_BYTES, UUID_BYTES, Zone};

use crate::ahead::{allocation_step_bytes, is_no_space};
use crate::claim::{Claimant, claim_device, let_go, write_mark};
use crate::error::{CreateFilesError, FileError, refused};
use crate::layout::{SUPERBLOCK_BYTES, is_there, zone_path};
use crate::naming::sync_names_in;
use crate::place::{self, Access, Opened, free_bytes, write_zeros_to};
use crate::sparse_file::allocate;

type Result<T> = std::result::Result<T, CreateFilesError>;

/// Zones that are written with zeros for real.
pub(crate) const ZEROED_ZONES: [Zone; 2] = [Zone::Superblock, Zone::Journal];
/// Only the owner may read what is stored, or what is left of it.
const MODE: u32 = 0o600;
/// Has git leave alone what is in the store's folder, which is nobody's source.
const GITIGNORE: (&str, &str) = (".gitignore", "*\n");

/// How much of a file has its blocks from the beginning.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Blocks {
    /// All.
    All,
    /// All, and they are written with zeros.
    Zeroed,
    /// The first step.
    Step,
}

/// Makes the directory `dir` and a store's files in it.
///
/// `sizes` names the journal, the tables and the data zones 0, 1, ... with their sizes in bytes,
/// whole blocks; the superblock may be named with its own size of 64 KiB, and is made in any case.
/// A zone named in `links` lives at that path instead, and gets a symlink in `dir`: a block device,
/// which must be blank and not in use, or a file, which is made and must not exist; it gets the
/// mark of the store with this `uuid`.
///
/// # Errors
/// Each variant of [`CreateFilesError`] says what to do about it; nothing is left behind.
pub fn create_store_files(
    dir: &Path,
    sizes: &[(Zone, u64)],
    links: &[(Zone, PathBuf)],
    uuid: [u8; UUID_BYTES],
) -> Result<()> {
    create(dir, sizes, links, uuid, Blocks::All)
}

/// As [`create_store_files`], but of a data zone only what [`allocation_step_bytes`] says gets its
/// room now: the rest comes as the store fills. The file system must have room for all of it all
/// the same, or it would be a store that cannot be filled.
///
/// # Errors
/// As [`create_store_files`].
pub fn create_sparse_store_files(
    dir: &Path,
    sizes: &[(Zone, u64)],
    links: &[(Zone, PathBuf)],
    uuid: [u8; UUID_BYTES],
) -> Result<()> {
    create(dir, sizes, links, uuid, Blocks::Step)
}

/// `data` says how data zones begin.
fn create(
    dir: &Path,
    sizes: &[(Zone, u64)],
    links: &[(Zone, PathBuf)],
    uuid: [u8; UUID_BYTES],
    data: Blocks,
) -> Result<()> {
    let zones = plan(sizes, links)?;
    let data_zones = zones.iter().filter(|(zone, _)| matches!(zone, Zone::Data(_))).count();
    refuse_existing(dir, &zones)?;
    let mut made = Made::of(Claimant::new(uuid));
    made.directory(dir)?;
    for (zone, size_bytes) in zones {
        let path = zone_path(dir, zone, data_zones);
        let link = links.iter().find(|(linked, _)| *linked == zone);
        let blocks = match zone {
            Zone::Data(_) => data,
            _ if ZEROED_ZONES.contains(&zone) => Blocks::Zeroed,
            _ => Blocks::All,
        };
        made.zone((zone, size_bytes), blocks, &path, link.map(|(_, target)| target.as_path()))?;
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
pub(crate) struct Made {
    claimant: Claimant,
    files: Vec<PathBuf>,
    devices: Vec<PathBuf>,
    directory: Option<PathBuf>,
}

impl Made {
    pub(crate) fn of(claimant: Claimant) -> Self {
        Self { claimant, files: Vec::new(), devices: Vec::new(), directory: None }
    }

    fn directory(&mut self, dir: &Path) -> Result<()> {
        match fs::create_dir(dir) {
            Ok(()) => self.directory = Some(dir.to_owned()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && dir.is_dir() => {
                // What else is in it is not hidden from git.
                let is_empty = fs::read_dir(dir).is_ok_and(|mut names| names.next().is_none());
                if !is_empty {
                    return Ok(());
                }
            }
            Err(error) => return Err(refused("make the directory", dir, error)),
        }
        let (name, text) = GITIGNORE;
        let path = dir.join(name);
        let file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&path);
        file.and_then(|mut file| {
            self.files.push(path.clone());
            file.write_all(text.as_bytes())?;
            file.sync_all()
        })
        .map_err(|error| refused("make", &path, error))?;
        Ok(())
    }

    fn zone(
        &mut self,
        (zone, size_bytes): (Zone, u64),
        blocks: Blocks,
        path: &Path,
        link: Option<&Path>,
    ) -> Result<()> {
        let Some(target) = link else {
            return self.file(path, size_bytes, blocks);
        };
        let target = absolute(target)?;
        self.blocks_at(&target, (zone, size_bytes), blocks)?;
        self.link(&target, path)
    }

    /// Where a symlink leads; all of it has its blocks.
    pub(crate) fn target(&mut self, zone: Zone, target: &Path, size_bytes: u64) -> Result<()> {
        self.blocks_at(target, (zone, size_bytes), Blocks::All)
    }

    fn blocks_at(
        &mut self,
        target: &Path,
        (zone, size_bytes): (Zone, u64),
        blocks: Blocks,
    ) -> Result<()> {
        let mark = Mark { uuid: self.claimant.uuid, zone };
        if place::is_device(target).unwrap_or(false) {
            let zeroed = blocks == Blocks::Zeroed;
            claim_device(target, size_bytes, zeroed, mark, self.claimant)?;
            self.devices.push(target.to_owned());
            return Ok(());
        }
        self.file(target, size_bytes, blocks)?;
        write_mark(&open_again(target)?, target, mark)?;
        sync_directory(&parent(target)?)
    }

    pub(crate) fn link(&mut self, target: &Path, path: &Path) -> Result<()> {
        std::os::unix::fs::symlink(target, path)
            .map_err(|error| refused("make the symlink", path, error))?;
        self.files.push(path.to_owned());
        Ok(())
    }

    fn file(&mut self, path: &Path, size_bytes: u64, blocks: Blocks) -> Result<()> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(path)
            .map_err(|error| refused("make", path, error))?;
        self.files.push(path.to_owned());
        match blocks {
            Blocks::All => fill(&file, path, 0..size_bytes, false),
            Blocks::Zeroed => fill(&file, path, 0..size_bytes, true),
            Blocks::Step => begin(&file, path, size_bytes),
        }
    }

    pub(crate) fn keep(mut self) {
        self.files.clear();
        self.devices.clear();
        self.directory = None;
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // Best effort: the error that led here is the one worth telling.
        for path in self.files.drain(..).rev() {
            let _ = fs::remove_file(path);
        }
        for device in self.devices.drain(..) {
            let_go(&device, self.claimant);
        }
        if let Some(dir) = self.directory.take() {
            let _ = fs::remove_dir(dir);
        }
    }
}

/// Makes a file this long of which the first step has its blocks. Where the file system cannot give
/// any without writing them, none has.
fn begin(file: &File, path: &Path, size_bytes: u64) -> Result<()> {
    let free = free_bytes(path)?;
    let begun = match size_bytes > free {
        true => Err(ErrorKind::StorageFull.into()),
        false => file
            .set_len(size_bytes)
            .and_then(|()| allocate(file, 0..allocation_step_bytes(size_bytes)))
            .and_then(|_| file.sync_all()),
    };
    begun.map_err(|error| not_filled(path, size_bytes, free, error))
}

/// Gives a stretch at the end of a file its blocks; zeros are written to them for real if `zeroed`.
pub(crate) fn fill(file: &File, path: &Path, stretch: Range<u64>, zeroed: bool) -> Result<()> {
    let free = free_bytes(path)?;
    let needed_bytes = stretch.end - stretch.start;
    let result = preallocate(file, &stretch, free).and_then(|allocated| {
        if zeroed || !allocated {
            let Opened { file, .. } = place::open(path, Access::ReadWrite)?;
            write_zeros_to(&file, stretch)?;
        }
        file.sync_all()
    });
    result.map_err(|error| not_filled(path, needed_bytes, free, error))
}

fn not_filled(
    path: &Path,
    needed_bytes: u64,
    free_bytes: u64,
    error: io::Error,
) -> CreateFilesError {
    if is_no_space(&error) {
        return CreateFilesError::NoSpace { path: path.to_owned(), needed_bytes, free_bytes };
    }
    FileError::new("fill", path, error).into()
}

/// Gives a file its blocks; false when the file system cannot do that without writing them.
fn preallocate(file: &File, stretch: &Range<u64>, free_bytes: u64) -> io::Result<bool> {
    let length_bytes = stretch.end - stretch.start;
    if length_bytes > free_bytes {
        return Err(ErrorKind::StorageFull.into());
    }
    allocate(file, stretch.clone())
}

/// Opens what was made.
pub(crate) fn open_again(path: &Path) -> Result<Opened> {
    place::open(path, Access::ReadWrite).map_err(|error| refused("open", path, error))
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
