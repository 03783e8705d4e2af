//! Stores that were moved or are mistaken for something else, and what surrounds a process.

use std::fs;
use std::os::unix::fs::symlink;

use crate::harness::{Folder, Served, noise, tamis};

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
