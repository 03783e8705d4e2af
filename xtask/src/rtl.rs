//! `cargo xtask rtl`: lint, simulation, proofs, synthesis and figures of the hardware in `rtl/`.
//!
//! Verilator lints, `cosim` simulates, Yosys with z3 proves the lock and the free list for every
//! input of a bounded length, Yosys synthesizes for UltraScale+, and `cosim`'s example measures.
//! What is synthesized and measured goes to `docs/measurements/054-rtl.md`. A tool that is missing
//! takes its step with it, and the step says so.
//!
//! Four things take long or are seldom wanted, and are asked for one by one: line coverage,
//! simulation with real SHA3 cores, an image through hardware and store, and the pictures alone.

mod areas;
mod coverage;
mod diagram;
mod pictures;
mod trace;
mod waveform;

use std::fs;
use std::path::Path;

use self::coverage::Coverage;

use crate::clients;
use crate::failure::Failure;
use crate::program::Program;
use crate::steps::{Counts, Steps};

const PAGE: &str = "docs/measurements/054-rtl.md";
const USAGE: &str = "\
usage: cargo xtask rtl                 lint, proofs, pictures, figures
       cargo xtask rtl --pictures      those of docs/design/hardware.md
       cargo xtask rtl --coverage      lines that the co-simulation runs, by module
       cargo xtask rtl --real-cores    the whole core with all of its 64 SHA3 cores
       cargo xtask rtl --image FILE    a disk's image through the hardware and into a store";
/// SHA3 cores of the hash group as it is synthesized.
const CORES: &str = "COSIM_CORES=64";
/// Sources of DedupCore in `rtl/`, packages first, without its top.
const DEDUP_CORE: [&str; 14] = [
    "sha3/keccak_round.sv",
    "sha3/sha3_256.sv",
    "dedup_core/dedup.sv",
    "dedup_core/fifo.sv",
    "dedup_core/round_robin.sv",
    "dedup_core/bucket_locks.sv",
    "dedup_core/free_indices.sv",
    "dedup_core/lookup_fsm.sv",
    "dedup_core/lookup_engine.sv",
    "dedup_core/instruction_issuer.sv",
    "dedup_core/page_writer.sv",
    "dedup_core/dedup_engine.sv",
    "dedup_core/hash_lane.sv",
    "dedup_core/hash_group.sv",
];

/// The top of DedupCore.
const DEDUP_CORE_TOP: &str = "dedup_core/dedup_core.sv";

/// A module that is proved with `proofs/MODULE_proof.sv`, and the cycles.
const PROVED: [(&str, u32); 2] = [("bucket_locks", 14), ("free_indices", 11)];

/// Runs what is asked for.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    match arguments {
        [] => run_all(root),
        ["--pictures"] => pictures::draw_all(root, &DEDUP_CORE),
        ["--coverage"] => verilator().and_then(|()| count_lines(root)),
        ["--real-cores"] => verilator()
            .and_then(|()| simulate(root, &[CORES], &["--test", "real_cores"], &["--nocapture"])),
        ["--image", image] => verilator().and_then(|()| take_image(root, image)),
        _ => Err(Failure::Usage { text: USAGE }),
    }
}

/// A simulation that is asked for by name needs Verilator: without it `cosim` has no tests, and all
/// of them pass.
fn verilator() -> Result<(), Failure> {
    if clients::missing(&["verilator"]).is_empty() {
        return Ok(());
    }
    Err(Failure::unmet("the program `verilator` (Debian package `verilator`)", "none"))
}

/// Runs everything and writes the page.
fn run_all(root: &Path) -> Result<(), Failure> {
    let mut steps = Steps::default();
    check(root, &mut steps);
    steps.run("pictures of the hardware", || {
        pictures::draw_all(root, &DEDUP_CORE).map(|()| Counts::ONE)
    });
    if clients::missing(&["yosys"]).is_empty() && clients::missing(&["verilator"]).is_empty() {
        steps.run("figures of the hardware", || write_page(root).map(|()| Counts::ONE));
    }
    steps.finish()
}

/// What belongs to every test run; the simulations are tests of `cosim` and run with all others.
pub(crate) fn check(root: &Path, steps: &mut Steps) {
    if clients::missing(&["verilator"]).is_empty() {
        steps.run("lint of the hardware", || lint(root).map(|()| Counts::ONE));
    } else {
        steps.skip("lint of the hardware", "needs verilator; so do the tests of `cosim`");
    }
    if clients::missing(&["yosys", "z3"]).is_empty() {
        steps.run("proofs of the hardware", || prove(root));
    } else {
        steps.skip("proofs of the hardware", "needs yosys and z3");
    }
}

fn lint(root: &Path) -> Result<(), Failure> {
    let verilator = |top: &str, sources: &[&str]| {
        let program = Program::new("verilator").folder(&root.join("rtl"));
        let program = program.args(["--lint-only", "-Wall", "-Idedup_core", "--top-module", top]);
        program.args(sources.iter().copied()).show()
    };
    verilator("bch_encoder", &["bch/bch_encoder.sv"])?;
    verilator("dedup_core", &[DEDUP_CORE.as_slice(), &[DEDUP_CORE_TOP]].concat())
}

fn prove(root: &Path) -> Result<Counts, Failure> {
    let out = root.join("target/rtl");
    fs::create_dir_all(&out).map_err(Failure::file(&out))?;
    for (module, cycles) in PROVED {
        let smt2 = out.join(format!("{module}.smt2"));
        // Single gates: z3 does not end with the words of the module.
        let script = format!(
            "read_verilog -sv -formal -Idedup_core dedup_core/fifo.sv dedup_core/{module}.sv \
             proofs/{module}_proof.sv; prep -top {module}_proof -flatten; memory_map; async2sync; \
             opt -full; techmap; opt -fast; dffunmap; abc -g AND,XOR,MUX; opt_clean; \
             write_smt2 -wires {}",
            smt2.display()
        );
        yosys(root, &script)?;
        let cycles = cycles.to_string();
        let solver = ["--noprogress", "--unroll", "-s", "z3", "-t", &cycles];
        Program::new("yosys-smtbmc").folder(root).args(solver).path(&smt2).run()?;
    }
    Ok(Counts { passed: PROVED.len() as u64, failed: 0 })
}

fn yosys(root: &Path, script: &str) -> Result<String, Failure> {
    Program::new("yosys").folder(&root.join("rtl")).args(["-p", script]).output()
}

/// Tests of `cosim`, with variables of the environment.
fn simulate(
    root: &Path,
    variables: &[&str],
    tests: &[&str],
    harness: &[&str],
) -> Result<(), Failure> {
    let cargo = Program::new("env").folder(root).args(variables.iter().copied());
    let cargo = cargo.args(["cargo", "test", "-p", "cosim"]).args(tests.iter().copied());
    cargo.arg("--").args(harness.iter().copied()).show()
}

/// Simulates with counters in every block, and prints the table of them.
fn count_lines(root: &Path) -> Result<(), Failure> {
    let folder = root.join("target/rtl/coverage");
    // What an earlier run counted is not added.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    let variable = format!("COSIM_COVERAGE={}", folder.display());
    let tests = ["--features", "coverage", "--tests"];
    // A known fault covers what the hardware itself may never do.
    simulate(root, &[&variable], &tests, &["--skip", "every_known_fault"])?;
    let mut coverage = Coverage::default();
    for entry in fs::read_dir(&folder).map_err(Failure::file(&folder))?.flatten() {
        let path = entry.path();
        coverage.add(&fs::read_to_string(&path).map_err(Failure::file(&path))?);
    }
    print!("{}", coverage.table());
    Ok(())
}

/// Takes an image through hardware and engine, and checks the store as its users do.
fn take_image(root: &Path, image: &str) -> Result<(), Failure> {
    let store = root.join("target/rtl/store");
    let _ = fs::remove_dir_all(&store);
    let image = fs::canonicalize(image).map_err(Failure::file(Path::new(image)))?;
    let image = format!("COSIM_IMAGE={}", image.display());
    let place = format!("COSIM_STORE={}", store.display());
    let tests = ["--test", "whole_path"];
    simulate(root, &[&image, &place], &tests, &["--nocapture", "an_image"])?;
    let check = ["run", "--quiet", "-p", "cli", "--", "check"];
    Program::new("cargo").folder(root).args(check).path(&store).show()
}

/// The page: what follows from the sources is made anew, the text above it stays.
fn write_page(root: &Path) -> Result<(), Failure> {
    let example = ["run", "--quiet", "-p", "cosim", "--example", "measure"];
    let figures = Program::new("cargo").folder(root).args(example).output()?;
    let areas = areas::section(root)?;
    let page = root.join(PAGE);
    let text = fs::read_to_string(&page).map_err(Failure::file(&page))?;
    let (head, _) = text.split_once(MADE).unwrap_or((&text, ""));
    let made = format!("{head}{MADE}\n\n{figures}\n{areas}");
    fs::write(&page, made).map_err(Failure::file(&page))
}

/// What stands above the part of the page that is made.
const MADE: &str = "<!-- made by `cargo xtask rtl` -->";
