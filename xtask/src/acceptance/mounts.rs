//! A volume as the kernel sees it: nbdfuse makes it a file, a loop device makes that a disk, and a
//! file system is mounted on it.
//!
//! Each layer is undone when its value is dropped, in the reverse order, so that a scenario that
//! fails half-way leaves no mount behind. The happy way undoes them by name and listens for errors.
//! What a run that was itself killed has left is let go of by the next one.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::program::Program;

const PATIENCE: Duration = Duration::from_secs(60);
/// The word by which a second process is told to be a [`Guard`].
pub(crate) const RELEASE: &str = "release-when-orphaned";

/// A volume as a block device of this machine.
#[derive(Debug)]
pub(crate) struct Disk {
    folder: PathBuf,
    device: PathBuf,
    nbdfuse: Child,
    attached: bool,
}

/// A mounted file system.
#[derive(Debug)]
pub(crate) struct Mount {
    folder: PathBuf,
    mounted: bool,
}

impl Disk {
    /// Attaches the volume at `uri`, with `folder` for nbdfuse to mount on.
    pub(crate) fn attach(uri: &str, folder: &Path) -> Result<Disk, Failure> {
        fs::create_dir_all(folder).map_err(Failure::file(folder))?;
        let file = folder.join("disk");
        let program = Program::new("nbdfuse").path(&file).arg(uri);
        let command = program.to_string();
        let started = program.into_command().stdout(Stdio::null()).spawn();
        let nbdfuse = started.map_err(|source| Failure::Start { command, source })?;
        let folder = folder.to_path_buf();
        let mut disk = Disk { folder, device: PathBuf::new(), nbdfuse, attached: true };
        disk.wait_for(&file)?;
        let device = Program::new("losetup").args(["--find", "--show"]).path(&file).output()?;
        disk.device = PathBuf::from(device.trim());
        Ok(disk)
    }

    /// The block device.
    pub(crate) fn device(&self) -> &Path {
        &self.device
    }

    /// Takes it away again; everything written to it is on the volume afterwards.
    pub(crate) fn detach(mut self) -> Result<(), Failure> {
        self.attached = false;
        Program::new("losetup").arg("--detach").path(&self.device).run()?;
        self.wait_until_unused()?;
        Program::new("fusermount3").arg("-u").path(&self.folder).run()?;
        let status = self.nbdfuse.wait().map_err(Failure::file(&self.folder))?;
        if status.success() {
            Ok(())
        } else {
            Err(Failure::unmet("an nbdfuse that ends well", status.to_string()))
        }
    }

    /// Takes it away after its server has died: what was not yet on the volume is lost.
    pub(crate) fn abandon(mut self) -> Result<(), Failure> {
        self.attached = false;
        Program::new("losetup").arg("--detach").path(&self.device).run()?;
        self.wait_until_unused()?;
        Program::new("fusermount3").args(["-u", "-z"]).path(&self.folder).run()?;
        // It may have fallen over its broken connection; how it ends says nothing.
        self.nbdfuse.wait().map(drop).map_err(Failure::file(&self.folder))
    }

    fn wait_for(&mut self, file: &Path) -> Result<(), Failure> {
        let begun = Instant::now();
        while !file.exists() {
            let ended = self.nbdfuse.try_wait().map_err(Failure::file(file))?;
            if ended.is_some() || begun.elapsed() > PATIENCE {
                return Err(Failure::unmet("an nbdfuse that shows its file", format!("{ended:?}")));
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// The kernel releases a loop device a little after it was told to.
    fn wait_until_unused(&self) -> Result<(), Failure> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let lists = Program::new("losetup").arg("--associated").path(&self.folder.join("disk"));
            if lists.output()?.trim().is_empty() {
                return Ok(());
            }
            sleep(Duration::from_millis(20));
        }
        Err(Failure::unmet("a loop device that is released", "one that stays"))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.attached {
            // On the way out of a failure: undo what can be undone, whatever it says.
            Program::new("losetup").arg("--detach").path(&self.device).succeeds();
            Program::new("fusermount3").arg("-uz").path(&self.folder).succeeds();
            drop(self.nbdfuse.kill());
            drop(self.nbdfuse.wait());
        }
    }
}

impl Mount {
    /// Mounts the file system on `device`.
    pub(crate) fn new(device: &Path, folder: &Path) -> Result<Mount, Failure> {
        fs::create_dir_all(folder).map_err(Failure::file(folder))?;
        Program::new("mount").path(device).path(folder).run()?;
        Ok(Mount { folder: folder.to_path_buf(), mounted: true })
    }

    /// Where its files are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Unmounts it, which writes everything.
    pub(crate) fn unmount(mut self) -> Result<(), Failure> {
        self.mounted = false;
        Program::new("umount").path(&self.folder).run()
    }

    /// Unmounts what is left of it after its disk has gone. What still runs on it is ending.
    pub(crate) fn abandon(mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            let outcome = Program::new("umount").path(&self.folder).run();
            if outcome.is_ok() || begun.elapsed() > UNMOUNT_PATIENCE {
                self.mounted = outcome.is_err();
                return outcome;
            }
            sleep(Duration::from_millis(50));
        }
    }
}

/// A second process that releases what lies under a folder when this one ends in whatever way, a
/// kill -9 or a Ctrl-C included: it waits for the end of its input, which only we hold open.
#[derive(Debug)]
pub(crate) struct Guard {
    child: Child,
}

impl Guard {
    /// Watches over `folder` from now on.
    pub(crate) fn over(folder: &Path) -> Result<Guard, Failure> {
        let own = std::env::current_exe().map_err(Failure::file(folder))?;
        let program = Program::new(own).arg(RELEASE).path(folder);
        let command = program.to_string();
        // In a group of its own: a Ctrl-C is not for it.
        let started = program.into_command().stdin(Stdio::piped()).process_group(0).spawn();
        let child = started.map_err(|source| Failure::Start { command, source })?;
        Ok(Guard { child })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // It ends by itself, having found nothing to release.
        drop(self.child.wait());
    }
}

/// What the second process does: `cargo xtask` calls it by the name [`RELEASE`].
pub(crate) fn release_when_orphaned(folder: &Path) -> Result<(), Failure> {
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).map_err(Failure::file(folder))?;
    let begun = Instant::now();
    // What used the mounts is dying at the same time as our parent.
    while is_mounted_under(folder) && begun.elapsed() < UNMOUNT_PATIENCE {
        release(folder);
        sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn is_mounted_under(folder: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    !second_words_under(&mounts, folder).is_empty() || !loops_under(folder).is_empty()
}

fn loops_under(folder: &Path) -> Vec<String> {
    let loops = Program::new("losetup").args(["--list", "--noheadings", "-O", "NAME,BACK-FILE"]);
    let loops = loops.output().unwrap_or_default();
    let found = second_words_under(&loops, folder);
    found.into_iter().map(|(device, _)| device.to_owned()).collect()
}

/// How long the users of a file system may take to release it.
const UNMOUNT_PATIENCE: Duration = Duration::from_secs(30);

/// Releases every mount and loop device under `folder` that an earlier run has left there.
pub(crate) fn release(folder: &Path) {
    let loops = loops_under(folder);
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for place in second_words_under(&mounts, folder).into_iter().rev() {
        Program::new("umount").arg("--lazy").arg(place.1).succeeds();
    }
    for device in loops {
        Program::new("losetup").arg("--detach").arg(device).succeeds();
    }
}

/// First and second word of the lines whose second word is a path under `folder`.
fn second_words_under<'a>(lines: &'a str, folder: &Path) -> Vec<(&'a str, &'a str)> {
    let pairs = lines.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        words.next().zip(words.next())
    });
    pairs.filter(|(_, path)| Path::new(path).starts_with(folder)).collect()
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.mounted {
            Program::new("umount").arg("--lazy").path(&self.folder).succeeds();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::second_words_under;

    #[test]
    fn only_what_lies_under_the_folder_is_let_go_of() {
        let mounts = "/dev/fuse /w/fuse fuse rw 0 0\n/dev/vda / ext4 rw 0 0\n/dev/x /wide ext4\n";
        assert_eq!(second_words_under(mounts, Path::new("/w")), [("/dev/fuse", "/w/fuse")]);
    }
}
