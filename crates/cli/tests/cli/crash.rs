//! A server that is killed: the next opening recovers, stale sockets are in nobody's way.

use std::process::Command;

use crate::harness::{Folder, Served, installed, noise, tamis};

#[test]
fn a_killed_server_leaves_a_store_that_opens() {
    let folder = Folder::new();
    let store = folder.path("store");
    let served = Served::start(&store, "--create --capacity 64M --size 1G");
    tamis(&format!("volume create {store} second --size 2G")).ok();
    served.kill();
    assert!(folder.join("store/control.sock").exists());

    let served = Served::start(&store, "");
    assert_eq!(served.ready["recovered"], true, "{}", served.ready);
    assert!(served.ready["records_replayed"].as_u64().unwrap() > 0, "{}", served.ready);
    assert_eq!(served.ready["volumes"].as_array().unwrap().len(), 2);
    assert_eq!(served.interrupt(), Some(0));

    let served = Served::start(&store, "");
    assert_eq!(served.ready["recovered"], false, "{}", served.ready);
    served.kill();
    tamis(&format!("stats {store}")).ok();
    tamis(&format!("check {store}")).ok();
}

#[test]
fn what_was_flushed_before_the_kill_is_there_after_it() {
    if !installed("nbdcopy") {
        return;
    }
    let folder = Folder::new();
    let store = folder.path("store");
    let (image, out) = (folder.path("in.img"), folder.path("out.img"));
    std::fs::write(&image, noise(11, 16 << 20)).unwrap();
    let served = Served::start(&store, "--create --capacity 128M --size 16M");
    let uri = served.uri();
    let copied = Command::new("nbdcopy").args(["--flush", "--", &image, &uri]).status().unwrap();
    assert!(copied.success());
    served.kill();
    tamis(&format!("export {store} disk0 {out}")).ok();
    assert!(std::fs::read(&image).unwrap() == std::fs::read(&out).unwrap());
}
