//! A server that is killed: the next opening recovers, stale sockets are in nobody's way. A command
//! that waits for a server which was stopped ends on SIGTERM.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Folder, Served, command, installed, noise, open_files, tamis};

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

#[test]
fn a_command_that_waits_for_an_answer_that_does_not_come_ends_when_told_to() {
    let folder = Folder::new();
    let (store, image) = (folder.path("store"), folder.path("in.img"));
    fs::write(&image, noise(11, 1 << 20)).unwrap();
    let served = Served::start(&store, "--create --capacity 64M --size 16M");
    served.send(Signal::STOP);
    let mut import = command(["import", &store, "v", &image]);
    let import = import.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Before that a signal ends the command by itself, and nothing is cut off.
    while !has_a_socket_behind(&import, &image) {
        thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&import), Signal::TERM).unwrap();
    let ended = import.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(143), "{said}");
    assert!(said.contains("stopped by a signal before it was done, and cut off"), "{said}");
    served.send(Signal::CONT);
    assert_eq!(served.interrupt(), Some(0));
}

/// Whether a process has a socket that it made after it opened `path`: before that it listens for
/// signals, and after that it connects. The kernel numbers descriptors from the lowest one.
fn has_a_socket_behind(process: &Child, path: &str) -> bool {
    let opened = open_files(process);
    let image = opened.iter().find(|(_, target)| target == Path::new(path));
    let is_socket = |target: &Path| target.to_string_lossy().starts_with("socket:");
    image.is_some_and(|(image, _)| opened.iter().any(|(at, of)| at > image && is_socket(of)))
}
