//! What is said about what cannot be: a sentence, the way out, and the right exit code.

use std::fs;

use crate::harness::{Folder, Served, tamis};

#[test]
fn sizes_are_told_as_people_write_them() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let new = folder.path("new");
    let refused = tamis(&format!("init {new} --capacity 500T")).fails(6, "/tables needs 31.3 TiB");
    assert!(refused.err.contains("iB free: ask for less capacity"), "{refused:?}");
    tamis(&format!("grow {store} --capacity 1M"))
        .fails(2, "the store has room for 64 MiB of data already: 1 MiB would not be more");
    tamis(&format!("init {new} --capacity 1M")).fails(2, "1 MiB is too small for a store");
    tamis(&format!("init {new} --capacity 20P")).fails(2, "20 PiB is more than one store can hold");
    tamis(&format!("volume create {store} v --size 3P")).fails(2, "a volume cannot have 3 PiB");
    tamis(&format!("volume create {store} v --size 1000"))
        .fails(2, "a volume cannot have 1000 B: use a multiple of 512 bytes");
    tamis(&format!("volume create {store} v --size 1Gi")).ok();
    let shown = tamis(&format!("volume show {store} v --json")).ok().json();
    assert_eq!(shown["size_bytes"], 1 << 30);
}

#[test]
fn numbers_with_a_sign_are_judged_as_numbers() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume create {store} v --size 1G")).ok();
    let new = folder.path("new");
    for (line, words) in [
        (format!("init {new} --capacity -5G"), "a size has no sign"),
        (format!("init {new} --capacity=-5G"), "a size has no sign"),
        (format!("init {new} --capacity +5G"), "a size has no sign"),
        (format!("volume create {store} w --size -1"), "a size has no sign"),
        (format!("volume set {store} v --quota -1G"), "a size has no sign"),
        (format!("scrub {store} --rate -1"), "a size has no sign"),
        (format!("explain {store} v --offset -1"), "a size has no sign"),
        (format!("explain {store} v -1"), "use a number from 0 on"),
        (format!("explain {store} v 1x"), "use a number from 0 on"),
        (format!("stats {store} --warn -1"), "use a percentage from 1% to 100%"),
        (format!("serve {store} --threads 0"), "use a number from 1 to 1024"),
        (format!("serve {store} --threads -1"), "use a number from 1 to 1024"),
        (format!("serve {store} --poll-us 1001"), "use a number from 0 to 1000"),
        (format!("serve {store} --copies-above -1"), "use a number from 0 to 4294967295"),
        ("replay --workload write-h --requests 0".to_owned(), "use a number from 1 to"),
        ("replay --workload write-h --seed x".to_owned(), "use a number from 0 on"),
        ("bench detect x --writes -1".to_owned(), "use a number from 0 to"),
    ] {
        let refused = tamis(&line).fails(2, words);
        assert!(!refused.err.contains("-- -"), "{line}: {refused:?}");
        assert!(!refused.err.contains("..="), "{line}: {refused:?}");
    }
}

#[test]
fn a_store_that_is_a_file_is_no_store() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let file = folder.path("file");
    fs::write(&file, "x").unwrap();
    for command in [
        "stats STORE",
        "serve STORE",
        "check STORE",
        "scrub STORE",
        "scrub STORE --status",
        "collect STORE",
        "grow STORE --capacity 1G",
        "set STORE --compression lz4",
        "volume list STORE",
        "volume show STORE v",
        "volume create STORE v --size 1G",
        "snapshot list STORE",
        "snapshot create STORE v@a",
        "clone STORE v@a w",
        "diff STORE v w",
        "explain STORE v 1",
        "import STORE v FILE",
        "export STORE v -",
        "replay --store STORE --workload write-h --requests 1",
    ] {
        let of = |store: &str| tamis(&command.replace("STORE", store).replace("FILE", &file));
        let words = format!("{file} is a file, and a store is a directory");
        let refused = of(&file).fails(3, &words);
        assert!(!refused.err.contains("os error"), "{command}: {refused:?}");
        of(&format!("{store}/data")).fails(3, &format!("a file of the store at {store}"));
    }
    for command in ["init", "serve --create"] {
        tamis(&format!("{command} {file}")).fails(7, "exists already");
        tamis(&format!("{command} {file}/x")).fails(3, &format!("there is no directory {file}"));
    }
}

#[test]
fn whoever_names_a_volume_that_is_not_there_is_told_what_is() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume show {store} nope"))
        .fails(3, &format!("it has none, make one with `tamis volume create {store}"));
    for name in ["vm1", "vm2"] {
        tamis(&format!("volume create {store} {name} --size 1G")).ok();
    }
    tamis(&format!("snapshot create {store} vm1@monday")).ok();
    let volumes = [
        "volume show STORE vm",
        "volume rename STORE vm x",
        "volume delete STORE vm --yes",
        "volume resize STORE vm --size 2G",
        "volume set STORE vm --quota 1G",
        "snapshot create STORE vm@a",
        "snapshot create STORE --group vm1,vm --name a",
        "snapshot list STORE vm",
        "snapshot rollback STORE vm@a --yes",
        "clone STORE vm@a w",
        "explain STORE vm 1",
        "export STORE vm -",
        "export STORE vm@a - --stream",
        "diff STORE vm vm1",
        "diff STORE vm1 vm",
    ];
    let snapshots = [
        "volume show STORE vm1@a",
        "snapshot delete STORE vm1@a --yes",
        "snapshot rollback STORE vm1@a --yes",
        "clone STORE vm1@a w",
        "explain STORE vm1@a 1",
        "export STORE vm1@a - --stream",
        "diff STORE vm1@a vm1",
    ];
    let all = || {
        for line in volumes {
            tamis(&line.replace("STORE", &store))
                .fails(3, &format!("there is no volume vm in {store}: there are vm1 and vm2"));
        }
        for line in snapshots {
            tamis(&line.replace("STORE", &store))
                .fails(3, &format!("there is no snapshot vm1@a in {store}: there is vm1@monday"));
        }
    };
    all();
    let served = Served::start(&store, "");
    all();
    assert_eq!(served.interrupt(), Some(0));
}

#[test]
fn chunks_beyond_the_end_are_told_with_what_there_is() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume create {store} v --size 1G")).ok();
    let has = "volume v has 1 GiB in 262,144 chunks of 4 KiB, numbered from 0: there is no ";
    tamis(&format!("explain {store} v 99999999")).fails(2, &format!("{has}chunk 99999999"));
    tamis(&format!("explain {store} v 262144")).fails(2, &format!("{has}chunk 262144"));
    tamis(&format!("explain {store} v --offset 1G")).fails(2, &format!("{has}byte 1073741824"));
    tamis(&format!("explain {store} v 262143")).ok();
}

#[test]
fn a_directory_that_is_not_there_is_one_cause_with_one_code() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume create {store} v --size 1M")).ok();
    let (new, nope) = (folder.path("new"), folder.path("nope"));
    for line in [
        format!("export {store} v {nope}/x"),
        format!("init {new} --data {nope}/x --capacity 64M"),
        format!("init {new} --tables {nope}/x --capacity 64M"),
        format!("init {nope}/x --capacity 64M"),
        format!("grow {store} --data {nope}/x --capacity 128M"),
        format!("serve {store} --nbd unix:{nope}/x"),
        format!("serve {new} --create --capacity 64M --nbd unix:{nope}/x"),
        format!("replay --workload write-h --requests 1 --to {nope}/x"),
        format!("replay --workload write-h --requests 1 --dir {nope}"),
    ] {
        let refused = tamis(&line).fails(3, "director");
        assert!(refused.err.contains("first"), "{line}: {refused:?}");
        assert!(!refused.err.contains("os error"), "{line}: {refused:?}");
    }
    for line in [
        format!("replay {nope}"),
        format!("import {store} w {nope}"),
        format!("estimate {nope}"),
        format!("bench detect {nope}"),
    ] {
        let refused = tamis(&line).fails(3, &format!("there is no file {nope}"));
        assert!(!refused.err.contains("image"), "{line}: {refused:?}");
    }
}

#[test]
fn places_that_are_taken_are_told_by_what_takes_them() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (new, part) = (folder.path("new"), folder.path("part"));
    tamis(&format!("init {new} --data {part} --data {part}")).fails(2, "part is named twice");
    tamis(&format!("init {new} --data {part} --journal {part}")).fails(2, "part is named twice");
    assert!(!folder.join("new").exists() && !folder.join("part").exists());
    let twice = format!("--data {part} --data {part} --capacity 256M");
    tamis(&format!("grow {store} {twice}")).fails(2, "part is named twice");
    for file in ["data", "tables", "journal", "superblock"] {
        tamis(&format!("grow {store} --data {store}/{file}"))
            .fails(2, &format!("{store}/{file} is part of this store already"));
    }
    fs::write(&part, "x").unwrap();
    tamis(&format!("grow {store} --data {part} --capacity 256M")).fails(7, "part exists already");
    let address = format!("unix:{}", folder.path("sock"));
    tamis(&format!("serve {store} --nbd {address} --nbd {address}")).fails(2, "is given twice");
}

#[test]
fn a_place_without_room_is_told_as_one() {
    tamis("init /proc/x").fails(6, "/proc/x has 0 B free");
    tamis("serve /proc/x --create").fails(6, "/proc/x has 0 B free");
}

#[test]
fn addresses_that_cannot_be_listened_at_say_what_to_do() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let refused = |address: &str, code, words: &str| {
        let refused = tamis(&format!("serve {store} --nbd {address}")).fails(code, words);
        assert!(refused.err.contains(address), "{refused:?}");
    };
    refused("tcp:192.0.2.1:1", 1, "choose an address that this machine has");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    refused(&format!("tcp:127.0.0.1:{port}"), 4, "stop what listens there, or choose another port");
}
