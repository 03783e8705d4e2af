//! `tamis bucket replicate`, `promote`, `demote`: two servers, one of which dies.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::harness::{Folder, Served, noise, tamis};

/// Looks until `show` says that the copies are in step.
fn until_in_step(store: &str) -> Value {
    loop {
        let shown = tamis(&format!("bucket show {store} photos --json")).ok().json();
        if shown["replication"]["link"] == "in step" {
            return shown;
        }
        sleep(Duration::from_millis(50));
    }
}

fn get(folder: &Folder, store: &str, key: &str) -> Vec<u8> {
    let to = folder.path("got");
    let _ = fs::remove_file(&to);
    tamis(&format!("get {store}/photos/{key} {to}")).ok();
    fs::read(to).unwrap()
}

#[test]
fn what_was_acknowledged_survives_its_server() {
    let folder = Folder::new();
    let (one, two) = (folder.path("one"), folder.path("two"));
    for store in [&one, &two] {
        tamis(&format!("init {store} --capacity 256M")).ok();
    }
    let (at_one, at_two) = (folder.path("one.sock"), folder.path("two.sock"));
    tamis(&format!("bucket create {one} photos")).ok();
    let early = noise(1, 200_000);
    fs::write(folder.join("early"), &early).unwrap();
    tamis(&format!("put {} {one}/photos/early", folder.path("early"))).ok();
    tamis(&format!("bucket promote {one} photos")).fails(2, "it is no replica");
    let elsewhere = "bucket replicate S photos --to tcp:10.1.1.1:7000";
    tamis(elsewhere).fails(2, "not of this machine");

    let replica = Served::start(&two, &format!("--replica-listen unix:{at_two}"));
    tamis(&format!("bucket replicate {one} photos --to unix:{at_two}")).ok();
    // Without a server nothing is changed that the replica would not have.
    let late = format!("put {} {one}/photos/late", folder.path("early"));
    tamis(&late).fails(2, "read-only");
    let primary = Served::start(&one, "");
    until_in_step(&one);
    tamis(&late).ok();
    let shown = tamis(&format!("bucket show {two} photos --json")).ok().json();
    assert_eq!(shown["replication"]["role"], "replica");
    tamis(&format!("put {} {two}/photos/x", folder.path("early"))).fails(4, "is a replica");

    // The replica dies and comes back; then the primary dies, and the replica takes over.
    replica.kill();
    let replica = Served::start(&two, &format!("--replica-listen unix:{at_two}"));
    until_in_step(&one);
    tamis(&format!("put {} {one}/photos/last", folder.path("early"))).ok();
    primary.kill();
    let promoted = tamis(&format!("bucket promote {two} photos --json")).ok().json();
    assert_eq!(promoted["replication"]["epoch"], 2);
    for key in ["early", "late", "last"] {
        assert_eq!(get(&folder, &two, key), early, "{key}");
    }
    tamis(&format!("put {} {two}/photos/after", folder.path("early"))).ok();

    // The old primary is fenced when it meets the new one, and then is its replica.
    let old = Served::start(&one, &format!("--replica-listen unix:{at_one}"));
    let refused = tamis(&format!("put {} {one}/photos/lost", folder.path("early")));
    refused.fails(1, "has taken over");
    let shown = tamis(&format!("bucket show {one} photos --json")).ok().json();
    assert_eq!(shown["replication"]["role"], "fenced");
    tamis(&format!("bucket demote {one} photos")).fails(2, "--yes");
    tamis(&format!("bucket demote {one} photos --yes")).ok();
    tamis(&format!("bucket replicate {two} photos --to unix:{at_one}")).ok();
    until_in_step(&two);
    tamis(&format!("bucket promote {one} photos")).ok();
    assert_eq!(get(&folder, &one, "after"), early);
    drop((old, replica));
    for store in [&one, &two] {
        tamis(&format!("check {store}")).ok();
    }
}
