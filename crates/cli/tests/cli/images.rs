//! Images in and out.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};

use crate::harness::{
    Folder, LoopDevice, Served, blank_qcow2, command, has_open, listed as all_in, noise,
    sparse_image, tamis,
};

#[test]
fn a_sparse_image_comes_out_as_it_went_in() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (image, out) = (folder.join("in.img"), folder.join("out.img"));
    sparse_image(&image);
    let line = format!("import {store} vm1 {} --json", image.display());
    let imported = tamis(&line).ok().json();
    assert_eq!(imported["image_bytes"], 64 << 20);
    assert!(imported["data_bytes"].as_u64().unwrap() < 16 << 20, "{imported}");
    tamis(&format!("export {store} vm1 {}", out.display())).ok();
    assert!(fs::read(&image).unwrap() == fs::read(&out).unwrap());
    let blocks_bytes = fs::metadata(&out).unwrap().blocks() * 512;
    assert!(blocks_bytes < 16 << 20, "{blocks_bytes} bytes for a sparse file");
    tamis(&format!("check {store}")).ok();
}

#[test]
fn what_is_stored_twice_is_kept_once() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("in.img");
    fs::write(&image, noise(7, 8 << 20)).unwrap();
    for name in ["one", "two", "three"] {
        tamis(&format!("import {store} {name} {image}")).ok();
    }
    let stats = tamis(&format!("stats {store} --json")).ok().json();
    for key in [
        "logical_bytes",
        "unique_chunks",
        "unique_bytes",
        "stored_bytes",
        "table_bytes",
        "journal_bytes",
        "device_bytes",
        "free_bytes",
        "dedup_ratio",
        "compression_ratio",
        "reduction_ratio",
        "memory_bytes",
    ] {
        assert!(stats[key].is_number(), "{key} in {stats}");
    }
    assert_eq!(stats["logical_bytes"], 24 << 20);
    assert_eq!(stats["unique_chunks"], 2048);
    assert_eq!(stats["unique_bytes"], 8 << 20);
    assert!((stats["dedup_ratio"].as_f64().unwrap() - 3.0).abs() < 1e-9, "{stats}");
    assert_eq!(stats["volumes"].as_array().unwrap().len(), 3);
    assert_eq!(stats["volumes"][0]["mapped_bytes"], 8 << 20);
    let text = tamis(&format!("stats {store}")).ok().out;
    assert!(text.contains("after deduplication") && text.contains("3.00x"), "{text}");
    let found = tamis(&format!("check {store} --json")).ok().json();
    assert_eq!(found["sound"], true);
}

/// Whatever goes meanwhile: an import reports what it stored itself.
#[test]
fn an_import_counts_what_it_stores_and_not_what_the_store_gained() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (one, other) = (folder.path("one"), folder.path("other"));
    fs::write(&one, noise(1, 20 << 20)).unwrap();
    fs::write(&other, noise(2, 6 << 20)).unwrap();
    tamis(&format!("import {store} a {one}")).ok();
    tamis(&format!("volume delete {store} a --yes")).ok();
    let imported = tamis(&format!("import {store} b {other} --json")).ok().json();
    let stored_bytes = imported["stored_bytes"].as_u64().unwrap();
    assert!((6 << 20..7 << 20).contains(&stored_bytes), "{imported}");
    let again = tamis(&format!("import {store} c {other} --json")).ok().json();
    assert_eq!(again["stored_bytes"], 0, "{again}");
    // A stream into another store, at the same time as what was there goes.
    tamis(&format!("snapshot create {store} b@s")).ok();
    let (stream, to) = (folder.path("stream"), folder.path("to"));
    tamis(&format!("export {store} b@s {stream} --stream")).ok();
    tamis(&format!("init {to} --capacity 64M")).ok();
    tamis(&format!("import {to} a {one}")).ok();
    tamis(&format!("volume delete {to} a --yes")).ok();
    let imported = tamis(&format!("import {to} b {stream} --json")).ok().json();
    let stored_bytes = imported["stored_bytes"].as_u64().unwrap();
    assert!((6 << 20..7 << 20).contains(&stored_bytes), "{imported}");
}

/// A rate is of what was read: holes take no time.
#[test]
fn holes_are_no_speed() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("image");
    let file = fs::File::create(&image).unwrap();
    file.set_len(1 << 30).unwrap();
    let empty = tamis(&format!("import {store} a {image}")).ok();
    assert!(empty.out.contains("imported 1 GiB") && !empty.out.contains("/s"), "{empty:?}");
    let empty = tamis(&format!("estimate {image}")).ok();
    assert!(empty.out.starts_with("1 GiB in 1 file (") && !empty.out.contains("/s)"), "{empty:?}");
    file.write_all_at(&noise(1, 1 << 20), 5 << 20).unwrap();
    let sparse = tamis(&format!("import {store} b {image} --json")).ok().json();
    assert_eq!(sparse["image_bytes"], 1 << 30, "{sparse}");
    assert_eq!(sparse["read_bytes"], 1 << 20, "{sparse}");
    let sparse = tamis(&format!("estimate {image} --json")).ok().json();
    assert_eq!(sparse["logical_bytes"], 1 << 30, "{sparse}");
    assert_eq!(sparse["read_bytes"], 1 << 20, "{sparse}");
    // Of a stream that is there already nothing is brought.
    tamis(&format!("snapshot create {store} b@s")).ok();
    let stream = folder.path("stream");
    tamis(&format!("export {store} b@s {stream} --stream")).ok();
    let again = tamis(&format!("import {store} b {stream}")).ok();
    assert!(!again.out.contains("/s"), "{again:?}");
}

#[test]
fn streams_of_odd_length_are_padded_to_a_sector() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let bytes = noise(8, (3 << 20) + 777);
    let mut import = command(["import", &store, "v", "-"]);
    let mut child = import.stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), &bytes).unwrap();
    assert!(child.wait().unwrap().success());

    let exported = command(["export", &store, "v", "-"]).output().unwrap();
    assert!(exported.status.success());
    let padded = bytes.len().next_multiple_of(512);
    assert_eq!(exported.stdout.len(), padded);
    assert!(exported.stdout[..bytes.len()] == bytes);
    assert!(exported.stdout[bytes.len()..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_volume_that_holds_data_is_replaced_only_when_that_is_meant() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (large, small, out) = (folder.path("l.img"), folder.path("s.img"), folder.path("o.img"));
    fs::write(&large, noise(9, 4 << 20)).unwrap();
    fs::write(&small, noise(10, 1 << 20)).unwrap();
    tamis(&format!("import {store} v {large}")).ok();
    tamis(&format!("import {store} v {small}")).fails(7, "--overwrite");
    tamis(&format!("import {store} v {small} --overwrite --yes")).ok();
    tamis(&format!("export {store} v {out}")).ok();
    let bytes = fs::read(&out).unwrap();
    assert_eq!(bytes.len(), 4 << 20);
    assert!(bytes[..1 << 20] == noise(10, 1 << 20));
    assert!(bytes[1 << 20..].iter().all(|byte| *byte == 0));
    tamis(&format!("export {store} v {out}")).fails(7, "--overwrite");
    tamis(&format!("export {store} v {out} --overwrite")).ok();
}

/// Where the new image has nothing, nothing of the old one is left.
#[test]
fn holes_and_zeros_of_an_image_replace_what_was_there() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (image, out) = (folder.path("image"), folder.path("out.img"));
    let mut bytes = vec![0; 8 << 20];
    bytes[3 << 20..(3 << 20) + 100_000].copy_from_slice(&noise(10, 100_000));
    for has_holes in [true, false] {
        fs::write(&image, noise(9, 8 << 20)).unwrap();
        tamis(&format!("import {store} v {image} --overwrite --yes")).ok();
        fs::write(&image, if has_holes { &[] } else { &bytes[..] }).unwrap();
        let file = OpenOptions::new().write(true).open(&image).unwrap();
        file.set_len(8 << 20).unwrap();
        file.write_all_at(&bytes[3 << 20..4 << 20], 3 << 20).unwrap();
        tamis(&format!("import {store} v {image} --overwrite --yes")).ok();
        tamis(&format!("export {store} v {out} --overwrite")).ok();
        assert!(fs::read(&out).unwrap() == bytes, "holes: {has_holes}");
    }
}

/// As an image that is still being copied to where it is imported from.
#[test]
fn an_image_that_grows_while_it_is_read_is_not_imported() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (image, data) = (folder.path("image"), folder.path("store/data"));
    // Until it grows in time, which it does if nothing keeps this thread from running.
    for _ in 0..20 {
        fs::write(&image, noise(1, 24 << 20)).unwrap();
        let mut import = command(["import", &store, "v", &image]);
        let mut child = import.stderr(Stdio::piped()).spawn().unwrap();
        while !has_open(&child, &data) && child.try_wait().unwrap().is_none() {}
        let mut file = OpenOptions::new().append(true).open(&image).unwrap();
        file.write_all(&[7; 512]).unwrap();
        let ended = child.wait_with_output().unwrap();
        if ended.status.success() {
            tamis(&format!("volume delete {store} v --yes")).ok();
            continue;
        }
        assert_eq!(ended.status.code(), Some(1), "{ended:?}");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(said.contains("became shorter or longer"), "{said}");
        let listed = tamis(&format!("volume list {store} --json")).ok().json();
        assert_eq!(listed["volumes"], serde_json::json!([]));
        return;
    }
    panic!("imported, and short");
}

/// As a pipe from another machine that breaks.
#[test]
fn a_standard_input_that_fails_is_no_end_of_an_image() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut stdin, _) = listener.accept().unwrap();
    stdin.write_all(b"of which the peer reads nothing, so that it resets the connection").unwrap();
    let mut import = command(["import", &store, "v", "-"]);
    let child = import.stdin(OwnedFd::from(stdin)).stderr(Stdio::piped()).spawn().unwrap();
    peer.write_all(&noise(1, 3 << 20)).unwrap();
    drop(peer);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains("standard input cannot be read"), "{said}");
    let listed = tamis(&format!("volume list {store} --json")).ok().json();
    assert_eq!(listed["volumes"], serde_json::json!([]));
}

#[test]
fn what_is_no_image_that_is_read_or_does_not_fit_is_refused() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("disk.img");
    fs::write(&image, [b"KDMV".as_slice(), &[0; 4096]].concat()).unwrap();
    tamis(&format!("import {store} v {image}")).fails(2, "VMDK");
    fs::write(&image, [b"QFI\xfb\0\0\0\x03".as_slice(), &[0; 4096]].concat()).unwrap();
    tamis(&format!("import {store} v {image}")).fails(5, "damaged qcow2");
    fs::write(&image, "").unwrap();
    tamis(&format!("import {store} v {image}")).fails(2, "empty");
    fs::write(&image, noise(1, 8192)).unwrap();
    tamis(&format!("volume create {store} tiny --size 4K")).ok();
    tamis(&format!("import {store} tiny {image}")).fails(2, "enlarge");
    let names = tamis(&format!("volume list {store} --json")).ok().json();
    assert_eq!(all_in(&names).len(), 1, "{names}");
}

/// Its standard input stays open, and is silent.
#[test]
fn an_import_that_ends_by_a_signal_leaves_no_volume() {
    let folder = Folder::new();
    let store = folder.store("64M");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut import = command(["import", &store, "v", "-"]);
        let mut child = import.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, &noise(13, 5 << 20)).unwrap();
        // More than the pipe holds was taken, so it reads and hears signals by now.
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
        let asked = Instant::now();
        let ended = loop {
            match child.try_wait().unwrap() {
                Some(status) => break status,
                None if asked.elapsed() > Duration::from_secs(20) => {
                    child.kill().unwrap();
                    panic!("it goes on waiting");
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        drop(stdin);
        assert_eq!(ended.code(), Some(code));
        let listed = tamis(&format!("volume list {store} --json")).ok().json();
        assert_eq!(listed["volumes"], serde_json::json!([]));
        tamis(&format!("check {store}")).ok();
    }
}

#[test]
fn a_guest_that_writes_a_qcow2_header_gets_no_file_of_the_host() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (image, out) = (folder.path("disk.img"), folder.path("out.img"));
    // As long as the file whose header names it.
    let secret = noise(21, 3 << 16);
    fs::write(folder.path("secret"), &secret).unwrap();
    let disk = blank_qcow2(3 << 16, Some("secret"));
    fs::write(&image, &disk).unwrap();

    let refused = tamis(&format!("import {store} v {image}")).fails(2, "--format qcow2");
    assert!(refused.err.contains("--format raw"), "{refused:?}");
    tamis(&format!("import {store} v {image} --format raw")).ok();
    tamis(&format!("export {store} v {out}")).ok();
    assert!(fs::read(&out).unwrap() == disk);
    let asked = tamis(&format!("import {store} v {image} --format qcow2 --overwrite --yes")).ok();
    assert!(!asked.err.contains("taken as"), "{asked:?}");
    tamis(&format!("export {store} v {out} --overwrite")).ok();
    assert!(fs::read(&out).unwrap() == secret);

    fs::write(&image, blank_qcow2(1 << 20, None)).unwrap();
    let seen = tamis(&format!("import {store} w {image}")).ok();
    assert!(seen.err.contains("disk.img: detected format: qcow2"), "{seen:?}");
    fs::write(&image, &secret).unwrap();
    let seen = tamis(&format!("import {store} x {image}")).ok();
    assert!(!seen.err.contains("taken as"), "{seen:?}");
    tamis(&format!("import {store} y {image} --format qcow2")).fails(5, "does not begin like one");
    tamis(&format!("import {store} y - --format qcow2")).fails(2, "standard input");
}

#[test]
fn an_import_touches_no_volume_of_another_name() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (image, out) = (folder.path("in.img"), folder.path("out.img"));
    fs::write(&image, noise(1, 1 << 20)).unwrap();
    tamis(&format!("import {store} v.importing {image}")).ok();
    fs::write(&image, noise(2, 1 << 20)).unwrap();
    tamis(&format!("import {store} v {image}")).ok();
    tamis(&format!("export {store} v.importing {out}")).ok();
    assert!(fs::read(&out).unwrap() == noise(1, 1 << 20));

    for line in [
        format!("volume create {store} w~importing --size 1M"),
        format!("volume rename {store} v w~importing"),
        format!("import {store} w~importing {image}"),
        format!("snapshot create {store} v@a~importing"),
    ] {
        tamis(&line).fails(2, "~importing");
    }
    tamis(&format!("snapshot create {store} v@a~replaced")).fails(2, "~replaced");
    tamis(&format!("snapshot create {store} v@a")).ok();
    tamis(&format!("clone {store} v@a w~importing")).fails(2, "~importing");
    let served = Served::start(&store, "");
    tamis(&format!("volume create {store} w~importing --size 1M")).fails(2, "~importing");
    tamis(&format!("import {store} w~importing {image}")).fails(2, "~importing");
    assert_eq!(served.interrupt(), Some(0));
}

#[test]
fn a_disk_that_is_in_use_is_not_written_over() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let disk = folder.path("disk");
    fs::write(&disk, noise(1, 1 << 20)).unwrap();
    tamis(&format!("volume create {store} v --size 1M")).ok();
    let Some(device) = LoopDevice::of(&disk) else { return };
    let mut user = OpenOptions::new();
    let user = user.read(true).custom_flags(OFlags::EXCL.bits().try_into().unwrap());
    let user = user.open(&device.0).unwrap();
    tamis(&format!("export {store} v {} --overwrite", device.0)).fails(4, "is in use");
    assert!(fs::read(&disk).unwrap() == noise(1, 1 << 20));
    drop(user);
    tamis(&format!("export {store} v {} --overwrite", device.0)).ok();
    drop(device);
    assert!(fs::read(&disk).unwrap().iter().all(|byte| *byte == 0));
}

/// A disk does not end where a stream does: neither is taken for the other.
#[test]
fn a_stream_is_not_written_to_a_disk_and_not_read_from_one() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (stream, disk) = (folder.path("stream"), folder.path("disk"));
    tamis(&format!("volume create {store} v --size 1M")).ok();
    tamis(&format!("snapshot create {store} v@a")).ok();
    tamis(&format!("export {store} v@a {stream} --stream")).ok();
    let mut bytes = fs::read(&stream).unwrap();
    bytes.resize(1 << 20, 0);
    fs::write(&disk, &bytes).unwrap();
    let Some(device) = LoopDevice::of(&disk) else { return };
    tamis(&format!("import {store} w {}", device.0)).fails(2, "holds a stream");
    let export = format!("export {store} v@a {} --stream --overwrite", device.0);
    tamis(&export).fails(2, "is a device");
    drop(device);
    assert!(fs::read(&disk).unwrap() == bytes);
}

#[test]
fn a_name_too_long_for_an_import_is_refused_as_it_was_given() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("image");
    fs::write(&image, noise(1, 4096)).unwrap();
    let (fits, long) = ("n".repeat(245), "n".repeat(246));
    tamis(&format!("import {store} {fits} {image}")).ok();
    let refused = tamis(&format!("import {store} {long} {image}")).fails(2, "at most 245 bytes");
    assert!(!refused.err.contains("importing"), "{refused:?}");
    // One that is there already is called nothing else meanwhile.
    tamis(&format!("volume create {store} {long} --size 1M")).ok();
    tamis(&format!("import {store} {long} {image}")).ok();
}

/// Cloud images come so. What is in the pipe is looked at as a file is.
#[test]
fn a_compressed_disk_is_expanded_and_what_is_no_disk_is_refused() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (image, packed, out) = (folder.path("d.raw"), folder.path("d.raw.gz"), folder.path("out"));
    sparse_image(Path::new(&image));
    let gzip = Command::new("gzip").args(["-1", "-k", &image]).status().unwrap();
    assert!(gzip.success());
    let whole = fs::read(&image).unwrap();
    let gzipped = fs::read(&packed).unwrap();
    tamis(&format!("import {store} file {packed}")).ok();
    assert!(piped(&store, "pipe", &gzipped).0);
    for volume in ["file", "pipe"] {
        tamis(&format!("export {store} {volume} {out} --overwrite")).ok();
        assert!(fs::read(&out).unwrap() == whole, "{volume}");
    }
    let cut = folder.path("cut.gz");
    fs::write(&cut, &gzipped[..gzipped.len() - 9]).unwrap();
    tamis(&format!("import {store} cut {cut}")).fails(5, "ends too soon");
    let nested = folder.path("n.qcow2");
    fs::write(&nested, blank_qcow2(1 << 20, None)).unwrap();
    assert!(Command::new("gzip").args(["-k", &nested]).status().unwrap().success());
    tamis(&format!("import {store} nested {nested}.gz")).fails(2, "holds no disk");
    for (bytes, words) in [
        (blank_qcow2(1 << 20, None), "qcow2"),
        ([b"KDMV".as_slice(), &[0; 4096]].concat(), "standard input is a VMDK image"),
        ([[0; 257].as_slice(), b"ustar", &[0; 4096]].concat(), "tar archive"),
    ] {
        let (success, told) = piped(&store, "no", &bytes);
        assert!(!success && told.contains(words), "{told}");
    }
    let names = tamis(&format!("volume list {store} --json")).ok().json();
    assert_eq!(all_in(&names).len(), 2, "nothing was made of what failed: {names}");
}

/// Imports `bytes` by standard input; whether that succeeds, and what it says.
fn piped(store: &str, volume: &str, bytes: &[u8]) -> (bool, String) {
    let mut import = command(["import", store, volume, "-"]);
    let mut child = import.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // An import that refuses what it has seen of the beginning does not wait for the rest.
    let _ = child.stdin.take().unwrap().write_all(bytes);
    let output = child.wait_with_output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}
