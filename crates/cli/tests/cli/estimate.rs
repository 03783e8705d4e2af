//! What a store would save is what it then saves.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{
    Folder, command, has_open, installed, late_damage_qcow2, noise, sparse_image, tamis,
};

/// The figures of one chunk size, whose first codec is the one that was asked for.
fn size_of(report: &Value, chunk_bytes: u64) -> &Value {
    let sizes = report["chunk_sizes"].as_array().unwrap();
    sizes.iter().find(|size| size["chunk_bytes"] == chunk_bytes).unwrap()
}

fn value(figure: &Value) -> f64 {
    assert_eq!(figure["error"], 0.0, "{figure}");
    figure["value"].as_f64().unwrap()
}

/// An image with holes, noise, text and repetitions that does not end on a chunk.
fn odd_image(path: &Path) {
    sparse_image(path);
    let file = File::options().write(true).open(path).unwrap();
    file.set_len((64 << 20) + 1536).unwrap();
    file.write_all_at(&noise(3, 1536), 64 << 20).unwrap();
    file.write_all_at(&noise(4, 3 << 20), (40 << 20) + 512).unwrap();
}

#[test]
fn an_estimate_is_what_an_import_then_reports() {
    let folder = Folder::new();
    let image = folder.join("in.img");
    odd_image(&image);
    let line = format!("estimate {} --compression lz4,zstd:3,none --json", image.display());
    let report = tamis(&line).ok().json();
    assert_eq!(report["logical_bytes"], (64 << 20) + 1536);
    for (chunk, codec) in [("4K", "lz4"), ("16K", "zstd:3"), ("64K", "lz4"), ("8K", "none")] {
        let store = folder.path(&format!("store-{chunk}"));
        let shape = format!("--capacity 64M --chunk-size {chunk} --compression {codec}");
        tamis(&format!("init {store} {shape}")).ok();
        tamis(&format!("import {store} v {}", image.display())).ok();
        let stats = tamis(&format!("stats {store} --json")).ok().json();
        let size = size_of(&report, stats["chunk_bytes"].as_u64().unwrap());
        assert_eq!(size["data_bytes"], stats["logical_bytes"], "{chunk}");
        let of_codec = |found: &&Value| found["compression"] == codec;
        let figures = size["codecs"].as_array().unwrap().iter().find(of_codec).unwrap();
        for (estimated, real) in [
            (&size["unique_chunks"], "unique_chunks"),
            (&size["unique_bytes"], "unique_bytes"),
            (&size["dedup_ratio"], "dedup_ratio"),
            (&figures["stored_bytes"], "stored_bytes"),
            (&figures["compression_ratio"], "compression_ratio"),
            (&figures["reduction_ratio"], "reduction_ratio"),
        ] {
            assert_eq!(value(estimated), stats[real].as_f64().unwrap(), "{real}: {chunk}");
        }
        let metadata_bytes = value(&figures["metadata_bytes"]);
        let directory_bytes = value(&size["unique_chunks"]) * 44.0;
        let tables_bytes = stats["table_bytes"].as_f64().unwrap();
        // A small store has pages that are hardly filled.
        let estimated = metadata_bytes - directory_bytes;
        assert!(estimated > 0.0 && estimated < tables_bytes * 1.1, "{estimated} {tables_bytes}");
        assert!(tables_bytes - estimated < 200_000.0, "{estimated} {tables_bytes}");
    }
}

fn qemu_img(args: &[&str]) -> bool {
    let quiet = Command::new("qemu-img").args(args).stdout(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

#[test]
fn a_qcow2_image_counts_and_imports_as_its_raw_one() {
    if !qemu_img(&["--version"]) {
        // `images` reads images that it made itself, everywhere; this is of QEMU's own.
        eprintln!("qemu-img is not here");
        return;
    }
    let folder = Folder::new();
    let (raw, out) = (folder.path("disk.raw"), folder.path("out.raw"));
    odd_image(raw.as_ref());
    let (base, top) = (folder.path("base.qcow2"), folder.path("top.qcow2"));
    let old = folder.path("old.qcow2");
    let to = |target: &str, options: &str| {
        let args = ["convert", "-f", "raw", "-O", "qcow2", "-o", options, &raw, target];
        assert!(qemu_img(&args), "{args:?}");
    };
    to(&base, "cluster_size=4k");
    to(&old, "compat=0.10");
    assert!(qemu_img(&["create", "-q", "-f", "qcow2", "-b", "base.qcow2", "-F", "qcow2", &top]));
    let chunks = |path: &str| {
        let report = tamis(&format!("estimate {path} --json")).ok().json();
        (report["logical_bytes"].clone(), report["chunk_sizes"].clone())
    };
    let expected = chunks(&raw);
    for path in [&base, &old, &top] {
        assert_eq!(chunks(path), expected, "{path}");
    }
    // What the upper image replaces and zeroes.
    let io = ["-f", "qcow2", "-c", "write -P 9 1M 100k", "-c", "write -z 8M 4M", &top];
    assert!(Command::new("qemu-io").args(io).stdout(Stdio::null()).status().unwrap().success());
    assert!(qemu_img(&["convert", "-O", "raw", &top, &out]));
    assert_eq!(chunks(&top), chunks(&out));
    let store = folder.store("64M");
    tamis(&format!("import {store} v {top} --format qcow2")).ok();
    let exported = folder.path("exported.raw");
    tamis(&format!("export {store} v {exported}")).ok();
    assert!(fs::read(&exported).unwrap() == fs::read(&out).unwrap());

    let whole = fs::read(&raw).unwrap();
    let data_file = format!("data_file={}", folder.path("apart.data"));
    for (number, (flag, options)) in [
        ("-c", "compression_type=zlib"),
        ("-c", "compression_type=zstd,cluster_size=4k"),
        ("-W", "extended_l2=on,cluster_size=128k"),
        ("-W", &data_file),
    ]
    .into_iter()
    .enumerate()
    {
        let made = folder.path(&format!("made{number}.qcow2"));
        assert!(qemu_img(&["convert", flag, "-O", "qcow2", "-o", options, &raw, &made]));
        assert_eq!(chunks(&made), expected, "{options}");
        tamis(&format!("import {store} made{number} {made} --format qcow2")).ok();
        tamis(&format!("export {store} made{number} {exported} --overwrite")).ok();
        assert!(fs::read(&exported).unwrap() == whole, "{options}");
    }
}

#[test]
fn a_directory_is_read_as_it_is_and_what_cannot_be_is_told() {
    let folder = Folder::new();
    let root = folder.path("root");
    fs::create_dir_all(folder.join("root/deep")).unwrap();
    for name in ["root/a", "root/deep/b"] {
        fs::write(folder.join(name), noise(5, 40_000)).unwrap();
    }
    let found = tamis(&format!("estimate {root} --chunk-size 4K --json")).ok().json();
    assert_eq!((&found["files"], &found["logical_bytes"]), (&2.into(), &80_000.into()));
    assert_eq!(value(&found["chunk_sizes"][0]["unique_chunks"]), 10.0);
    assert_eq!(found["chunk_sizes"].as_array().unwrap().len(), 1);

    let vmdk = folder.path("x.vmdk");
    fs::write(&vmdk, "KDMV and so on").unwrap();
    let partly = tamis(&format!("estimate {root} {vmdk}")).fails(1, "x.vmdk is a VMDK image");
    assert!(partly.out.contains("78.1 KiB in 2 files"), "{partly:?}");
    assert!(partly.err.contains("1 file could not be read"), "{partly:?}");
    // Where QEMU's programs are installed, they say that it is damaged.
    let code = if installed("qemu-nbd") { 5 } else { 2 };
    tamis(&format!("estimate {vmdk}")).fails(code, "VMDK");
    tamis(&format!("estimate {root} {root}/nowhere")).fails(3, "nowhere");
    tamis(&format!("estimate {root} --memory 4P")).fails(2, "of memory that");
}

/// What was read before the damage is figures of a part, and says so.
#[test]
fn of_a_file_that_is_read_in_part_no_percentage_is_given() {
    let folder = Folder::new();
    let (image, other) = (folder.path("half.qcow2"), folder.path("other.img"));
    fs::write(&image, late_damage_qcow2(&noise(8, 2 << 20))).unwrap();
    fs::write(&other, noise(9, 1 << 20)).unwrap();
    for (line, heading) in [
        (format!("estimate {image}"), "2 MiB in 1 file ("),
        (format!("estimate {other} {image}"), "3 MiB in 2 files ("),
    ] {
        let told = tamis(&line).fails(1, "only the first 2 MiB of 3 MiB were read");
        assert!(told.out.starts_with(heading), "{}", told.out);
        assert!(told.out.contains("; of 1 file only a part\n"), "{}", told.out);
        assert!(!told.out.contains('%'), "{}", told.out);
        assert!(told.err.contains("damaged qcow2 image"), "{}", told.err);
    }
    let told = tamis(&format!("estimate {image} --json")).fails(1, "not to the end").json();
    assert_eq!(told["files_in_part"], 1, "{told}");
    assert_eq!(told["unreadable"][0]["read_bytes"], 2 << 20, "{told}");
    assert!(size_of(&told, 4096)["codecs"][0]["saved_ratio"].is_null(), "{told}");
}

#[test]
fn a_signal_ends_it_with_a_sentence() {
    let folder = Folder::new();
    let image = folder.path("large.img");
    // Enough of slow work that no machine is done with before the signal.
    let file = File::create(&image).unwrap();
    let part = noise(6, 8 << 20);
    (0..8).for_each(|number| file.write_all_at(&part, number * ((8 << 20) + 512)).unwrap());
    let mut line = command(["estimate", &image, "--compression", "zstd:19", "--threads", "1"]);
    let child = line.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    // It hears signals once it has opened the image.
    while !has_open(&child, &image) {
        std::thread::yield_now();
    }
    kill_process(pid, Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains("stopped by a signal before it was done"), "{said}");
    assert!(ended.stdout.is_empty());
}
