//! Places that cannot be what a command takes them for: stores that are files, names given twice,
//! directories that are not there.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use format::byte_count::ByteCount;
use images::ImageError;
use thiserror::Error;

use super::{CliError, Exit};
use crate::shell::shell_path;

/// Why a place is unfit.
#[derive(Debug, Error)]
pub(crate) enum PlaceError {
    #[error(
        "{} is a file, and a store is a directory: name the directory of the store",
        path.display()
    )]
    StoreIsFile { path: PathBuf },
    #[error(
        "{} is a file of the store at {}: name that directory",
        path.display(), store.display()
    )]
    StoreIsZone { path: PathBuf, store: PathBuf },
    #[error("{} is named twice: give each part of the store a place of its own", path.display())]
    Twice { path: PathBuf },
    #[error("--nbd {address} is given twice: leave out one of them")]
    AddressTwice { address: String },
    #[error(
        "{} is part of this store already: name a file to be made or another device, or lengthen \
         the last data file with `tamis grow {} --capacity SIZE`",
        path.display(), shell_path(store)
    )]
    PartOfStore { path: PathBuf, store: PathBuf },
    #[error(
        "{} has {} free, and half of it is too little for a store, which needs 64M for data and \
         80M beside that: choose another place, or free room there",
        path.display(), ByteCount(*free_bytes)
    )]
    NoRoomForStore { path: PathBuf, free_bytes: u64 },
    #[error(
        "{} cannot be made: there is no directory {}, make it first",
        path.display(), parent(path)
    )]
    NoParent { path: PathBuf },
    #[error("there is no file {}", path.display())]
    NoFile { path: PathBuf },
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
}

impl PlaceError {
    /// What it means to a script.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::StoreIsFile { .. }
            | Self::StoreIsZone { .. }
            | Self::NoParent { .. }
            | Self::NoFile { .. } => Exit::NotFound,
            Self::Twice { .. } | Self::AddressTwice { .. } | Self::PartOfStore { .. } => {
                Exit::Usage
            }
            Self::NoRoomForStore { .. } => Exit::NoSpace,
            Self::Unreadable { .. } => Exit::Failed,
        }
    }

    /// A file that is to be read, and was not opened.
    pub(crate) fn unreadable(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NoFile { path },
            _ => Self::Unreadable { path, source },
        }
    }

    /// A place that was taken for a store's directory and is none.
    pub(crate) fn no_directory(path: &Path) -> Self {
        let above = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => path,
        };
        let is_zone = path.file_name().and_then(OsStr::to_str).is_some_and(is_zone_name);
        if is_zone && above.join("superblock").exists() {
            return Self::StoreIsZone { path: path.to_owned(), store: above.to_owned() };
        }
        Self::StoreIsFile { path: path.to_owned() }
    }
}

fn is_zone_name(name: &str) -> bool {
    name == "superblock" || disk::ZoneName::of_file(name).is_some()
}

/// The directory above a path, as people name it.
fn parent(path: &Path) -> std::path::Display<'_> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).display()
}

impl From<ImageError> for CliError {
    fn from(error: ImageError) -> Self {
        match error {
            ImageError::Io { path, source }
                if matches!(
                    source.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                PlaceError::unreadable(&path, source).into()
            }
            error => Self::Image(error),
        }
    }
}

/// A file that is to be made or written, and was not.
pub(crate) fn unwritable(path: &Path, source: io::Error) -> CliError {
    let path = path.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            PlaceError::NoParent { path }.into()
        }
        _ => CliError::OutputFailed { path, source },
    }
}
