//! Codecs of volumes, as people choose and see them.

use std::fs;

use crate::harness::{Folder, Served, tamis};

/// Text that every codec makes shorter, without two chunks that are the same.
fn text(seed: u64, length_bytes: usize) -> Vec<u8> {
    let line = |number: u64| format!("{seed} {number} the same words come again and again\n");
    let mut bytes: Vec<u8> = (0..).flat_map(|n| line(n).into_bytes()).take(length_bytes).collect();
    bytes.truncate(length_bytes);
    bytes
}

fn codec_of(store: &str, volume: &str) -> String {
    let explained = tamis(&format!("explain {store} {volume} 0 --json")).ok().json();
    explained["chunk"]["place"]["frame"]["codec"].as_str().unwrap().to_owned()
}

#[test]
fn a_volume_has_the_codec_that_was_asked_for() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let made = tamis(&format!("volume create {store} v --size 8M --compression zstd:9 --json"));
    assert_eq!(made.ok().json()["compression"], "zstd:9");
    let plain = tamis(&format!("volume create {store} w --size 8M --json")).ok().json();
    assert!(plain.get("compression").is_none(), "{plain}");
    let (one, two) = (folder.path("one"), folder.path("two"));
    fs::write(&one, text(1, 1 << 20)).unwrap();
    fs::write(&two, text(2, 1 << 20)).unwrap();
    // What takes the place of a volume's data is compressed as the volume says.
    tamis(&format!("import {store} v {one}")).ok();
    tamis(&format!("import {store} w {two}")).ok();
    assert_eq!((codec_of(&store, "v"), codec_of(&store, "w")), ("zstd".into(), "lz4".into()));
    let shown = tamis(&format!("volume show {store} v")).ok().out;
    assert!(shown.contains("codec") && shown.contains("zstd:9"), "{shown}");
    let shown = tamis(&format!("volume show {store} w")).ok().out;
    assert!(!shown.contains("codec"), "{shown}");
    let listed = tamis(&format!("volume list {store} --json")).ok().json();
    assert_eq!(listed["volumes"][0]["compression"], "zstd:9", "{listed}");
    tamis(&format!("snapshot create {store} v@s")).ok();
    let clone = tamis(&format!("clone {store} v@s c --json")).ok().json();
    assert_eq!(clone["compression"], "zstd:9");
    let server = Served::start(&store, "");
    let told = tamis(&format!("volume set {store} w --compression none --quota 4M")).ok().out;
    let expected = "w may map 4 MiB now and maps 1 MiB, and compresses what is written from now on \
                    with none\n";
    assert_eq!(told, expected);
    for name in ["store", "default"] {
        let told = tamis(&format!("volume set {store} v --compression {name}")).ok().out;
        assert_eq!(told, "v compresses what is written from now on as the store does\n");
    }
    assert_eq!(server.interrupt(), Some(0));
    tamis(&format!("check {store}")).ok();
}

#[test]
fn an_import_makes_a_volume_with_a_codec_of_its_own() {
    let folder = Folder::new();
    let (store, other) = (folder.store("64M"), folder.path("other"));
    tamis(&format!("init {other} --capacity 64M")).ok();
    let image = folder.path("image");
    fs::write(&image, text(3, 1 << 20)).unwrap();
    tamis(&format!("import {store} v {image} --compression zstd:5")).ok();
    assert_eq!(codec_of(&store, "v"), "zstd");
    tamis(&format!("import {store} plain {image} --compression store")).ok();
    let plain = tamis(&format!("volume show {store} plain --quick --json")).ok().json();
    assert!(plain.get("compression").is_none(), "{plain}");
    // One that is there keeps its own.
    let again = format!("import {store} v {image} --overwrite --yes");
    tamis(&format!("{again} --compression lz4")).fails(7, "leave out --compression");
    tamis(&format!("{again} --compression zstd:5")).ok();
    tamis(&again).ok();
    let shown = tamis(&format!("volume show {store} v --quick --json")).ok().json();
    assert_eq!(shown["compression"], "zstd:5");
    // Streams too.
    let stream = folder.path("stream");
    tamis(&format!("snapshot create {store} v@s")).ok();
    tamis(&format!("export {store} v@s {stream} --stream")).ok();
    tamis(&format!("import {other} v {stream} --compression zstd:7")).ok();
    let shown = tamis(&format!("volume show {other} v --quick --json")).ok().json();
    assert_eq!(shown["compression"], "zstd:7");
    assert_eq!(codec_of(&other, "v"), "zstd");
}

#[test]
fn what_is_no_codec_changes_nothing() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume create {store} v --size 1M")).ok();
    tamis(&format!("volume set {store} v --compression gzip"))
        .fails(2, "use lz4, zstd, zstd:LEVEL or none, or store to follow the store");
    tamis(&format!("volume set {store} v --compression zstd:99")).fails(2, "-7 to 22");
    tamis(&format!("volume set {store} ghost --compression lz4")).fails(3, "no volume ghost");
    // Nothing of all this has made the store another.
    tamis(&format!("volume set {store} v --compression store")).ok();
    let show = tamis(&format!("volume show {store} v --quick --json")).ok().json();
    assert!(show.get("compression").is_none(), "{show}");
}
