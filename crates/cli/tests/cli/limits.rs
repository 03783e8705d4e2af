//! Limits of the system: the program refuses what is beyond them, or takes less, and says so.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use nbd::wire::option::{FIXED_NEWSTYLE, NO_ZEROES, OPT_EXPORT_NAME, OptionHeader};

use crate::harness::{Folder, Served, run, tamis};

/// A client that has chosen the volume `v`; none if it was refused.
fn attach(store: &str) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(format!("{store}/nbd.sock")).unwrap();
    stream.read_exact(&mut [0; 18]).ok()?;
    let mut choice = u32::from(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes().to_vec();
    OptionHeader { option: OPT_EXPORT_NAME, length_bytes: 1 }.encode(&mut choice);
    choice.push(b'v');
    stream.write_all(&choice).ok()?;
    stream.read_exact(&mut [0; 10]).ok()?;
    Some(stream)
}

/// As many clients as get a place, with no more than `tries`.
fn attach_all(store: &str, tries: usize) -> Vec<UnixStream> {
    (0..tries).map_while(|_| attach(store)).collect()
}

fn store_with_volume(folder: &Folder) -> String {
    let store = folder.store("64M");
    tamis(&format!("volume create {store} v --size 1M")).ok();
    store
}

#[test]
fn a_connection_too_many_is_refused_and_the_operator_told() {
    let folder = Folder::new();
    let store = store_with_volume(&folder);
    let served = Served::start(&store, "--max-connections 3");
    let clients = attach_all(&store, 10);
    assert_eq!(clients.len(), 3);
    assert!(attach(&store).is_none());
    let (code, said) = served.interrupt_and_hear();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("there are 3 already"), "{said}");
    assert_eq!(said.matches("was refused").count(), 1, "{said}");
    assert!(said.contains("--max-connections"), "{said}");
}

#[test]
fn few_file_descriptors_are_fewer_connections_and_not_a_server_that_hangs() {
    let folder = Folder::new();
    let store = store_with_volume(&folder);
    let served = Served::start_by("ulimit -n 64; exec", &store);
    let clients = attach_all(&store, 60);
    assert!((1..40).contains(&clients.len()), "{}", clients.len());
    // There is room for others: the control socket answers.
    tamis(&format!("volume list {store}")).ok();
    let (code, said) = served.interrupt_and_hear();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("may have 64 file descriptors"), "{said}");
    assert!(said.contains("a connection was refused"), "{said}");

    let mut shell = Command::new("sh");
    let line = "ulimit -n 64; exec \"$0\" serve \"$1\" --max-connections 1000";
    shell.args(["-c", line, env!("CARGO_BIN_EXE_tamis"), &store]);
    run(shell).fails(2, "LimitNOFILE=");
}

#[test]
fn a_soft_limit_of_file_descriptors_is_raised() {
    let folder = Folder::new();
    let store = store_with_volume(&folder);
    let served = Served::start_by("ulimit -Sn 64; exec", &store);
    let clients = attach_all(&store, 60);
    assert_eq!(clients.len(), 60);
    let (code, said) = served.interrupt_and_hear();
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("file descriptors"), "{said}");
}

#[test]
fn values_that_cannot_be_honoured_are_refused() {
    let folder = Folder::new();
    let store = store_with_volume(&folder);
    for command in ["serve STORE", "check STORE", "import STORE w in", "estimate in"] {
        let line = format!("{} --memory 1000T", command.replace("STORE", &store));
        tamis(&line).fails(2, "of memory that");
    }
    tamis(&format!("volume create {store} w --size 1M --quota 100")).fails(2, "whole chunks");
    tamis(&format!("volume show {store} w")).fails(3, "no volume w");
    tamis(&format!("volume set {store} v --quota 100")).fails(2, "4096 bytes");
    tamis(&format!("scrub {store} --rate 1")).fails(2, "at least 64K");
    tamis(&format!("collect {store} --rate 1")).fails(2, "at least 64K");
    tamis(&format!("serve {store} --threads 0")).fails(2, "a number from 1 to 1024");
    tamis(&format!("serve {store} --poll-us 2000")).fails(2, "a number from 0 to 1000");
    tamis(&format!("serve {store} --max-connections 0")).fails(2, "a number from 1 to 65535");
}
