//! The project's own tasks: `cargo xtask tidy`, `cargo xtask test`, `cargo xtask acceptance`,
//! `cargo xtask fuzz`, `cargo xtask rtl`, `cargo xtask data-sets`.
//!
//! Everything that a developer or CI runs goes through here, in Rust, so that there is one way to
//! do it and nothing lives in a shell script that no test covers:
//!
//! - `tidy` holds the laws of the house that the compiler cannot hold: who may import whom, how
//!   long a file may be, which names and calls are banned in which room.
//! - `test` is *the* test command of the README and the only thing that `.ci/run` calls.
//! - `soak` lets real programs work on a volume for as long as one likes, and kills the server
//!   under them.
//! - `acceptance` drives the built server with real clients (qemu-img, nbdfuse, libnbd, fio, the
//!   kernel's file systems) through scenarios that are the promises of the product.
//! - `fuzz` feeds every decoder, and the whole engine, with whatever a fuzzer thinks of.
//! - `rtl` lints, proves, draws, synthesizes and measures the hardware in `rtl/`.
//! - `data-sets` makes the sets of real data that figures are measured over.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod acceptance;
mod clients;
mod data_sets;
mod failure;
mod fuzz;
mod go_client;
mod program;
mod python;
mod rtl;
mod soak;
mod steps;
mod table;
mod test_command;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::failure::Failure;

const USAGE: &str = "\
usage: cargo xtask tidy                      the laws of the house
       cargo xtask test                      everything that must pass before a change is merged
       cargo xtask acceptance [NAME...]      real clients against the built server
                  [--short] [--kills N] [--rounds N] [--seed N]
       cargo xtask acceptance --list         the scenarios and what each shows
       cargo xtask soak [NAME...]            real programs, killed again and again
                  [--minutes N] [--short] [--seed N]
       cargo xtask soak --list               the scenarios and what each shows
       cargo xtask fuzz [TARGET...]          every fuzz target for a while (nightly, cargo-fuzz)
                  [--seconds N]
       cargo xtask rtl                       the hardware: lint, proofs, pictures, figures
                  [--pictures | --coverage |  (verilator, yosys, z3)
                   --real-cores | --image FILE]
       cargo xtask data-sets DIR             real data to measure over (needs the registries,
                                             and a fresh `apt-get update`)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words.iter().any(|word| matches!(*word, "--help" | "-h" | "help")) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let outcome = match words.as_slice() {
        ["tidy"] => tidy::run(&root()),
        ["test"] => test_command::run(&root()),
        ["soak", rest @ ..] => soak::run(&root(), rest),
        [acceptance::RELEASE, folder] => acceptance::release_when_orphaned(Path::new(folder)),
        ["acceptance", rest @ ..] => acceptance::run(&root(), rest),
        ["fuzz", rest @ ..] => fuzz::run(&root(), rest),
        ["rtl", rest @ ..] => rtl::run(&root(), rest),
        ["data-sets", dir] => data_sets::run(Path::new(dir)),
        _ => Err(Failure::Usage { text: USAGE }),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Told) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's root, wherever the command was started.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}
