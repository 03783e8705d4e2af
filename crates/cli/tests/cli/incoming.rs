//! What comes in is what the user means: streams that are damaged, disks in formats of other
//! programs.

use std::fs;
use std::process::{Command, Stdio};

use crate::harness::{
    Folder, Outcome, command, installed, noise, run, run_with_input, sparse_image, tamis,
};

/// Imports the file at `path` into volume `v` by standard input.
fn import_piped(store: &str, path: &str) -> Outcome {
    let mut import = command(["import", store, "v", "-", "--overwrite", "--yes"]);
    import.stdin(Stdio::from(fs::File::open(path).unwrap()));
    run_with_input(import)
}

/// Whatever of its start is damaged, it is refused as a stream, from a file, a pipe, or compressed.
#[test]
fn a_damaged_stream_is_never_a_disk() {
    let folder = Folder::new();
    let (from, to) = (folder.path("from"), folder.path("to"));
    tamis(&format!("init {from} --capacity 64M")).ok();
    tamis(&format!("init {to} --capacity 64M")).ok();
    let (image, stream, out) = (folder.path("image"), folder.path("stream"), folder.path("out"));
    fs::write(&image, noise(1, 1 << 20)).unwrap();
    tamis(&format!("import {from} v {image}")).ok();
    tamis(&format!("snapshot create {from} v@s")).ok();
    tamis(&format!("export {from} v@s {stream} --stream")).ok();
    let there = noise(2, 2 << 20);
    fs::write(&image, &there).unwrap();
    tamis(&format!("import {to} v {image}")).ok();

    let whole = fs::read(&stream).unwrap();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        bytes
    };
    for (name, bytes) in [
        ("first 5 bytes", changed(&|bytes| bytes[..5].fill(0))),
        ("one bit of the magic", changed(&|bytes| bytes[3] ^= 0x40)),
        ("first sector", changed(&|bytes| bytes[..512].fill(0))),
        ("header", changed(&|bytes| bytes[..1024].fill(0xff))),
        ("cut in the magic", whole[..7].to_vec()),
        ("cut in the header", whole[..700].to_vec()),
    ] {
        let damaged = folder.path("damaged");
        fs::write(&damaged, bytes).unwrap();
        tamis(&format!("import {to} v {damaged} --overwrite --yes")).fails(5, "the stream ");
        import_piped(&to, &damaged).fails(5, "the stream ");
        assert!(Command::new("gzip").args(["-kf", &damaged]).status().unwrap().success());
        tamis(&format!("import {to} v {damaged}.gz --overwrite --yes")).fails(2, "holds no disk");
        tamis(&format!("export {to} v {out} --overwrite")).ok();
        assert!(fs::read(&out).unwrap() == there, "{name}");
    }
    let cut = folder.path("cut");
    fs::write(&cut, &whole[..1030]).unwrap();
    tamis(&format!("import {to} cut {cut}")).fails(5, "the stream ends at byte 1030");
    // A disk that is none of that is taken as it is, where that is said.
    fs::write(&image, changed(&|bytes| bytes[3] ^= 0x40)).unwrap();
    tamis(&format!("import {to} raw {image} --format raw")).ok();
}

#[test]
fn what_is_to_be_a_stream_and_is_none_is_refused() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let (image, stream) = (folder.path("image"), folder.path("stream"));
    fs::write(&image, noise(1, 1 << 20)).unwrap();
    tamis(&format!("import {store} v {image} --format stream")).fails(2, "is no stream");
    tamis(&format!("import {store} v {image}")).ok();
    tamis(&format!("snapshot create {store} v@s")).ok();
    tamis(&format!("export {store} v@s {stream} --stream")).ok();
    tamis(&format!("import {store} copy {stream} --format stream")).ok();
    tamis(&format!("import {store} x {image} --format vdo")).fails(2, "use raw, qcow2 or stream");
}

/// VMDK, VHDX and the like, with their holes, by their first bytes or by name.
#[test]
fn disks_of_other_programs_are_read_through_qemu() {
    if !installed("qemu-nbd") {
        return;
    }
    let folder = Folder::new();
    let store = folder.store("256M");
    let (raw, out) = (folder.join("in.raw"), folder.path("out"));
    sparse_image(&raw);
    let whole = fs::read(&raw).unwrap();
    for (format, options, holes) in [
        ("vmdk", "subformat=monolithicSparse", true),
        ("vmdk", "subformat=streamOptimized", false),
        ("vhdx", "subformat=dynamic", false),
        ("vdi", "static=off", true),
        ("vpc", "force_size=on", true),
        ("qed", "cluster_size=65536", true),
        ("parallels", "cluster_size=1048576", true),
    ] {
        let image = folder.path(&format!("image.{format}"));
        qemu_img(&["convert", "-O", format, "-o", options, raw.to_str().unwrap(), &image]);
        let line = format!("import {store} v {image} --overwrite --json --yes");
        let imported = tamis(&line).ok();
        let said = format!("detected format: {format} (");
        assert!(imported.err.contains(&said), "{imported:?}");
        let data_bytes = imported.json()["data_bytes"].as_u64().unwrap();
        assert!(!holes || data_bytes < 24 << 20, "{format}: {data_bytes}");
        tamis(&format!("export {store} v {out} --overwrite")).ok();
        assert!(fs::read(&out).unwrap() == whole, "{format}");
        tamis(&format!("import {store} asked {image} --overwrite --format {format} --yes")).ok();
        tamis(&format!("export {store} asked {out} --overwrite")).ok();
        assert!(fs::read(&out).unwrap() == whole, "{format}");
        tamis(&format!("volume delete {store} asked --yes")).ok();

        // Its parts are elsewhere in a pipe, so it says how to go about that.
        import_piped(&store, &image).fails(2, &format!("qemu-img convert -f {format} -O raw"));
    }
    let left = fs::read_dir("/tmp").unwrap().flatten().map(|entry| entry.file_name());
    let own = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("tamis-qemu-");
    assert!(!left.into_iter().any(|name| own(&name)), "a directory of a socket is left");
}

/// A cut image is damage, and not zeros.
#[test]
fn a_foreign_disk_that_is_cut_changes_nothing() {
    if !installed("qemu-nbd") {
        return;
    }
    let folder = Folder::new();
    let store = folder.store("64M");
    let raw = folder.path("in.raw");
    fs::write(&raw, noise(1, 4 << 20)).unwrap();
    for format in ["vmdk", "vhdx", "vdi", "qed", "parallels"] {
        let image = folder.path(&format!("image.{format}"));
        qemu_img(&["convert", "-O", format, &raw, &image]);
        let file = fs::OpenOptions::new().write(true).open(&image).unwrap();
        file.set_len(match format {
            "vhdx" => 4 << 20,
            _ => file.metadata().unwrap().len() - 40_000,
        })
        .unwrap();
        tamis(&format!("import {store} v {image}")).fails(5, "damaged: ");
        tamis(&format!("estimate {image}")).fails(5, "damaged: ");
    }
    let listed = tamis(&format!("volume list {store} --json")).ok().json();
    assert_eq!(listed["volumes"], serde_json::json!([]));
}

/// What a guest may have written into its raw disk reads no file of the host.
#[test]
fn a_descriptor_of_a_vmdk_gets_no_file_that_was_not_asked_for() {
    if !installed("qemu-nbd") {
        return;
    }
    let folder = Folder::new();
    let store = folder.store("64M");
    let (raw, image, out) = (folder.path("in.raw"), folder.path("flat.vmdk"), folder.path("out"));
    fs::write(&raw, noise(1, 1 << 20)).unwrap();
    qemu_img(&["convert", "-O", "vmdk", "-o", "subformat=monolithicFlat", &raw, &image]);
    let told = tamis(&format!("import {store} v {image}")).fails(2, "names another file");
    assert!(told.err.contains("--format vmdk"), "{told:?}");
    tamis(&format!("estimate {image}")).fails(2, "names another file");
    tamis(&format!("import {store} v {image} --format vmdk")).ok();
    tamis(&format!("export {store} v {out}")).ok();
    assert!(fs::read(&out).unwrap() == fs::read(&raw).unwrap());
    let child = folder.path("child.qed");
    let base = folder.path("base.qed");
    qemu_img(&["convert", "-O", "qed", &raw, &base]);
    qemu_img(&["create", "-f", "qed", "-b", &base, "-F", "qed", &child]);
    tamis(&format!("import {store} q {child}")).fails(2, "names another file");
    tamis(&format!("import {store} q {child} --format qed")).ok();
    tamis(&format!("export {store} q {out} --overwrite")).ok();
    assert!(fs::read(&out).unwrap() == fs::read(&raw).unwrap());
}

/// Without QEMU's programs it is refused by its name, with the line that converts it.
#[test]
fn without_qemu_a_foreign_disk_is_refused_by_its_name() {
    let folder = Folder::new();
    let store = folder.store("64M");
    let image = folder.path("x.vmdk");
    fs::write(&image, [b"KDMV\x01\0\0\0\x03\0\0\0\x08".as_slice(), &[0; 4096]].concat()).unwrap();
    let mut import = command(["import", &store, "v", &image]);
    import.env("PATH", "/nowhere");
    let refused = run(import).fails(2, "x.vmdk is a VMDK image");
    assert!(refused.err.contains("qemu-img convert -f vmdk -O raw"), "{refused:?}");
}

fn qemu_img(args: &[&str]) {
    let quiet = Command::new("qemu-img").args(args).stdout(Stdio::null()).status();
    assert!(quiet.unwrap().success(), "{args:?}");
}
