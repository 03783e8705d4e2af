//! Devices that have changed places since the store was closed: every command says so, and none
//! writes.

use std::fs;

use crate::harness::{Folder, Served, noise, tamis};

const ZONES: [&str; 5] = ["one", "two", "store/superblock", "store/journal", "store/tables"];

/// A store with two data files that both hold something; it and an image that is in it.
fn filled(folder: &Folder) -> (String, String) {
    let (store, image) = (folder.path("store"), folder.path("in.img"));
    let [one, two] = ["one", "two"].map(|name| folder.path(name));
    tamis(&format!("init {store} --capacity 128M --data {one} --data {two}")).ok();
    fs::write(&image, noise(5, 40 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    (store, image)
}

fn rename(folder: &Folder, from: &str, to: &str) {
    fs::rename(folder.join(from), folder.join(to)).unwrap();
}

fn exchange(folder: &Folder) {
    rename(folder, "one", "three");
    rename(folder, "two", "one");
    rename(folder, "three", "two");
}

fn contents(folder: &Folder) -> Vec<Vec<u8>> {
    ZONES.iter().map(|zone| fs::read(folder.join(zone)).unwrap()).collect()
}

/// What opens the store, checks it or repairs it says this, and changes nothing.
fn assert_refused(folder: &Folder, (store, image): &(String, String), words: &str) {
    let before = contents(folder);
    for line in ["volume list STORE", "import STORE w IMAGE", "scrub STORE", "check STORE --repair"]
    {
        let line = line.replace("STORE", store).replace("IMAGE", image);
        let said = tamis(&line).fails(5, words);
        assert!(said.err.contains("right device under this name"), "{said:?}");
    }
    let found = tamis(&format!("check {store} --json"));
    assert_eq!(found.code, Some(5), "{found:?}");
    let sentences = found.json()["sentences"].to_string();
    assert!(sentences.contains(words), "{sentences}");
    assert!(contents(folder) == before, "something was written");
}

fn assert_all_there(folder: &Folder, (store, image): &(String, String)) {
    tamis(&format!("check {store}")).ok();
    let out = folder.path("out.img");
    tamis(&format!("export {store} v {out}")).ok();
    assert!(fs::read(out).unwrap() == fs::read(image).unwrap());
}

#[test]
fn data_files_that_were_exchanged_are_refused_until_they_are_put_back() {
    let folder = Folder::new();
    let made = filled(&folder);
    exchange(&folder);
    assert_refused(&folder, &made, "data.0 holds what was written to data.1");
    exchange(&folder);
    assert_all_there(&folder, &made);
}

/// One of them has been cut as well, by whatever moved it.
#[test]
fn a_repair_that_is_refused_leaves_files_as_short_as_they_are() {
    let folder = Folder::new();
    let (store, _) = filled(&folder);
    exchange(&folder);
    let cut = fs::File::options().write(true).open(folder.join("two")).unwrap();
    cut.set_len((32 << 20) - 100).unwrap();
    let before = contents(&folder);
    let repair = format!("check {store} --repair");
    tamis(&repair).fails(5, "data.0 holds what was written to data.1");
    tamis(&repair).fails(5, "Nothing was changed");
    assert!(contents(&folder) == before, "something was changed");
    tamis(&format!("volume list {store}")).fails(5, "`tamis check --repair` makes it as long");
}

#[test]
fn a_blank_data_file_is_refused_unless_what_it_held_is_given_up() {
    let folder = Folder::new();
    let made = filled(&folder);
    rename(&folder, "two", "three");
    fs::File::create(folder.join("two")).unwrap().set_len(64 << 20).unwrap();
    assert_refused(&folder, &made, "data.1 holds nothing that this store wrote");
    rename(&folder, "two", "four");
    rename(&folder, "three", "two");
    assert_all_there(&folder, &made);

    rename(&folder, "four", "two");
    let (store, _) = &made;
    tamis(&format!("check {store} --without-zone data.1")).fails(2, "--repair");
    tamis(&format!("check {store} --without-volume v")).fails(2, "--repair");
    tamis(&format!("check {store} --repair --without-zone tables")).fails(2, "data.1");
    tamis(&format!("check {store} --repair --without-zone data.0")).fails(5, "data.1 holds");
    tamis(&format!("check {store} --repair --without-zone data.1")).fails(9, "losses");
    tamis(&format!("volume list {store}")).ok();
}

/// What was flushed since it was opened stands in its journal only.
#[test]
fn a_killed_store_is_refused_with_a_blank_journal_until_what_was_flushed_is_given_up() {
    let folder = Folder::new();
    let (store, journal) = (folder.path("store"), folder.path("ring"));
    tamis(&format!("init {store} --capacity 64M --journal {journal}")).ok();
    tamis(&format!("volume create {store} before --size 1M")).ok();
    let server = Served::start(&store, "");
    for number in 0..12 {
        tamis(&format!("volume create {store} behind{number} --size 1M")).ok();
    }
    server.kill();
    rename(&folder, "ring", "away");
    let length_bytes = fs::metadata(folder.join("away")).unwrap().len();
    fs::File::create(folder.join("ring")).unwrap().set_len(length_bytes).unwrap();
    let words = "journal holds nothing that this store wrote";
    for line in ["volume list STORE", "scrub STORE", "check STORE --repair"] {
        tamis(&line.replace("STORE", &store)).fails(5, words);
    }
    let found = tamis(&format!("check {store}"));
    assert!(found.code == Some(5) && found.out.contains(words), "{found:?}");
    rename(&folder, "ring", "blank");
    rename(&folder, "away", "ring");
    tamis(&format!("check {store}")).ok();

    rename(&folder, "ring", "away");
    rename(&folder, "blank", "ring");
    tamis(&format!("check {store} --repair --without-zone journal")).fails(9, "last checkpoint");
    tamis(&format!("check {store}")).ok();
    let listed = tamis(&format!("volume list {store}")).ok();
    assert!(listed.out.contains("before") && !listed.out.contains("behind"), "{listed:?}");

    // The right one is none any more.
    rename(&folder, "ring", "new");
    rename(&folder, "away", "ring");
    tamis(&format!("volume list {store}")).fails(5, "journal holds an older state of itself");
    rename(&folder, "new", "ring");
    tamis(&format!("volume list {store}")).ok();
}

#[test]
fn stats_tell_what_messages_name_a_store_by() {
    let folder = Folder::new();
    let store = folder.path("store");
    let made = tamis(&format!("init {store} --capacity 64M --json")).ok().json();
    let uuid = made["uuid"].as_str().unwrap().to_owned();
    let assert_is_told = || {
        assert_eq!(tamis(&format!("stats {store} --json")).ok().json()["uuid"], uuid.as_str());
        let told = tamis(&format!("stats {store}")).ok().out;
        assert!(told.contains(&format!("UUID {uuid}\n")), "{told}");
    };
    assert_is_told();
    let _server = Served::start(&store, "");
    assert_is_told();
}
