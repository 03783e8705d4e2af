//! What becomes of results: standard output that is full, names that are no text.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;

use crate::harness::{Folder, command, run, tamis};

#[test]
fn a_standard_output_that_is_full_is_no_space() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume create {store} v --size 1M")).ok();
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    for words in [
        &["stats", &store][..],
        &["volume", "list", &store, "--json"],
        &["export", &store, "v", "-"],
    ] {
        let mut command = command(words.iter().copied());
        command.stdout(full()).stderr(File::create(folder.join("said")).unwrap());
        assert_eq!(command.status().unwrap().code(), Some(6), "{words:?}");
    }
}

#[test]
fn a_path_that_is_no_text_is_told_as_well_as_can_be() {
    let folder = Folder::new();
    let store = folder.join("").join(OsStr::from_bytes(b"st\xffre"));
    let mut init = command(["init", "--capacity", "64M", "--json"]);
    init.arg(&store);
    let made = run(init).ok().json();
    assert!(made["store"].as_str().unwrap().ends_with("st\u{fffd}re"), "{made}");
    let mut grow = command(["grow", "--capacity", "128M", "--json"]);
    grow.arg(&store);
    let grown = run(grow).ok().json();
    assert!(grown["store"].as_str().unwrap().ends_with("st\u{fffd}re"), "{grown}");
}
