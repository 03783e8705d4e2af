//! The real clients that the scenarios drive, and what some tests look through, and how to come by
//! them.
//!
//! They are Debian packages. Where `apt-get` and the right to use it are there, what is missing is
//! installed; where not, nothing fails: the scenarios that need a missing client are skipped by
//! name, and tests without their program say so and do nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::program::Program;

/// Debian's own Python: the one that `python3-libnbd` serves, whatever else is on the path.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// Where programs lie, also for a user whose path does not name the administrator's folders.
const FOLDERS: [&str; 5] = ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin"];

/// A program (or the Python module `nbd`), and the packages that bring it, in the order to try.
/// Debian 12 has `nbdfuse` inside `libnbd-bin`; later releases have it as a package of its own.
const CLIENTS: [(&str, &[&str]); 21] = [
    ("fio", &["fio"]),
    ("nbdkit", &["nbdkit"]),
    ("qemu-img", &["qemu-utils"]),
    ("python3-libnbd", &["python3-libnbd"]),
    ("nbdinfo", &["libnbd-bin"]),
    ("nbdfuse", &["libnbd-bin", "nbdfuse"]),
    ("fusermount3", &["fuse3"]),
    ("mkfs.ext4", &["e2fsprogs"]),
    ("mkfs.xfs", &["xfsprogs"]),
    ("debootstrap", &["debootstrap"]),
    ("strace", &["strace"]),
    ("python3-boto3", &["python3-boto3"]),
    ("rclone", &["rclone"]),
    ("s3cmd", &["s3cmd"]),
    ("restic", &["restic"]),
    ("memccapable", &["libmemcached-tools"]),
    ("python3-pymemcache", &["python3-pymemcache"]),
    ("python3-pylibmc", &["python3-pylibmc"]),
    ("verilator", &["verilator"]),
    ("yosys", &["yosys"]),
    ("z3", &["z3"]),
];

/// The same for the soak alone; some of them are large.
const SOAK_CLIENTS: [(&str, &[&str]); 2] =
    [("mkfs.btrfs", &["btrfs-progs"]), ("postgres", &["postgresql"])];

/// Where Debian keeps the programs of a PostgreSQL server, a folder per version.
const POSTGRES: &str = "/usr/lib/postgresql";

/// Those of `names` that are not on this machine.
pub(crate) fn missing<'a>(names: &[&'a str]) -> Vec<&'a str> {
    names.iter().copied().filter(|name| !is_here(name)).collect()
}

/// Is the program, the Python module or the privilege `name` here.
fn is_here(name: &str) -> bool {
    match name {
        "python3-libnbd" => Program::new(PYTHON).args(["-c", "import nbd"]).succeeds(),
        "python3-boto3" => Program::new(PYTHON).args(["-c", "import boto3"]).succeeds(),
        "python3-pymemcache" => Program::new(PYTHON).args(["-c", "import pymemcache"]).succeeds(),
        "python3-pylibmc" => Program::new(PYTHON).args(["-c", "import pylibmc"]).succeeds(),
        "python3" => Path::new(PYTHON).is_file(),
        "python3-sqlite3" => Program::new(PYTHON).args(["-c", "import sqlite3"]).succeeds(),
        "postgres" => postgres_programs().is_some(),
        "xfs in the kernel" => kernel_knows("xfs"),
        "btrfs in the kernel" => kernel_knows("btrfs"),
        "root" => is_root(),
        "loop devices" => Path::new("/dev/loop-control").exists(),
        "fuse" => Path::new("/dev/fuse").exists(),
        program => FOLDERS.iter().any(|folder| Path::new(folder).join(program).is_file()),
    }
}

/// Whether the running kernel can mount this file system, as far as it says by itself.
pub(crate) fn kernel_knows(file_system: &str) -> bool {
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    known.lines().any(|line| line.trim() == file_system)
}

/// The folder of the newest PostgreSQL's programs.
pub(crate) fn postgres_programs() -> Option<PathBuf> {
    let versions = fs::read_dir(POSTGRES).ok()?.flatten();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|version| version.path()).max_by_key(number)?;
    Some(newest.join("bin")).filter(|folder| folder.join("postgres").is_file())
}

/// Installs the missing clients, where that can be done, and says what could not be.
pub(crate) fn install() {
    install_all(&CLIENTS);
}

/// The same with those that only the soak needs.
pub(crate) fn install_for_soak() {
    install_all(&CLIENTS);
    install_all(&SOAK_CLIENTS);
}

fn install_all(clients: &[(&str, &[&str])]) {
    for round in 0.. {
        let candidates = clients.iter().filter(|(name, _)| !is_here(name));
        let mut packages: Vec<&str> =
            candidates.filter_map(|(_, packages)| packages.get(round).copied()).collect();
        packages.dedup();
        if packages.is_empty() {
            return;
        }
        println!("installing {}", packages.join(" "));
        if let Err(failure) = install_packages(&packages) {
            println!("not installed, what needs it will be skipped: {failure}");
        }
    }
}

fn install_packages(packages: &[&str]) -> Result<(), Failure> {
    let apt = apt_get().ok_or_else(|| Failure::unmet("apt-get and the right to use it", "none"))?;
    apt().args(["update", "-q"]).run()?;
    apt().args(["install", "-yq", "--no-install-recommends"]).args(packages.iter().copied()).run()
}

/// How to call `apt-get` here: as root, through `sudo`, or not at all.
fn apt_get() -> Option<impl Fn() -> Program> {
    let sudo = !is_root();
    let may = !sudo || Program::new("sudo").args(["-n", "true"]).succeeds();
    (is_here("apt-get") && may).then_some(move || {
        let prefix =
            if sudo { Program::new("sudo").args(["-n", "env"]) } else { Program::new("env") };
        prefix.args(["DEBIAN_FRONTEND=noninteractive", "apt-get"])
    })
}

fn is_root() -> bool {
    Program::new("id").arg("-u").output().is_ok_and(|user| user.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::missing;

    #[test]
    fn what_is_not_here_is_named() {
        assert_eq!(missing(&["sh", "no-such-client"]), ["no-such-client"]);
    }
}
