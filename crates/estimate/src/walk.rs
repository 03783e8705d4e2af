//! The files under the paths that were asked for.
//!
//! A path that was named is followed wherever it leads; inside a directory symbolic links are not,
//! nor other file systems, and what is neither file nor directory is passed over. Nothing is met
//! twice: not a path that was named twice or lies in a directory that was named, not a file with
//! several names. Only files with more than one name have to be remembered.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, DirEntry, Metadata, ReadDir};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use images::{DiskImage, ImageError};

/// Something to be read.
#[derive(Debug)]
pub(crate) enum Found {
    /// A path that was named: an image, a device, a file.
    Named(PathBuf),
    /// A file inside a directory.
    Inside(PathBuf, Metadata),
    /// What could not be looked at.
    Unreadable(PathBuf, io::Error),
}

/// What the system counts the blocks of a file in.
const BLOCK_BYTES: u64 = 512;

/// A file among all file systems.
type Identity = (u64, u64);

/// The files, one after the other.
#[derive(Debug)]
pub(crate) struct Walk {
    named: VecDeque<Named>,
    /// Their identities: whatever else leads to one of them is passed over.
    named_identities: HashSet<Identity>,
    /// Files with several names that were met.
    linked: HashSet<Identity>,
    /// From the directory that was named to the one where we are.
    folders: Vec<(PathBuf, ReadDir)>,
    /// The file system of the directory that was named.
    file_system: u64,
}

#[derive(Debug)]
enum Named {
    Folder(PathBuf, u64),
    Other(PathBuf),
    Unreadable(PathBuf, io::Error),
}

impl Walk {
    pub(crate) fn new(paths: &[PathBuf]) -> Self {
        let mut walk = Self {
            named: VecDeque::new(),
            named_identities: HashSet::new(),
            linked: HashSet::new(),
            folders: Vec::new(),
            file_system: 0,
        };
        for path in paths {
            let named = match fs::metadata(path) {
                Ok(metadata) if !walk.named_identities.insert(identity(&metadata)) => continue,
                Ok(metadata) if metadata.is_dir() => Named::Folder(path.clone(), metadata.dev()),
                Ok(_) => Named::Other(path.clone()),
                Err(error) => Named::Unreadable(path.clone(), error),
            };
            walk.named.push_back(named);
        }
        walk
    }

    /// What a path that was named comes to; nothing for a directory, inside which it goes on.
    fn begin(&mut self, named: Named) -> Option<Found> {
        match named {
            Named::Other(path) => Some(Found::Named(path)),
            Named::Unreadable(path, error) => Some(Found::Unreadable(path, error)),
            Named::Folder(path, file_system) => {
                self.file_system = file_system;
                self.enter(path)
            }
        }
    }

    /// Goes on inside `folder`; something only when it cannot.
    fn enter(&mut self, folder: PathBuf) -> Option<Found> {
        match fs::read_dir(&folder) {
            Ok(entries) => {
                self.folders.push((folder, entries));
                None
            }
            Err(error) => Some(Found::Unreadable(folder, error)),
        }
    }

    /// What `entry` of a directory comes to, unless it is passed over.
    fn visit(&mut self, entry: &DirEntry) -> Option<Found> {
        let path = entry.path();
        // Of the entry itself: links are not followed.
        let metadata = match entry.metadata() {
            Ok(metadata) => metadata,
            // It was removed since the directory was read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return Some(Found::Unreadable(path, error)),
        };
        let identity = identity(&metadata);
        if metadata.dev() != self.file_system || self.named_identities.contains(&identity) {
            return None;
        }
        if metadata.is_dir() {
            return self.enter(path);
        }
        let seen = metadata.nlink() > 1 && !self.linked.insert(identity);
        (metadata.is_file() && !seen).then_some(Found::Inside(path, metadata))
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            let found = match self.folders.last_mut() {
                None => {
                    let named = self.named.pop_front()?;
                    self.begin(named)
                }
                Some((folder, entries)) => match entries.next() {
                    None => {
                        self.folders.pop();
                        None
                    }
                    Some(Ok(entry)) => self.visit(&entry),
                    Some(Err(error)) => {
                        let folder = folder.clone();
                        self.folders.pop();
                        Some(Found::Unreadable(folder, error))
                    }
                },
            };
            if found.is_some() {
                return found;
            }
        }
    }
}

impl Found {
    /// Opens it: images that were named as the disks that they hold, files in directories as they
    /// are.
    pub(crate) fn open(self) -> Result<DiskImage, ImageError> {
        match self {
            Self::Named(path) => match DiskImage::open(&path) {
                // An archive is no disk, but a file that a store may hold.
                Err(ImageError::OtherFormat { format, .. }) if format.qemu_name.is_none() => {
                    DiskImage::open_as_is(&path)
                }
                opened => opened,
            },
            Self::Inside(path, _) => DiskImage::open_as_is(&path),
            Self::Unreadable(path, source) => Err(ImageError::Io { path, source }),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Named(path) | Self::Inside(path, _) | Self::Unreadable(path, _) => path,
        }
    }
}

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

/// Bytes of data in all that is under `paths`, for a progress bar, as long as `go_on` says so:
/// holes are not read, and files that cannot be read now count for nothing.
#[must_use]
pub fn data_bytes(paths: &[PathBuf], mut go_on: impl FnMut() -> bool) -> u64 {
    let data_of = |found, go_on: &mut dyn FnMut() -> bool| match found {
        Found::Inside(_, metadata) => metadata.len().min(metadata.blocks() * BLOCK_BYTES),
        Found::Unreadable(..) => 0,
        named @ Found::Named(_) => {
            named.open().and_then(|image| image.data_bytes(go_on)).unwrap_or(0)
        }
    };
    let mut data_bytes = 0;
    for found in Walk::new(paths) {
        if !go_on() {
            break;
        }
        data_bytes += data_of(found, &mut go_on);
    }
    data_bytes
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::{Found, Walk, data_bytes};
    use crate::pieces::tests::Folder;

    fn names(paths: &[PathBuf]) -> Vec<String> {
        let name = |found: Found| found.path().file_name().unwrap().to_str().unwrap().to_owned();
        let mut names: Vec<String> = Walk::new(paths).map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_met_twice_and_links_are_not_followed() {
        let folder = Folder::new();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("deep/er")).unwrap();
        for name in ["one", "deep/two", "deep/er/three"] {
            fs::write(path(name), [1; 100]).unwrap();
        }
        fs::hard_link(path("one"), path("deep/one-again")).unwrap();
        symlink(path("deep"), path("link")).unwrap();
        symlink(path("one"), path("link-to-one")).unwrap();
        let root = folder.path().to_owned();
        let met = names(std::slice::from_ref(&root));
        assert_eq!(met.len(), 3, "{met:?}");
        assert_eq!(met[1..], ["three", "two"]);
        // Named as well as inside of what is named, and a link that is named.
        let paths = [path("deep"), root.clone(), path("deep/two"), path("link-to-one"), root];
        let met = names(&paths);
        assert_eq!(met, ["link-to-one", "three", "two"]);
        assert_eq!(data_bytes(&paths, || true), 300);
        assert_eq!(data_bytes(&paths, || false), 0);
    }

    /// However many they are: a thread has only so much stack.
    #[test]
    fn empty_directories_are_passed_over() {
        let folder = Folder::new();
        let paths: Vec<PathBuf> = (0..2000).map(|n| folder.path().join(n.to_string())).collect();
        paths.iter().for_each(|path| fs::create_dir(path).unwrap());
        let walk = move || Walk::new(&paths).count();
        let walking = std::thread::Builder::new().stack_size(128 << 10).spawn(walk).unwrap();
        assert_eq!(walking.join().unwrap(), 0);
    }

    #[test]
    fn what_is_not_there_is_told() {
        let found: Vec<Found> = Walk::new(&[PathBuf::from("/nowhere/at/all")]).collect();
        assert!(matches!(found.as_slice(), [Found::Unreadable(..)]), "{found:?}");
    }
}
