//! An image that is imported into a volume that is there: the volume holds all of it, or what it
//! held before, whatever happens on the way.

use std::fs;
use std::io::Write;
use std::process::{Child, ChildStdin, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{
    Folder, Outcome, command, late_damage_qcow2, listed as all_in, noise, run_with_input, tamis,
};

const MIB: usize = 1 << 20;

/// A store with a volume `v` that holds data, and a snapshot `v@s` that holds other data.
struct Stand {
    folder: Folder,
    store: String,
    held: [Vec<u8>; 2],
}

impl Stand {
    fn new(capacity: &str) -> Self {
        let folder = Folder::new();
        let store = folder.store(capacity);
        let held = [noise(1, 8 * MIB), noise(2, 8 * MIB)];
        let image = folder.path("image");
        for (number, bytes) in held.iter().enumerate() {
            fs::write(&image, bytes).unwrap();
            tamis(&format!("import {store} v {image} --overwrite --yes")).ok();
            if number == 0 {
                tamis(&format!("snapshot create {store} v@s")).ok();
            }
        }
        Self { folder, store, held }
    }

    fn import_piped(&self, bytes: &[u8]) -> Outcome {
        let path = self.folder.path("piped");
        fs::write(&path, bytes).unwrap();
        let mut import = command(["import", &self.store, "v", "-", "--overwrite", "--yes"]);
        import.stdin(Stdio::from(fs::File::open(&path).unwrap()));
        run_with_input(import)
    }

    /// An import by standard input that has taken `bytes`, or nearly all, and waits for more.
    fn begin_import(&self, bytes: &[u8]) -> (Child, ChildStdin) {
        let mut import = command(["import", &self.store, "v", "-", "--overwrite", "--yes"]);
        let mut child = import.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(bytes).unwrap();
        (child, stdin)
    }

    fn content(&self, name: &str) -> Vec<u8> {
        let out = self.folder.path("out");
        tamis(&format!("export {} {name} {out} --overwrite", self.store)).ok();
        fs::read(&out).unwrap()
    }

    fn volumes(&self) -> Vec<String> {
        let list = tamis(&format!("volume list {} --json", self.store)).ok().json();
        let name = |one: &serde_json::Value| one["name"].as_str().unwrap().to_owned();
        all_in(&list).iter().map(name).collect()
    }

    /// That nothing has changed.
    fn is_as_it_was(&self, what: &str) {
        assert!(self.content("v") == self.held[1], "{what}");
        assert!(self.content("v@s") == self.held[0], "{what}");
        assert_eq!(self.volumes(), ["v"], "{what}");
        tamis(&format!("check {}", self.store)).ok();
    }
}

#[test]
fn an_image_that_fails_late_leaves_the_volume_as_it_was() {
    let stand = Stand::new("128M");
    let store = &stand.store;
    let image = stand.folder.path("late.qcow2");
    fs::write(&image, late_damage_qcow2(&noise(3, 6 * MIB))).unwrap();
    tamis(&format!("import {store} v {image} --overwrite --yes")).fails(5, "damaged qcow2");
    stand.is_as_it_was("damage");

    let gzipped = stand.folder.path("cut.gz");
    fs::write(&image, noise(4, 6 * MIB)).unwrap();
    let gzip = format!("gzip -c {image} | head -c {} >{gzipped}", 5 * MIB);
    assert!(std::process::Command::new("sh").args(["-c", &gzip]).status().unwrap().success());
    tamis(&format!("import {store} v {gzipped} --overwrite --yes")).fails(5, "ends too soon");
    stand.is_as_it_was("a cut compressed image");

    stand.import_piped(&noise(5, 9 * MIB)).fails(2, "volume v only 8 MiB");
    stand.is_as_it_was("too long");

    tamis(&format!("volume set {store} v --quota 9M")).ok();
    tamis(&format!("volume resize {store} v --size 12M")).ok();
    stand.import_piped(&noise(6, 11 * MIB)).fails(6, "volume v is at its quota");
    tamis(&format!("volume resize {store} v --size 8M --shrink --yes")).ok();
    stand.is_as_it_was("the quota");
}

#[test]
fn a_full_store_leaves_the_volume_as_it_was() {
    let stand = Stand::new("64M");
    tamis(&format!("volume resize {} v --size 64M", stand.store)).ok();
    let image = stand.folder.path("large");
    fs::write(&image, noise(3, 60 * MIB)).unwrap();
    tamis(&format!("import {} v {image} --overwrite --yes", stand.store)).fails(6, "");
    assert!(stand.content("v")[..8 * MIB] == stand.held[1]);
    assert!(stand.content("v@s") == stand.held[0]);
    assert_eq!(stand.volumes(), ["v"]);
}

#[test]
fn an_import_that_is_killed_or_stopped_leaves_the_volume_as_it_was() {
    let stand = Stand::new("128M");
    let image = noise(3, 5 * MIB);
    let (child, stdin) = stand.begin_import(&image);
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    stand.is_as_it_was("a signal");

    let (mut child, stdin) = stand.begin_import(&image);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    assert!(stand.content("v") == stand.held[1]);
    assert_eq!(stand.volumes(), ["v", "v~importing"]);
    // The next one removes what is left, though it fails.
    stand.import_piped(&noise(5, 9 * MIB)).fails(2, "volume v only 8 MiB");
    stand.is_as_it_was("a kill");
}

/// It keeps all that is its own but its content.
#[test]
fn an_image_takes_the_place_of_what_a_volume_held() {
    let stand = Stand::new("128M");
    let store = &stand.store;
    tamis(&format!("volume set {store} v --quota 7M")).ok();
    let show = || tamis(&format!("volume show {store} v --json")).ok().json();
    let before = show();
    let image = noise(3, 6 * MIB + 100);
    stand.import_piped(&image).ok();
    let after = show();
    for key in ["id", "size_bytes", "quota_bytes", "dedup"] {
        assert_eq!(before[key], after[key], "{key}: {before} {after}");
    }
    let held = stand.content("v");
    assert!(held[..image.len()] == image && held[image.len()..].iter().all(|byte| *byte == 0));
    assert_eq!(held.len(), 8 * MIB);
    assert!(stand.content("v@s") == stand.held[0]);
    assert_eq!(stand.volumes(), ["v"]);
    let snapshots = tamis(&format!("snapshot list {store} --json")).ok().json();
    assert_eq!(all_in(&snapshots).len(), 1, "{snapshots}");
    tamis(&format!("check {store}")).ok();
    tamis(&format!("snapshot rollback {store} v@s --yes")).ok();
    assert!(stand.content("v") == stand.held[0]);
}
