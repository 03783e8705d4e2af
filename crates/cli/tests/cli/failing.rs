//! A device that fails while it is written: the operator is told, what is stored is still read.

use std::fs;
use std::process::Command;

use crate::harness::{Folder, Served, installed, noise, tamis};

/// Far enough for the store to open and to take the first image, and no further.
const FAILS_FROM_BYTES: u64 = 24 << 20;
const FIRST_BYTES: usize = 4 << 20;

#[test]
fn a_failing_device_stops_the_writing_and_nothing_else() {
    if !installed("nbdcopy") {
        return;
    }
    let folder = Folder::new();
    let store = folder.store("128M");
    let [first, large, out] = ["first.img", "large.img", "out.img"].map(|name| folder.path(name));
    fs::write(&first, noise(21, FIRST_BYTES)).unwrap();
    fs::write(&large, noise(22, 64 << 20)).unwrap();
    tamis(&format!("volume create {store} kept --size {FIRST_BYTES}")).ok();
    tamis(&format!("volume create {store} lost --size 64M")).ok();

    let served = Served::start_failing(&store, FAILS_FROM_BYTES);
    let uri = |name: &str| format!("nbd+unix:///{name}?socket={store}/nbd.sock");
    let copies = |from: &str, to: &str| {
        let copy = Command::new("nbdcopy").args(["--flush", "--", from, to]).output().unwrap();
        copy.status.success()
    };
    assert!(copies(&first, &uri("kept")));
    assert!(!copies(&large, &uri("lost")));
    let stats = tamis(&format!("stats {store} --json")).ok().json();
    assert!(stats["writing_stopped"].as_str().unwrap().contains("mend the device"), "{stats}");
    assert!(tamis(&format!("stats {store}")).ok().out.starts_with("writing has stopped"));
    assert!(!copies(&first, &uri("kept")), "a write after the failure");
    fs::write(&out, "").unwrap();
    assert!(copies(&uri("kept"), &out));
    assert!(fs::read(&first).unwrap() == fs::read(&out).unwrap());
    let (code, said) = served.interrupt_and_hear();
    assert_eq!(code, Some(1), "{said}");
    let told = said.lines().find(|line| line.starts_with("error: writing has stopped"));
    let told = told.unwrap_or_else(|| panic!("{said}"));
    assert!(told.contains("File too large") && told.contains("start again"), "{told}");

    tamis(&format!("check {store}")).ok();
    let served = Served::start(&store, "");
    assert!(copies(&large, &uri("lost")), "a mended device takes everything");
    assert_eq!(served.interrupt(), Some(0));
}
