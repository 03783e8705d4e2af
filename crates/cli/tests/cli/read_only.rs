//! A store that this process may only read: what reads works, and nothing of it changes.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::geteuid;

use crate::harness::{Folder, Outcome, Served, installed, noise, run, tamis};

/// `tamis` as a user without privileges sees files: root writes them whatever their mode says, for
/// as long as it has the capability for that.
fn unprivileged(line: &str) -> Command {
    let mut command = Command::new(match geteuid().is_root() {
        true => "setpriv",
        false => "env",
    });
    if geteuid().is_root() {
        command.args(["--bounding-set=-dac_override", "--inh-caps=-dac_override", "--"]);
    }
    command.arg(env!("CARGO_BIN_EXE_tamis")).args(line.split_whitespace());
    command
}

fn reading(line: &str) -> Outcome {
    run(unprivileged(line))
}

/// All bytes of a store's files.
fn bytes_of(store: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(store)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.display().to_string(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

fn set_mode(store: &str, directory: u32, file: u32) {
    for entry in fs::read_dir(store).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::set_permissions(path, Permissions::from_mode(file)).unwrap();
        }
    }
    fs::set_permissions(store, Permissions::from_mode(directory)).unwrap();
}

/// A store that a killed server has left, with a volume `v`, its snapshot `v@a`, and what its
/// journal says and its tables do not; and the image that `v` holds.
fn killed(folder: &Folder) -> (String, String) {
    let store = folder.store("128M");
    let image = folder.path("in.img");
    fs::write(&image, noise(3, 8 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    tamis(&format!("snapshot create {store} v@a")).ok();
    let served = Served::start(&store, "");
    tamis(&format!("volume create {store} late --size 1G")).ok();
    served.kill();
    let _ = fs::remove_file(Path::new(&store).join("control.sock"));
    let _ = fs::remove_file(Path::new(&store).join("nbd.sock"));
    set_mode(&store, 0o555, 0o444);
    (store, image)
}

#[test]
fn what_reads_works_with_read_permission_alone_and_changes_no_byte() {
    let folder = Folder::new();
    let (store, image) = killed(&folder);
    let before = bytes_of(&store);
    let out = folder.path("out.img");
    reading(&format!("stats {store}")).ok();
    let listed = reading(&format!("volume list {store}")).ok();
    assert!(listed.out.contains("late"), "the journal is applied in memory: {listed:?}");
    reading(&format!("volume show {store} v")).ok();
    reading(&format!("explain {store} v 0")).ok();
    reading(&format!("check {store}")).ok();
    reading(&format!("diff {store} v@a v")).ok();
    reading(&format!("export {store} v {out}")).ok();
    assert!(fs::read(&image).unwrap() == fs::read(&out).unwrap());
    assert!(before == bytes_of(&store));
    set_mode(&store, 0o755, 0o644);
}

#[test]
fn what_changes_a_store_is_refused_where_it_may_only_be_read() {
    let folder = Folder::new();
    let (store, image) = killed(&folder);
    let before = bytes_of(&store);
    for line in
        [format!("volume create {store} w --size 1G"), format!("snapshot create {store} v@b")]
    {
        reading(&line).fails(1, "the store is open read-only");
    }
    reading(&format!("import {store} w {image}")).fails(1, "the store is open read-only");
    assert!(before == bytes_of(&store));
    set_mode(&store, 0o755, 0o644);
}

#[test]
fn a_store_is_served_read_only_beside_others_who_read() {
    if !installed("nbdcopy") || !installed("nbdinfo") {
        return;
    }
    let folder = Folder::new();
    let (store, image) = killed(&folder);
    let before = bytes_of(&store);
    let socket = folder.path("nbd.sock");
    let line = format!("serve {store} --read-only --json --memory 64M --nbd unix:{socket}");
    let served = Served::spawn(unprivileged(&line), Stdio::null());
    reading(&format!("stats {store}")).ok();
    let copied = folder.path("copied.img");
    let uri = format!("nbd+unix:///v?socket={socket}");
    let nbdcopy = Command::new("nbdcopy").args(["--", &uri, &copied]).status().unwrap();
    assert!(nbdcopy.success());
    assert!(fs::read(&image).unwrap() == fs::read(&copied).unwrap());
    let info = Command::new("nbdinfo").arg(&uri).output().unwrap();
    let info = String::from_utf8_lossy(&info.stdout).into_owned();
    assert!(info.contains("is_read_only: true"), "{info}");
    tamis(&format!("volume create {store} w --size 1G")).fails(4, "in use");
    assert_eq!(served.interrupt(), Some(0));
    assert!(before == bytes_of(&store));
    set_mode(&store, 0o755, 0o644);
}
