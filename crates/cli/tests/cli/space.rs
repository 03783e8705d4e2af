//! A store that is full.

use std::fs;
use std::process::Stdio;

use disk::FileGrowth;
use format::units::Zone;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Folder, Served, command, has_open, listed as all_in, noise, tamis};

#[test]
fn a_full_store_says_so_and_goes_on() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (small, large) = (folder.path("small.img"), folder.path("large.img"));
    fs::write(&small, noise(1, 4 << 20)).unwrap();
    fs::write(&large, noise(2, 160 << 20)).unwrap();
    tamis(&format!("import {store} kept {small}")).ok();
    tamis(&format!("import {store} too-much {large}"))
        .fails(6, "`tamis grow STORE --capacity SIZE`");

    let listed = tamis(&format!("volume list {store} --json")).ok().json();
    assert_eq!(all_in(&listed).len(), 1, "{listed}");
    let out = folder.path("out.img");
    tamis(&format!("export {store} kept {out}")).ok();
    assert!(fs::read(&small).unwrap() == fs::read(&out).unwrap());
    tamis(&format!("check {store}")).ok();
}

/// What several files share is rounded up to containers, as when the store was made.
#[test]
fn a_store_that_grows_by_several_files_gets_what_was_asked_for() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let files = ["a", "b"].map(|name| format!("--data {}", folder.path(name))).join(" ");
    let grown = tamis(&format!("grow {store} --capacity 70M {files} --json")).ok().json();
    assert_eq!(grown["capacity_bytes"], 72 << 20, "{grown}");
    tamis(&format!("check {store}")).ok();
}

/// A full store gets more room, once in its data file and once in another; then what did not fit
/// fits, and all of it is there.
#[test]
fn a_full_store_grows() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (small, large) = (folder.path("small.img"), folder.path("large.img"));
    fs::write(&small, noise(1, 40 << 20)).unwrap();
    fs::write(&large, noise(2, 80 << 20)).unwrap();
    tamis(&format!("import {store} small {small}")).ok();
    tamis(&format!("import {store} large {large}")).fails(6, "full");

    tamis(&format!("grow {store}")).fails(2, "--capacity");
    tamis(&format!("grow {store} --capacity 32M")).fails(2, "already: 32 MiB would not be more");
    tamis(&format!("grow {store} --capacity 900T")).fails(6, "free");
    let grown = tamis(&format!("grow {store} --capacity 144M --json")).ok().json();
    assert_eq!(grown["capacity_bytes"], 144 << 20, "{grown}");
    tamis(&format!("import {store} large {large}")).ok();

    let more = folder.path("more");
    let said = tamis(&format!("grow {store} --capacity 272M --data {more}")).ok();
    assert!(said.out.contains("272"), "{}", said.out);
    assert_eq!(fs::metadata(&more).unwrap().len(), 128 << 20);
    fs::write(&large, noise(3, 100 << 20)).unwrap();
    tamis(&format!("import {store} third {large}")).ok();
    let out = folder.path("out.img");
    for (volume, seed, length) in [("small", 1, 40 << 20), ("large", 2, 80 << 20)] {
        tamis(&format!("export {store} {volume} {out} --overwrite")).ok();
        assert!(fs::read(&out).unwrap() == noise(seed, length), "{volume}");
    }
    tamis(&format!("check {store}")).ok();
}

/// Room is made on request, offline and while the store is served; what was asked for and cannot be
/// is said by the exit code.
#[test]
fn room_is_made_on_request() {
    let folder = Folder::new();
    let store = folder.store("64M --compression none");
    let (a, b, out) = (folder.path("a.img"), folder.path("b.img"), folder.path("out.img"));
    let text = |seed| -> Vec<u8> {
        noise(seed, 20 << 20).chunks(4).flat_map(|four| [four[0]; 4]).collect()
    };
    fs::write(&a, text(1)).unwrap();
    fs::write(&b, text(2)).unwrap();
    tamis(&format!("import {store} a {a}")).ok();
    tamis(&format!("import {store} b {b}")).ok();
    tamis(&format!("collect {store} --to 50%")).fails(10, "nothing else is worth moving");
    let packed = tamis(&format!("collect {store} --to 50% --recompress zstd:3 --json")).ok().json();
    assert_eq!(packed["complete"], true, "{packed}");
    assert!(packed["data_taken_ratio"].as_f64().unwrap() <= 0.5, "{packed}");
    assert!(packed["data_taken_ratio_before"].as_f64().unwrap() > 0.6, "{packed}");
    assert!(packed["freed_bytes"].as_u64().unwrap() > 8 << 20, "{packed}");

    let served = Served::start(&store, "");
    let said = tamis(&format!("collect {store} --recompress zstd:3 --rate unlimited")).ok().out;
    let said = said.replace('\n', " ");
    assert!(said.contains("containers collected") && said.contains("with zstd:3"), "{said}");
    assert_eq!(served.interrupt(), Some(0));
    tamis(&format!("collect {}", folder.path("none"))).fails(3, "no store");
    tamis(&format!("collect {store} --to 0")).fails(2, "--to");
    for (volume, image) in [("a", &a), ("b", &b)] {
        tamis(&format!("export {store} {volume} {out} --overwrite")).ok();
        assert!(fs::read(&out).unwrap() == fs::read(image).unwrap(), "{volume}");
    }
    tamis(&format!("check {store}")).ok();
}

/// Timers believe it.
#[test]
fn a_collection_that_was_interrupted_says_so() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("image");
    fs::write(&image, noise(1, 24 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    let line = format!("collect {store} --recompress zstd:3 --rate 1M --json");
    let mut collect = command(line.split_whitespace());
    let mut child = collect.stdout(Stdio::piped()).spawn().unwrap();
    // It hears signals before it opens the store.
    while !has_open(&child, &folder.path("store/data")) {
        assert!(child.try_wait().unwrap().is_none());
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    let report: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(report["complete"], false, "{report}");
    tamis(&format!("check {store}")).ok();
}

/// A store gets more room twice while it is served, in its data file and in another, and uses it.
#[test]
fn a_served_store_grows() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("image");
    fs::write(&image, noise(1, 40 << 20)).unwrap();
    tamis(&format!("import {store} small {image}")).ok();
    let server = Served::start(&store, "");
    let grown = tamis(&format!("grow {store} --capacity 144M --json")).ok().json();
    assert_eq!(grown["capacity_bytes"], 144 << 20, "{grown}");
    let more = folder.path("more");
    let said = tamis(&format!("grow {store} --capacity 272M --data {more}")).ok();
    assert!(said.out.contains("272") && said.out.contains("128"), "{}", said.out);
    let stats = tamis(&format!("stats {store} --json")).ok().json();
    assert_eq!((&stats["capacity_bytes"], &stats["served"]), (&(272 << 20).into(), &true.into()));
    tamis(&format!("scrub {store}")).ok();
    server.kill();
    fs::write(&image, noise(2, 160 << 20)).unwrap();
    tamis(&format!("import {store} large {image}")).ok();
    let out = folder.path("out.img");
    tamis(&format!("export {store} large {out}")).ok();
    assert!(fs::read(&out).unwrap() == noise(2, 160 << 20));
    tamis(&format!("check {store}")).ok();
}

/// A growth that was killed when its files were there and the store had not been told yet, or whose
/// server was: the store can be used, and the next growth gets what it asks for.
#[test]
fn a_growth_that_was_not_completed_is_made_good_by_the_next() {
    for served in [false, true] {
        let folder = Folder::new();
        let store = folder.store("64M");
        let (image, out) = (folder.path("image"), folder.path("out.img"));
        fs::write(&image, noise(1, 40 << 20)).unwrap();
        tamis(&format!("import {store} small {image}")).ok();
        let half_grown = |zones: u16, name| {
            let added = vec![(Zone::Data(zones), 32 << 20, folder.join(name))];
            let superblock = fs::read(folder.join("store/superblock")).unwrap();
            let uuid = superblock[16..32].try_into().unwrap();
            let growth = FileGrowth { uuid, data_zones: zones.into(), longer: Vec::new(), added };
            disk::grow_store_files(&folder.join("store"), &growth).unwrap();
        };
        let grow = |wish: &str| {
            let grown = tamis(&format!("grow {store} {wish} --json")).ok().json();
            (grown["capacity_bytes"].as_u64().unwrap() >> 20, grown["data_zones"].as_u64().unwrap())
        };
        half_grown(1, "more");
        let server = served.then(|| Served::start(&store, ""));
        assert_eq!(grow("--capacity 128M"), (128, 1));
        assert_eq!(grow(&format!("--capacity 192M --data {}", folder.path("more"))), (192, 2));
        half_grown(2, "elsewhere");
        assert_eq!(grow(&format!("--capacity 256M --data {}", folder.path("here"))), (256, 3));
        assert_eq!(fs::read_link(folder.join("store/data.2")).unwrap(), folder.join("here"));
        if let Some(server) = server {
            assert_eq!(server.interrupt(), Some(0));
        }
        fs::write(&image, noise(2, 180 << 20)).unwrap();
        tamis(&format!("import {store} large {image}")).ok();
        for (volume, seed, length) in [("small", 1, 40 << 20), ("large", 2, 180 << 20)] {
            tamis(&format!("export {store} {volume} {out} --overwrite")).ok();
            assert!(fs::read(&out).unwrap() == noise(seed, length), "{volume}");
        }
        tamis(&format!("check {store}")).ok();
    }
}

/// How full a store is: the exit code tells timers, and the server tells its operator.
#[test]
fn watermarks_are_told_on_the_way_up_and_down() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("image");
    fs::write(&image, noise(1, 40 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    tamis(&format!("stats {store} --warn 90%")).ok();
    let told = tamis(&format!("stats {store} --warn 50 --json")).fails(10, "tamis grow ");
    let used = told.json()["data_used_ratio"].as_f64().unwrap();
    assert!(used > 0.6 && used < 0.8, "{used}");

    let server = Served::start(&store, "--warn 50%,99%");
    let wait_for = |mark: Option<u64>| {
        let marks = || tamis(&format!("stats {store} --json")).ok().json();
        (0..100).any(|_| marks()["watermark_percent"].as_u64() == mark)
    };
    assert!(wait_for(Some(50)));
    tamis(&format!("stats {store} --warn 50%")).fails(10, "is used");
    tamis(&format!("volume delete {store} v --yes")).ok();
    assert!(wait_for(None));
    let (code, said) = server.interrupt_and_hear();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("warning: the room for data is 50% used"), "{said}");
    assert!(said.contains("note: the room for data is less than 50% used again"), "{said}");
    tamis(&format!("stats {store} --warn 50%")).ok();
}

/// What stands in the way of a growth is said, and nothing has changed.
#[test]
fn a_growth_that_cannot_be_changes_nothing() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let before = tamis(&format!("stats {store} --json")).ok().json();
    let there = folder.path("there");
    fs::write(&there, b"of somebody else").unwrap();
    tamis(&format!("grow {store} --capacity 1G --data {there}")).fails(7, "exists");
    assert_eq!(fs::read(&there).unwrap(), b"of somebody else");
    let server = Served::start(&store, "");
    tamis(&format!("grow {store} --capacity 1G --data {there}")).fails(7, "exists");
    tamis(&format!("grow {store}")).fails(2, "--capacity");
    tamis(&format!("grow {store} --capacity 32M")).fails(2, "already");
    tamis(&format!("grow {store} --capacity 900T")).fails(6, "free");
    assert_eq!(server.interrupt(), Some(0));
    let after = tamis(&format!("stats {store} --json")).ok().json();
    assert_eq!(before["capacity_bytes"], after["capacity_bytes"]);
    assert!(!folder.join("store").join("data.1").exists());
}
