//! What destroys: refused while somebody has the volume open, and not done without a word of
//! consent.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use nbd::wire::option::{FIXED_NEWSTYLE, NO_ZEROES, OPT_EXPORT_NAME, OptionHeader};

use crate::harness::{Folder, Served, listed as all_in, noise, run, tamis};

/// A client that has a volume open and asks nothing of it.
struct Attached(UnixStream);

impl Attached {
    fn to(store: &str, volume: &str) -> Self {
        let mut stream = UnixStream::connect(format!("{store}/nbd.sock")).unwrap();
        stream.read_exact(&mut [0; 18]).unwrap();
        let mut choice = u32::from(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes().to_vec();
        let length_bytes = u32::try_from(volume.len()).unwrap();
        OptionHeader { option: OPT_EXPORT_NAME, length_bytes }.encode(&mut choice);
        choice.extend_from_slice(volume.as_bytes());
        stream.write_all(&choice).unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        Self(stream)
    }

    /// Waits until the server has ended the connection.
    fn wait_for_end(mut self) {
        assert_eq!(self.0.read_to_end(&mut Vec::new()).unwrap(), 0);
    }
}

/// A served store with volume `v`, snapshot `v@a` and a volume `w`.
fn served(folder: &Folder) -> (String, Served) {
    let store = folder.store("64M");
    let image = folder.path("image");
    fs::write(&image, noise(1, 1 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    tamis(&format!("snapshot create {store} v@a")).ok();
    tamis(&format!("volume create {store} w --size 1M")).ok();
    let served = Served::start(&store, "");
    (store, served)
}

/// What destroys a volume or snapshot, without the words that consent.
const DESTROYERS: [(&str, &str); 5] = [
    ("volume resize STORE v --size 512K --shrink", "v"),
    ("snapshot rollback STORE v@a", "v"),
    ("snapshot delete STORE v@a", "v@a"),
    ("volume delete STORE v --with-snapshots", "v@a"),
    ("volume delete STORE v --with-snapshots", "v"),
];

fn listed(store: &str) -> serde_json::Value {
    tamis(&format!("volume list {store} --json")).ok().json()
}

#[test]
fn what_destroys_is_refused_while_clients_are_attached_and_says_who() {
    let folder = Folder::new();
    let (store, server) = served(&folder);
    let before = listed(&store);
    for (line, open) in DESTROYERS {
        let line = line.replace("STORE", &store);
        let client = Attached::to(&store, open);
        for consent in ["", " --yes"] {
            let refused = tamis(&format!("{line}{consent}")).fails(4, "is in use by unix socket");
            let this = format!("pid {}", std::process::id());
            for part in [&this, "(since 2", "UTC)", "--force"] {
                assert!(refused.err.contains(part), "{part} in {refused:?}");
            }
        }
        drop(client);
    }
    assert_eq!(listed(&store), before);
    assert_eq!(
        tamis(&format!("snapshot list {store} --json")).ok().json()["snapshots"][0]["name"],
        "v@a"
    );
    assert_eq!(server.interrupt(), Some(0));
}

#[test]
fn force_disconnects_those_of_the_volume_and_nobody_else() {
    for (line, open) in DESTROYERS {
        let folder = Folder::new();
        let (store, server) = served(&folder);
        let line = line.replace("STORE", &store);
        let clients = [open, open].map(|volume| Attached::to(&store, volume));
        let mut other = Attached::to(&store, "w");
        tamis(&format!("{line} --force --yes")).ok();
        clients.into_iter().for_each(Attached::wait_for_end);
        // It still answers: a disconnection is heard, and nothing else ends it.
        other.0.set_nonblocking(true).unwrap();
        let waits = other.0.read(&mut [0]).unwrap_err();
        assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock, "{line}");
        assert_eq!(server.interrupt(), Some(0));
    }
}

/// Clients keep the volume that an image replaces until the image is complete.
#[test]
fn an_import_with_force_disconnects_the_clients_of_what_it_replaces() {
    let folder = Folder::new();
    let (store, server) = served(&folder);
    let image = folder.path("other.img");
    fs::write(&image, noise(9, 1 << 20)).unwrap();
    let line = format!("import {store} v {image} --overwrite --yes");
    let client = Attached::to(&store, "v");
    tamis(&line).fails(4, "--force");
    tamis(&format!("{line} --force")).ok();
    client.wait_for_end();
    let out = folder.path("out.img");
    tamis(&format!("export {store} v {out}")).ok();
    assert!(fs::read(&out).unwrap()[..1 << 20] == noise(9, 1 << 20));
    assert_eq!(server.interrupt(), Some(0));
}

#[test]
fn without_a_terminal_nothing_is_destroyed_unless_it_is_said() {
    let folder = Folder::new();
    let (store, server) = served(&folder);
    let before = listed(&store);
    for (line, _) in DESTROYERS {
        let refused = tamis(&line.replace("STORE", &store)).fails(2, "--yes");
        assert!(refused.err.contains("nothing was changed"), "{refused:?}");
    }
    assert_eq!(listed(&store), before);
    assert_eq!(server.interrupt(), Some(0));
    let (image, out) = (folder.path("image"), folder.path("out"));
    std::fs::write(folder.join("other"), noise(2, 1 << 20)).unwrap();
    let other = folder.path("other");
    tamis(&format!("import {store} v {other} --overwrite")).fails(2, "--yes");
    tamis(&format!("export {store} v {out}")).ok();
    assert!(std::fs::read(out).unwrap() == std::fs::read(image).unwrap());
    // What holds nothing is filled without a word.
    tamis(&format!("import {store} w {other} --overwrite")).ok();
}

#[test]
fn at_a_terminal_it_asks_and_takes_no_for_no() {
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume create {store} v --size 1M")).ok();
    tamis(&format!("snapshot create {store} v@a")).ok();
    let answered = |answer: &str| {
        let program = env!("CARGO_BIN_EXE_tamis");
        let line = format!("{program} volume delete {store} v --with-snapshots");
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("echo {answer} | script -qec '{line}' /dev/null")]);
        run(shell)
    };
    let refused = answered("n");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.out.contains("Delete volume v, its snapshot and the"), "{refused:?}");
    assert_eq!(all_in(&listed(&store)).len(), 1);
    answered("y").ok();
    assert_eq!(all_in(&listed(&store)).len(), 0);
}

#[test]
fn a_volume_that_is_renamed_keeps_its_clients_and_says_so() {
    let folder = Folder::new();
    let (store, server) = served(&folder);
    let client = Attached::to(&store, "v");
    let renamed = tamis(&format!("volume rename {store} v x")).ok();
    assert!(renamed.err.contains("connects again asks for v"), "{renamed:?}");
    tamis(&format!("volume delete {store} x --with-snapshots --yes")).fails(4, "is in use");
    tamis(&format!("volume delete {store} x --with-snapshots --yes --force")).ok();
    client.wait_for_end();
    assert_eq!(server.interrupt(), Some(0));
}
