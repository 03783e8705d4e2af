//! The first hour of a new user: a store, a compressed cloud image, a disk attached, snapshots, a
//! backup to a second store while both are served, the restore, and a store and a host that are
//! full and have room again.
//!
//! No step is a guess: what is typed comes from README or a help, and what is in
//! [`shown`] and [`quoted`] is copied from what a command has just printed, so that a banner or a
//! refusal whose line does not work fails here. A cloud image is an ext4 in a compressed qcow2.
//! What a user has to install first is no part of this (README, "On a clean Debian").

use std::fs;
use std::path::{Path, PathBuf};

use crate::acceptance::server::Server;
use crate::acceptance::user::{User, quoted, shown};
use crate::acceptance::{Dice, Setting, images};
use crate::clients;
use crate::failure::Failure;
use crate::program::Program;

/// The image as the banner's line calls it.
const IMAGE: &str = "disk.qcow2";
/// What the user writes into the attached disk.
const NEWS: &str = "news";
/// Smaller than what is copied into it.
const SMALL_STORE: &str = "64M";
const TOO_MUCH_MIB: u64 = 80;
const PART_MIB: u64 = 24;
/// Of the host that is full, and what its store does not get of it.
const HOST: &str = "400M";
const HOST_LEFT_BYTES: u64 = 8 << 20;
const MIB: usize = 1 << 20;

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let user = User::new(setting)?;
    cloud_image(setting, &user)?;
    let first = first_store(&user)?;
    attached(&user, &first.banner)?;
    let copy = backup(&user)?;
    restore(&user)?;
    full_store(setting, &user)?;
    full_host(setting, &user)?;
    for (server, store) in [(first.server, "./store"), (copy, "./copy")] {
        server.stop()?;
        user.types(&format!("tamis check {store}"))?;
    }
    Ok(())
}

struct First {
    server: Server,
    banner: String,
}

/// A disk with files in it, as a cloud provides it; small in short form.
fn cloud_image(setting: &Setting, user: &User) -> Result<(), Failure> {
    let files = if setting.short { setting.root.join("crates") } else { images::sources(setting) };
    let size = if setting.short { "64M" } else { "2G" };
    let raw = user.folder().join("disk.raw");
    let make = Program::new("mkfs.ext4").args(["-q", "-F", "-b", "4096", "-d"]).path(&files);
    make.path(&raw).arg(size).run()?;
    let convert = Program::new("qemu-img").args(["convert", "-c", "-O", "qcow2"]).path(&raw);
    convert.path(&user.folder().join(IMAGE)).run()?;
    fs::remove_file(&raw).map_err(Failure::file(&raw))
}

/// README's first command, and the lines that its banner shows.
fn first_store(user: &User) -> Result<First, Failure> {
    let (server, banner) = user.serves("tamis serve ./store --create")?;
    let import = shown(&banner, "tamis import")?.replace("NAME", "vm1");
    user.types(&import)?;
    user.is_refused(&import, 7, "--overwrite")?;
    let uri = shown(&banner, "nbd+unix:///NAME")?.replace("NAME", "vm1");
    let compare = Program::new("qemu-img").args(["compare", "-f", "qcow2", "-F", "raw"]);
    compare.path(&user.folder().join(IMAGE)).arg(uri).run()?;
    user.types("tamis stats ./store")?;
    Ok(First { server, banner })
}

/// The disk in use between two snapshots, and what may not happen to it meanwhile.
fn attached(user: &User, banner: &str) -> Result<(), Failure> {
    user.types("tamis snapshot create ./store vm1@monday")?;
    let attach = shown(banner, "mkdir -p mnt && nbdfuse")?.replace("disk0", "vm1");
    let nbdfuse = user.begins(&attach, "mnt/nbd")?;
    fs::write(user.folder().join(NEWS), "what tuesday brought\n")
        .map_err(Failure::file(user.folder()))?;
    user.types(&format!("debugfs -w -R 'write {NEWS} {NEWS}' mnt/nbd"))?;
    user.types("e2fsck -fn mnt/nbd")?;
    user.is_refused("tamis snapshot rollback ./store vm1@monday --yes", 4, "is in use by")?;
    user.types("tamis snapshot create ./store vm1@tuesday")?;
    user.types(&quoted(banner, "fusermount3")?)?;
    nbdfuse.ends()
}

/// Streams between two stores that are served, as README shows them.
fn backup(user: &User) -> Result<Server, Failure> {
    let told = user.types("tamis init ./copy --capacity 1G")?;
    let (server, _) = user.serves(&shown(&told, "tamis serve")?)?;
    user.types("tamis export ./store vm1@monday - --stream | tamis import ./copy vm1 -")?;
    let incremental =
        "tamis export ./store vm1@tuesday - --from @monday | tamis import ./copy vm1 -";
    user.types(incremental)?;
    same_disk(user, "./store", "./copy")?;
    let again = user.types(incremental)?;
    if again != "vm1@tuesday is there already: nothing was imported\n" {
        return Err(Failure::unmet("a stream that is known to be there", again));
    }
    Ok(server)
}

/// The disk is lost in the first store, and comes back out of the second one.
fn restore(user: &User) -> Result<(), Failure> {
    let delete = "tamis volume delete ./store vm1";
    user.is_refused(delete, 2, "--with-snapshots")?;
    let delete = format!("{delete} --with-snapshots");
    user.is_refused(&delete, 2, "--yes")?;
    user.types(&format!("{delete} --yes"))?;
    user.types("tamis export ./copy vm1@tuesday - --stream | tamis import ./store vm1 -")?;
    same_disk(user, "./store", "./copy")?;
    user.types("tamis export ./store vm1 back.img")?;
    user.types("e2fsck -fn back.img")?;
    user.types(&format!("debugfs -R 'dump {NEWS} back' back.img && cmp back {NEWS}"))?;
    user.types("tamis snapshot rollback ./copy vm1@monday --yes")?;
    let compare = format!("qemu-img compare -f qcow2 -F raw {IMAGE} {}", uri("./copy", "vm1"));
    user.types(&compare).map(drop)
}

fn same_disk(user: &User, one: &str, other: &str) -> Result<(), Failure> {
    let [one, other] = [one, other].map(|store| uri(store, "vm1@tuesday"));
    user.types(&format!("qemu-img compare -f raw -F raw {one} {other}")).map(drop)
}

/// As README shows it, for the shell.
fn uri(store: &str, volume: &str) -> String {
    format!("'nbd+unix:///{volume}?socket={store}/nbd.sock'")
}

/// A store that is full: room comes back by deleting, and by growing, as its errors say.
fn full_store(setting: &Setting, user: &User) -> Result<(), Failure> {
    let mut dice = Dice::new(setting.seed);
    for (name, mib) in [("first", PART_MIB), ("second", PART_MIB / 2), ("much", TOO_MUCH_MIB)] {
        noise(&mut dice, &user.folder().join(name), mib)?;
    }
    let (server, _) =
        user.serves(&format!("tamis serve ./small --create --capacity {SMALL_STORE}"))?;
    user.types("tamis import ./small first first")?;
    let copy = format!("nbdcopy much {}", uri("./small", "disk0"));
    user.is_refused(&copy, 1, "No space left on device")?;
    let refused = user.is_refused("tamis import ./small second second", 6, "the store is full")?;
    quoted(&refused, "tamis grow")?;
    user.types("tamis volume delete ./small first --yes")?;
    user.types("tamis import ./small second second")?;
    user.types("tamis collect ./small")?;
    user.is_refused(&copy, 1, "No space left on device")?;
    let told = user.is_refused("tamis stats ./small --warn 80%", 10, "of the room for data")?;
    user.types(&quoted(&told, "tamis grow")?.replace("SIZE", "256M"))?;
    user.types(&copy)?;
    user.types("tamis stats ./small --warn 80%")?;
    read_back(user, "./small")?;
    server.stop()?;
    user.types("tamis check ./small").map(drop)
}

/// The disk holds what was copied into it.
fn read_back(user: &User, store: &str) -> Result<(), Failure> {
    let bytes = TOO_MUCH_MIB << 20;
    user.types(&format!("tamis export {store} disk0 whole.img && cmp -n {bytes} whole.img much"))?;
    fs::remove_file(user.folder().join("whole.img")).map_err(Failure::file(user.folder()))
}

/// A store on a host that is full: writes fail, and work again when the host has room.
fn full_host(setting: &Setting, user: &User) -> Result<(), Failure> {
    if !clients::missing(&["root"]).is_empty() {
        println!("skipped: a host that is full is a file system of its own, which needs root");
        return Ok(());
    }
    let host = setting.work.join("host");
    fs::create_dir_all(&host).map_err(Failure::file(&host))?;
    let size = format!("size={HOST}");
    Program::new("mount").args(["-t", "tmpfs", "-o", &size, "host"]).path(&host).run()?;
    let (mut server, _) = user.serves("tamis serve ./host/store --create")?;
    let ballast = fill_all_but(&host, HOST_LEFT_BYTES)?;
    let copy = format!("nbdcopy much {}", uri("./host/store", "disk0"));
    user.is_refused(&copy, 1, "No space left on device")?;
    fs::remove_file(&ballast).map_err(Failure::file(&ballast))?;
    server.hear("the file system of the data gives it room again")?;
    user.types(&copy)?;
    read_back(user, "./host/store")?;
    server.stop()?;
    user.types("tamis check ./host/store")?;
    Program::new("umount").path(&host).run()
}

/// Takes all but so much of what is free.
fn fill_all_but(host: &Path, left_bytes: u64) -> Result<PathBuf, Failure> {
    let free = Program::new("stat").args(["-f", "-c", "%a %S"]).path(host).output()?;
    let figures: Vec<u64> = free.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [blocks, block_bytes] = figures.as_slice() else {
        return Err(Failure::unmet("two figures of `stat`", free));
    };
    let ballast = host.join("ballast");
    let taken_bytes = (blocks * block_bytes).saturating_sub(left_bytes).to_string();
    Program::new("fallocate").args(["-l", &taken_bytes]).path(&ballast).run()?;
    Ok(ballast)
}

/// Bytes that neither repeat nor compress.
fn noise(dice: &mut Dice, path: &Path, mib: u64) -> Result<(), Failure> {
    let mut bytes = Vec::with_capacity(mib as usize * MIB);
    while bytes.len() < mib as usize * MIB {
        bytes.extend_from_slice(&dice.next().to_le_bytes());
    }
    fs::write(path, bytes).map_err(Failure::file(path))
}
