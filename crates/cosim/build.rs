//! Makes a C++ model of each block of `rtl/` with Verilator, and compiles it with its shim.
//!
//! Where Verilator is missing nothing is made and `cfg(verilator)` is not set, so that the room
//! compiles and its tests say that they were skipped.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A block that is simulated: the top module, whose shim is `shim/TOP.cpp`, and its sources in
/// `rtl/`, packages first.
struct Model {
    top: &'static str,
    sources: &'static [&'static [&'static str]],
    /// What Verilator is told beside.
    arguments: Vec<String>,
}

const SHA3: &[&str] = &["sha3/keccak_round.sv", "sha3/sha3_256.sv"];
const BCH: &[&str] = &["bch/bch_encoder.sv"];
/// DedupCore without its hash group and its top.
const ENGINE: &[&str] = &[
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
];
const REAL_CORES: &[&str] =
    &["dedup_core/hash_lane.sv", "dedup_core/hash_group.sv", "dedup_core/dedup_core.sv"];
const MUTANTS: &[&str] = &["dedup_core/mutants.sv"];
const STUB: &[&str] = &["dedup_core/hash_group_stub.sv", "dedup_core/dedup_stubbed.sv"];

/// SHA3 cores of the hash group, unless `COSIM_CORES` says how many: each one costs time to compile
/// and to simulate.
const CORES: &str = "4";

fn models(cores: &str) -> [Model; 4] {
    let model =
        |top, sources, arguments: &[String]| Model { top, sources, arguments: arguments.to_vec() };
    [
        model("sha3_256", &[SHA3], &[]),
        model("bch_encoder", &[BCH], &[]),
        model("dedup_core", &[SHA3, ENGINE, REAL_CORES], &[format!("-GCORES={cores}")]),
        model("dedup_stubbed", &[MUTANTS, ENGINE, STUB], &["-DTAMIS_MUTANTS".to_owned()]),
    ]
}

/// Features of the room that are options of Verilator, which makes slower models of them.
#[derive(Clone, Copy)]
struct Extras {
    coverage: bool,
    trace: bool,
}

/// What every model needs of Verilator's own sources.
const RUNTIME: [&str; 3] = ["verilated.cpp", "verilated_threads.cpp", "verilated_cov.cpp"];
/// What a model that is traced needs as well.
const TRACING: &str = "verilated_vcd_c.cpp";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rustc-check-cfg=cfg(verilator)");
    println!("cargo:rerun-if-env-changed=PATH");
    println!("cargo:rerun-if-env-changed=COSIM_CORES");
    let cores = std::env::var("COSIM_CORES").unwrap_or_else(|_| CORES.to_owned());
    println!("cargo:rustc-env=COSIM_CORES={cores}");
    let Some(root) = verilator_root() else {
        println!("cargo:warning=Verilator is not installed: the hardware is not simulated");
        return Ok(());
    };
    println!("cargo:rustc-cfg=verilator");
    let own = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let rtl = own.join("../../rtl");
    println!("cargo:rerun-if-changed={}", rtl.display());
    println!("cargo:rerun-if-changed={}", own.join("shim").display());
    let has = |feature| std::env::var_os(feature).is_some();
    let extras =
        Extras { coverage: has("CARGO_FEATURE_COVERAGE"), trace: has("CARGO_FEATURE_TRACE") };
    let include = root.join("include");
    for model in models(&cores) {
        let generated = verilate(&model, &rtl, extras)?;
        let mut build = compiler(&include, &own.join("shim"), extras);
        build.include(&generated).files(cpp_files(&generated)?);
        build.file(own.join(format!("shim/{}.cpp", model.top))).compile(model.top);
    }
    let mut runtime = compiler(&include, &own.join("shim"), extras);
    runtime.files(RUNTIME.iter().map(|name| include.join(name)));
    if extras.trace {
        runtime.file(include.join(TRACING));
    }
    runtime.file(own.join("shim/stop.cpp")).compile("verilated");
    println!("cargo:rustc-link-lib=pthread");
    Ok(())
}

/// Where Verilator keeps its own sources; none where it is not installed.
fn verilator_root() -> Option<PathBuf> {
    let answer = Command::new("verilator").args(["--getenv", "VERILATOR_ROOT"]).output().ok()?;
    let text = String::from_utf8(answer.stdout).ok()?;
    Some(PathBuf::from(text.trim())).filter(|root| root.join("include/verilated.h").is_file())
}

/// Runs Verilator on one model and returns the folder of what it made.
fn verilate(model: &Model, rtl: &Path, extras: Extras) -> Result<PathBuf, Box<dyn Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let folder = out.join(model.top);
    // What an earlier build left there would be compiled as well.
    let _ = std::fs::remove_dir_all(&folder);
    let mut verilator = Command::new("verilator");
    verilator.args(["--cc", "-Wall", "--assert", "-O3", "--top-module", model.top]);
    verilator.args(["--prefix", &format!("V{}", model.top)]);
    verilator.args(&model.arguments);
    verilator
        .arg("-Mdir")
        .arg(&folder)
        .arg(format!("+incdir+{}", rtl.join("dedup_core").display()));
    if extras.coverage {
        verilator.arg("--coverage-line");
    }
    if extras.trace {
        verilator.arg("--trace");
    }
    verilator.args(model.sources.iter().copied().flatten().map(|source| rtl.join(source)));
    let status = verilator.status()?;
    if !status.success() {
        return Err(format!("Verilator refused `{}`", model.top).into());
    }
    Ok(folder)
}

fn compiler(include: &Path, shim: &Path, extras: Extras) -> cc::Build {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(1).debug(false).warnings(false);
    build.include(include).include(include.join("vltstd")).include(shim);
    let flag = |is_on: bool| if is_on { "1" } else { "0" };
    build.define("VM_COVERAGE", flag(extras.coverage)).define("VM_TRACE", flag(extras.trace));
    // An assertion that fails is told to the test, and does not end the process.
    build.define("VL_USER_STOP", None);
    build
}

fn cpp_files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = std::fs::read_dir(folder)?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|kind| kind == "cpp")).collect())
}
