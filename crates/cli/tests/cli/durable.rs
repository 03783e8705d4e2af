//! What a command has changed when it ends is on the medium, names included: seen in its system
//! calls, since a machine that keeps its power shows no difference.
//!
//! Zones that are open are not looked at here: they are written through io_uring, and what becomes
//! of that is `disk`'s to show.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Folder, LoopDevice, Outcome, installed, noise, run, tamis};

/// Those that change files or names, make them durable, or may write to zones.
const TRACED: &str = "trace=/^(open|mkdir|rename|link|symlink|write|pwrite|fallocate|ftruncate|\
                      fsync|fdatasync|io_uring_enter)";

/// Runs a program under strace; `None` where that is not to be had.
fn trace(options: &[&str], program: &str, line: &str) -> Option<Outcome> {
    let trace = |program: &str, line: &str| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq"]).args(options).arg(program).args(line.split_whitespace());
        run(strace)
    };
    if !installed("strace") {
        return None;
    }
    if trace("true", "").code != Some(0) {
        eprintln!("strace is not allowed here: this test does nothing");
        return None;
    }
    Some(trace(program, line))
}

/// The system calls of a command, one a line, in the order in which they began.
struct Calls {
    folder: PathBuf,
    lines: Vec<String>,
}

impl Calls {
    /// Those of a command line that ends with this exit code; `None` where none can be seen.
    fn of(folder: &Folder, line: &str, code: i32) -> Option<Self> {
        let log = folder.path("calls");
        // With the path of each file that a call names by its number.
        let options = ["-y", "-e", TRACED, "-o", &log];
        let ended = trace(&options, env!("CARGO_BIN_EXE_tamis"), line)?;
        assert_eq!(ended.code, Some(code), "{ended:?}");
        let text = fs::read_to_string(&log).unwrap();
        // What failed has changed nothing.
        let lines = text.lines().filter(|line| !line.contains(") = -1 ")).map(str::to_owned);
        Some(Self { folder: folder.join(""), lines: lines.collect() })
    }

    /// Files and directories that were changed and not synced since.
    fn unsynced(&self) -> BTreeSet<PathBuf> {
        let mut unsynced = BTreeSet::new();
        for line in &self.lines {
            match call(line) {
                "fsync" | "fdatasync" => {
                    unsynced.remove(Path::new(first_file(line)));
                }
                name => unsynced.extend(changed(name, line).filter(|path| self.is_ours(path))),
            }
        }
        unsynced
    }

    fn is_ours(&self, path: &Path) -> bool {
        path.starts_with(&self.folder) || path.to_string_lossy().starts_with("/dev/loop")
    }

    /// The same calls as far as the last one whose line has all of these words.
    fn up_to(&self, words: &[&str]) -> Self {
        let is_it = |line: &String| words.iter().all(|word| line.contains(word));
        let last = self.lines.iter().rposition(is_it);
        let last = last.unwrap_or_else(|| panic!("{words:?} in {:#?}", self.lines));
        Self { folder: self.folder.clone(), lines: self.lines[..=last].to_vec() }
    }

    /// The same as far as the first call of this name behind `from`.
    fn up_to_next(&self, from: &Self, name: &str) -> Self {
        let behind = self.lines.iter().skip(from.lines.len());
        let calls = behind.take_while(|line| call(line) != name).count();
        Self { folder: self.folder.clone(), lines: self.lines[..from.lines.len() + calls].to_vec() }
    }
}

/// Name of the call: what follows the number of the process.
fn call(line: &str) -> &str {
    let call = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    call.split('(').next().unwrap_or_default()
}

/// What a call changes: a file, or the directory that a name is in.
fn changed(name: &str, line: &str) -> impl Iterator<Item = PathBuf> {
    let paths: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
    let named = match name {
        "open" | "openat" if line.contains("O_CREAT") => &paths[..],
        "mkdir" | "mkdirat" | "rename" | "renameat" | "renameat2" => &paths[..],
        "link" | "linkat" | "symlink" | "symlinkat" => &paths[1..],
        _ => &[],
    };
    let mut changed: Vec<_> =
        named.iter().map(|path| Path::new(path).parent().unwrap().to_owned()).collect();
    if name.contains("write") || name == "fallocate" || name == "ftruncate" {
        changed.push(PathBuf::from(first_file(line)));
    }
    changed.into_iter()
}

/// The path of the file that the call has as its first argument.
fn first_file(line: &str) -> &str {
    let (_, behind) = line.split_once('<').unwrap_or_default();
    // A device has its number behind its path.
    behind.split(['<', '>']).next().unwrap_or_default()
}

#[test]
fn a_new_store_is_on_the_medium_with_its_names() {
    let folder = Folder::new();
    let (store, data) = (folder.path("store"), folder.path("elsewhere/data.img"));
    fs::create_dir(folder.join("elsewhere")).unwrap();
    let tables = folder.path("elsewhere/tables");
    let init = format!("init {store} --capacity 64M --data {data} --tables {tables}");
    let Some(calls) = Calls::of(&folder, &init, 0) else { return };
    // Each of its files gets its blocks before the first root is written.
    let made = calls.up_to(&["fallocate(", "superblock"]);
    assert!(made.unsynced().contains(&folder.join("store/superblock")), "{:#?}", made.lines);
    let written = calls.up_to_next(&made, "io_uring_enter");
    assert_eq!(written.unsynced(), BTreeSet::new(), "{:#?}", written.lines);
    assert_eq!(calls.unsynced(), BTreeSet::new(), "{:#?}", calls.lines);
}

#[test]
fn a_store_that_grew_is_on_the_medium_with_its_names() {
    let folder = Folder::new();
    let (store, more) = (folder.store("64M"), folder.path("more.img"));
    let grow = format!("grow {store} --capacity 128M --data {more}");
    let Some(calls) = Calls::of(&folder, &grow, 0) else { return };
    // The geometry that counts on a second data file is written when both can be found.
    let renamed = calls.up_to(&["rename", "data.0"]);
    assert!(renamed.unsynced().contains(&folder.join("store")), "{:#?}", renamed.lines);
    let written = calls.up_to_next(&renamed, "io_uring_enter");
    assert_eq!(written.unsynced(), BTreeSet::new(), "{:#?}", written.lines);
    assert_eq!(calls.unsynced(), BTreeSet::new(), "{:#?}", calls.lines);
    let Some(calls) =
        Calls::of(&folder, &format!("grow {store} --capacity 256M --data {more}2"), 0)
    else {
        return;
    };
    calls.up_to(&["symlink", "data.2"]);
    assert_eq!(calls.unsynced(), BTreeSet::new(), "{:#?}", calls.lines);
}

#[test]
fn an_image_is_on_the_medium_before_it_has_its_name() {
    let folder = Folder::new();
    let (store, image, out) = (folder.store("64M"), folder.path("image"), folder.path("out.img"));
    fs::write(&image, noise(1, 3 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    tamis(&format!("snapshot create {store} v@a")).ok();
    let stream = folder.path("out.stream");
    for (export, out) in [
        (format!("export {store} v {out}"), &out),
        (format!("export {store} v {out} --overwrite"), &out),
        (format!("export {store} v@a {stream} --stream"), &stream),
    ] {
        let Some(calls) = Calls::of(&folder, &export, 0) else { return };
        let named = calls.up_to(&["rename", out]);
        assert_eq!(named.unsynced(), BTreeSet::from([folder.join("")]), "{:#?}", named.lines);
        assert_eq!(calls.unsynced(), BTreeSet::new(), "{:#?}", calls.lines);
    }

    let disk = folder.path("disk");
    fs::write(&disk, noise(2, 4 << 20)).unwrap();
    let Some(device) = LoopDevice::of(&disk) else { return };
    let export = format!("export {store} v {} --overwrite", device.0);
    let Some(calls) = Calls::of(&folder, &export, 0) else { return };
    let written = calls.up_to(&["pwrite", &device.0]);
    assert!(written.unsynced().contains(Path::new(&device.0)), "{:#?}", written.lines);
    assert_eq!(calls.unsynced(), BTreeSet::new(), "{:#?}", calls.lines);
}

/// The image is there, and what is said of it is true.
#[test]
fn a_name_that_cannot_be_made_durable_is_told_as_that() {
    let folder = Folder::new();
    let (store, out) = (folder.store("64M"), folder.path("out.img"));
    tamis(&format!("volume create {store} v --size 1M")).ok();
    // The first is that of the image.
    let options = ["-e", "inject=fsync:error=EDQUOT:when=2", "-o", "/dev/null"];
    let export = format!("export {store} v {out}");
    let Some(ended) = trace(&options, env!("CARGO_BIN_EXE_tamis"), &export) else { return };
    let told = ended.fails(1, "out.img is written and whole, but its name may not outlive");
    assert!(told.err.contains("quota"), "{told:?}");
    assert_eq!(fs::read(&out).unwrap(), vec![0; 1 << 20]);
}

#[test]
fn a_file_that_a_repair_made_longer_is_on_the_medium() {
    let folder = Folder::new();
    let store = folder.store("64M");
    for file in ["journal", "data"] {
        let cut = OpenOptions::new().write(true).open(folder.join("store").join(file)).unwrap();
        cut.set_len(8192).unwrap();
        let Some(calls) = Calls::of(&folder, &format!("check {store} --repair"), 8) else { return };
        calls.up_to(&["fallocate(", file]);
        assert_eq!(calls.unsynced(), BTreeSet::new(), "{:#?}", calls.lines);
    }
}

#[test]
fn what_is_known_of_a_scrub_is_on_the_medium() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let Some(calls) = Calls::of(&folder, &format!("scrub {store}"), 0) else { return };
    let named = calls.up_to(&["rename", "scrub.json"]);
    assert_eq!(named.unsynced(), BTreeSet::from([folder.join("store")]));
    assert_eq!(calls.unsynced(), BTreeSet::new(), "{:#?}", calls.lines);
}
