//! A store that is being served, and the commands that reach it there.

use std::fs;
use std::io::{ErrorKind, PipeWriter, Read, Write, pipe};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use admin::{Control, ControlError};
use engine::RequestError;
use engine::control::{ResizeVolume, Rollback};
use rustix::io::ioctl_fionbio;

use crate::harness::{Folder, Served, command, noise, tamis};

#[test]
fn create_makes_all_that_is_needed() {
    let folder = Folder::new();
    let store = folder.path("store");
    let served = Served::start(&store, "--create --capacity 64M");
    let volume = &served.ready["volumes"][0];
    assert_eq!(volume["name"], "disk0");
    assert_eq!(volume["size_bytes"], 256 << 20);
    let socket = format!("{store}/nbd.sock");
    assert_eq!(volume["uri"], format!("nbd+unix:///disk0?socket={socket}"));
    assert!(fs::metadata(&socket).is_ok());
    assert_eq!(served.interrupt(), Some(0));
    assert!(fs::metadata(&socket).is_err());
    assert!(fs::metadata(format!("{store}/control.sock")).is_err());
}

#[test]
fn a_store_at_whose_path_no_socket_can_be_is_not_made() {
    let folder = Folder::new();
    let store = folder.path(&"deep".repeat(30));
    let line = format!("serve {store} --create --capacity 64M");
    tamis(&line).fails(1, "nbd.sock");
    assert!(fs::metadata(&store).is_err(), "it was made");
}

/// As `timeout` does it, which signals the process and its group.
#[test]
fn signals_that_come_at_once_are_one() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let served = Served::start(&store, "");
    served.terminate();
    let (code, said) = served.interrupt_and_hear();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("closed cleanly"), "{said}");
}

#[test]
fn commands_reach_a_served_store() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let served = Served::start(&store, "");
    tamis(&format!("volume create {store} vm1 --size 1G")).ok();
    tamis(&format!("volume create {store} vm1 --size 1G")).fails(7, "exists already");
    tamis(&format!("volume create {store} -- -x --size 1G")).fails(2, "");
    tamis(&format!("volume resize {store} vm1 --size 2G")).ok();
    tamis(&format!("volume rename {store} vm1 vm2")).ok();
    let shown = tamis(&format!("volume show {store} vm2 --json")).ok().json();
    assert_eq!(shown["size_bytes"], 2_u64 << 30);
    tamis(&format!("volume show {store} vm1")).fails(3, "there is no volume vm1");
    tamis(&format!("set {store} --compression none")).ok();
    let stats = tamis(&format!("stats {store} --json")).ok().json();
    assert_eq!(stats["served"], true);
    assert!(stats["rates"]["writes_per_second"].is_number(), "{stats}");
    assert!(tamis(&format!("stats {store}")).ok().out.contains("requests/s"));
    tamis(&format!("volume delete {store} vm2 --yes")).ok();
    let listed = tamis(&format!("volume list {store} --json")).ok().json();
    assert_eq!(listed["volumes"], serde_json::json!([]));
    assert_eq!(served.interrupt(), Some(0));
}

/// What goes with a name is heeded: that nobody may write, which snapshot of that name is meant,
/// that nothing is to be lost.
#[test]
fn a_server_does_no_more_than_it_was_asked_for() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let served = Served::start(&store, "");
    tamis(&format!("volume create {store} r --size 1M --read-only")).ok();
    tamis(&format!("volume create {store} v --size 1M")).ok();
    let read_only = |name: &str| {
        tamis(&format!("volume show {store} {name} --json")).ok().json()["read_only"].clone()
    };
    assert_eq!([read_only("r"), read_only("v")], [true, false]);

    let mut client = admin::Client::connect(Path::new(&store)).unwrap().unwrap();
    let take = || tamis(&format!("snapshot create {store} v@a")).ok();
    let number = |client: &mut admin::Client| {
        let all = client.volumes().unwrap();
        all.into_iter().find(|one| one.name == "v@a").unwrap().id
    };
    take();
    let earlier = number(&mut client);
    tamis(&format!("snapshot delete {store} v@a --yes")).ok();
    take();
    let roll_back = |id| Rollback { snapshot: "v@a".to_owned(), volume: None, id: Some(id) };
    let refused = client.ask(roll_back(earlier)).unwrap_err();
    let is_other = matches!(refused, ControlError::Request(RequestError::OtherVolume { .. }));
    assert!(is_other, "{refused}");
    let present = number(&mut client);
    client.ask(roll_back(present)).unwrap();

    let resize = |may_shrink| {
        let (name, size_bytes) = ("v".to_owned(), 512 << 10);
        ResizeVolume { name, size_bytes, may_shrink, even_if_open: true }
    };
    let refused = client.ask(resize(false)).unwrap_err();
    let is_kept = matches!(refused, ControlError::Request(RequestError::WouldShrink { .. }));
    assert!(is_kept, "{refused}");
    let resized = client.ask(resize(true)).unwrap();
    assert_eq!(resized.size_bytes, 512 << 10);
    assert_eq!(served.interrupt(), Some(0));
}

#[test]
fn a_server_that_other_machines_can_reach_says_so() {
    let folder = Folder::new();
    let store = folder.store("64M");
    for (address, can_be_reached) in [("0.0.0.0", true), ("127.0.0.1", false)] {
        let served = Served::start(&store, &format!("--nbd tcp:{address}:0"));
        let (code, said) = served.interrupt_and_hear();
        assert_eq!(code, Some(0), "{said}");
        let warns = said.contains("can be reached from other machines");
        assert_eq!(warns, can_be_reached, "{said}");
    }
}

#[test]
fn what_needs_the_store_for_itself_says_who_has_it() {
    let folder = Folder::new();
    let store = folder.path("store");
    let served = Served::start(&store, "--create --capacity 64M");
    let pid = served.ready["pid"].to_string();
    tamis(&format!("check {store}")).fails(4, &pid);
    tamis(&format!("serve {store}")).fails(4, &pid);
}

/// As with a terminal at Ctrl-S: what is to be said waits, and nothing else does.
#[test]
fn a_server_whose_words_nobody_reads_goes_on_and_ends() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("image");
    fs::write(&image, noise(1, 12 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    let collect = format!("collect {store} --recompress zstd:3 --rate unlimited");

    let (_unread, says) = pipe().unwrap();
    let served = Served::start_saying_to(&store, "--verbose", says.try_clone().unwrap());
    fill(&says);
    answers(&collect);
    answers(&format!("stats {store}"));
    assert_eq!(served.interrupt(), Some(0));

    let (mut read, says) = pipe().unwrap();
    let served = Served::start_saying_to(&store, "--verbose", says);
    answers(&collect);
    assert_eq!(served.interrupt(), Some(0));
    let mut said = String::new();
    read.read_to_string(&mut said).unwrap();
    for words in ["opening the store\n", "collecting container ", "closing: ", "closed cleanly\n"] {
        assert!(said.contains(words), "{words} in {said}");
    }
}

/// Until nothing more goes in: whoever writes to it next waits.
fn fill(mut pipe: &PipeWriter) {
    ioctl_fionbio(pipe, true).unwrap();
    for piece in [&[b'.'; 4096][..], b"."] {
        while pipe.write(piece).is_ok() {}
    }
    assert_eq!(pipe.write(b".").unwrap_err().kind(), ErrorKind::WouldBlock);
    ioctl_fionbio(pipe, false).unwrap();
}

/// That a command comes to its end.
fn answers(line: &str) {
    let mut command = command(line.split_whitespace());
    let mut child = command.stdout(Stdio::null()).stdin(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(20) {
            child.kill().unwrap();
            panic!("{line}: no answer");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0), "{line}");
}
