//! File systems on a volume: ext4 and xfs are made, filled with a source tree, checked, and found
//! the same after the server was started anew.
//!
//! The kernel does not speak NBD to us in every test machine, so the way there is nbdfuse and a
//! loop device, which any machine with FUSE has. Where the kernel cannot mount xfs, its volume is
//! only made and judged by `xfs_repair`, and the scenario says so. At the end a 2 TiB thin volume
//! takes a `mkfs.ext4` that discards all of it, and must cost next to nothing.

use std::path::Path;

use crate::acceptance::mounts::{Disk, Mount};
use crate::acceptance::server::Store;
use crate::acceptance::{Setting, images};
use crate::clients;
use crate::failure::Failure;
use crate::program::Program;

/// A file system, how it is made and how it is judged. A judge changes nothing.
struct Kind {
    name: &'static str,
    make: &'static [&'static str],
    judge: &'static [&'static str],
}

const EXT4: Kind =
    Kind { name: "ext4", make: &["mkfs.ext4", "-q"], judge: &["fsck.ext4", "-f", "-n"] };
const XFS: Kind = Kind { name: "xfs", make: &["mkfs.xfs", "-q"], judge: &["xfs_repair", "-n"] };
/// A fresh file system may cost this much of the store, however large its volume.
const EMPTY_BYTES_MAX: u64 = 64 << 20;

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let store = Store::init(setting, if setting.short { "1G" } else { "4G" })?;
    let tree = images::sources(setting);
    live(setting, &store, &EXT4, &tree)?;
    if setting.short {
        return store.check();
    }
    if !clients::missing(&["mkfs.xfs"]).is_empty() {
        println!("xfs: skipped, mkfs.xfs is not here");
    } else if clients::kernel_knows(XFS.name) {
        live(setting, &store, &XFS, &tree)?;
    } else {
        println!("xfs: this kernel cannot mount it; made and judged only");
        make_and_judge(setting, &store, &XFS)?;
    }
    thin(setting, &store)?;
    store.check()
}

/// Make, mount, fill, judge, restart, compare, empty half, judge.
fn live(setting: &Setting, store: &Store, kind: &Kind, tree: &Path) -> Result<(), Failure> {
    println!("{}: a tree of {} files", kind.name, count_files(tree)?);
    let place = setting.work.join("mounted");
    let server = store.serve(&[])?;
    store.create_volume(kind.name, "8G")?;
    let disk = make(setting, store, kind)?;
    let mount = Mount::new(disk.device(), &place)?;
    Program::new("cp").arg("-a").path(tree).path(&mount.folder().join("tree")).run()?;
    Program::new("sync").arg("--file-system").path(mount.folder()).run()?;
    mount.unmount()?;
    judge(kind, &disk)?;
    disk.detach()?;
    server.stop()?;

    let server = store.serve(&[])?;
    let disk = attach(setting, store, kind)?;
    let mount = Mount::new(disk.device(), &place)?;
    let copy = mount.folder().join("tree");
    Program::new("diff").args(["--recursive", "--no-dereference"]).path(tree).path(&copy).run()?;
    Program::new("rm").arg("-r").path(&copy).run()?;
    Program::new("fstrim").path(mount.folder()).run()?;
    mount.unmount()?;
    judge(kind, &disk)?;
    disk.detach()?;
    server.stop()
}

fn make_and_judge(setting: &Setting, store: &Store, kind: &Kind) -> Result<(), Failure> {
    let server = store.serve(&[])?;
    store.create_volume(kind.name, "8G")?;
    let disk = make(setting, store, kind)?;
    judge(kind, &disk)?;
    disk.detach()?;
    server.stop()
}

/// 2 TiB, discarded whole by its `mkfs`, cost only what the file system wrote.
fn thin(setting: &Setting, store: &Store) -> Result<(), Failure> {
    let server = store.serve(&[])?;
    let before = store.stats()?.number("stored_bytes")?;
    store.create_volume("thin", "2T")?;
    let disk = Disk::attach(&store.uri("thin"), &setting.work.join("fuse"))?;
    Program::new("mkfs.ext4").args(["-q", "-E", "discard"]).path(disk.device()).run()?;
    judge(&EXT4, &disk)?;
    disk.detach()?;
    let cost = store.stats()?.number("stored_bytes")?.saturating_sub(before);
    println!("mkfs.ext4 -E discard on 2 TiB stored {} KiB", cost >> 10);
    if cost > EMPTY_BYTES_MAX {
        let expected = format!("an empty file system of at most {EMPTY_BYTES_MAX} bytes");
        return Err(Failure::unmet(expected, format!("{cost} bytes")));
    }
    server.stop()
}

fn attach(setting: &Setting, store: &Store, kind: &Kind) -> Result<Disk, Failure> {
    Disk::attach(&store.uri(kind.name), &setting.work.join("fuse"))
}

fn make(setting: &Setting, store: &Store, kind: &Kind) -> Result<Disk, Failure> {
    let disk = attach(setting, store, kind)?;
    on_device(kind.make, &disk).run()?;
    Ok(disk)
}

fn judge(kind: &Kind, disk: &Disk) -> Result<(), Failure> {
    on_device(kind.judge, disk).run()
}

/// One of the command lines above, on a device.
fn on_device(words: &[&'static str], disk: &Disk) -> Program {
    let (name, options) = words.split_first().unwrap_or((&"false", &[]));
    Program::new(*name).args(options.iter().copied()).path(disk.device())
}

fn count_files(tree: &Path) -> Result<usize, Failure> {
    Ok(Program::new("find").path(tree).args(["-type", "f"]).output()?.lines().count())
}
