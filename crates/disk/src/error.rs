//! What can go wrong with a disk, by what the caller can do about it.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use format::byte_count::ByteCount;
use format::units::{UUID_BYTES, Zone};
use thiserror::Error;

use crate::layout::ZoneName;

/// What a disk was doing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Making durable.
    Sync,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
        })
    }
}

/// What a failure means for the operation that failed, whatever the disk stands on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The same operation may succeed a little later ([`crate::RetryingDisk`] tries). The attempt
    /// that failed is over: it takes no effect after its completion. A sync is of this class only
    /// where a repeated one still covers every write that completed before.
    Transient,
    /// The medium has no room for what is written, and may have later. As for `Transient`, the
    /// attempt is over, and a repeated one makes up for it. No read is of this class.
    NoSpace,
    /// Another owner has the store: this one may neither write nor believe what it reads.
    Fenced,
    /// It fails for good. After a write or sync nothing is known of what the zone holds there, and
    /// a later sync that succeeds proves nothing about the writes before it.
    Permanent,
}

/// Why a medium refused an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What that means.
    pub class: ErrorClass,
    /// For people to read: the kernel's word, or a server's.
    pub sentence: Arc<str>,
}

impl Cause {
    /// A cause; the sentence goes on one like "could not read zone tables at byte 4096: ".
    #[must_use]
    pub fn new(class: ErrorClass, sentence: &str) -> Self {
        Self { class, sentence: Arc::from(sentence) }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// Why one operation failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IoError {
    /// The medium refused; the class of its cause says what that means.
    #[error("could not {verb} {} at byte {offset_bytes}: {cause}", ZoneName(*.zone))]
    Failed {
        /// What was tried.
        verb: Verb,
        /// Where.
        zone: Zone,
        /// First byte of the operation.
        offset_bytes: u64,
        /// Why.
        cause: Cause,
    },
    /// The file ends before the zone does: it was cut while the store was open.
    #[error("{} ended early, at byte {offset_bytes}: the file was cut short", ZoneName(*.zone))]
    EndOfFile {
        /// Where.
        zone: Zone,
        /// The first byte that is missing.
        offset_bytes: u64,
    },
    /// Not whole blocks. A mistake of the caller.
    #[error(
        "{length_bytes} bytes at byte {offset_bytes} of {} are not whole, aligned blocks",
        ZoneName(*.zone)
    )]
    Misaligned {
        /// Where.
        zone: Zone,
        /// First byte asked for.
        offset_bytes: u64,
        /// Bytes asked for.
        length_bytes: usize,
    },
    /// Beyond the end of the zone. A mistake of the caller, or of what it read.
    #[error(
        "{length_bytes} bytes at byte {offset_bytes} reach beyond {}, which has {size_bytes}",
        ZoneName(*.zone)
    )]
    OutOfRange {
        /// Where.
        zone: Zone,
        /// First byte asked for.
        offset_bytes: u64,
        /// Bytes asked for.
        length_bytes: usize,
        /// Size of the zone.
        size_bytes: u64,
    },
    /// The store has no such zone.
    #[error("the store has no {}", ZoneName(*.zone))]
    NoSuchZone {
        /// The zone asked for.
        zone: Zone,
    },
    /// The operation was submitted and will never complete.
    #[error("an operation at byte {offset_bytes} of {} never completed", ZoneName(*.zone))]
    Lost {
        /// Where.
        zone: Zone,
        /// First byte of the operation.
        offset_bytes: u64,
    },
}

impl IoError {
    /// What the failure means. Mistakes of the caller are permanent: repeating them helps nobody.
    #[must_use]
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Failed { cause, .. } => cause.class,
            _ => ErrorClass::Permanent,
        }
    }

    /// The error of an operation that failed in the same way in each of `attempts` attempts, and
    /// that is not tried again.
    #[must_use]
    pub(crate) fn given_up(self, attempts: u32) -> Self {
        match self {
            Self::Failed { verb, zone, offset_bytes, cause } => {
                let sentence = format!("{cause}; it failed {attempts} times");
                let cause = Cause::new(ErrorClass::Permanent, &sentence);
                Self::Failed { verb, zone, offset_bytes, cause }
            }
            other => other,
        }
    }

    /// What a caller says who waits for an operation that the disk no longer knows.
    #[must_use]
    pub fn lost(zone: Zone, offset_bytes: u64) -> Self {
        Self::Lost { zone, offset_bytes }
    }
}

/// A system call on a path failed.
#[derive(Debug, Error)]
#[error("could not {action} {}: {source}", path.display())]
pub struct FileError {
    /// What was tried, as in "could not open".
    pub action: &'static str,
    /// On what.
    pub path: PathBuf,
    /// The kernel's word.
    pub source: std::io::Error,
}

impl FileError {
    pub(crate) fn new(
        action: &'static str,
        path: impl Into<PathBuf>,
        source: impl Into<std::io::Error>,
    ) -> Self {
        Self { action, path: path.into(), source: source.into() }
    }
}

/// Why a store's files could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory holds no store.
    #[error("there is no store in {}", dir.display())]
    NoStore {
        /// The directory asked for.
        dir: PathBuf,
    },
    /// One of the store's files is not there.
    #[error("{} is missing: put it back, from where the store was copied", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// One of the store's symlinks leads nowhere.
    #[error(
        "{} points to {}, which is not there: attach that device or put the file back",
        path.display(), target.display()
    )]
    Dangling {
        /// The symlink.
        path: PathBuf,
        /// Where it points.
        target: PathBuf,
    },
    /// Another process has the store open.
    #[error("{} is in use by another process: a store is opened by one at a time", path.display())]
    Locked {
        /// The file whose lock is held.
        path: PathBuf,
    },
    /// A block device is mounted or part of something else.
    #[error("the device {} is in use: unmount it, or stop what holds it", path.display())]
    DeviceBusy {
        /// The device.
        path: PathBuf,
    },
    /// The medium, or its mount, takes no writes.
    #[error("{} is on a read-only medium: mount it for writing, or only read it", path.display())]
    ReadOnlyMedium {
        /// The file or device.
        path: PathBuf,
    },
    /// This user may not.
    #[error(
        "this user may not read and write {}: run as the store's owner, or give this user access",
        path.display()
    )]
    NotPermitted {
        /// The file or device.
        path: PathBuf,
    },
    /// The superblock has not even one block.
    #[error("{} is empty: bring it back from a copy of the store", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// io_uring was asked for and is not to be had.
    #[error("io_uring is not available ({source}): let the engine be chosen, or ask for psync")]
    NoUring {
        /// The kernel's word.
        source: std::io::Error,
    },
    /// The process ran out of something: descriptors, threads.
    #[error("could not {action}: {source}")]
    Process {
        /// What was tried.
        action: &'static str,
        /// The kernel's word.
        source: std::io::Error,
    },
    /// A system call failed.
    #[error(transparent)]
    File(#[from] FileError),
}

/// A store's UUID, as `tamis init --json` prints it.
struct HexBytes<'a>(&'a [u8; UUID_BYTES]);

impl fmt::Display for HexBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Why a store's files could not be made. Nothing that was made is left behind.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CreateFilesError {
    /// Something of that name is there, and nothing is ever overwritten.
    #[error("{} exists already: choose another place, or remove it first", path.display())]
    AlreadyExists {
        /// What is there.
        path: PathBuf,
    },
    /// The place for a part is the name by which the store will find it.
    #[error(
        "{} is the name that leads the store to this file: choose another place",
        path.display()
    )]
    OwnName {
        /// The place.
        path: PathBuf,
    },
    /// A block device holds something.
    #[error(
        "the device {} is not blank: if nothing on it is needed, clear it with `wipefs -a` and \
         `blkdiscard -z`",
        path.display()
    )]
    DeviceNotBlank {
        /// The device.
        path: PathBuf,
    },
    /// A block device is a zone of a store that has not written to it yet.
    #[error(
        "the device {} belongs to the store with the UUID {}, as its {}: choose another one; if \
         that store is gone, clear the device with `blkdiscard -z`",
        path.display(), HexBytes(uuid), ZoneName(*.zone)
    )]
    DeviceOfStore {
        /// The device.
        path: PathBuf,
        /// What it is to that store.
        zone: Zone,
        /// That store's.
        uuid: [u8; UUID_BYTES],
    },
    /// A block device is mounted or part of something else.
    #[error("the device {} is in use: unmount it, or stop what holds it", path.display())]
    DeviceBusy {
        /// The device.
        path: PathBuf,
    },
    /// A block device is too small.
    #[error(
        "the device {} has {:#} and {:#} is needed: ask for less, or choose a larger one",
        path.display(), ByteCount(*.size_bytes), ByteCount(*.needed_bytes)
    )]
    DeviceTooSmall {
        /// The device.
        path: PathBuf,
        /// What it has.
        size_bytes: u64,
        /// What was asked for.
        needed_bytes: u64,
    },
    /// The file system has not the room.
    #[error(
        "{} needs {} and its file system has {} free: ask for less capacity, or choose another \
         place",
        path.display(), ByteCount(*.needed_bytes), ByteCount(*.free_bytes)
    )]
    NoSpace {
        /// The file to be made.
        path: PathBuf,
        /// Its size.
        needed_bytes: u64,
        /// What there is.
        free_bytes: u64,
    },
    /// This user may not.
    #[error(
        "this user may not make or use {}: run as the store's owner, or give this user access",
        path.display()
    )]
    NotPermitted {
        /// The file or device.
        path: PathBuf,
    },
    /// The directory it was to be in is not there.
    #[error(
        "{} cannot be made: there is no directory {}, make it first",
        path.display(), above(path)
    )]
    NoParent {
        /// What was to be made.
        path: PathBuf,
    },
    /// A size that no zone can have.
    #[error(
        "{} cannot have {:#}: use a multiple of 4096",
        ZoneName(*.zone), ByteCount(*.size_bytes)
    )]
    BadSize {
        /// The zone.
        zone: Zone,
        /// The size asked for.
        size_bytes: u64,
    },
    /// Zones are missing, doubled or with gaps, or a place is given for a zone that is not made.
    #[error("the plan of the store's files does not fit together at {}", ZoneName(*.zone))]
    BadPlan {
        /// The zone at fault.
        zone: Zone,
    },
    /// A system call failed.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The directory that a path lies in.
fn above(path: &Path) -> std::path::Display<'_> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).display()
}

/// Why something could not be made or used, by what can be done about it.
pub(crate) fn refused(action: &'static str, path: &Path, error: io::Error) -> CreateFilesError {
    let path = path.to_owned();
    match error.kind() {
        ErrorKind::AlreadyExists => CreateFilesError::AlreadyExists { path },
        ErrorKind::NotFound | ErrorKind::NotADirectory => CreateFilesError::NoParent { path },
        ErrorKind::PermissionDenied => CreateFilesError::NotPermitted { path },
        _ => FileError::new(action, path, error).into(),
    }
}
