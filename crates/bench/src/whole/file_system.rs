//! File systems that reduce data, in an image on the measured disk: fio writes one file in them.
//!
//! They compress what passes through the page cache only, so fio goes through it, and is told to
//! flush at the end. What is mounted is undone when its value is dropped.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::mounted::{Mounted, persist};
use super::system::System;
use crate::failure::Failure;
use crate::fio::{Target, preallocate, write_once};
use crate::program::{bound, output};

/// Room of a file system beyond its file.
const BEYOND_BYTES: u64 = 1 << 30;
const VOLUME: &str = "volume";
const POOL: &str = "tamis-bench";

/// An image with a folder for what is in it.
struct Place {
    image: PathBuf,
    folder: PathBuf,
}

impl Place {
    fn make(path: &Path, size_bytes: u64) -> Result<Self, Failure> {
        let place = Self { image: path.with_extension("img"), folder: path.to_owned() };
        fs::create_dir(&place.folder).map_err(Failure::file(&place.folder))?;
        preallocate(&place.image, size_bytes + BEYOND_BYTES)?;
        write_once(&place.image, size_bytes)?;
        Ok(place)
    }

    fn target(&self) -> Target {
        Target::Buffered { path: self.folder.join(VOLUME) }
    }

    fn remove(&self) -> Result<(), Failure> {
        fs::remove_dir(&self.folder).map_err(Failure::file(&self.folder))?;
        fs::remove_file(&self.image).map_err(Failure::file(&self.image))
    }
}

/// btrfs on a loop device.
pub(super) struct Btrfs {
    place: Place,
    options: String,
    mounted: Option<Mounted>,
    /// In use before anything was written.
    empty_bytes: u64,
}

impl Btrfs {
    pub(super) fn make(path: PathBuf, size_bytes: u64, codec: &str) -> Result<Self, Failure> {
        let place = Place::make(&path, size_bytes)?;
        output(Command::new("mkfs.btrfs").args(["--quiet", "--force"]).arg(&place.image))?;
        let options = format!("noatime,compress={codec}");
        let mut btrfs = Self { place, options, mounted: None, empty_bytes: 0 };
        btrfs.mount()?;
        btrfs.empty_bytes = btrfs.used_bytes()?;
        Ok(btrfs)
    }

    fn mount(&mut self) -> Result<(), Failure> {
        let Place { image, folder } = &self.place;
        self.mounted = Some(Mounted::new(image, folder, &self.options)?);
        Ok(())
    }

    fn unmount(&mut self) -> Result<(), Failure> {
        self.mounted.take().map_or(Ok(()), Mounted::unmount)
    }

    fn used_bytes(&self) -> Result<u64, Failure> {
        let mut command = Command::new("df");
        let answer =
            output(command.args(["--output=used", "--block-size=1"]).arg(&self.place.folder))?;
        let used = answer.lines().nth(1).and_then(|line| line.trim().parse().ok());
        used.ok_or_else(|| Failure::Answer { command: "df".to_owned(), missing: "what is used" })
    }
}

impl System for Btrfs {
    fn target(&self) -> Target {
        self.place.target()
    }

    fn restart(&mut self) -> Result<(), Failure> {
        self.unmount()?;
        self.mount()
    }

    fn stored_bytes(&self) -> Result<u64, Failure> {
        output(Command::new("sync").arg("--file-system").arg(&self.place.folder))?;
        Ok(self.used_bytes()?.saturating_sub(self.empty_bytes))
    }

    fn remove(mut self: Box<Self>) -> Result<(), Failure> {
        self.unmount()?;
        self.place.remove()
    }
}

/// ZFS of zfs-fuse, with deduplication and compression. Its daemon must be the only one here.
pub(super) struct ZfsFuse {
    place: Place,
    daemon: Option<Child>,
}

impl ZfsFuse {
    pub(super) fn make(path: PathBuf, size_bytes: u64) -> Result<Self, Failure> {
        let place = Place::make(&path, size_bytes)?;
        let mut zfs = Self { place, daemon: None };
        zfs.start()?;
        let mut create = Command::new("zpool");
        create.args(["create", "-f", "-O", "dedup=on", "-O", "compression=on", "-O", "atime=off"]);
        // No later daemon looks for the pool.
        create.args(["-o", "cachefile=none"]);
        create.arg("-m").arg(absolute(&zfs.place.folder)?).arg(POOL);
        output(create.arg(absolute(&zfs.place.image)?))?;
        Ok(zfs)
    }

    fn start(&mut self) -> Result<(), Failure> {
        let mut command = bound("zfs-fuse");
        command.args(["--no-daemon", "--no-kstat-mount"]).process_group(0);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = quiet
            .spawn()
            .map_err(|source| Failure::Start { command: "zfs-fuse".to_owned(), source })?;
        self.daemon = Some(child);
        persist(|| output(Command::new("zpool").arg("list")))
    }

    /// The daemon ends, and takes the mount and what it knew of the pool with it.
    fn stop(&mut self) -> Result<(), Failure> {
        let Some(mut daemon) = self.daemon.take() else { return Ok(()) };
        let ended = output(Command::new("kill").arg("-TERM").arg(daemon.id().to_string()));
        // It was just asked to, and it is a child of this process: it will end.
        let _ = daemon.wait();
        ended.map(drop)
    }
}

impl System for ZfsFuse {
    fn target(&self) -> Target {
        self.place.target()
    }

    fn restart(&mut self) -> Result<(), Failure> {
        // It is busy for a moment after its last client has gone.
        persist(|| output(Command::new("zpool").args(["export", "-f", POOL])))?;
        self.stop()?;
        self.start()?;
        let folder = absolute(&self.place.image)?;
        let mut import = Command::new("zpool");
        import
            .args(["import", "-o", "cachefile=none", "-d"])
            .arg(folder.parent().unwrap_or(Path::new("/")));
        output(import.arg(POOL)).map(drop)
    }

    fn stored_bytes(&self) -> Result<u64, Failure> {
        output(&mut Command::new("sync"))?;
        let answer = output(Command::new("zpool").args(["list", "-H", "-o", "alloc", POOL]))?;
        read_size(answer.trim())
            .ok_or_else(|| Failure::Answer { command: "zpool list".to_owned(), missing: "a size" })
    }

    fn remove(mut self: Box<Self>) -> Result<(), Failure> {
        self.stop()?;
        self.place.remove()
    }
}

impl Drop for ZfsFuse {
    fn drop(&mut self) {
        // After a failure, which is what is told.
        let _ = self.stop();
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize().map_err(Failure::file(path))
}

/// `33.5M`, as zpool has it.
fn read_size(text: &str) -> Option<u64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let power =
        ["", "K", "M", "G", "T"].iter().position(|name| unit.trim_end_matches('B') == *name)?;
    Some((number.parse::<f64>().ok()? * 1024_f64.powi(power as i32)) as u64)
}

#[cfg(test)]
mod tests {
    use super::read_size;

    #[test]
    fn sizes_of_zpool_are_read() {
        for (text, bytes) in [("0", 0), ("512B", 512), ("33.5M", 35_127_296), ("1.5G", 3 << 29)] {
            assert_eq!(read_size(text), Some(bytes), "{text}");
        }
        assert_eq!((read_size("-"), read_size("3X")), (None, None));
    }
}
