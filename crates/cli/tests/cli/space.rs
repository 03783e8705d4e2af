//! A store that is full.

use std::fs;

use crate::harness::{Folder, Served, noise, tamis};

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
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let out = folder.path("out.img");
    tamis(&format!("export {store} kept {out}")).ok();
    assert!(fs::read(&small).unwrap() == fs::read(&out).unwrap());
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
    tamis(&format!("grow {store} --capacity 32M")).fails(2, "already");
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
    tamis(&format!("grow {store} --capacity 1G")).fails(4, "in use");
    drop(server);
    let after = tamis(&format!("stats {store} --json")).ok().json();
    assert_eq!(before["capacity_bytes"], after["capacity_bytes"]);
    assert!(!folder.join("store").join("data.1").exists());
}
