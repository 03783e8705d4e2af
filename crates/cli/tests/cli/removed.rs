//! Data files that are removed from a store, or replaced.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Folder, Served, command, noise, tamis};

const MIB: u64 = 1 << 20;
const IMAGE_BYTES: usize = 48 << 20;

/// A store with an image, in `data.0` and in a second file outside.
fn store_of_two(folder: &Folder) -> String {
    let store = folder.store("64M");
    tamis(&format!("grow {store} --capacity 192M --data {}", folder.path("second"))).ok();
    let image = folder.path("image");
    fs::write(&image, noise(1, IMAGE_BYTES)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    store
}

fn holds_all(folder: &Folder, store: &str) {
    let out = folder.path("out.img");
    tamis(&format!("export {store} v {out} --overwrite")).ok();
    assert!(fs::read(&out).unwrap() == noise(1, IMAGE_BYTES));
}

fn listed(store: &str) -> Vec<Value> {
    let listed = tamis(&format!("data list {store} --json")).ok().json();
    listed["data_files"].as_array().unwrap().clone()
}

#[test]
fn a_data_file_is_removed_from_a_closed_store() {
    let folder = Folder::new();
    let store = store_of_two(&folder);
    let before = listed(&store);
    assert_eq!(before.len(), 2);
    assert!(before.iter().all(|file| file["state"] == "in_use"), "{before:?}");
    assert!(before[0]["stored_bytes"].as_u64().unwrap() > 8 * MIB, "{before:?}");
    assert_eq!(before[1]["path"], folder.path("second"));

    tamis(&format!("data remove {store} data.7")).fails(3, "`tamis data list");
    let removed = tamis(&format!("data remove {store} data.0 --json")).ok().json();
    assert_eq!(removed["capacity_bytes_before"], 192 * MIB, "{removed}");
    assert_eq!(removed["capacity_bytes"], 128 * MIB, "{removed}");
    assert!(removed["moved_bytes"].as_u64().unwrap() > 8 * MIB, "{removed}");
    assert_eq!(fs::metadata(folder.path("store/data.0")).unwrap().len(), 0);
    let after = listed(&store);
    assert_eq!((&after[0]["state"], &after[1]["state"]), (&"removed".into(), &"in_use".into()));
    tamis(&format!("data remove {store} data.1")).fails(2, "it is the only one");
    holds_all(&folder, &store);
    tamis(&format!("check {store}")).ok();

    // Killed before the file was cut, and begun again.
    fs::write(folder.path("store/data.0"), [7; 9000]).unwrap();
    tamis(&format!("data remove {store} data.0")).ok();
    assert_eq!(fs::metadata(folder.path("store/data.0")).unwrap().len(), 0);
    tamis(&format!("grow {store} --capacity 256M")).ok();
    tamis(&format!("grow {store} --capacity 320M --data {}", folder.path("third"))).ok();
    tamis(&format!("data remove {store} {}", folder.path("third"))).ok();
    tamis(&format!("grow {store} --capacity 512M")).fails(2, "add one with --data");
    tamis(&format!("scrub {store}")).ok();
    holds_all(&folder, &store);
    tamis(&format!("check {store}")).ok();
}

#[test]
fn a_data_file_of_a_served_store_is_replaced() {
    let folder = Folder::new();
    let store = store_of_two(&folder);
    let server = Served::start(&store, "");
    let (second, third) = (folder.path("second"), folder.path("third"));
    let line = format!("data replace {store} {second} {third} --rate unlimited");
    let said = tamis(&line).ok().out;
    assert!(said.replace('\n', " ").contains("data.1 is removed from"), "{said}");
    assert!(!folder.join("second").exists(), "its file is deleted");
    assert!(fs::symlink_metadata(folder.path("store/data.1")).unwrap().is_file());
    assert_eq!(fs::metadata(&third).unwrap().len(), 128 * MIB);
    let files = listed(&store);
    assert_eq!((&files[1]["state"], &files[2]["state"]), (&"removed".into(), &"in_use".into()));
    let stats = tamis(&format!("stats {store} --json")).ok().json();
    assert_eq!(stats["capacity_bytes"], 192 * MIB);
    holds_all(&folder, &store);
    server.kill();
    holds_all(&folder, &store);
    tamis(&format!("check {store}")).ok();
}

/// The command is killed in the middle, then the server.
#[test]
fn a_removal_that_is_killed_goes_on() {
    let folder = Folder::new();
    let store = store_of_two(&folder);
    let server = Served::start(&store, "");
    // Not `used_bytes`: an emptied container counts as used until the next checkpoint.
    let stored_bytes = |files: &[Value]| files[0]["stored_bytes"].as_u64().unwrap();
    let before = stored_bytes(&listed(&store));
    let line = format!("data remove {store} data.0 --rate 1M");
    let mut remove = command(line.split_whitespace());
    let mut child = remove.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while stored_bytes(&listed(&store)) == before {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(listed(&store)[0]["state"], "leaving");
    holds_all(&folder, &store);
    server.kill();
    holds_all(&folder, &store);
    tamis(&format!("check {store}")).ok();
    assert_eq!(listed(&store)[0]["state"], "in_use");

    let server = Served::start(&store, "");
    tamis(&format!("data remove {store} data.0 --rate unlimited")).ok();
    assert_eq!(server.interrupt(), Some(0));
    assert_eq!(listed(&store)[0]["state"], "removed");
    holds_all(&folder, &store);
    tamis(&format!("check {store}")).ok();
}

/// A signal ends it, and the file is used again.
#[test]
fn what_does_not_fit_elsewhere_stays() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("grow {store} --capacity 128M --data {}", folder.path("second"))).ok();
    let image = folder.path("image");
    fs::write(&image, noise(1, 90 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    tamis(&format!("data remove {store} data.0")).fails(2, "the others have room for");
    assert_eq!(listed(&store)[0]["state"], "in_use");
    tamis(&format!("check {store}")).ok();
}
