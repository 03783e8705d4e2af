//! Snapshots that go from store to store as streams: whole, step by step, cut, damaged and killed.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use admin::Control;
use engine::SnapshotRequest;
use engine::control::Rollback;
use format::stream::{SECTION_HEADER_BYTES, STREAM_HEADER_BYTES, StreamCourse, StreamHeader};
use serde_json::Value;

use crate::harness::{Folder, Served, command, listed as all_in, noise, tamis};

const MIB: usize = 1 << 20;

/// Two stores, and a volume `v` in the first with snapshots `s0`, `s1`, ... of these contents.
struct Chain {
    folder: Folder,
    from: String,
    to: String,
    contents: Vec<Vec<u8>>,
}

impl Chain {
    fn new(contents: Vec<Vec<u8>>) -> Self {
        let folder = Folder::new();
        let (from, to) = (folder.path("from"), folder.path("to"));
        tamis(&format!("init {from} --capacity 64M")).ok();
        tamis(&format!("init {to} --capacity 64M --chunk-size 8K")).ok();
        let image = folder.path("image");
        for (number, bytes) in contents.iter().enumerate() {
            fs::write(&image, bytes).unwrap();
            if number > 0 {
                tamis(&format!("volume resize {from} v --size {} --shrink --yes", bytes.len()))
                    .ok();
            }
            tamis(&format!("import {from} v {image} --overwrite --yes")).ok();
            tamis(&format!("snapshot create {from} v@s{number}")).ok();
        }
        Self { folder, from, to, contents }
    }

    /// The stream that leads to a snapshot from the one before; its path.
    fn stream(&self, number: usize) -> String {
        let path = self.folder.path(&format!("stream{number}"));
        let how = match number {
            0 => "--stream".to_owned(),
            _ => format!("--from @s{}", number - 1),
        };
        tamis(&format!("export {} v@s{number} {path} {how} --overwrite", self.from)).ok();
        path
    }

    fn import(&self, path: &str) -> crate::harness::Outcome {
        tamis(&format!("import {} v {path}", self.to))
    }

    /// Begins to import a stream of many MiB, and kills that in the middle.
    fn kill_import(&self, path: &str) {
        self.kill_import_with(path, &[]);
    }

    fn kill_import_with(&self, path: &str, options: &[&str]) {
        let bytes = fs::read(path).unwrap();
        let mut import = command(["import", &self.to, "v", "-"]);
        import.args(options);
        let mut child = import.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // All but the end, so that it is in the middle for sure.
        std::io::Write::write_all(&mut stdin, &bytes[..bytes.len() - 16]).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        drop(stdin);
    }

    /// Leaves what an import of snapshot 1 with `--overwrite` does that is killed when the volume
    /// has gone back to its base, and there is no mark of that yet.
    fn kill_import_before_its_mark(&self) {
        let server = Served::start(&self.to, "");
        let mut client = admin::Client::connect(Path::new(&self.to)).unwrap().unwrap();
        let (volumes, name) = (vec!["v".to_owned()], "s1~replaced".to_owned());
        client.ask(SnapshotRequest { volumes, name, taken_unix_s: 0 }).unwrap();
        client.ask(Rollback { snapshot: "v@s0".to_owned(), ..Rollback::default() }).unwrap();
        server.kill();
        assert!(self.held("v") == self.contents[0]);
    }

    /// What a volume or snapshot of the second store holds.
    fn held(&self, name: &str) -> Vec<u8> {
        let out = self.folder.path("out");
        tamis(&format!("export {} {name} {out} --overwrite", self.to)).ok();
        fs::read(&out).unwrap()
    }

    /// Names of all volumes and snapshots of the second store.
    fn names(&self) -> Vec<String> {
        let list = |what: &str| tamis(&format!("{what} list {} --json", self.to)).ok().json();
        let name = |one: &Value| one["name"].as_str().unwrap().to_owned();
        let (volumes, snapshots) = (list("volume"), list("snapshot"));
        let all = [all_in(&volumes).to_vec(), all_in(&snapshots).to_vec()];
        all.iter().flatten().map(name).collect()
    }
}

/// Contents of a disk that is written, trimmed, enlarged and made smaller.
fn life() -> Vec<Vec<u8>> {
    let mut now = noise(1, 3 * MIB);
    let mut contents = vec![now.clone()];
    now[4096..20_480].copy_from_slice(&noise(2, 16_384));
    now[MIB..MIB + 100_000].fill(0);
    contents.push(now.clone());
    now.extend(noise(3, MIB + 512));
    contents.push(now.clone());
    now.truncate(2 * MIB + 512);
    now[..4096].copy_from_slice(&noise(4, 4096));
    contents.push(now);
    contents
}

#[test]
fn a_chain_of_snapshots_goes_from_store_to_store() {
    let chain = Chain::new(life());
    for number in 0..chain.contents.len() {
        let stream = chain.stream(number);
        let told = tamis(&format!("import {} v {stream} --json", chain.to)).ok().json();
        assert_eq!(told["snapshot"], format!("v@s{number}"), "{told}");
        assert!(chain.held("v") == chain.contents[number]);
        // What is there already is left alone.
        assert!(chain.import(&stream).ok().out.contains("there already"));
    }
    for (number, bytes) in chain.contents.iter().enumerate() {
        assert!(chain.held(&format!("v@s{number}")) == *bytes, "{number}");
    }
    assert_eq!(chain.names(), ["v", "v@s0", "v@s1", "v@s2", "v@s3"]);
    // One changed a little, so its stream is small.
    let length = fs::metadata(chain.folder.path("stream1")).unwrap().len();
    assert!(length < 24_000, "{length}");
    // Back from the last to the first, in one step.
    let back = chain.folder.path("back");
    tamis(&format!("export {} v@s0 {back} --from @s3", chain.from)).ok();
    tamis(&format!("snapshot delete {} v@s0 --yes", chain.to)).ok();
    chain.import(&back).ok();
    assert!(chain.held("v") == chain.contents[0] && chain.held("v@s0") == chain.contents[0]);
    for store in [&chain.from, &chain.to] {
        tamis(&format!("check {store}")).ok();
    }
}

#[test]
fn streams_go_through_pipes() {
    let chain = Chain::new(life());
    for number in 0..2 {
        let snapshot = format!("v@s{number}");
        let base = ["--stream", "--from=@s0"][number];
        let exported = command(["export", &chain.from, &snapshot, "-", base]).output().unwrap();
        assert!(exported.status.success());
        let mut import = command(["import", &chain.to, "v", "-"]);
        let mut child = import.stdin(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), &exported.stdout).unwrap();
        assert!(child.wait().unwrap().success());
        assert!(chain.held(&snapshot) == chain.contents[number]);
    }
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let chain = Chain::new(life());
    let streams: Vec<String> = (0..3).map(|number| chain.stream(number)).collect();
    let Chain { from, to, folder, .. } = &chain;
    chain.import(&streams[1]).fails(3, "no volume v");
    chain.import(&streams[0]).ok();
    chain.import(&streams[2]).fails(3, "its base v@s1 is not in this store");
    tamis(&format!("import {to} w {}", streams[0])).ok();
    tamis(&format!("volume create {to} x --size 3M")).ok();
    tamis(&format!("import {to} x {}", streams[0])).fails(7, "x exists already");
    // The same name, and another snapshot.
    tamis(&format!("snapshot create {to} x@s0")).ok();
    tamis(&format!("import {to} x {}", streams[1])).fails(2, "not the snapshot");
    tamis(&format!("snapshot create {to} v@s1")).ok();
    chain.import(&streams[1]).fails(7, "v@s1 exists already");
    tamis(&format!("snapshot delete {to} v@s1 --yes")).ok();
    // Changed since.
    let image = folder.path("small");
    fs::write(&image, noise(9, 4096)).unwrap();
    tamis(&format!("import {to} v {image} --overwrite --yes")).ok();
    chain.import(&streams[1]).fails(7, "has changed since v@s0: add --overwrite");
    assert!(chain.held("v")[..4096] == noise(9, 4096));
    tamis(&format!("import {to} v {} --overwrite --yes", streams[1])).ok();
    assert!(chain.held("v") == chain.contents[1]);

    tamis(&format!("export {from} v {image} --stream --overwrite")).fails(2, "v is a volume");
    tamis(&format!("export {from} v@s1 {image} --from @s9 --overwrite"))
        .fails(3, "no snapshot v@s9");
    tamis(&format!("export {from} v@s1 {} --stream", streams[0])).fails(7, "--overwrite");
}

/// Cut at its sections and in them, one bit flipped in each part, bytes added: whatever is wrong
/// with a stream, the volume is what it was, and has no snapshot that it had not.
#[test]
fn a_stream_that_is_not_whole_leaves_nothing() {
    let chain = Chain::new(life());
    let (first, second) = (chain.stream(0), chain.stream(1));
    chain.import(&first).ok();
    let names = chain.names();
    let bytes = fs::read(&second).unwrap();
    let bad = chain.folder.path("bad");
    let try_bad = |bytes: &[u8], words: &str| {
        fs::write(&bad, bytes).unwrap();
        chain.import(&bad).fails(5, words);
        tamis(&format!("import {} new {bad}", chain.to));
        assert_eq!(chain.names(), names);
    };
    // Header, header of the first section, its payload, the last section, the end.
    for cut in
        [9, 1023, 1024, 1040, 1056, 9000, bytes.len() - 33, bytes.len() - 32, bytes.len() - 1]
    {
        try_bad(&bytes[..cut], "the stream ends at byte");
    }
    for flip in [13, 70, 400, 1000, 1024, 1028, 1032, 1040, 1050, 1060, 9000, bytes.len() - 4] {
        let mut bytes = bytes.clone();
        bytes[flip] ^= 0x10;
        try_bad(&bytes, if flip == 13 { "newer release" } else { "damaged at byte" });
    }
    try_bad(&[&bytes[..], &[0]].concat(), "bytes follow the end");
    assert!(chain.held("v") == chain.contents[0]);
    chain.import(&second).ok();
    assert!(chain.held("v@s1") == chain.contents[1]);
    tamis(&format!("check {}", chain.to)).ok();
}

/// The same stream, but for the sample of what it leads to.
fn with_other_sample(stream: &[u8]) -> Vec<u8> {
    let (start, mut rest) = stream.split_at(STREAM_HEADER_BYTES);
    let header = StreamHeader::decode(start).unwrap();
    let mut course = StreamCourse::begin(&header, start);
    let mut other = header.clone();
    other.target.sample ^= 1;
    let mut made = other.encode().to_vec();
    let mut other_course = StreamCourse::begin(&other, &made);
    while !rest.is_empty() {
        let section = course.decode(rest).unwrap();
        let (head, behind) = rest.split_at(SECTION_HEADER_BYTES);
        let (payload, next) = behind.split_at(section.payload_bytes().try_into().unwrap());
        course.verify(section, head, payload).unwrap();
        made.extend(other_course.encode(section, payload));
        made.extend(payload);
        rest = next;
    }
    made
}

/// Whole and sound, and yet not what it says: the last look before a snapshot gets its name.
#[test]
fn a_stream_that_does_not_lead_where_it_says_leaves_nothing() {
    let chain = Chain::new(life());
    let bad = chain.folder.path("bad");
    for number in 0..2 {
        let (stream, names) = (chain.stream(number), chain.names());
        fs::write(&bad, with_other_sample(&fs::read(&stream).unwrap())).unwrap();
        chain.import(&bad).fails(5, &format!("@s{number} is said to hold"));
        assert_eq!(chain.names(), names);
        assert!(number == 0 || chain.held("v") == chain.contents[0]);
        chain.import(&stream).ok();
    }
}

/// Killed in the middle, and begun again with the same stream: nothing is called what it is not in
/// between, and in the end it is all there.
#[test]
fn an_import_that_is_killed_is_made_good_by_the_next() {
    let mut contents = vec![noise(1, 24 * MIB)];
    contents.push(noise(2, 24 * MIB));
    let chain = Chain::new(contents);
    let (first, second) = (chain.stream(0), chain.stream(1));
    for (stream, expected) in [(&first, vec![]), (&second, vec!["v".to_owned(), "v@s0".into()])] {
        chain.kill_import(stream);
        let mut names = chain.names();
        names.retain(|name| !name.contains("importing"));
        assert_eq!(names, expected);
        chain.import(stream).ok();
    }
    assert_eq!(chain.names(), ["v", "v@s0", "v@s1"]);
    assert!(chain.held("v@s0") == chain.contents[0] && chain.held("v@s1") == chain.contents[1]);
    assert!(chain.held("v") == chain.contents[1]);
    tamis(&format!("check {}", chain.to)).ok();
}

/// What somebody wrote since an import was killed stays, however they came by the volume: the same
/// import, repeated, gives it up only when it is told to.
#[test]
fn an_import_that_is_repeated_gives_up_nothing_of_others() {
    let chain = Chain::new(vec![noise(1, 24 * MIB), noise(2, 24 * MIB)]);
    let (first, second) = (chain.stream(0), chain.stream(1));
    let Chain { to, folder, .. } = &chain;
    chain.import(&first).ok();
    let size = || tamis(&format!("volume show {to} v --json")).ok().json()["size_bytes"].clone();

    // Gone back by hand, and used.
    chain.kill_import(&second);
    let (_, said) = Served::start(to, "").interrupt_and_hear();
    assert!(said.contains("v holds part of what leads to v@s1"), "{said}");
    tamis(&format!("snapshot rollback {to} v@s1~importing --yes")).fails(2, "another name");
    tamis(&format!("snapshot rollback {to} v@s0 --yes")).ok();
    tamis(&format!("volume resize {to} v --size 25M")).ok();
    chain.import(&second).fails(7, "has changed since v@s0");
    assert_eq!(size(), 25 << 20);
    tamis(&format!("import {to} v {second} --overwrite --yes")).ok();
    assert!(chain.held("v") == chain.contents[1]);
    assert_eq!(chain.names(), ["v", "v@s0", "v@s1"]);
    tamis(&format!("snapshot rollback {to} v@s0 --yes")).ok();
    tamis(&format!("snapshot delete {to} v@s1 --yes")).ok();

    // Gone back by hand, and not used.
    chain.kill_import(&second);
    tamis(&format!("snapshot rollback {to} v@s0 --yes")).ok();
    chain.import(&second).ok();
    assert!(chain.held("v@s1") == chain.contents[1]);
    tamis(&format!("snapshot rollback {to} v@s0 --yes")).ok();
    tamis(&format!("snapshot delete {to} v@s1 --yes")).ok();

    // Written over as a whole.
    chain.kill_import(&second);
    let image = folder.path("small");
    fs::write(&image, noise(9, MIB)).unwrap();
    tamis(&format!("import {to} v {image} --overwrite --yes")).ok();
    chain.import(&second).fails(7, "has changed since v@s0");
    assert!(chain.held("v")[..MIB] == noise(9, MIB));
    tamis(&format!("snapshot rollback {to} v@s0 --yes")).ok();

    // The snapshot that the import was to take came and went.
    chain.kill_import(&second);
    tamis(&format!("snapshot create {to} v@s1")).ok();
    tamis(&format!("snapshot delete {to} v@s1 --yes")).ok();
    tamis(&format!("volume resize {to} v --size 25M")).ok();
    chain.import(&second).fails(7, "has changed since v@s0");
    assert_eq!(size(), 25 << 20);
    tamis(&format!("check {to}")).ok();
}

/// What a volume held since the base is given up for what the stream leads to, and for nothing
/// less: an import with `--overwrite` that fails, or is killed, leaves it or a way back to it.
#[test]
fn what_an_import_was_to_replace_stays_until_the_import_is_whole() {
    let chain = Chain::new(vec![noise(1, 24 * MIB), noise(2, 24 * MIB)]);
    let (first, second) = (chain.stream(0), chain.stream(1));
    let Chain { to, folder, .. } = &chain;
    chain.import(&first).ok();
    let (image, cut) = (folder.path("small"), folder.path("cut"));
    fs::write(&image, noise(9, MIB)).unwrap();
    tamis(&format!("import {to} v {image} --overwrite --yes")).ok();
    let changed = chain.held("v");
    let names = chain.names();
    fs::write(&cut, &fs::read(&second).unwrap()[..5 * MIB]).unwrap();
    let overwrite = |stream: &str| tamis(&format!("import {to} v {stream} --overwrite --yes"));
    overwrite(&cut).fails(5, "the stream ends at byte");
    assert!(chain.held("v") == changed);
    assert_eq!(chain.names(), names);

    // Killed, and gone back by hand.
    let kill = || chain.kill_import_with(&second, &["--overwrite", "--yes"]);
    kill();
    let (_, said) = Served::start(to, "").interrupt_and_hear();
    assert!(said.contains("v holds part of what leads to v@s1"), "{said}");
    assert!(chain.held("v") != changed);
    tamis(&format!("snapshot rollback {to} v@s1~replaced --yes")).ok();
    assert!(chain.held("v") == changed);
    // Killed, and begun again without the word that gives anything up.
    kill();
    chain.import(&second).fails(7, "has changed since v@s0");
    assert!(chain.held("v") == changed);
    assert_eq!(chain.names(), names);
    // Killed, and begun again with a stream that is not whole, and with one that is.
    kill();
    overwrite(&cut).fails(5, "the stream ends at byte");
    assert!(chain.held("v") == changed);
    assert_eq!(chain.names(), names);
    kill();
    overwrite(&second).ok();
    assert!(chain.held("v") == chain.contents[1]);
    assert_eq!(chain.names(), ["v", "v@s0", "v@s1"]);
    tamis(&format!("check {to}")).ok();
}

/// The import is killed when the volume has gone back to its base, and before there is a mark of
/// that: what it was to replace is had back, and given up for nothing less than before.
#[test]
fn what_an_import_was_to_replace_stays_though_no_mark_says_so() {
    let chain = Chain::new(vec![noise(1, 2 * MIB), noise(2, 2 * MIB)]);
    let (first, second) = (chain.stream(0), chain.stream(1));
    let Chain { to, folder, .. } = &chain;
    chain.import(&first).ok();
    let (image, cut) = (folder.path("small"), folder.path("cut"));
    fs::write(&image, noise(9, MIB)).unwrap();
    fs::write(&cut, &fs::read(&second).unwrap()[..MIB]).unwrap();
    tamis(&format!("import {to} v {image} --overwrite --yes")).ok();
    let (changed, names) = (chain.held("v"), chain.names());
    let overwrite = |stream: &str| tamis(&format!("import {to} v {stream} --overwrite --yes"));
    let kill = || chain.kill_import_before_its_mark();
    let is_as_it_was = || {
        assert!(chain.held("v") == changed);
        assert_eq!(chain.names(), names);
    };
    kill();
    chain.import(&second).fails(7, "has changed since v@s0");
    is_as_it_was();
    kill();
    overwrite(&cut).fails(5, "the stream ends at byte");
    is_as_it_was();
    // As a timer does.
    kill();
    tamis(&format!("snapshot create {to} v@hourly")).ok();
    chain.import(&second).fails(7, "has changed since v@s0");
    tamis(&format!("snapshot delete {to} v@hourly --yes")).ok();
    is_as_it_was();

    // What has been changed since is not given up either.
    kill();
    tamis(&format!("volume resize {to} v --size 3M")).ok();
    let resized = chain.held("v");
    chain.import(&second).fails(7, "v@s1~replaced is what v held");
    overwrite(&second).fails(7, "v@s1~replaced is what v held");
    assert!(chain.held("v") == resized);
    tamis(&format!("snapshot rollback {to} v@s1~replaced --yes")).ok();
    assert!(chain.held("v") == changed);
    overwrite(&second).ok();
    assert!(chain.held("v") == chain.contents[1]);
    assert_eq!(chain.names(), ["v", "v@s0", "v@s1"]);
    tamis(&format!("check {to}")).ok();
}

/// A volume that has gone back to a base without data passes for one that holds nothing.
#[test]
fn an_image_does_not_take_the_place_of_what_an_import_put_aside() {
    let chain = Chain::new(vec![vec![0; MIB], noise(2, MIB)]);
    let Chain { to, folder, .. } = &chain;
    chain.import(&chain.stream(0)).ok();
    let image = folder.path("small");
    fs::write(&image, noise(9, MIB)).unwrap();
    chain.import(&image).ok();
    chain.kill_import_before_its_mark();
    let (_, said) = Served::start(to, "").interrupt_and_hear();
    assert!(said.contains("what v held before an import that was killed is v@s1~rep"), "{said}");
    chain.import(&image).fails(7, "v@s1~replaced is what v held");
    tamis(&format!("snapshot rollback {to} v@s1~replaced --yes")).ok();
    assert!(chain.held("v") == noise(9, MIB));
    let (_, said) = Served::start(to, "").interrupt_and_hear();
    assert!(!said.contains("~replaced"), "{said}");
}

/// As long as the image has not taken its place.
#[test]
fn an_image_that_fails_leaves_what_an_import_put_aside() {
    let chain = Chain::new(vec![vec![0; MIB], noise(2, MIB)]);
    let Chain { to, folder, .. } = &chain;
    chain.import(&chain.stream(0)).ok();
    let image = folder.path("small");
    fs::write(&image, noise(9, MIB)).unwrap();
    chain.import(&image).ok();
    chain.kill_import_before_its_mark();
    // Longer than the volume, which a pipe does not say before it is there.
    let large = folder.path("large");
    fs::write(&large, noise(3, 3 * MIB)).unwrap();
    let mut import = command(["import", to, "v", "-", "--overwrite", "--yes"]);
    let failed = import.stdin(fs::File::open(&large).unwrap()).output().unwrap();
    assert_eq!(failed.status.code(), Some(2), "{failed:?}");
    tamis(&format!("snapshot rollback {to} v@s1~replaced --yes")).ok();
    assert!(chain.held("v") == noise(9, MIB));

    tamis(&format!("import {to} v {image} --overwrite --yes")).ok();
    assert!(chain.held("v") == noise(9, MIB));
    assert_eq!(chain.names(), ["v", "v@s0"]);
}

/// Two clones of one image, their snapshots of one moment and under one name, and what changed in
/// places that no sample covers: the stream of one is not applied to the copy of the other.
#[test]
fn a_stream_of_one_clone_is_not_applied_to_another() {
    let folder = Folder::new();
    let (from, to) = (folder.path("from"), folder.path("to"));
    tamis(&format!("init {from} --capacity 64M")).ok();
    tamis(&format!("init {to} --capacity 64M")).ok();
    let (image, out) = (folder.path("image"), folder.path("out"));
    let mut bytes = noise(1, 4 * MIB);
    fs::write(&image, &bytes).unwrap();
    tamis(&format!("import {from} a {image}")).ok();
    tamis(&format!("snapshot create {from} a@image")).ok();
    tamis(&format!("clone {from} a@image b")).ok();
    for (day, snapshot) in ["daily", "next"].into_iter().enumerate() {
        for (at, volume) in ["a", "b"].into_iter().enumerate() {
            bytes[8192..12_288].copy_from_slice(&noise(2 + 2 * day as u64 + at as u64, 4096));
            fs::write(&image, &bytes).unwrap();
            tamis(&format!("import {from} {volume} {image} --overwrite --yes")).ok();
        }
        tamis(&format!("snapshot create {from} a@{snapshot} b@{snapshot}")).ok();
    }
    let stream = |volume: &str, how: &str| {
        let (name, path) = match how {
            "--stream" => ("daily", folder.path(&format!("{volume}.daily"))),
            _ => ("next", folder.path(&format!("{volume}.next"))),
        };
        tamis(&format!("export {from} {volume}@{name} {path} {how}")).ok();
        path
    };
    for volume in ["a", "b"] {
        tamis(&format!("import {to} {volume} {}", stream(volume, "--stream"))).ok();
    }
    let [of_a, of_b] = ["a", "b"].map(|volume| stream(volume, "--from=@daily"));
    tamis(&format!("import {to} b {of_a}")).fails(2, "is not the snapshot");
    tamis(&format!("import {to} b {of_b}")).ok();
    tamis(&format!("import {to} b {of_a}")).fails(7, "b@next exists already");
    tamis(&format!("export {to} b@next {out}")).ok();
    assert!(fs::read(&out).unwrap() == bytes);
}

/// A snapshot that went from store to store is the same in each: streams lead on from it whichever
/// store they come from, to the next and back to the first.
#[test]
fn copies_of_copies_lead_on_and_back() {
    let chain = Chain::new(vec![noise(1, 4 * MIB)]);
    chain.import(&chain.stream(0)).ok();
    let Chain { folder, from, to, .. } = &chain;
    let third = folder.path("third");
    tamis(&format!("init {third} --capacity 64M")).ok();
    let (stream, image) = (folder.path("stream"), folder.path("image"));
    let bring = |source: &str, snapshot: &str, how: &str, into: &str| {
        tamis(&format!("export {source} v@{snapshot} {stream} {how} --overwrite")).ok();
        tamis(&format!("import {into} v {stream}"))
    };
    let change = |store: &str, seed: u64, snapshot: &str| {
        fs::write(&image, noise(seed, 4 * MIB)).unwrap();
        tamis(&format!("import {store} v {image} --overwrite --yes")).ok();
        tamis(&format!("snapshot create {store} v@{snapshot}")).ok();
    };
    bring(to, "s0", "--stream", &third).ok();
    // What the copy changed goes back to where it came from, and on from there.
    change(to, 2, "s1");
    bring(to, "s1", "--from @s0", from).ok();
    change(from, 3, "s2");
    bring(from, "s2", "--from @s1", to).ok();
    // The third has not had s1: it comes from either.
    bring(from, "s2", "--from @s1", &third).fails(3, "its base v@s1 is not in this store");
    bring(from, "s1", "--from @s0", &third).ok();
    bring(to, "s2", "--from @s1", &third).ok();
    bring(from, "s2", "--from @s1", &third).ok();
    // What was lost where it was taken, and has come back, is what it was.
    tamis(&format!("snapshot delete {from} v@s2 --yes")).ok();
    tamis(&format!("snapshot rollback {from} v@s1 --yes")).ok();
    bring(&third, "s2", "--from @s1", from).ok();
    bring(to, "s2", "--from @s1", from).ok();
    for store in [from, to, &third] {
        tamis(&format!("export {store} v {image} --overwrite")).ok();
        assert!(fs::read(&image).unwrap() == noise(3, 4 * MIB));
        tamis(&format!("check {store}")).ok();
    }
}

/// A volume that comes to its quota in the middle of a stream: that is what is told, and nothing of
/// the stream is left, although much of it is under way when it is refused.
#[test]
fn a_stream_that_passes_the_quota_says_so_and_leaves_nothing() {
    let mut first = noise(1, 4 * MIB);
    first.resize(24 * MIB, 0);
    let mut second = first.clone();
    for (number, piece) in second[4 * MIB..].chunks_mut(64 << 10).enumerate() {
        let bytes = noise(2 + number as u64, [48 << 10, 8 << 10][number % 2]);
        piece[..bytes.len()].copy_from_slice(&bytes);
    }
    let chain = Chain::new(vec![first, second]);
    let (first, second) = (chain.stream(0), chain.stream(1));
    chain.import(&first).ok();
    tamis(&format!("volume set {} v --quota 7M", chain.to)).ok();
    let names = chain.names();
    for _ in 0..3 {
        chain.import(&second).fails(6, "volume v is at its quota");
        assert!(chain.held("v") == chain.contents[0]);
        assert_eq!(chain.names(), names);
    }
    tamis(&format!("volume set {} v --quota none", chain.to)).ok();
    chain.import(&second).ok();
    assert!(chain.held("v@s1") == chain.contents[1]);
}
