//! What becomes of results: standard output that is full, names that are no text.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use rustix::process::geteuid;

use crate::harness::{Folder, Served, command, installed, run, tamis};

#[test]
fn a_standard_output_that_is_full_is_no_space() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume create {store} v --size 1M")).ok();
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    for words in [
        &["stats", &store][..],
        &["volume", "list", &store, "--json"],
        &["export", &store, "v", "-"],
    ] {
        let mut command = command(words.iter().copied());
        command.stdout(full()).stderr(File::create(folder.join("said")).unwrap());
        assert_eq!(command.status().unwrap().code(), Some(6), "{words:?}");
    }
}

#[test]
fn a_path_that_is_no_text_is_told_as_well_as_can_be() {
    let folder = Folder::new();
    let store = folder.join("").join(OsStr::from_bytes(b"st\xffre"));
    let mut init = command(["init", "--capacity", "64M", "--json"]);
    init.arg(&store);
    let made = run(init).ok().json();
    assert!(made["store"].as_str().unwrap().ends_with("st\u{fffd}re"), "{made}");
    let mut grow = command(["grow", "--capacity", "128M", "--json"]);
    grow.arg(&store);
    let grown = run(grow).ok().json();
    assert!(grown["store"].as_str().unwrap().ends_with("st\u{fffd}re"), "{grown}");
}

/// Characters that command a terminal, turn what follows, or are not seen.
const HIDDEN: [char; 7] =
    ['\u{1b}', '\u{9b}', '\u{202e}', '\u{200b}', '\u{feff}', '\u{2028}', '\u{a0}'];

#[test]
fn a_name_that_is_not_what_it_looks_like_is_refused_and_told_escaped() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume create {store} v --size 1M")).ok();
    let hidden = HIDDEN.map(|hidden| format!("a{hidden}b"));
    for name in hidden.iter().map(String::as_str).chain(["  ", " a", "a "]) {
        let create = command(["volume", "create", &store, name, "--size", "1M"]);
        let snapshot = command(["snapshot", "create", &store, &format!("v@{name}")]);
        let in_domain =
            command(["volume", "create", &store, "w", "--size", "1M", "--domain", name]);
        let show = command(["volume", "show", &store, name]);
        for (asks, code) in [(create, 2), (snapshot, 2), (in_domain, 2), (show, 3)] {
            let refused = run(asks).fails(code, "tamis: ");
            assert!(!refused.err.contains(HIDDEN), "{refused:?}");
        }
        let usage = run(command(["volume", name])).fails(2, "error: ");
        assert!(!usage.err.contains(HIDDEN), "{usage:?}");
    }
    tamis(&format!("volume show {store} v")).ok();
}

#[test]
fn what_a_server_says_commands_no_terminal() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let listener = UnixListener::bind(folder.join("store/control.sock")).unwrap();
    let greets = std::thread::spawn(move || {
        for _ in 0..2 {
            let greeting =
                r#"{"protocol":1,"tamis":"\u001b]0;x\u0007\u202e\ntamis: done","busy":false}"#;
            writeln!(listener.accept().unwrap().0, "{greeting}").unwrap();
        }
    });
    let told = tamis(&format!("stats {store}")).fails(1, r"\u{1b}]0;x\u{7}\u{202e}\ntamis: done");
    assert_eq!(told.err.lines().count(), 1, "{told:?}");
    let json = tamis(&format!("stats {store} --json")).fails(1, r"\u202e");
    let document: serde_json::Value = serde_json::from_str(json.err.trim()).unwrap();
    let message = document["error"]["message"].as_str().unwrap();
    assert!(message.contains("\u{202e}"), "it means what it meant: {message}");
    greets.join().unwrap();
}

/// Only root can be two users.
#[test]
fn a_server_of_another_user_is_not_spoken_to() {
    if !geteuid().is_root() || !installed("setpriv") {
        return;
    }
    let as_other = |line: &str| {
        let mut other = Command::new("setpriv");
        let caps = "+dac_override,+fowner";
        other.args(["--reuid=65534", "--inh-caps", caps, "--ambient-caps", caps, "--clear-groups"]);
        other.arg(env!("CARGO_BIN_EXE_tamis")).args(line.split_whitespace());
        other
    };
    let folder = Folder::new();
    let store = folder.store("64M");
    let serve = as_other(&format!("serve {store} --json --memory 64M"));
    let served = Served::spawn(serve, Stdio::piped());
    tamis(&format!("stats {store}")).fails(1, "sudo -u '#65534' tamis");
    run(as_other(&format!("stats {store}"))).ok();
    assert_eq!(served.interrupt(), Some(0));
}
