//! Where an exported image goes: a new file, a block device, standard output.
//!
//! A file is written under a hidden name beside the one asked for and takes that name when it is
//! complete and synced; when that has succeeded the name is durable as well. What has come to be
//! there meanwhile is replaced only if that was asked for. Dropped before that, it is removed. Who
//! writes to it holds its lock, so one that nobody has locked was left by an export that was
//! killed, and the next one to the same name removes it. A link is followed to what it leads to;
//! whatever is neither a file nor a block device is left alone, since a file in its place would
//! break who uses it.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use disk::{NamingError, ZoneName};
use format::zone_start::{ZONE_START_BYTES, begins_a_zone};

use crate::error::CliError;
use crate::error::place::unwritable;
use crate::same_file::is_what_was_found;

/// Hidden names that are tried: others export to the same name at the same time, or have left files
/// there that are not ours to remove.
const HIDDEN_NAMES_MAX: u32 = 100;

/// An image that is being written.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Stream,
    File { file: File, hidden: PathBuf, replaces: bool },
    Device { file: File },
}

impl Target {
    /// A target of `size_bytes` at `path`, `-` being standard output. What is there already is
    /// touched only with `overwrite`.
    pub(crate) fn open(path: &Path, size_bytes: u64, overwrite: bool) -> Result<Self, CliError> {
        if path.as_os_str() == "-" {
            return Ok(Self { path: PathBuf::from("standard output"), kind: Kind::Stream });
        }
        let failed = |source| unwritable(path, source);
        let Some(there) = look(path)? else {
            let (file, hidden) = create_hidden(path, size_bytes, None).map_err(failed)?;
            let kind = Kind::File { file, hidden, replaces: overwrite };
            return Ok(Self { path: path.to_owned(), kind });
        };
        let (is_file, is_device) = (there.is_file(), there.file_type().is_block_device());
        if !is_file && !is_device {
            return Err(CliError::OutputUnfit { path: path.to_owned() });
        }
        if !overwrite {
            return Err(CliError::OutputExists { path: path.to_owned() });
        }
        // Not the link to it is replaced.
        let path = path.canonicalize().map_err(failed)?;
        let kind = match is_device {
            true => open_device(&path, size_bytes)?,
            false if is_locked(&path) => return Err(CliError::OutputInUse { path }),
            false if is_zone(&path) => return Err(CliError::OutputIsZone { path }),
            false => {
                let permissions = Some(there.permissions());
                let (file, hidden) =
                    create_hidden(&path, size_bytes, permissions).map_err(failed)?;
                Kind::File { file, hidden, replaces: true }
            }
        };
        Ok(Self { path, kind })
    }

    /// A device that holds what `file` does.
    #[cfg(test)]
    pub(crate) fn device_of(file: File) -> Self {
        Self { path: PathBuf::from("a device"), kind: Kind::Device { file } }
    }

    /// The file or device to write into, each byte at its own place; `None` for a stream.
    pub(crate) fn file(&self) -> Option<&File> {
        match &self.kind {
            Kind::Stream => None,
            Kind::File { file, .. } | Kind::Device { file } => Some(file),
        }
    }

    /// Whether what is not written may be something else than zeros.
    pub(crate) fn needs_zeros(&self) -> bool {
        matches!(self.kind, Kind::Device { .. })
    }

    /// A failed write, with the name of what was written.
    pub(crate) fn failed(&self, source: io::Error) -> CliError {
        CliError::OutputFailed { path: self.path.clone(), source }
    }

    /// Makes what was written durable, and visible under its name.
    pub(crate) fn complete(&self) -> Result<(), CliError> {
        let completed = match &self.kind {
            Kind::Stream => Ok(()),
            Kind::Device { file } => file.sync_all().map_err(NamingError::Refused),
            Kind::File { file, hidden, replaces } => {
                let synced = file.sync_all().map_err(NamingError::Refused);
                synced.and_then(|()| disk::give_name(hidden, &self.path, *replaces))
            }
        };
        completed.map_err(|error| match (error, &self.kind) {
            (NamingError::NotDurable(source), _) => {
                CliError::OutputNotDurable { path: self.path.clone(), source }
            }
            (NamingError::Refused(source), kind) => {
                self.abandon();
                match (source.kind(), kind) {
                    (ErrorKind::AlreadyExists, Kind::File { replaces: false, .. }) => {
                        CliError::OutputExists { path: self.path.clone() }
                    }
                    _ => self.failed(source),
                }
            }
        })
    }

    /// Removes what was written to a new file.
    pub(crate) fn abandon(&self) {
        if let Kind::File { hidden, .. } = &self.kind {
            // The error that led here is the one to tell.
            let _ = fs::remove_file(hidden);
        }
    }
}

/// Whether a block device is at `path`, or at the end of the links that begin there.
pub(crate) fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| there.file_type().is_block_device())
}

/// What is at `path`, or at the end of the links that begin there.
fn look(path: &Path) -> Result<Option<fs::Metadata>, CliError> {
    match fs::metadata(path) {
        Ok(there) => Ok(Some(there)),
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::symlink_metadata(path) {
            Ok(_) => Err(CliError::OutputLeadsNowhere { path: path.to_owned() }),
            Err(_) => Ok(None),
        },
        Err(source) => Err(unwritable(path, source)),
    }
}

/// Whether somebody has locked the file, as a store that is open has all of its own.
fn is_locked(path: &Path) -> bool {
    let locked = |file: File| matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    File::open(path).is_ok_and(locked)
}

/// Whether a zone of a store is there: most say so by what they begin with, and what lies beside a
/// superblock under the name of a zone is one, too.
fn is_zone(path: &Path) -> bool {
    let begins = |path: &Path| {
        let mut start = Vec::new();
        let read = File::open(path)
            .and_then(|file| file.take(ZONE_START_BYTES as u64).read_to_end(&mut start));
        read.is_ok() && begins_a_zone(&start)
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    begins(path) || ZoneName::of_file(&name).is_some() && begins(&path.with_file_name("superblock"))
}

fn create_hidden(
    path: &Path,
    size_bytes: u64,
    permissions: Option<Permissions>,
) -> io::Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    if permissions.is_some() {
        // Until it has the mode of the one that it replaces, nobody else may open it.
        options.mode(0o600);
    }
    let (file, hidden) = create_locked(path, &options)?;
    let given = permissions.map_or(Ok(()), |permissions| file.set_permissions(permissions));
    if let Err(error) = given.and_then(|()| file.set_len(size_bytes)) {
        let _ = fs::remove_file(&hidden);
        return Err(error);
    }
    Ok((file, hidden))
}

/// A new file beside `path`, and its name, which nobody else has.
fn create_locked(path: &Path, options: &OpenOptions) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
    for number in 0..HIDDEN_NAMES_MAX {
        let hidden = format!(".{}.{number}.partial", name.to_string_lossy());
        let hidden = path.with_file_name(hidden);
        remove_left_over(&hidden);
        let file = match options.open(&hidden) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            opened => opened?,
        };
        // Before it was locked, somebody may have taken it for one that was left.
        let taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        if !taken && is_at(&file, &hidden) {
            return Ok((file, hidden));
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Removes the file that an export to a hidden name has left. Where files cannot be locked, or this
/// one is not ours to open, it stays.
fn remove_left_over(hidden: &Path) {
    if !fs::symlink_metadata(hidden).is_ok_and(|there| there.is_file()) {
        return;
    }
    let Ok(file) = OpenOptions::new().write(true).open(hidden) else { return };
    // The command that completes one releases its lock when it is called something else.
    if file.try_lock().is_ok() && is_at(&file, hidden) {
        let _ = fs::remove_file(hidden);
    }
}

/// Whether this file is the one that is called so.
fn is_at(file: &File, path: &Path) -> bool {
    is_what_was_found(file, fs::symlink_metadata(path))
}

fn open_device(path: &Path, size_bytes: u64) -> Result<Kind, CliError> {
    let failed = |source: io::Error| match source.kind() {
        ErrorKind::ResourceBusy => CliError::OutputInUse { path: path.to_owned() },
        _ => CliError::OutputFailed { path: path.to_owned(), source },
    };
    let mut file = disk::claim_device(path).map_err(failed)?;
    if is_zone(path) {
        return Err(CliError::OutputIsZone { path: path.to_owned() });
    }
    let device_bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
    if device_bytes < size_bytes {
        let (path, volume_bytes) = (path.to_owned(), size_bytes);
        return Err(CliError::OutputTooSmall { path, device_bytes, volume_bytes });
    }
    Ok(Kind::Device { file })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
    use std::os::unix::net::UnixListener;

    use super::Target;
    use crate::error::CliError;
    use crate::testing::Folder;

    #[test]
    fn a_file_has_its_name_only_when_it_is_complete() {
        let folder = Folder::new();
        let path = folder.path().join("out.img");
        let target = Target::open(&path, 8192, false).unwrap();
        target.file().unwrap().write_all_at(b"x", 4096).unwrap();
        assert!(!path.exists());
        target.complete().unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!((bytes.len(), bytes[0], bytes[4096]), (8192, 0, b'x'));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_abandoned_file_leaves_nothing() {
        let folder = Folder::new();
        Target::open(&folder.path().join("out.img"), 4096, false).unwrap().abandon();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// Of one that was killed a file is left, which nobody has locked.
    #[test]
    fn what_a_killed_export_has_left_is_in_nobodys_way_and_goes() {
        let folder = Folder::new();
        let path = folder.path().join("out.img");
        let killed = Target::open(&path, 8192, false).unwrap();
        let names = || fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().path());
        let left = names().next().unwrap();
        // One that goes on is left alone.
        let other = Target::open(&path, 4096, false).unwrap();
        assert!(left.exists() && names().count() == 2);
        other.abandon();
        drop(killed);
        assert!(left.exists());
        Target::open(&path, 4096, false).unwrap().complete().unwrap();
        assert!(names().eq([path.clone()]));

        // What is not ours to remove stays.
        fs::create_dir(&left).unwrap();
        Target::open(&path, 12_288, true).unwrap().complete().unwrap();
        assert!(left.is_dir() && names().count() == 2);
        assert_eq!(fs::metadata(&path).unwrap().len(), 12_288);
    }

    #[test]
    fn what_is_there_is_kept_unless_overwriting_is_asked_for() {
        let folder = Folder::new();
        let path = folder.path().join("out.img");
        fs::write(&path, "precious").unwrap();
        let refused = Target::open(&path, 4096, false);
        assert!(matches!(refused, Err(CliError::OutputExists { .. })), "{refused:?}");
        let target = Target::open(&path, 4096, true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        target.complete().unwrap();
        assert_eq!(fs::read(&path).unwrap().len(), 4096);
    }

    #[test]
    fn what_came_to_be_there_meanwhile_is_kept_unless_overwriting_is_asked_for() {
        let folder = Folder::new();
        let path = folder.path().join("out.img");
        for (overwrite, left) in [(true, 4096), (false, 8)] {
            let _ = fs::remove_file(&path);
            let target = Target::open(&path, 4096, overwrite).unwrap();
            fs::write(&path, "precious").unwrap();
            let completed = target.complete();
            assert_eq!(completed.is_ok(), overwrite, "{completed:?}");
            assert!(overwrite || matches!(completed, Err(CliError::OutputExists { .. })));
            assert_eq!(fs::read(&path).unwrap().len(), left);
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn what_is_neither_a_file_nor_a_disk_is_never_replaced() {
        let folder = Folder::new();
        let path = |name: &str| folder.path().join(name);
        let _socket = UnixListener::bind(path("socket")).unwrap();
        fs::create_dir(path("directory")).unwrap();
        symlink("/dev/null", path("null")).unwrap();
        for name in ["socket", "directory", "null"] {
            let refused = Target::open(&path(name), 4096, true).unwrap_err().to_string();
            assert!(refused.contains("neither a file nor a block device"), "{name}: {refused}");
        }
        symlink("gone", path("dangling")).unwrap();
        for overwrite in [false, true] {
            let refused = Target::open(&path("dangling"), 4096, overwrite).unwrap_err();
            assert!(refused.to_string().contains("leads nowhere"), "{refused}");
        }
    }

    #[test]
    fn a_link_stays_and_a_file_keeps_its_mode() {
        let folder = Folder::new();
        let (link, path) = (folder.path().join("link"), folder.path().join("vms/out.img"));
        fs::create_dir(folder.path().join("vms")).unwrap();
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        symlink("vms/out.img", &link).unwrap();
        Target::open(&link, 4096, true).unwrap().complete().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let meta = fs::symlink_metadata(&path).unwrap();
        assert_eq!((meta.len(), meta.permissions().mode() & 0o7777), (4096, 0o640));
    }
}
