//! Quotas, as people set them and clients meet them.

use std::fs;
use std::process::Command;

use crate::harness::{Folder, Served, installed, noise, tamis};

/// No space for one volume, and room for the others; what it holds may be written over.
#[test]
fn a_volume_keeps_to_its_quota() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (large, small) = (folder.path("large"), folder.path("small"));
    fs::write(&large, noise(1, 4 << 20)).unwrap();
    fs::write(&small, noise(2, 1 << 20)).unwrap();
    let made = tamis(&format!("volume create {store} v --size 8M --quota 2M --json")).ok().json();
    assert_eq!(made["quota_bytes"], 2 << 20);
    tamis(&format!("import {store} v {large}")).fails(6, "volume v is at its quota");
    tamis(&format!("import {store} w {large}")).ok();
    tamis(&format!("import {store} v {small} --overwrite --yes")).ok();
    tamis(&format!("import {store} v {small} --overwrite --yes")).ok();
    let text = tamis(&format!("volume list {store}")).ok().out;
    assert!(text.lines().next().unwrap().ends_with("QUOTA"), "{text}");
    assert!(text.contains("2 MiB"), "{text}");
    let server = Served::start(&store, "");
    let told = tamis(&format!("volume set {store} v --quota 3M")).ok().out;
    assert_eq!(told, "v may map 3 MiB now and maps 1 MiB\n");
    let shown = tamis(&format!("volume show {store} v")).ok().out;
    assert!(shown.contains("may be mapped"), "{shown}");
    tamis(&format!("volume set {store} ghost --quota 3M")).fails(3, "no volume ghost");
    if installed("nbdcopy") {
        let copy = |name: &str| {
            let uri = format!("nbd+unix:///{name}?socket={store}/nbd.sock");
            let copied = Command::new("nbdcopy").args(["--flush", &large, &uri]).output().unwrap();
            (copied.status.success(), String::from_utf8_lossy(&copied.stderr).into_owned())
        };
        let (copied, said) = copy("v");
        assert!(!copied && said.contains("No space left"), "{said}");
        assert!(copy("w").0);
        tamis(&format!("volume set {store} v --quota none")).ok();
        assert!(copy("v").0);
    }
    assert_eq!(server.interrupt(), Some(0));
    tamis(&format!("check {store}")).ok();
}

#[test]
fn a_volume_may_have_no_deduplication() {
    let folder = Folder::new();
    let store = folder.path("store");
    tamis(&format!("init {store} --capacity 256M")).ok();
    let made = tamis(&format!("volume create {store} v --size 64M --no-dedup --json")).ok().json();
    assert_eq!(made["dedup"], "off", "{made}");
    let shown = tamis(&format!("volume show {store} v")).ok().out;
    assert!(shown.contains("new chunks are not looked up"), "{shown}");
    tamis(&format!("volume create {store} w --size 64M")).ok();
    let listed = tamis(&format!("volume list {store}")).ok().out;
    assert!(listed.contains("DEDUP") && listed.contains("off"), "{listed}");
    let told = tamis(&format!("volume set {store} v --dedup on --quota 10M")).ok().out;
    assert!(told.contains("may map 10 MiB now") && told.contains("looks for duplicates"), "{told}");
    let listed = tamis(&format!("volume list {store}")).ok().out;
    assert!(!listed.contains("DEDUP"), "{listed}");
    tamis(&format!("volume create {store} x --size 64M --dedup auto")).ok();
    let listed = tamis(&format!("volume list {store}")).ok().out;
    assert!(listed.contains("auto"), "{listed}");
    let shown = tamis(&format!("volume show {store} x --json")).ok().json();
    assert_eq!(
        (&shown["dedup"], &shown["dedup_active"]),
        (&"auto".into(), &true.into()),
        "{shown}"
    );
    tamis(&format!("volume create {store} y --size 1M --dedup on --no-dedup")).fails(2, "--dedup");
    tamis(&format!("volume set {store} v --dedup maybe")).fails(2, "use on, off or auto");
    tamis(&format!("volume set {store} v")).fails(2, "--dedup");
    tamis(&format!("check {store}")).ok();
}

/// Others fill the store, and the volume goes on.
#[test]
fn a_volume_has_the_room_that_was_reserved_for_it() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (large, own) = (folder.path("large"), folder.path("own"));
    fs::write(&large, noise(1, 64 << 20)).unwrap();
    fs::write(&own, noise(2, 8 << 20)).unwrap();
    let made = tamis(&format!("volume create {store} v --size 32M --reservation 8M --json"));
    assert_eq!(made.ok().json()["reservation_bytes"], 8 << 20);
    let plain = tamis(&format!("volume create {store} w --size 1G --json")).ok().json();
    assert!(plain.get("reservation_bytes").is_none(), "{plain}");
    let shown = tamis(&format!("volume show {store} v")).ok().out;
    assert!(shown.contains("of which 8 MiB are not mapped yet"), "{shown}");
    let stats = tamis(&format!("stats {store} --json")).ok().json();
    assert!(stats["promised_bytes"].as_u64().unwrap() > 8 << 20, "{stats}");
    tamis(&format!("volume set {store} w --reservation 1G")).fails(6, "the reservation takes");
    tamis(&format!("volume set {store} v --reservation 40M")).fails(2, "which may map 32 MiB");
    tamis(&format!("volume set {store} v --quota 4M")).fails(2, "lower its reservation first");
    let told = tamis(&format!("volume set {store} v --quota 4M --reservation 4M")).ok().out;
    assert_eq!(told, "v has 4 MiB reserved now, and may map 4 MiB now and maps 0 B\n");
    tamis(&format!("volume set {store} v --quota none --reservation 8M")).ok();
    // A volume that has none may have no room.
    tamis(&format!("import {store} x {large}")).fails(6, "the store is full");
    let server = Served::start(&store, "");
    if installed("nbdcopy") {
        let copy = |file: &str, name: &str| {
            let uri = format!("nbd+unix:///{name}?socket={store}/nbd.sock");
            let copied = Command::new("nbdcopy").args(["--flush", file, &uri]).output().unwrap();
            (copied.status.success(), String::from_utf8_lossy(&copied.stderr).into_owned())
        };
        let (copied, said) = copy(&large, "w");
        assert!(!copied && said.contains("No space left"), "{said}");
        assert_eq!(copy(&own, "v"), (true, String::new()));
        let stats = tamis(&format!("stats {store} --json")).ok().json();
        assert_eq!(stats["promised_bytes"], 0, "{stats}");
    }
    tamis(&format!("volume set {store} v --reservation none")).ok();
    assert_eq!(server.interrupt(), Some(0));
    tamis(&format!("check {store}")).ok();
}
