//! The pictures of `docs/design/hardware.md`: the modules, from their sources, and three moments of
//! a simulation, from its trace.

use std::fs;
use std::path::Path;

use super::diagram;
use super::waveform::{self, Picture, Row, Shown};
use crate::clients;
use crate::failure::Failure;
use crate::program::Program;

const FOLDER: &str = "docs/design";

const fn bit(label: &'static str, signal: &'static str, bit: u32) -> Row {
    Row { label, signal, shown: Shown::Bit(bit) }
}
const fn number(label: &'static str, signal: &'static str) -> Row {
    Row { label, signal, shown: Shown::Number }
}
const fn state(label: &'static str, signal: &'static str) -> Row {
    Row { label, signal, shown: Shown::State }
}

/// What `cosim`'s example `waveforms` simulates, a trace of its name each.
const WAVES: [Picture; 3] = [
    Picture {
        name: "duplicate",
        begins_with: "dedup_stubbed.digest_valid",
        cycles: 32,
        rows: &[
            bit("digest comes", "dedup_stubbed.digest_valid", 0),
            state("look-up 0", "fsms[0].lookup.phase"),
            bit("lock granted", "locks.granted", 0),
            bit("memory: read", "dedup_stubbed.read_valid", 0),
            bit("memory: line", "dedup_stubbed.response_valid", 0),
            bit("memory: write", "dedup_stubbed.write_valid", 0),
            bit("memory: has landed", "dedup_stubbed.write_done_valid", 0),
            bit("device: new header", "dedup_stubbed.device_valid", 0),
            bit("host: answer", "dedup_stubbed.result_valid", 0),
        ],
    },
    Picture {
        name: "parking",
        begins_with: "locks.request_valid",
        cycles: 44,
        rows: &[
            bit("lock asked for", "locks.request_valid", 0),
            number("by look-up", "locks.request_fsm"),
            state("look-up 0", "fsms[0].lookup.phase"),
            bit("0: granted", "locks.granted", 0),
            state("look-up 1", "fsms[1].lookup.phase"),
            bit("1: parked", "locks.parked", 1),
            bit("1: granted", "locks.granted", 1),
            state("look-up 2", "fsms[2].lookup.phase"),
            bit("2: granted", "locks.granted", 2),
        ],
    },
    Picture {
        name: "spill",
        begins_with: "indices.spilling",
        cycles: 48,
        rows: &[
            bit("spilling", "indices.spilling", 0),
            number("indices to take", "indices.ready_count"),
            number("given back", "indices.freed_count"),
            number("in the line", "indices.packed_count"),
            bit("line is written", "indices.write_valid", 0),
            bit("line has landed", "indices.write_done", 0),
            number("lines in memory", "indices.stored_lines"),
            number("of them landed", "indices.landed_lines"),
            number("free in all", "indices.free_count"),
        ],
    },
];

/// Draws all of them: the modules of `sources` in `rtl/`, and waveforms where Verilator is.
pub(super) fn draw_all(root: &Path, sources: &[&str]) -> Result<(), Failure> {
    let sources = sources.iter().chain(&["dedup_core/dedup_core.sv"]);
    let texts = sources.map(|source| read(&root.join("rtl").join(source)));
    let modules = diagram::draw("dedup_core", &texts.collect::<Result<Vec<_>, _>>()?);
    write(root, "hardware-modules.svg", &modules)?;
    if !clients::missing(&["verilator"]).is_empty() {
        return Ok(());
    }
    let traces = root.join("target/rtl/traces");
    fs::create_dir_all(&traces).map_err(Failure::file(&traces))?;
    let example =
        ["run", "--quiet", "-p", "cosim", "--features", "trace", "--example", "waveforms"];
    Program::new("cargo").folder(root).args(example).arg("--").path(&traces).run()?;
    let states = read(&root.join("rtl/dedup_core/lookup_fsm.sv"))?;
    for picture in &WAVES {
        let vcd = read(&traces.join(format!("{}.vcd", picture.name)))?;
        let svg = waveform::draw(picture, &vcd, &states);
        write(root, &format!("hardware-{}.svg", picture.name), &svg)?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(Failure::file(path))
}

fn write(root: &Path, name: &str, svg: &str) -> Result<(), Failure> {
    let path = root.join(FOLDER).join(name);
    fs::write(&path, svg).map_err(Failure::file(&path))
}
