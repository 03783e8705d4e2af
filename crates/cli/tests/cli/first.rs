//! The first command: what it takes, and where it makes a store.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::{Folder, Served, installed, noise, tamis};

fn taken_bytes(store: &str) -> u64 {
    let files = fs::read_dir(store).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().blocks() * 512).sum()
}

#[test]
fn a_new_store_says_what_it_takes_and_takes_little() {
    let folder = Folder::new();
    let [thin, whole] = ["thin", "whole"].map(|name| folder.path(name));
    let said = tamis(&format!("init {thin} --capacity 1G")).ok();
    assert!(said.out.contains("now and, as data is written, up to 1"), "{}", said.out);
    let made = tamis(&format!("init {whole} --capacity 1G --preallocate --json")).ok().json();
    let [thin_bytes, whole_bytes] = [&thin, &whole].map(|store| taken_bytes(store));
    assert!(made["allocated_bytes"].as_u64().unwrap().abs_diff(whole_bytes) < 1 << 20, "{made}");
    assert!(whole_bytes > 1 << 30 && thin_bytes < 256 << 20, "{thin_bytes} {whole_bytes}");
    for (store, bytes) in [(&thin, thin_bytes), (&whole, whole_bytes)] {
        assert_eq!(fs::read_to_string(format!("{store}/.gitignore")).unwrap(), "*\n");
        tamis(&format!("check {store}")).ok();
        let stats = tamis(&format!("stats {store} --json")).ok().json();
        let allocated_bytes = stats["allocated_bytes"].as_u64().unwrap();
        // The command opens the store, which may take the next step.
        assert!((bytes - (1 << 20)..bytes + (140 << 20)).contains(&allocated_bytes), "{stats}");
        assert!(allocated_bytes.abs_diff(taken_bytes(store)) < 140 << 20, "{stats}");
        assert!(stats["free_bytes"].as_u64().unwrap() > 900 << 20, "{stats}");
    }
    let shown = tamis(&format!("stats {thin}")).ok().out;
    assert!(shown.contains("used") && shown.contains("allocated"), "{shown}");
}

#[test]
fn serving_for_the_first_time_says_what_is_taken() {
    let folder = Folder::new();
    let store = folder.path("store");
    let served = Served::start(&store, "--create --capacity 1G");
    assert!(taken_bytes(&store) < 300 << 20);
    let (code, said) = served.interrupt_and_hear();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("note: made a store at ") && said.contains("up to 1"), "{said}");
    assert!(said.contains("--preallocate"), "{said}");
}

#[test]
fn a_folder_with_other_files_is_asked_about() {
    let folder = Folder::new();
    let place = folder.path("place");
    fs::create_dir_all(format!("{place}/src")).unwrap();
    fs::write(format!("{place}/notes.txt"), "mine").unwrap();
    for line in ["init", "serve --create"] {
        let refused = tamis(&format!("{line} {place} --capacity 64M")).fails(2, "--yes");
        assert!(refused.err.contains("notes.txt, src"), "{refused:?}");
        assert_eq!(fs::read_dir(&place).unwrap().count(), 2, "{line}");
    }
    tamis(&format!("init {place} --capacity 64M --yes")).ok();
    tamis(&format!("check {place}")).ok();
    assert!(fs::metadata(format!("{place}/.gitignore")).is_err(), "it would hide what is theirs");

    // What a file system has from the beginning is nobody's.
    let root = folder.path("root");
    fs::create_dir_all(format!("{root}/lost+found")).unwrap();
    tamis(&format!("init {root} --capacity 64M")).ok();
}

/// A file system in memory of a size of its own.
struct Host(String);

impl Host {
    /// Where mounting is allowed; the test does nothing and says so where it is not.
    fn mount(at: &str, size: &str) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let option = format!("size={size}");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &option, "host", at]).status();
        if mounted.is_ok_and(|status| status.success()) {
            return Some(Self(at.to_owned()));
        }
        eprintln!("nothing can be mounted here: this test does nothing");
        None
    }

    /// Fills the file system until only `bytes` are free.
    fn fill_all_but(&self, bytes: u64) -> String {
        let space = rustix::fs::statvfs(self.0.as_str()).unwrap();
        let taken = (space.f_bavail * space.f_frsize).saturating_sub(bytes) >> 10 << 10;
        let path = format!("{}/ballast", self.0);
        let filled = Command::new("fallocate").args(["-l", &taken.to_string(), &path]).status();
        assert!(filled.unwrap().success());
        path
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["--lazy", &self.0]).status();
    }
}

/// The host becomes full while a sparse store is served: its clients hear "no space", and when the
/// host has room again they write on; what was acknowledged before is there.
#[test]
fn a_full_host_is_no_space_and_heals() {
    if !installed("nbdcopy") {
        return;
    }
    let folder = Folder::new();
    let Some(host) = Host::mount(&folder.path("host"), "600M") else { return };
    let store = format!("{}/store", host.0);
    let image = |name: &str, seed: u64, mib: usize| {
        let path = folder.path(name);
        fs::write(&path, noise(seed, mib << 20)).unwrap();
        path
    };
    let (first, second) = (image("first", 1, 24), image("second", 2, 200));
    let served = Served::start(&store, "--create --capacity 400M");
    tamis(&format!("import {store} first {first}")).ok();
    tamis(&format!("volume create {store} second --size 1G")).ok();
    let ballast = host.fill_all_but(8 << 20);

    let uri = format!("nbd+unix:///second?socket={store}/nbd.sock");
    let copy = || Command::new("nbdcopy").args(["--flush", &second, &uri]).output().unwrap();
    let refused = copy();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("No space left on device"), "{said}");
    let stats = tamis(&format!("stats {store} --json")).ok().json();
    assert!(stats["free_bytes"].as_u64().unwrap() < 32 << 20, "{stats}");
    let listed = tamis(&format!("export {store} first {}", folder.path("out"))).ok();
    assert!(fs::read(folder.path("out")).unwrap() == noise(1, 24 << 20), "{listed:?}");

    fs::remove_file(ballast).unwrap();
    let started = Instant::now();
    while !copy().status.success() {
        assert!(started.elapsed() < Duration::from_secs(60), "it does not heal");
    }
    let out = folder.path("out");
    tamis(&format!("export {store} second {out} --overwrite")).ok();
    assert!(fs::read(&out).unwrap()[..200 << 20] == noise(2, 200 << 20));
    let (code, said) = served.interrupt_and_hear();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("gives it no more room"), "{said}");
    assert!(said.contains("gives it room again"), "{said}");
    tamis(&format!("check {store}")).ok();
}
