//! A volume as a file: programs that write bytes and know of no sectors.

use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::harness::{Folder, Served, installed, tamis};

/// A volume mounted as the file `nbd` of a directory.
struct Mounted<'a> {
    nbdfuse: Child,
    place: &'a Path,
}

impl<'a> Mounted<'a> {
    /// None where this machine lets nobody mount.
    fn mount(place: &'a Path, uri: &str) -> Option<Self> {
        if !Path::new("/dev/fuse").exists() || !installed("fusermount3") {
            return None;
        }
        let mut command = Command::new("nbdfuse");
        command.args([place.to_str().unwrap(), uri]).stderr(Stdio::piped());
        let mut mounted = Self { nbdfuse: command.spawn().unwrap(), place };
        while !place.join("nbd").exists() {
            if mounted.nbdfuse.try_wait().unwrap().is_some() {
                let mut said = String::new();
                mounted.nbdfuse.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                eprintln!("nothing is mounted here, and this test does nothing: {said}");
                return None;
            }
            thread::sleep(Duration::from_millis(10));
        }
        Some(mounted)
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // It ends with the mount.
        let _ = Command::new("fusermount3").arg("-u").arg(self.place).status();
        let _ = self.nbdfuse.wait();
    }
}

#[test]
fn bytes_are_written_through_a_mounted_file() {
    if !installed("nbdfuse") {
        return;
    }
    let folder = Folder::new();
    let store = folder.store("64M");
    tamis(&format!("volume create {store} v --size 1M")).ok();
    let served = Served::start(&store, "");
    let place = folder.join("mount");
    fs::create_dir(&place).unwrap();
    let Some(mounted) = Mounted::mount(&place, &served.uri()) else { return };
    let line = format!("printf hi | dd of={}/nbd conv=notrunc status=none", place.display());
    assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
    let file = OpenOptions::new().read(true).write(true).open(place.join("nbd")).unwrap();
    file.write_all_at(b"across", 509).unwrap();
    file.write_all_at(b"last", (1 << 20) - 4).unwrap();
    file.sync_all().unwrap();
    drop(file);
    drop(mounted);
    assert_eq!(served.interrupt(), Some(0));
    let image = folder.path("v.raw");
    tamis(&format!("export {store} v {image}")).ok();
    let mut expected = vec![0; 1 << 20];
    expected[..2].copy_from_slice(b"hi");
    expected[509..515].copy_from_slice(b"across");
    expected[(1 << 20) - 4..].copy_from_slice(b"last");
    assert!(fs::read(image).unwrap() == expected);
}
