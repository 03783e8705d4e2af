//! What a run that was killed left behind: mounts, loop devices and files of its folder.
//!
//! Servers, fio and the daemon of ZFS end with the run that started them, even by `kill -9`
//! (`program.rs`). A mount of btrfs and a loop device belong to nobody; they are found by where
//! they are. Only what is under a folder of a run whose process is gone is touched.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;
use crate::program::{PREFIX, output};

/// What names of short paths end with: sockets, and the folder of a database's.
const SHORT: [&str; 2] = [".sock", "-postgres"];
/// What our name begins with as the kernel shortens it, whatever the program is a copy of.
const PROGRAM: &str = "bench";

/// The folder of this run.
pub(crate) fn folder(dir: &Path) -> PathBuf {
    dir.join(format!("{PREFIX}{}", std::process::id()))
}

/// Removes the folders of dead runs in `dir`, and all that is mounted or attached under them.
pub(crate) fn clear(dir: &Path) -> Result<(), Failure> {
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    for entry in entries.flatten().filter(|entry| is_dead(&entry.file_name().to_string_lossy())) {
        let path = entry.path();
        eprintln!("clearing away {}, which an earlier run left", path.display());
        let path = path.canonicalize().map_err(Failure::file(&path))?;
        for mounted in mounted_under(&path, &read("/proc/self/mountinfo")) {
            output(Command::new("umount").arg(mounted))?;
        }
        for device in loops_under(&path) {
            output(Command::new("losetup").arg("--detach").arg(device))?;
        }
        fs::remove_dir_all(&path).map_err(Failure::file(&path))?;
    }
    clear_short_paths(&std::env::temp_dir());
    Ok(())
}

/// Removes what dead runs have left at short paths, where that is allowed.
fn clear_short_paths(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let run = name.rsplit_once('-').map(|(run, _)| run);
        let is_ours = SHORT.iter().any(|what| name.ends_with(what));
        if is_ours && run.is_some_and(is_dead) {
            let path = entry.path();
            // What another user's run left stays.
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    }
}

/// Whether this is the folder of a run that has ended.
fn is_dead(name: &str) -> bool {
    let Some(pid) = name.strip_prefix(PREFIX).and_then(|pid| pid.parse::<u32>().ok()) else {
        return false;
    };
    !read(format!("/proc/{pid}/comm")).starts_with(PROGRAM)
}

/// Where something is mounted under `path`, what was mounted last first.
fn mounted_under(path: &Path, mounts: &str) -> Vec<PathBuf> {
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let places = places.map(|place| PathBuf::from(place.replace("\\040", " ")));
    let mut under: Vec<PathBuf> = places.filter(|place| place.starts_with(path)).collect();
    under.reverse();
    under
}

/// Loop devices on files under `path`.
fn loops_under(path: &Path) -> Vec<PathBuf> {
    let Ok(devices) = fs::read_dir("/sys/block") else { return Vec::new() };
    let backs = |name: &str| read(format!("/sys/block/{name}/loop/backing_file"));
    let names = devices.flatten().map(|device| device.file_name().to_string_lossy().into_owned());
    let under = names.filter(|name| Path::new(backs(name).trim()).starts_with(path));
    under.map(|name| Path::new("/dev").join(name)).collect()
}

/// Nothing, where there is no such file.
fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{clear, clear_short_paths, folder, mounted_under};
    use crate::program::{PREFIX, short_path};

    #[test]
    fn folders_of_dead_runs_go_and_others_stay() {
        let dir = std::env::temp_dir().join(format!("tamis-leftovers-{}", std::process::id()));
        // The first process is no run of this program.
        let dead = dir.join(format!("{PREFIX}1"));
        let (mine, other) = (folder(&dir), dir.join("bench-notes"));
        for path in [&dead, &other] {
            fs::create_dir_all(path.join("within")).unwrap();
        }
        clear(&dir).unwrap();
        let left = [dead.exists(), other.exists(), mine.starts_with(&dir)];
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(left, [false, true, true]);
        clear(&dir).unwrap();
    }

    #[test]
    fn short_paths_of_dead_runs_go_and_others_stay() {
        let dir = std::env::temp_dir().join(format!("tamis-short-{}", std::process::id()));
        fs::create_dir_all(dir.join(format!("{PREFIX}1-postgres/log"))).unwrap();
        let mine = dir.join(short_path("tamis.sock").file_name().unwrap());
        let names = [format!("{PREFIX}1-qemu.sock"), format!("{PREFIX}1-notes"), "1.sock".into()];
        let paths = names.map(|name| dir.join(name));
        paths.iter().chain([&mine]).for_each(|path| fs::write(path, "").unwrap());
        clear_short_paths(&dir);
        let left: Vec<bool> = paths.iter().map(|path| path.exists()).collect();
        let (mine, count) = (mine.exists(), fs::read_dir(&dir).unwrap().count());
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!((left, mine, count), (vec![false, true, true], true, 3));
    }

    #[test]
    fn what_is_mounted_last_is_first() {
        let mounts = "1 0 8:1 / /a/b rw - ext4 x rw\n2 1 8:2 / /a/b/c rw - btrfs y rw\n\
                      3 0 8:3 / /a/bc rw - ext4 z rw\n4 0 8:4 / /a/b\\040/d rw - ext4 z rw\n";
        let under = ["/a/b/c", "/a/b"].map(PathBuf::from);
        assert_eq!(mounted_under(Path::new("/a/b"), mounts), under);
    }
}
