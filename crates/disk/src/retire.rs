//! What becomes of the file of a data zone that was taken out of a store.
//!
//! The zone's number stays taken, so an empty file keeps its name. A file in the store's directory
//! is cut to nothing. Where a symlink led, a file is cut and removed, a device is blanked as far as
//! one is looked at for whose it is ([`crate::claim`]); an empty file takes the symlink's place.
//!
//! The steps are in such an order that each may be the last of a process that is killed: the store
//! opens after any, and the same call goes on where another ended.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use format::units::Zone;

use crate::claim::BLANK_BYTES;
use crate::create::sync_directory;
use crate::error::{CreateFilesError, refused};
use crate::layout::zone_path;
use crate::place::{self, write_zeros_to};

/// Ends the name of the empty file until it takes the place of a symlink.
const FOLLOWING: &str = "gone";
/// As of all files of a store: its owner's alone.
const FOLLOWING_MODE: u32 = 0o600;

/// Frees what data zone `number` of the store in `dir` took; where it was, if a symlink led there.
/// The store's geometry must say, durably, that the zone is gone, and it has another one.
///
/// # Errors
/// [`CreateFilesError::File`]: what is left of the file is as long as it was, or gone.
pub fn retire_zone_file(dir: &Path, number: u16) -> Result<Option<PathBuf>, CreateFilesError> {
    let path = zone_path(dir, Zone::Data(number), 2);
    let Ok(target) = fs::read_link(&path) else {
        cut(&path)?;
        return Ok(None);
    };
    let target = dir.join(target);
    let is_device = match place::is_device(&target) {
        Ok(is_device) => is_device,
        // The disk may be dead: that is why it goes.
        Err(error) if error.kind() == ErrorKind::NotFound => {
            take_place(dir, &path)?;
            return Ok(Some(target));
        }
        Err(error) => return Err(refused("look at", &target, error)),
    };
    if is_device {
        blank(&target)?;
        take_place(dir, &path)?;
    } else {
        cut(&target)?;
        take_place(dir, &path)?;
        fs::remove_file(&target).map_err(|error| refused("remove", &target, error))?;
    }
    Ok(Some(target))
}

fn cut(path: &Path) -> Result<(), CreateFilesError> {
    let cut = OpenOptions::new().write(true).open(path).and_then(|file| {
        file.set_len(0)?;
        file.sync_all()
    });
    cut.map_err(|error| refused("cut", path, error))
}

fn blank(path: &Path) -> Result<(), CreateFilesError> {
    let file = OpenOptions::new().write(true).open(path);
    let blanked = file.and_then(|file| write_zeros_to(&file, 0..BLANK_BYTES as u64));
    blanked.map_err(|error| refused("write zeros to", path, error))
}

/// Puts an empty file in the place of a symlink.
fn take_place(dir: &Path, path: &Path) -> Result<(), CreateFilesError> {
    let following = path.with_added_extension(FOLLOWING);
    let made = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FOLLOWING_MODE)
        .open(&following)
        .and_then(|file| file.sync_all());
    made.map_err(|error| refused("make", &following, error))?;
    fs::rename(&following, path).map_err(|error| refused("rename", &following, error))?;
    sync_directory(dir)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn directory(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("tamis-retire-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(dir.join("elsewhere")).unwrap();
        dir
    }

    #[test]
    fn a_file_of_the_store_is_cut_and_keeps_its_name() {
        let dir = directory("file");
        fs::write(dir.join("data.1"), [7; 9000]).unwrap();
        for _ in 0..2 {
            assert_eq!(retire_zone_file(&dir, 1).unwrap(), None);
            assert_eq!(fs::symlink_metadata(dir.join("data.1")).unwrap().len(), 0);
        }
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn an_empty_file_takes_the_place_of_a_symlink_and_what_it_led_to_is_removed() {
        let dir = directory("link");
        let target = dir.join("elsewhere/disk");
        fs::write(&target, [7; 9000]).unwrap();
        symlink(&target, dir.join("data.1")).unwrap();
        assert_eq!(retire_zone_file(&dir, 1).unwrap(), Some(target.clone()));
        assert!(!target.exists());
        let left = fs::symlink_metadata(dir.join("data.1")).unwrap();
        assert!(left.is_file() && left.len() == 0);
        // A disk that is dead.
        fs::remove_file(dir.join("data.1")).unwrap();
        symlink(&target, dir.join("data.1")).unwrap();
        assert_eq!(retire_zone_file(&dir, 1).unwrap(), Some(target));
        assert!(fs::symlink_metadata(dir.join("data.1")).unwrap().is_file());
        fs::remove_dir_all(dir).unwrap();
    }
}
