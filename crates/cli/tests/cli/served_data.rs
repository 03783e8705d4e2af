//! Bytes of volumes out of a store and into it while it is served: the same commands with the same
//! outcome as on a store that is closed.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use nbd::client::{Client, Wish};
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{Folder, Served, command, listed as all_in, noise, run, sparse_image, tamis};

/// A client of the volume, as any that comes through a door.
fn client(store: &str, volume: &str) -> Client {
    let server = admin::Client::connect(Path::new(store)).unwrap().unwrap();
    let stream = server.open_data("a client".to_owned()).unwrap();
    Client::over(stream, Wish { export: volume, ..Wish::default() }).unwrap()
}

/// Writes `bytes` and waits until they are durable.
fn write(client: &Client, offset_bytes: u64, bytes: &[u8]) {
    for (at, piece) in bytes.chunks(1 << 20).enumerate() {
        let at = offset_bytes + (at << 20) as u64;
        client.begin_write(at, piece, false, Box::new(|answer| drop(answer.unwrap())));
    }
    client.flush().unwrap();
}

/// An export whose standard output nobody reads, when it has begun.
fn stuck_export(store: &str, volume: &str) -> Child {
    let mut export = command(["export", store, volume, "-"]);
    let mut child = export.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 1 << 16];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    child
}

/// What an export came to whose output is read at last.
fn end_of(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn an_export_of_a_served_store_is_that_of_a_closed_one() {
    let folder = Folder::new();
    let store = folder.store("128M");
    let image = folder.join("in.img");
    sparse_image(&image);
    tamis(&format!("import {store} v {}", image.display())).ok();
    tamis(&format!("snapshot create {store} v@s")).ok();
    let export = |volume: &str, file: &str| {
        let out = folder.path(file);
        let said = tamis(&format!("export {store} {volume} {out} --overwrite --json")).ok().json();
        (said["image_bytes"].clone(), said["data_bytes"].clone(), fs::read(out).unwrap())
    };
    let closed = export("v", "closed.img");
    assert!(closed.2 == fs::read(&image).unwrap());

    let served = Served::start(&store, "");
    assert!(export("v", "served.img") == closed);
    assert!(export("v@s", "snapshot.img") == closed);
    let piped = command(["export", &store, "v", "-"]).output().unwrap();
    assert!(piped.status.success(), "{piped:?}");
    assert!(piped.stdout == closed.2);
    let stream = |file: &str| {
        let out = folder.path(file);
        tamis(&format!("export {store} v@s {out} --stream")).ok();
        fs::read(out).unwrap()
    };
    let from_served = stream("served.stream");
    tamis(&format!("export {store} w -")).fails(3, "there is no volume w");
    tamis(&format!("export {store} v {} ", image.display())).fails(7, "exists already");
    assert_eq!(served.interrupt(), Some(0));
    assert!(stream("closed.stream") == from_served);
}

/// The server listens where nobody else can reach it, or nowhere that this command could guess.
#[test]
fn an_export_needs_no_door_but_the_control_socket() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("in.img");
    fs::write(&image, noise(3, 3 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    let served = Served::start(&store, "--nbd tcp:127.0.0.1:0");
    let out = folder.path("out.img");
    tamis(&format!("export {store} v {out}")).ok();
    assert!(fs::read(&image).unwrap() == fs::read(&out).unwrap());
    assert_eq!(served.interrupt(), Some(0));
}

#[test]
fn a_snapshot_is_exported_as_it_was_while_a_client_writes() {
    let folder = Folder::new();
    let store = folder.store("256M");
    let (image, out) = (folder.path("in.img"), folder.path("out.img"));
    fs::write(&image, noise(7, 24 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    let served = Served::start(&store, "");
    tamis(&format!("snapshot create {store} v@s")).ok();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            let client = client(&store, "v");
            let mut written = 0;
            while !over.load(Ordering::Relaxed) {
                write(&client, 0, &noise(written + 100, 4 << 20));
                written += 1;
            }
            written
        });
        tamis(&format!("export {store} v@s {out}")).ok();
        over.store(true, Ordering::Relaxed);
        assert!(writing.join().unwrap() > 0);
    });
    assert!(fs::read(&image).unwrap() == fs::read(&out).unwrap());
    assert_eq!(served.interrupt(), Some(0));
}

#[test]
fn a_server_that_ends_in_the_middle_is_told_of_in_one_sentence() {
    let folder = Folder::new();
    let store = folder.store("128M");
    let image = folder.path("in.img");
    fs::write(&image, noise(9, 48 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    for ends in [Served::kill, |served: Served| assert_eq!(served.interrupt(), Some(0))] {
        let served = Served::start(&store, "");
        let export = stuck_export(&store, "v");
        ends(served);
        let (code, said) = end_of(export);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("the server of the store ended before this was done"), "{said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    }
}

#[test]
fn an_interrupted_export_is_no_longer_among_those_who_have_the_volume() {
    let folder = Folder::new();
    let store = folder.store("128M");
    let image = folder.path("in.img");
    fs::write(&image, noise(11, 48 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    tamis(&format!("snapshot create {store} v@s")).ok();
    let served = Served::start(&store, "");
    let roll_back = || tamis(&format!("snapshot rollback {store} v@s --yes"));
    let export = stuck_export(&store, "v");
    let pid = export.id();
    roll_back().fails(4, &format!("tamis export, pid {pid}"));
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::INT).unwrap();
    let (code, said) = end_of(export);
    assert_eq!(code, Some(130), "{said}");
    roll_back().ok();
    // One that ended well holds nothing either.
    tamis(&format!("export {store} v {}", folder.path("out.img"))).ok();
    roll_back().ok();
    assert_eq!(served.interrupt(), Some(0));
}

/// Whole, then what changed, from one served store into another, which has the snapshots then.
#[test]
fn streams_go_from_a_served_store_into_another() {
    let folder = Folder::new();
    let (from, to) = (folder.store("128M"), folder.path("to"));
    tamis(&format!("init {to} --capacity 128M")).ok();
    let image = folder.join("in.img");
    sparse_image(&image);
    tamis(&format!("import {from} v {}", image.display())).ok();
    let (source, target) = (Served::start(&from, ""), Served::start(&to, ""));
    let send = |words: &str| {
        let mut export = command(["export", &from]);
        export.args(words.split_whitespace());
        let mut export = export.stdout(Stdio::piped()).spawn().unwrap();
        let mut import = command(["import", &to, "v", "-", "--json"]);
        let import = import.stdin(export.stdout.take().unwrap()).output().unwrap();
        assert!(export.wait().unwrap().success());
        assert!(import.status.success(), "{import:?}");
        serde_json::from_slice::<serde_json::Value>(&import.stdout).unwrap()
    };
    tamis(&format!("snapshot create {from} v@a")).ok();
    send("v@a - --stream");
    write(&client(&from, "v"), 20 << 20, &noise(77, 100 << 10));
    tamis(&format!("snapshot create {from} v@b")).ok();
    let second = send("v@b - --from @a");
    assert_eq!(second["snapshot"], "v@b");
    assert!(second["data_bytes"].as_u64().unwrap() <= 128 << 10, "{second}");
    let export = |store: &str, volume: &str| {
        let out = folder.path("out.img");
        tamis(&format!("export {store} {volume} {out} --overwrite")).ok();
        fs::read(out).unwrap()
    };
    for volume in ["v", "v@a", "v@b"] {
        assert!(export(&from, volume) == export(&to, volume), "{volume}");
    }
    // The next import knows the snapshot as the one that was sent.
    let again = folder.path("again.stream");
    tamis(&format!("export {from} v@b {again} --from @a")).ok();
    let said = tamis(&format!("import {to} v {again}")).ok();
    assert_eq!(said.out, "v@b is there already: nothing was imported\n");
    assert_eq!(source.interrupt(), Some(0));
    assert_eq!(target.interrupt(), Some(0));
}

/// A stream that fails leaves a served volume as it was, and one that a client has open is not
/// touched.
#[test]
fn a_stream_into_a_served_store_is_all_or_nothing() {
    let folder = Folder::new();
    let (from, to) = (folder.store("128M"), folder.path("to"));
    tamis(&format!("init {to} --capacity 128M")).ok();
    let image = folder.path("in.img");
    fs::write(&image, noise(21, 8 << 20)).unwrap();
    tamis(&format!("import {from} v {image}")).ok();
    tamis(&format!("snapshot create {from} v@a")).ok();
    let (whole, part) = (folder.path("a.stream"), folder.path("b.stream"));
    tamis(&format!("export {from} v@a {whole} --stream")).ok();
    let served = Served::start(&from, "");
    write(&client(&from, "v"), 1 << 20, &noise(22, 4 << 20));
    tamis(&format!("snapshot create {from} v@b")).ok();
    tamis(&format!("export {from} v@b {part} --from @a")).ok();
    assert_eq!(served.interrupt(), Some(0));

    let served = Served::start(&to, "");
    tamis(&format!("import {to} v {whole}")).ok();
    let mut cut = fs::read(&part).unwrap();
    cut.truncate(cut.len() / 2);
    let cut_stream = folder.path("cut.stream");
    fs::write(&cut_stream, cut).unwrap();
    tamis(&format!("import {to} v {cut_stream}")).fails(5, "");
    let out = folder.path("out.img");
    tamis(&format!("export {to} v {out}")).ok();
    assert!(fs::read(&out).unwrap() == fs::read(&image).unwrap(), "it goes back");
    let names = tamis(&format!("snapshot list {to} --json")).ok().json();
    assert_eq!(all_in(&names).len(), 1, "{names}");

    let attached = client(&to, "v");
    run(command(["import", &to, "v", &part])).fails(4, "a client");
    drop(attached);
    tamis(&format!("import {to} v {part}")).ok();
    assert_eq!(served.interrupt(), Some(0));
}

/// Into new volumes and ones that are there, from files and pipes: as on a closed store.
#[test]
fn images_go_into_a_served_store() {
    let folder = Folder::new();
    let store = folder.store("128M");
    let image = folder.join("in.img");
    sparse_image(&image);
    let image = image.display();
    let other = folder.path("other.img");
    fs::write(&other, noise(31, 3 << 20)).unwrap();
    let served = Served::start(&store, "");
    let said = tamis(&format!("import {store} v {image} --json")).ok().json();
    assert_eq!(said["image_bytes"], 64 << 20);
    tamis(&format!("import {store} v {other}")).fails(7, "holds");
    // What lies behind a shorter image is gone, as always.
    tamis(&format!("volume create {store} w --size 8M")).ok();
    tamis(&format!("import {store} w {other}")).ok();
    tamis(&format!("import {store} v {other} --overwrite --yes")).ok();
    let mut import = command(["import", &store, "piped", "-"]);
    let piped = import.stdin(fs::File::open(&other).unwrap()).output().unwrap();
    assert!(piped.status.success(), "{piped:?}");
    assert_eq!(served.interrupt(), Some(0));
    let held = |volume: &str| {
        let out = folder.path("out.img");
        tamis(&format!("export {store} {volume} {out} --overwrite")).ok();
        fs::read(out).unwrap()
    };
    let other = fs::read(&other).unwrap();
    for (volume, size) in [("v", 64), ("w", 8), ("piped", 3)] {
        let held = held(volume);
        assert_eq!(held.len(), size << 20, "{volume}");
        assert!(held[..other.len()] == other, "{volume}");
        assert!(held[other.len()..].iter().all(|byte| *byte == 0), "{volume}");
    }
    tamis(&format!("check {store}")).ok();
}

#[test]
fn an_image_goes_into_no_volume_that_a_client_has() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("in.img");
    fs::write(&image, noise(33, 1 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    let served = Served::start(&store, "");
    let attached = client(&store, "v");
    let import = format!("import {store} v {image} --overwrite --yes");
    let refused = tamis(&import).fails(4, "volume v is in use by a client");
    assert!(refused.err.contains("since"), "{refused:?}");
    assert!(attached.read(0, vec![0; 4096]).unwrap() == noise(33, 4096), "it goes on");
    drop(attached);
    tamis(&import).ok();
    assert_eq!(served.interrupt(), Some(0));
}

/// A volume that was to be made is not there, and the next import is not in its way.
#[test]
fn a_server_that_ends_under_an_import_leaves_no_half() {
    let folder = Folder::new();
    let store = folder.store("128M");
    let image = folder.path("in.img");
    fs::write(&image, noise(35, 24 << 20)).unwrap();
    let served = Served::start(&store, "");
    let mut import = command(["import", &store, "v", "-"]);
    let import = import.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::null());
    let mut import = import.spawn().unwrap();
    let mut pipe = import.stdin.take().unwrap();
    pipe.write_all(&noise(35, 12 << 20)).unwrap();
    served.kill();
    // Until it notices it takes what it is given.
    while pipe.write_all(&noise(36, 1 << 20)).is_ok() {}
    let (code, said) = end_of(import);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the server of the store ended before this was done"), "{said}");
    let served = Served::start(&store, "");
    tamis(&format!("volume show {store} v")).fails(3, "there is no volume v");
    tamis(&format!("import {store} v {image}")).ok();
    assert_eq!(served.interrupt(), Some(0));
}
