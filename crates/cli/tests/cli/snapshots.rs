//! Volumes as they were: taken, listed, read, cloned, gone back to, and deleted; on a closed store
//! and on one that real clients write meanwhile.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{Folder, Outcome, Served, installed, listed as all_in, noise, run, tamis};

const MIB: usize = 1 << 20;

fn names(listed: &Value) -> Vec<&str> {
    all_in(listed).iter().map(|volume| volume["name"].as_str().unwrap()).collect()
}

/// What `export` writes of a volume or snapshot.
fn exported(folder: &Folder, store: &str, name: &str) -> Vec<u8> {
    let out = folder.path("exported.img");
    tamis(&format!("export {store} {name} {out} --overwrite")).ok();
    fs::read(&out).unwrap()
}

#[test]
fn a_volume_is_what_it_was_and_a_clone_what_it_becomes() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("image");
    let (first, second, third) = (noise(1, 2 * MIB), noise(2, 2 * MIB), noise(3, 2 * MIB));
    let import = |name: &str, bytes: &[u8]| {
        fs::write(&image, bytes).unwrap();
        tamis(&format!("import {store} {name} {image} --overwrite --yes")).ok();
    };
    import("v", &first);
    let taken = tamis(&format!("snapshot create {store} v@a --json")).ok().json();
    assert_eq!(
        (names(&taken), &taken["snapshots"][0]["mapped_bytes"]),
        (vec!["v@a"], &(2 * MIB).into())
    );
    assert!(taken["snapshots"][0]["taken_unix_s"].as_u64().unwrap() > 1_700_000_000, "{taken}");
    import("v", &second);
    tamis(&format!("clone {store} v@a c")).ok();
    let as_before = exported(&folder, &store, "c");
    assert!(as_before == first && exported(&folder, &store, "v") == second);

    let listed = tamis(&format!("volume list {store} --json")).ok().json();
    assert_eq!(names(&listed), ["c", "v"]);
    assert_eq!(
        (&listed["volumes"][0]["clone_of"], &listed["volumes"][1]["clone_of"]),
        (&"v@a".into(), &Value::Null)
    );
    let text = tamis(&format!("volume list {store}")).ok().out;
    assert!(text.starts_with("VOLUME   SIZE  MAPPED  ACCESS      CLONE OF\n"), "{text}");
    tamis(&format!("snapshot create {store} c@own")).ok();
    let shown = tamis(&format!("volume show {store} c --json")).ok().json();
    assert_eq!(shown["clone_of"], "v@a", "{shown}");
    // An image takes the place of all that a clone holds: nothing is left of its snapshot.
    import("c", &third);
    assert!(exported(&folder, &store, "v@a") == first);
    assert!(exported(&folder, &store, "c") == third);
    let shown = tamis(&format!("volume show {store} c --json")).ok().json();
    assert_eq!(shown["clone_of"], Value::Null, "{shown}");

    let text = tamis(&format!("snapshot list {store} v")).ok().out;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("SNAPSHOT  TAKEN (UTC)           SIZE  MAPPED"), "{text}");
    assert!(lines[1].starts_with("v@a       20") && lines[1].ends_with("2 MiB   2 MiB"), "{text}");
    let stats = tamis(&format!("stats {store}")).ok().out;
    assert!(stats.contains("2 snapshots, each counted whole"), "{stats}");

    tamis(&format!("snapshot rollback {store} v@a --yes")).ok();
    assert!(exported(&folder, &store, "v") == first);
    tamis(&format!("volume delete {store} v --yes")).fails(2, "--with-snapshots");
    tamis(&format!("volume delete {store} v --with-snapshots --yes")).ok();
    assert!(exported(&folder, &store, "c") == third);
    tamis(&format!("snapshot delete {store} c@own --yes")).ok();
    let left = tamis(&format!("snapshot list {store} --json")).ok().json();
    assert_eq!(left["snapshots"], serde_json::json!([]));
    tamis(&format!("check {store}")).ok();
}

#[test]
fn what_cannot_be_done_with_snapshots_changes_nothing() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("image");
    fs::write(&image, noise(1, 4096)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    tamis(&format!("import {store} w {image}")).ok();
    let try_all = || {
        tamis(&format!("snapshot create {store} v@a w@b")).fails(2, "a and b are two");
        tamis(&format!("snapshot create {store} v@x ghost@x")).fails(3, "no volume ghost");
        tamis(&format!("snapshot create {store} v@a")).fails(7, "a snapshot v@a exists already");
        tamis(&format!("snapshot create {store} w@x w@x")).fails(7, "w@x exists already");
        tamis(&format!("snapshot create {store} v@a@b")).fails(2, "cannot name");
        tamis(&format!("snapshot list {store} ghost")).fails(3, "no volume ghost");
        tamis(&format!("snapshot delete {store} v@a v@ghost --yes"))
            .fails(3, "no snapshot v@ghost");
        tamis(&format!("snapshot rollback {store} v@ghost --yes")).fails(3, "no snapshot v@ghost");
        tamis(&format!("clone {store} v@ghost c")).fails(3, "no snapshot v@ghost");
        tamis(&format!("clone {store} v@a w")).fails(7, "w exists already");
        tamis(&format!("volume delete {store} v@a --yes")).fails(2, "tamis snapshot delete");
        tamis(&format!("volume delete {store} v --yes")).fails(2, "1 snapshot: delete it first");
        tamis(&format!("volume resize {store} v@a --size 8K")).fails(2, "is a snapshot");
        tamis(&format!("volume rename {store} v@a b")).fails(2, "is a snapshot");
        let listed = tamis(&format!("snapshot list {store} --json")).ok().json();
        assert_eq!(names(&listed), ["v@a"]);
    };
    tamis(&format!("snapshot create {store} v@a")).ok();
    try_all();
    tamis(&format!("import {store} v@a {image} --overwrite --yes")).fails(2, "is a snapshot");
    let server = Served::start(&store, "");
    try_all();
    assert_eq!(server.interrupt(), Some(0));
    tamis(&format!("check {store}")).ok();
}

/// A program with these words on its command line, which must succeed.
fn program(line: &str) -> Outcome {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap());
    command.args(words);
    run(command).ok()
}

/// Runs `tamis` until it succeeds: what it asks for may have to wait for a client to be gone.
fn at_last(line: &str) -> Outcome {
    let tries = (0..200).map(|_| tamis(line));
    tries.into_iter().find(|outcome| outcome.code == Some(0)).unwrap_or_else(|| panic!("{line}"))
}

/// One volume is held in the middle of a copy, another is written all the time: the snapshot of
/// both holds what was written before it and nothing else, and what is made of it stands alone.
#[test]
fn clients_write_while_snapshots_are_taken_read_and_gone_back_to() {
    if !installed("nbdcopy") || !installed("nbdinfo") {
        return;
    }
    let folder = Folder::new();
    let store = folder.store("256M");
    let server = Served::start(&store, "");
    let uri = |name: &str| format!("nbd+unix:///{name}?socket={store}/nbd.sock");
    let (before, after) = (noise(1, 8 * MIB), noise(2, 4 * MIB));
    let (image, out) = (folder.path("image"), folder.path("out"));
    fs::write(&image, &before).unwrap();
    let read = |name: &str| {
        File::create(&out).unwrap();
        program(&format!("nbdcopy {} {out}", uri(name)));
        fs::read(&out).unwrap()
    };
    for name in ["v", "w"] {
        tamis(&format!("volume create {store} {name} --size 8M")).ok();
        program(&format!("nbdcopy --flush {image} {}", uri(name)));
    }
    let mut held =
        Command::new("nbdcopy").args(["-", &uri("v")]).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = held.stdin.take().unwrap();
    pipe.write_all(&after[..2 * MIB]).unwrap();
    let written = || {
        let stats = tamis(&format!("stats {store} --json")).ok().json();
        stats["counters"]["written_bytes"].as_u64().unwrap() as usize
    };
    assert!((0..100).any(|_| written() == 18 * MIB), "{}", written());
    let load = {
        let line = format!("for i in 1 2 3 4 5 6; do nbdcopy {image} '{}'; done", uri("w"));
        Command::new("sh").args(["-c", &line]).spawn()
    };
    let taken = tamis(&format!("snapshot create {store} --group v,w --name a --json")).ok().json();
    assert_eq!(names(&taken), ["v@a", "w@a"]);

    let expected = [&after[..2 * MIB], &before[2 * MIB..]].concat();
    tamis(&format!("snapshot rollback {store} v@a --yes")).fails(4, "disconnect its clients");
    assert!(read("v@a") == expected && read("w@a") == before);
    let info: Value = program(&format!("nbdinfo --json {}", uri("v@a"))).json();
    assert_eq!(info["exports"][0]["is_read_only"], true, "{info}");
    let listed = program(&format!("nbdinfo --list --json {}", uri(""))).json();
    let exports = listed["exports"].as_array().unwrap().iter();
    let exports: Vec<&str> = exports.map(|one| one["export-name"].as_str().unwrap()).collect();
    assert_eq!(exports, ["v", "w"], "{listed}");

    tamis(&format!("clone {store} v@a c")).ok();
    pipe.write_all(&after[2 * MIB..]).unwrap();
    drop(pipe);
    assert!(held.wait().unwrap().success());
    assert!(load.unwrap().wait().unwrap().success());
    let finished = [&after[..], &before[4 * MIB..]].concat();
    assert!(read("c") == expected && read("v") == finished);
    program(&format!("nbdcopy {image} {}", uri("c")));
    assert!(read("c") == before && read("v") == finished && read("v@a") == expected);
    at_last(&format!("snapshot rollback {store} v@a --yes"));
    assert!(read("v") == expected && read("c") == before);

    tamis(&format!("snapshot delete {store} v@a w@a --yes")).ok();
    server.kill();
    assert!(exported(&folder, &store, "v") == expected);
    assert!(exported(&folder, &store, "c") == before);
    tamis(&format!("check {store}")).ok();
}

#[test]
fn a_snapshot_that_is_named_twice_is_deleted_once() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume create {store} v --size 1M")).ok();
    tamis(&format!("snapshot create {store} v@a")).ok();
    tamis(&format!("snapshot create {store} v@b")).ok();
    let gone = tamis(&format!("snapshot delete {store} v@a v@b v@a --json --yes")).ok().json();
    assert_eq!(names(&gone), ["v@a", "v@b"]);
}

#[test]
fn a_snapshot_that_is_not_there_is_looked_for_among_snapshots() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume create {store} v --size 1M")).ok();
    let none = "there is no snapshot v@ghost";
    tamis(&format!("volume show {store} v@ghost")).fails(3, none);
    for name in ["a", "b", "c", "d"] {
        tamis(&format!("snapshot create {store} v@{name}")).ok();
    }
    let list = format!("there are v@a, v@b, v@c and 1 other, which `tamis snapshot list {store}`");
    tamis(&format!("export {store} v@ghost -")).fails(3, none).fails(3, &list);
}
