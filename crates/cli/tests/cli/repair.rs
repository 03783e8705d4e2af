//! Damaged stores are repaired from the command line, and say what is lost.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};

use crate::harness::{Folder, Served, listed as all_in, noise, tamis};

const IMAGE_BYTES: usize = 8 << 20;

fn filled(folder: &Folder) -> (String, String) {
    let store = folder.store("64M");
    let image = folder.path("in.img");
    fs::write(&image, noise(5, IMAGE_BYTES)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    (store, image)
}

fn zone(folder: &Folder, name: &str) -> File {
    let path = folder.join("store").join(name);
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

#[test]
fn tables_that_are_lost_are_made_again() {
    let folder = Folder::new();
    let (store, image) = filled(&folder);
    let tables = zone(&folder, "tables");
    let mut block = [0; 4096];
    // Every page of the Hash-PBN and PBN-PBA tables.
    for at in 1..2048 {
        tables.read_exact_at(&mut block, at * 4096).unwrap();
        if matches!(block[4], 1..=3) {
            tables.write_all_at(&[0x5a; 64], at * 4096 + 40).unwrap();
        }
    }
    let found = tamis(&format!("check {store}"));
    assert_eq!(found.code, Some(5), "{found:?}");
    let repaired = tamis(&format!("check {store} --repair"));
    assert_eq!(repaired.code, Some(8), "{repaired:?}");
    tamis(&format!("check {store}")).ok();
    let out = folder.path("out.img");
    tamis(&format!("export {store} v {out}")).ok();
    assert!(fs::read(out).unwrap() == fs::read(image).unwrap());
}

#[test]
fn lost_chunks_are_named_and_stay_errors() {
    let folder = Folder::new();
    let (store, _) = filled(&folder);
    zone(&folder, "data").write_all_at(&[0; 8192], 1 << 20).unwrap();
    let repaired = tamis(&format!("check {store} --repair --json"));
    assert_eq!(repaired.code, Some(9), "{repaired:?}");
    let lost = repaired.json()["repair"]["lost_chunks"].as_u64().unwrap();
    assert!((2..=4).contains(&lost), "{lost} chunks");
    let found = tamis(&format!("check {store} --json"));
    assert_eq!(found.code, Some(5), "{found:?}");
    let problems = found.json()["problems"].as_array().unwrap().clone();
    let chunks: u64 = problems.iter().map(|problem| problem["count"].as_u64().unwrap()).sum();
    assert_eq!(chunks, lost);
    let out = folder.path("out.img");
    assert_eq!(tamis(&format!("export {store} v {out}")).code, Some(5));
    let again = tamis(&format!("check {store} --repair"));
    assert_eq!(again.code, Some(5), "{again:?}");
    assert!(again.err.contains("no repair mends"), "{again:?}");
}

/// However short it is, it is as long again, and has all of its blocks: none has to be asked for
/// when the store runs.
#[test]
fn a_file_that_was_cut_short_is_made_long_again() {
    for (name, cuts) in [("journal", &[8192, 4095, 0][..]), ("tables", &[4095])] {
        for &cut_bytes in cuts {
            let folder = Folder::new();
            let (store, image) = filled(&folder);
            let file = zone(&folder, name);
            let before = file.metadata().unwrap();
            file.set_len(cut_bytes).unwrap();
            let found = tamis(&format!("check {store}"));
            assert_eq!(found.code, Some(5), "{found:?}");
            assert!(found.out.contains(name), "{found:?}");
            tamis(&format!("stats {store}")).fails(5, "bring the whole file back");
            match name {
                // Of its last records nothing is left, and nobody knows whether others followed.
                "journal" => {
                    tamis(&format!("check {store} --repair")).fails(5, "--without-zone journal");
                    tamis(&format!("check {store} --repair --without-zone journal"))
                        .fails(9, "since the last checkpoint");
                }
                _ => drop(tamis(&format!("check {store} --repair")).fails(8, "nothing is lost")),
            }
            let after = file.metadata().unwrap();
            assert_eq!(after.len(), before.len());
            assert!(after.blocks() >= before.blocks(), "{name} {cut_bytes} {after:?}");
            let out = folder.path("out.img");
            tamis(&format!("export {store} v {out}")).ok();
            assert!(fs::read(out).unwrap() == fs::read(image).unwrap());
        }
    }
}

/// What stood there is lost; what is left of it is not.
#[test]
fn data_that_were_cut_off_are_told() {
    let folder = Folder::new();
    let (store, _) = filled(&folder);
    let data = zone(&folder, "data");
    let before_bytes = data.metadata().unwrap().len();
    for cut_bytes in [4095, 0] {
        data.set_len(cut_bytes).unwrap();
        assert_eq!(tamis(&format!("check {store}")).code, Some(5));
        if cut_bytes > 0 {
            // All of it is gone, as if another disk were in its place.
            tamis(&format!("check {store} --repair")).fails(5, "--without-zone data.0");
        }
        let repaired = tamis(&format!("check {store} --repair --without-zone data --json"));
        assert_eq!(repaired.code, Some(9), "{repaired:?}");
        assert_eq!(repaired.json()["repair"]["lost_chunks"], 2048);
        assert_eq!(data.metadata().unwrap().len(), before_bytes);
    }
}

/// Each is behind a link, and no other becomes longer for it.
#[test]
fn files_of_a_store_of_several_that_were_cut_short_are_made_long_again() {
    let folder = Folder::new();
    let (store, image, out) = (folder.path("store"), folder.path("in.img"), folder.path("out.img"));
    let places = ["one", "two", "three"].map(|name| folder.path(name));
    let [one, two, journal] = &places;
    let shape = format!("--data {one} --data {two} --journal {journal}");
    tamis(&format!("init {store} --capacity 128M {shape}")).ok();
    fs::write(&image, noise(5, IMAGE_BYTES)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    let lengths = || places.each_ref().map(|place| fs::metadata(place).unwrap().len());
    let before = lengths();
    let cut = |place, length| {
        OpenOptions::new().write(true).open(place).unwrap().set_len(length).unwrap();
    };
    cut(two, before[1] - 4096);
    cut(journal, 8192);
    let found = tamis(&format!("check {store}"));
    assert_eq!(found.code, Some(5), "{found:?}");
    assert!(found.out.contains("data.1") && found.out.contains("journal"), "{found:?}");
    tamis(&format!("check {store} --repair")).fails(5, "--without-zone journal");
    let repaired = tamis(&format!("check {store} --repair --without-zone journal"));
    assert_eq!(repaired.code, Some(9), "{repaired:?}");
    assert_eq!(lengths(), before);
    tamis(&format!("export {store} v {out}")).ok();
    assert!(fs::read(out).unwrap() == fs::read(image).unwrap());
}

/// An inner page of its map stands for more leaves than the tables have blocks.
#[test]
fn a_volume_of_which_too_much_is_lost_goes_for_the_others() {
    let folder = Folder::new();
    let (store, image) = filled(&folder);
    let huge = folder.path("huge.img");
    let file = File::create(&huge).unwrap();
    file.set_len(64 << 30).unwrap();
    for at in [0, 32 << 30] {
        file.write_all_at(&noise(at, 4096), at).unwrap();
    }
    tamis(&format!("import {store} huge {huge}")).ok();
    // Until no root and no record knows an older map.
    for number in 0..3 {
        tamis(&format!("snapshot create {store} huge@s{number}")).ok();
    }
    let tables = zone(&folder, "tables");
    let mut block = [0; 4096];
    for at in (0..tables.metadata().unwrap().len()).step_by(4096) {
        tables.read_exact_at(&mut block, at).unwrap();
        // Inner pages of the maps of all but the first volume.
        let tree = u32::from_le_bytes(block[16..20].try_into().unwrap());
        if tree > 0x8000_0001 && (1..8).contains(&block[5]) {
            tables.write_all_at(&[0x5a; 64], at + 40).unwrap();
        }
    }
    tamis(&format!("check {store} --repair")).fails(6, "of huge more is lost than");
    let repair = format!("check {store} --repair --without-volume");
    tamis(&format!("{repair} hugo")).fails(3, "hugo");
    tamis(&format!("{repair} huge --without-volume huge@s1")).fails(9, "huge");
    tamis(&format!("check {store}")).ok();
    let left = tamis(&format!("volume list {store} --json")).ok();
    assert!(!left.out.contains("huge"), "{left:?}");
    let out = folder.path("out.img");
    tamis(&format!("export {store} v {out}")).ok();
    assert!(fs::read(out).unwrap() == fs::read(image).unwrap());
}

/// A store whose server was killed when its journal held the records of twenty volumes.
fn killed_with_twenty_volumes(folder: &Folder) -> String {
    let store = folder.store("64M");
    let server = Served::start(&store, "");
    for number in 0..20 {
        tamis(&format!("volume create {store} v{number} --size 1M")).ok();
    }
    server.kill();
    store
}

#[test]
fn records_that_were_flushed_and_are_gone_are_a_loss() {
    let folder = Folder::new();
    let store = killed_with_twenty_volumes(&folder);
    let path = folder.join("store/journal");
    let bytes = fs::read(&path).unwrap();
    let written = bytes.chunks(4096).enumerate().filter(|(_, block)| block.iter().any(|b| *b != 0));
    let written: Vec<usize> = written.map(|(number, _)| number).collect();
    let middle = written[written.len() / 2] as u64;
    zone(&folder, "journal").write_all_at(&[0x5a; 64], middle * 4096 + 40).unwrap();
    tamis(&format!("check {store} --repair")).fails(9, "groups of writes are gone");
    tamis(&format!("check {store}")).ok();
    let listed = tamis(&format!("volume list {store} --json")).ok().json();
    assert!((1..20).contains(&all_in(&listed).len()), "{listed}");
}

/// Behind its last record nothing is lost with the end of a journal; from there on nobody knows.
#[test]
fn a_journal_that_was_cut_short_within_what_was_written_is_a_loss() {
    let folder = Folder::new();
    let store = killed_with_twenty_volumes(&folder);
    let files =
        ["superblock", "journal", "tables", "data"].map(|name| folder.join("store").join(name));
    let before = files.each_ref().map(|file| fs::read(file).unwrap());
    let is_written = |block: &[u8]| block.iter().any(|byte| *byte != 0);
    let end = 4096 * (before[1].chunks(4096).rposition(is_written).unwrap() as u64 + 1);
    let journal = zone(&folder, "journal");
    journal.set_len(end + 4096).unwrap();
    tamis(&format!("check {store} --repair")).fails(8, "nothing is lost");
    assert_eq!(all_in(&tamis(&format!("volume list {store} --json")).ok().json()).len(), 20);
    for cut_bytes in [end, end - 4096] {
        files.iter().zip(&before).for_each(|(file, bytes)| fs::write(file, bytes).unwrap());
        journal.set_len(cut_bytes).unwrap();
        let found = tamis(&format!("check {store}"));
        assert_eq!(found.code, Some(5), "{found:?}");
        assert!(found.out.contains("may be gone"), "{cut_bytes} of {end}: {found:?}");
        tamis(&format!("check {store} --repair")).fails(9, "the journal was cut short");
        tamis(&format!("check {store}")).ok();
    }
}

/// As e2undo does for e2fsck.
#[test]
fn a_repair_is_taken_back_until_the_store_is_used() {
    let folder = Folder::new();
    let (store, _) = filled(&folder);
    zone(&folder, "data").write_all_at(&[0; 8192], 1 << 20).unwrap();
    let journal = zone(&folder, "journal");
    journal.set_len(journal.metadata().unwrap().len() - 5000).unwrap();
    let files =
        ["superblock", "journal", "tables", "data"].map(|name| folder.join("store").join(name));
    let bytes = || files.each_ref().map(|file| fs::read(file).unwrap());
    let before = bytes();
    let undo = format!("check {store} --undo {store}/repair.undo");
    tamis(&undo).fails(3, "repair.undo");
    let repaired = tamis(&format!("check {store} --repair --json"));
    assert_eq!(repaired.code, Some(9), "{repaired:?}");
    assert_eq!(repaired.json()["repair"]["undo_file"], format!("{store}/repair.undo"));
    assert!(bytes() != before);
    let undone = tamis(&format!("{undo} --json")).ok();
    assert_eq!(undone.json()["undone"], format!("{store}/repair.undo"));
    assert!(bytes() == before);
    // Nothing is kept twice in one file.
    let again = tamis(&format!("check {store} --repair"));
    assert_eq!(again.code, Some(9), "{again:?}");
    assert!(again.out.contains(&format!("--undo {store}/repair.undo.2")), "{again:?}");
    let taken = format!("check {store} --repair --undo-file {store}/repair.undo");
    zone(&folder, "data").write_all_at(&[0; 8192], 2 << 20).unwrap();
    tamis(&taken).fails(1, "repair.undo");
    tamis(&format!("check {store} --undo {store}/journal")).fails(5, "not the undo file");
    tamis(&format!("volume create {store} w --size 1M")).ok();
    tamis(&format!("check {store} --undo {store}/repair.undo.2")).fails(7, "opened or repaired");
}
