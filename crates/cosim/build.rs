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
    sources: &'static [&'static str],
}

const MODELS: [Model; 3] = [
    Model { top: "sha3_256", sources: &["sha3/keccak_round.sv", "sha3/sha3_256.sv"] },
    Model { top: "bch_encoder", sources: &["bch/bch_encoder.sv"] },
    Model {
        top: "dedup_stubbed",
        sources: &[
            "dedup_core/dedup.sv",
            "dedup_core/mutants.sv",
            "dedup_core/fifo.sv",
            "dedup_core/round_robin.sv",
            "dedup_core/bucket_locks.sv",
            "dedup_core/free_indices.sv",
            "dedup_core/lookup_fsm.sv",
            "dedup_core/lookup_engine.sv",
            "dedup_core/instruction_issuer.sv",
            "dedup_core/page_writer.sv",
            "dedup_core/dedup_engine.sv",
            "dedup_core/hash_group_stub.sv",
            "dedup_core/dedup_stubbed.sv",
        ],
    },
];

/// What every model needs of Verilator's own sources.
const RUNTIME: [&str; 3] = ["verilated.cpp", "verilated_threads.cpp", "verilated_cov.cpp"];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rustc-check-cfg=cfg(verilator)");
    println!("cargo:rerun-if-env-changed=PATH");
    let Some(root) = verilator_root() else {
        println!("cargo:warning=Verilator is not installed: the hardware is not simulated");
        return Ok(());
    };
    println!("cargo:rustc-cfg=verilator");
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let rtl = own.join("../../rtl");
    println!("cargo:rerun-if-changed={}", rtl.display());
    println!("cargo:rerun-if-changed={}", own.join("shim").display());
    let coverage = std::env::var_os("CARGO_FEATURE_COVERAGE").is_some();
    let include = root.join("include");
    for model in MODELS {
        let generated = verilate(&model, &rtl, coverage)?;
        let mut build = compiler(&include, &own.join("shim"), coverage);
        build.include(&generated).files(cpp_files(&generated)?);
        build.file(own.join(format!("shim/{}.cpp", model.top))).compile(model.top);
    }
    let mut runtime = compiler(&include, &own.join("shim"), coverage);
    runtime.files(RUNTIME.iter().map(|name| include.join(name)));
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
fn verilate(model: &Model, rtl: &Path, coverage: bool) -> Result<PathBuf, Box<dyn Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let folder = out.join(model.top);
    // What an earlier build left there would be compiled as well.
    let _ = std::fs::remove_dir_all(&folder);
    let mut verilator = Command::new("verilator");
    verilator.args(["--cc", "-Wall", "--assert", "-O3", "--top-module", model.top]);
    verilator.args(["--prefix", &format!("V{}", model.top), "-DTAMIS_MUTANTS"]);
    verilator
        .arg("-Mdir")
        .arg(&folder)
        .arg(format!("+incdir+{}", rtl.join("dedup_core").display()));
    if coverage {
        verilator.arg("--coverage-line");
    }
    verilator.args(model.sources.iter().map(|source| rtl.join(source)));
    let status = verilator.status()?;
    if !status.success() {
        return Err(format!("Verilator refused `{}`", model.top).into());
    }
    Ok(folder)
}

fn compiler(include: &Path, shim: &Path, coverage: bool) -> cc::Build {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(1).debug(false).warnings(false);
    build.include(include).include(include.join("vltstd")).include(shim);
    build.define("VM_COVERAGE", if coverage { "1" } else { "0" }).define("VM_TRACE", "0");
    // An assertion that fails is told to the test, and does not end the process.
    build.define("VL_USER_STOP", None);
    build
}

fn cpp_files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = std::fs::read_dir(folder)?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|kind| kind == "cpp")).collect())
}
