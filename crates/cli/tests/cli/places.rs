//! Stores that were moved or are mistaken for something else, and what surrounds a process.

use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};

use rustix::fs::OFlags;
use rustix::process::Signal;

use crate::harness::{Folder, LoopDevice, Served, listed as all_in, noise, run, tamis};

/// A server whose store was moved, and another store put in its place, changes nothing of that.
#[test]
fn a_store_that_was_moved_while_it_is_served_does_not_grow() {
    let folder = Folder::new();
    let (store, other, moved) = (folder.store("64M"), folder.path("other"), folder.path("moved"));
    tamis(&format!("init {other} --capacity 64M")).ok();
    let server = Served::start(&store, "");
    fs::rename(&store, &moved).unwrap();
    fs::rename(&other, &store).unwrap();
    let more = folder.path("more");
    for wish in [format!("--capacity 128M --data {more}"), "--capacity 128M".to_owned()] {
        tamis(&format!("grow {moved} {wish}")).fails(1, "moved");
    }
    assert!(folder.join("store/data").exists() && !folder.join("store/data.1").exists());
    assert!(!folder.join("more").exists());
    assert_eq!(server.interrupt(), Some(0));
    for store in [store, moved] {
        tamis(&format!("check {store}")).ok();
    }
}

/// A slip in the name of the image, or a data file that has the name of one.
#[test]
fn an_export_never_replaces_a_file_of_its_store() {
    let folder = Folder::new();
    let (store, data) = (folder.path("store"), folder.path("disk.img"));
    tamis(&format!("init {store} --capacity 64M --data {data}")).ok();
    let (image, link) = (folder.path("image"), folder.path("link"));
    fs::write(&image, noise(1, 8 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    symlink(format!("{store}/journal"), &link).unwrap();
    for place in [&data, &format!("{store}/data"), &format!("{store}/journal"), &link] {
        tamis(&format!("export {store} v {place} --overwrite")).fails(4, "is in use");
    }
    tamis(&format!("check {store}")).ok();
    tamis(&format!("export {store} v {image} --overwrite")).ok();
    assert!(fs::read(&image).unwrap() == noise(1, 8 << 20));
}

/// Nor of one that is closed, whatever its files are called and wherever they are.
#[test]
fn an_export_never_replaces_a_zone_of_any_store() {
    let folder = Folder::new();
    let (from, image) = (folder.store("64M"), folder.path("image"));
    fs::write(&image, noise(1, 8 << 20)).unwrap();
    tamis(&format!("import {from} v {image}")).ok();
    let (store, elsewhere) = (folder.path("other"), ["ring", "disk.img"].map(|it| folder.path(it)));
    let [ring, data] = &elsewhere;
    tamis(&format!("init {store} --capacity 64M --journal {ring} --data {data}")).ok();
    tamis(&format!("import {store} v {image}")).ok();
    let own = ["superblock", "journal", "tables", "data"].map(|zone| format!("{store}/{zone}"));
    for place in own.iter().chain(&elsewhere) {
        let export = format!("export {from} v {place} --overwrite");
        tamis(&export).fails(2, "is part of a Tamis store");
    }
    tamis(&format!("check {store}")).ok();
    tamis(&format!("export {from} v {image} --overwrite")).ok();

    let Some(device) = LoopDevice::of(data) else { return };
    let export = format!("export {from} v {} --overwrite", device.0);
    tamis(&export).fails(2, "is part of a Tamis store");
    drop(device);
    tamis(&format!("check {store}")).ok();
}

/// Where devices can be had; what is looked at of one has unit tests as well.
#[test]
fn a_device_that_holds_something_or_is_in_use_becomes_no_part_of_a_store() {
    let folder = Folder::new();
    let (store, other, disk) = (folder.store("64M"), folder.path("other"), folder.path("disk"));
    let image = |mark: &[u8]| {
        let file = fs::File::create(&disk).unwrap();
        file.set_len(96 << 20).unwrap();
        file.write_all_at(mark, 512 << 10).unwrap();
    };
    let lines = |device: &str| {
        let init = |what: &str| format!("init {other} --capacity 64M --{what} {device}");
        [init("data"), init("journal"), init("tables"), format!("grow {store} --data {device}")]
    };
    image(b"somebody else's");
    let Some(device) = LoopDevice::of(&disk) else { return };
    lines(&device.0).iter().for_each(|line| drop(tamis(line).fails(1, "is not blank")));
    drop(device);
    let mut mark = [0; 15];
    fs::File::open(&disk).unwrap().read_exact_at(&mut mark, 512 << 10).unwrap();
    assert_eq!(&mark, b"somebody else's");

    image(b"");
    let Some(device) = LoopDevice::of(&disk) else { return };
    let mut user = fs::File::options();
    user.read(true).custom_flags(OFlags::EXCL.bits().try_into().unwrap());
    let user = user.open(&device.0).unwrap();
    lines(&device.0).iter().for_each(|line| drop(tamis(line).fails(1, "is in use")));
    drop(user);
    assert!(!folder.join("other").exists());
    let [.., grow] = lines(&device.0);
    tamis(&grow).ok();
    tamis(&format!("check {store}")).ok();
}

/// A terminal that was closed ends a server as Ctrl-C does, unless it was started with `nohup`.
#[test]
fn a_server_whose_terminal_is_closed_closes_the_store() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let server = Served::start_with_hangups(&store, "--default-signal=HUP");
    let (code, said) = server.end_by(Signal::HUP);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("closed cleanly"), "{said}");

    let server = Served::start_with_hangups(&store, "--ignore-signal=HUP");
    server.send(Signal::HUP);
    std::thread::sleep(std::time::Duration::from_millis(300));
    tamis(&format!("volume create {store} v --size 1M")).ok();
    let (code, said) = server.end_by(Signal::INT);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_limit_of_file_lengths_is_told_and_leaves_nothing_behind() {
    let folder = Folder::new();
    let mut shell = Command::new("sh");
    let script = "ulimit -f 2048; exec \"$0\" \"$@\"";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_tamis"), "init", &folder.path("store")]);
    shell.args(["--capacity", "64M"]);
    run(shell).fails(6, "store");
    assert!(!folder.join("store").exists());
}

/// Some supervisors start what they start with no umask at all.
#[test]
fn sockets_are_not_for_everybody_whatever_the_umask() {
    let folder = Folder::new();
    let store = folder.store("64M");
    for (umask, nbd) in [("0", 0o660), ("027", 0o640), ("077", 0o600)] {
        let server = Served::start_by(&format!("umask {umask}; exec"), &store);
        let mode = |name: &str| {
            fs::metadata(folder.join("store").join(name)).unwrap().permissions().mode() & 0o777
        };
        assert_eq!((mode("nbd.sock"), mode("control.sock")), (nbd, 0o600), "umask {umask}");
        tamis(&format!("volume list {store}")).ok();
        assert_eq!(server.interrupt(), Some(0));
    }
}

/// As in a chroot: a server is found, and does not pass for an unknown process.
#[test]
fn a_store_can_be_served_and_asked_where_no_proc_is_mounted() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let without_proc = |line: &str| {
        let script = "mount -t tmpfs none /proc && exec \"$0\" \"$@\"";
        let mut shell = Command::new("unshare");
        shell.args(["--mount", "sh", "-c", script]).args(line.split_whitespace());
        shell
    };
    if run(without_proc("true")).code != Some(0) {
        eprintln!("/proc cannot be hidden here: this test does nothing");
        return;
    }
    let list = format!("{} volume list {store} --json", env!("CARGO_BIN_EXE_tamis"));
    let server = Served::start(&store, "--create --size 1M");
    assert_eq!(all_in(&run(without_proc(&list)).ok().json()).len(), 1);
    assert_eq!(server.interrupt(), Some(0));
    let serve = format!("{} serve {store} --json --memory 64M", env!("CARGO_BIN_EXE_tamis"));
    let server = Served::spawn(without_proc(&serve), Stdio::piped());
    tamis(&list.replace(env!("CARGO_BIN_EXE_tamis"), "")).ok();
    assert_eq!(server.interrupt(), Some(0));
    assert!(!folder.join("store/control.sock").exists());
}
