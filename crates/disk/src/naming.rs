//! Names of files, given so that they last.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Gives the file that is called `hidden` the name `path`, durably; what is called so already is
/// replaced only if `replaces` says so.
///
/// # Errors
/// [`ErrorKind::AlreadyExists`] when something is there that is not to be replaced, and whatever
/// the system refuses with. Where only the directory could not be synced the file has its name.
pub fn give_name(hidden: &Path, path: &Path, replaces: bool) -> io::Result<()> {
    rename(hidden, path, replaces)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match File::open(folder.unwrap_or(Path::new(".")))?.sync_all() {
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
    use std::fs;
    use std::io::ErrorKind;

    use super::{give_name, link};

    #[test]
    fn a_name_that_is_taken_is_taken_away_only_when_that_is_meant() {
        let folder = std::env::temp_dir().join(format!("tamis-naming-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (hidden, path) = (folder.join("hidden"), folder.join("name"));
        let kinds: [&dyn Fn() -> std::io::Result<()>; 2] =
            [&|| give_name(&hidden, &path, false), &|| link(&hidden, &path)];
        for give in kinds {
            fs::write(&hidden, "new").unwrap();
            fs::write(&path, "old").unwrap();
            assert_eq!(give().unwrap_err().kind(), ErrorKind::AlreadyExists);
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
}
