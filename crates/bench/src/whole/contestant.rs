//! Who takes part.

use std::path::Path;
use std::process::{Command, Stdio};

use super::file_system::{Btrfs, ZfsFuse};
use super::image::{Image, Served};
use super::system::System;
use crate::args::Args;
use crate::failure::Failure;
use crate::fio::Target;
use crate::nothing::Nothing;
use crate::program::output;
use crate::served::{Mode, Tamis};

/// Who may take part.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Contestant {
    Raw,
    /// The client and the socket alone: a server that does nothing.
    Nothing,
    Nbdkit,
    QemuRaw,
    Qcow2,
    Qcow2Compressed,
    BtrfsZstd,
    BtrfsLzo,
    ZfsFuse,
    Tamis,
    TamisSync,
    TamisXxh3,
    TamisZstd,
}

impl Contestant {
    pub(super) const ALL: [Self; 13] = [
        Self::Raw,
        Self::Nothing,
        Self::Nbdkit,
        Self::QemuRaw,
        Self::Qcow2,
        Self::Qcow2Compressed,
        Self::BtrfsZstd,
        Self::BtrfsLzo,
        Self::ZfsFuse,
        Self::Tamis,
        Self::TamisSync,
        Self::TamisXxh3,
        Self::TamisZstd,
    ];

    /// As tables call it, and `--only`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Nothing => "nothing",
            Self::Nbdkit => "nbdkit",
            Self::QemuRaw => "qemu-raw",
            Self::Qcow2 => "qcow2",
            Self::Qcow2Compressed => "qcow2-compressed",
            Self::BtrfsZstd => "btrfs-zstd",
            Self::BtrfsLzo => "btrfs-lzo",
            Self::ZfsFuse => "zfs-fuse",
            Self::Tamis => "tamis",
            Self::TamisSync => "tamis-sync",
            Self::TamisXxh3 => "tamis-xxh3",
            Self::TamisZstd => "tamis-zstd",
        }
    }

    /// Whether it gives back what it was given.
    pub(super) fn keeps_data(self) -> bool {
        self != Self::Nothing
    }

    /// Whether clients find it at a socket.
    pub(super) fn is_served(self) -> bool {
        !matches!(self, Self::Raw | Self::BtrfsZstd | Self::BtrfsLzo | Self::ZfsFuse)
    }

    /// Why it cannot take part here, if so.
    pub(super) fn missing(self) -> Option<String> {
        let (programs, file_system): (&[&str], Option<&str>) = match self {
            Self::Raw
            | Self::Nothing
            | Self::Tamis
            | Self::TamisSync
            | Self::TamisXxh3
            | Self::TamisZstd => (&[], None),
            Self::Nbdkit => (&["nbdkit"], None),
            Self::QemuRaw => (&["qemu-nbd"], None),
            Self::Qcow2 | Self::Qcow2Compressed => (&["qemu-nbd", "qemu-img"], None),
            Self::BtrfsZstd | Self::BtrfsLzo => (&["mkfs.btrfs", "losetup"], Some("btrfs")),
            Self::ZfsFuse => (&["zfs-fuse", "zpool"], Some("fuse")),
        };
        if let Some(program) = programs.iter().find(|program| !is_there(program)) {
            return Some(format!("there is no {program} here"));
        }
        if self == Self::ZfsFuse && output(Command::new("zpool").arg("list")).is_ok() {
            return Some("another zfs-fuse runs already".to_owned());
        }
        let unknown = file_system.filter(|name| !kernel_knows(name));
        unknown.map(|name| format!("the kernel has no {name}"))
    }

    /// Makes it, in `folder`, for so many bytes.
    pub(super) fn start(
        self,
        args: &Args,
        folder: &Path,
        size_bytes: u64,
    ) -> Result<Box<dyn System>, Failure> {
        let path = folder.join(self.name());
        Ok(match self {
            Self::Raw => Box::new(Image::make(path, size_bytes, None)?),
            Self::Nothing => Box::new(Nothing::start(size_bytes)?),
            Self::Nbdkit => Box::new(Image::make(path, size_bytes, Some(Served::Nbdkit))?),
            Self::QemuRaw => Box::new(Image::make(path, size_bytes, Some(Served::QemuRaw))?),
            Self::Qcow2 => Box::new(Image::make(path, size_bytes, Some(Served::Qcow2))?),
            Self::Qcow2Compressed => {
                Box::new(Image::make(path, size_bytes, Some(Served::Qcow2Compressed))?)
            }
            Self::BtrfsZstd => Box::new(Btrfs::make(path, size_bytes, "zstd:3")?),
            Self::BtrfsLzo => Box::new(Btrfs::make(path, size_bytes, "lzo")?),
            Self::ZfsFuse => Box::new(ZfsFuse::make(path, size_bytes)?),
            Self::Tamis | Self::TamisSync | Self::TamisXxh3 | Self::TamisZstd => {
                Box::new(Tamis::start(args, path, size_bytes, self.mode())?)
            }
        })
    }

    /// What is said to Tamis.
    fn mode(self) -> Mode {
        let (init, serve): (&[&str], &[&str]) = match self {
            Self::TamisSync => (&[], &["--sync"]),
            Self::TamisXxh3 => (&["--fingerprint", "xxh3", "--verify"], &[]),
            Self::TamisZstd => (&["--compression", "zstd:3"], &[]),
            _ => (&[], &[]),
        };
        Mode { init, serve }
    }
}

impl System for Nothing {
    fn target(&self) -> Target {
        Nothing::target(self)
    }

    /// It knows nothing.
    fn restart(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn stored_bytes(&self) -> Result<u64, Failure> {
        Ok(0)
    }

    fn remove(self: Box<Self>) -> Result<(), Failure> {
        self.stop()
    }
}

impl System for Tamis {
    fn target(&self) -> Target {
        Tamis::target(self)
    }

    fn clones(&mut self, count: u32) -> Result<Vec<Target>, Failure> {
        Tamis::clones(self, count)
    }

    fn restart(&mut self) -> Result<(), Failure> {
        Tamis::restart(self)
    }

    fn stored_bytes(&self) -> Result<u64, Failure> {
        Tamis::stored_bytes(self)
    }

    fn remove(self: Box<Self>) -> Result<(), Failure> {
        Tamis::remove(*self)
    }
}

/// Whether a program can be run at all.
pub(super) fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    let quiet = command.arg("--help").stdin(Stdio::null()).stdout(Stdio::null());
    quiet.stderr(Stdio::null()).status().is_ok()
}

/// Whether the running kernel can mount this file system, as far as it says by itself.
pub(super) fn kernel_knows(file_system: &str) -> bool {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    known.lines().any(|line| line.split_whitespace().last() == Some(file_system))
}

#[cfg(test)]
mod tests {
    use super::{Contestant, is_there};

    #[test]
    fn who_cannot_take_part_is_known_by_what_is_missing() {
        assert!(is_there("true") && !is_there("no-such-program-anywhere"));
        assert_eq!(Contestant::Tamis.missing(), None);
    }

    #[test]
    fn names_are_different() {
        let mut names: Vec<&str> = Contestant::ALL.iter().map(|one| one.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Contestant::ALL.len());
    }
}
