//! Two real disks go in with qemu-img and come back the same, and the savings that the server
//! claims are what an independent count says.
//!
//! The count is a plain Python script that knows nothing of us: a set of BLAKE2 digests of all
//! 4-KiB chunks, and the sizes that the reference LZ4 library gives the unique ones.

use std::path::PathBuf;

use crate::acceptance::server::{Stats, Store};
use crate::acceptance::{Setting, images};
use crate::failure::Failure;
use crate::program::Program;
use crate::table::{Table, percent_off};

/// How far the number of unique chunks may lie from the count, in percent.
const CHUNKS_OFF_MAX: f64 = 0.1;
/// How far the stored bytes may lie from the sum of compressed unique chunks, in percent.
const BYTES_OFF_MAX: f64 = 8.0;
const VOLUMES: [&str; 2] = ["first", "second"];

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let images = images::pair(setting)?;
    let counted = count(setting, &images)?;
    let store = Store::init(setting, if setting.short { "1G" } else { "4G" })?;
    let server = store.serve(&[])?;
    for (image, volume) in images.iter().zip(VOLUMES) {
        let size = std::fs::metadata(image).map_err(Failure::file(image))?.len();
        store.create_volume(volume, &size.to_string())?;
        convert(image.as_os_str().to_owned(), store.uri(volume).into())?;
    }
    come_back(setting, &store, &images)?;
    let stats = store.stats()?;
    server.stop()?;
    store.check()?;
    let server = store.serve(&[])?;
    come_back(setting, &store, &images)?;
    server.stop()?;
    compare_figures(setting, &counted, &stats)
}

/// Both volumes, read over NBD, are their images: compared in place, and converted back.
fn come_back(setting: &Setting, store: &Store, images: &[PathBuf]) -> Result<(), Failure> {
    let back = setting.work.join("back.img");
    for (image, volume) in images.iter().zip(VOLUMES) {
        let raw = ["-f", "raw", "-F", "raw"];
        let compare = Program::new("qemu-img").arg("compare").args(raw).path(image);
        compare.arg(store.uri(volume)).run()?;
        let convert = Program::new("qemu-img").args(["convert", "-f", "raw", "-O", "raw"]);
        convert.arg(store.uri(volume)).path(&back).run()?;
        Program::new("cmp").path(image).path(&back).run()?;
    }
    Ok(())
}

fn convert(from: std::ffi::OsString, to: std::ffi::OsString) -> Result<(), Failure> {
    let convert = Program::new("qemu-img").args(["convert", "-n", "-f", "raw", "-O", "raw"]);
    convert.arg(from).arg(to).run()
}

/// What the independent script found.
struct Counted {
    chunks: u64,
    zeros: u64,
    unique: u64,
    lz4_bytes: u64,
}

fn count(setting: &Setting, images: &[PathBuf]) -> Result<Counted, Failure> {
    let script = setting.script("count_chunks.py");
    let script = images.iter().fold(script, |script, image| script.path(image));
    let command = script.to_string();
    let answer = script.json()?;
    let number = |field: &str| {
        let missing =
            || Failure::MissingField { command: command.clone(), field: field.to_owned() };
        answer[field].as_u64().ok_or_else(missing)
    };
    Ok(Counted {
        chunks: number("chunks")?,
        zeros: number("zeros")?,
        unique: number("unique")?,
        lz4_bytes: number("lz4_bytes")?,
    })
}

fn compare_figures(setting: &Setting, counted: &Counted, stats: &Stats) -> Result<(), Failure> {
    println!("{} chunks of 4 KiB, {} of them zeros", counted.chunks, counted.zeros);
    println!("device_bytes without the journal of {} bytes", stats.number("journal_bytes")?);
    let mut table = Table::default();
    table.row(["figure", "counted", "tamis", "off by %", "at most"]);
    let mut broken = Vec::new();
    let figures = [
        ("unique_chunks", counted.unique, CHUNKS_OFF_MAX),
        ("stored_bytes", counted.lz4_bytes, BYTES_OFF_MAX),
        ("device_bytes", counted.lz4_bytes, BYTES_OFF_MAX),
    ];
    // The journal's ring is a fixed cost of a store, whatever is in it.
    let journal_bytes = stats.number("journal_bytes")?;
    for (field, expected, off_max) in figures {
        let fixed = if field == "device_bytes" { journal_bytes } else { 0 };
        let found = stats.number(field)?.saturating_sub(fixed);
        let off = percent_off(found, expected);
        let cells = [expected.to_string(), found.to_string(), format!("{off:+.3}")];
        table.row([field, &cells[0], &cells[1], &cells[2], &off_max.to_string()]);
        // A small store cannot spread the fixed cost of its tables over its data.
        let holds = off.abs() <= off_max || (setting.short && field == "device_bytes");
        if !holds {
            broken.push(format!("{field} off by {off:+.3}%"));
        }
    }
    table.print();
    if broken.is_empty() {
        Ok(())
    } else {
        Err(Failure::unmet("figures as counted", broken.join(", ")))
    }
}
