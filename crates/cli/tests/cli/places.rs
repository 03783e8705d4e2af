//! Stores that were moved or are mistaken for something else, and what surrounds a process.

use std::fs;

use crate::harness::{Folder, Served, tamis};

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
