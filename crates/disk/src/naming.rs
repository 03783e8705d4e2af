//! Names of files, given so that they last.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use thiserror::Error;

/// Why a file did not get its name for good.
#[derive(Debug, Error)]
pub enum NamingError {
    /// It is called what it was called. [`ErrorKind::AlreadyExists`]: something is there that is
    /// not to be replaced.
    #[error(transparent)]
    Refused(io::Error),
    /// It has its name, and its directory could not be synced: a loss of power may take the name
    /// away again.
    #[error("the name is given, and may not outlive a loss of power: {0}")]
    NotDurable(#[source] io::Error),
}

/// Gives the file that is called `hidden` the name `path`, durably; what is called so already is
/// replaced only if `replaces` says so.
///
/// # Errors
/// [`NamingError`] says whether the file has its name.
pub fn give_name(hidden: &Path, path: &Path, replaces: bool) -> Result<(), NamingError> {
    rename(hidden, path, replaces).map_err(NamingError::Refused)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    sync_names_in(folder.unwrap_or(Path::new("."))).map_err(NamingError::NotDurable)
}

/// Makes the names in a directory durable.
pub(crate) fn sync_names_in(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // Some network file systems have no such thing: there a name is as durable as it gets.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        synced => synced,
    }
}

fn rename(hidden: &Path, path: &Path, replaces: bool) -> io::Result<()> {
    if replaces {
        return fs::rename(hidden, path);
    }
    match renameat_with(CWD, hidden, CWD, path, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => link(hidden, path),
        renamed => Ok(renamed?),
    }
}

/// The same where the file system does not know of it: no link replaces anything either. Where
/// there are no links, a look at the name is all that can be had.
fn link(hidden: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(hidden, path) {
        Ok(()) => fs::remove_file(hidden),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        Err(_) if path.symlink_metadata().is_ok() => Err(ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(hidden, path),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::ErrorKind;
    use std::path::Path;

    use super::{NamingError, give_name, link, sync_names_in};

    #[test]
    fn a_name_that_is_taken_is_taken_away_only_when_that_is_meant() {
        let folder = std::env::temp_dir().join(format!("tamis-naming-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (hidden, path) = (folder.join("hidden"), folder.join("name"));
        let link = || link(&hidden, &path).map_err(NamingError::Refused);
        let kinds: [&dyn Fn() -> Result<(), NamingError>; 2] =
            [&|| give_name(&hidden, &path, false), &link];
        for give in kinds {
            fs::write(&hidden, "new").unwrap();
            fs::write(&path, "old").unwrap();
            let refused = give().unwrap_err();
            let is_taken = |error: &std::io::Error| error.kind() == ErrorKind::AlreadyExists;
            assert!(matches!(&refused, NamingError::Refused(error) if is_taken(error)));
            assert_eq!(fs::read(&path).unwrap(), b"old");
            assert!(hidden.exists());
            fs::remove_file(&path).unwrap();
            give().unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            assert!(!hidden.exists());
        }
        fs::write(&hidden, "newer").unwrap();
        give_name(&hidden, &path, true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"newer");
        fs::remove_dir_all(&folder).unwrap();
    }

    /// As on some network file systems: /proc knows no sync of a directory.
    #[test]
    fn where_no_directory_can_be_synced_names_are_as_durable_as_they_get() {
        let proc = Path::new("/proc");
        let synced = File::open(proc).unwrap().sync_all();
        assert_eq!(synced.unwrap_err().kind(), ErrorKind::InvalidInput);
        sync_names_in(proc).unwrap();
    }
}
