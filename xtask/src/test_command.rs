//! `cargo xtask test`: the test command of the README and of CI.
//!
//! In the order of what breaks soonest: form, laws, lints, links, tests, the hardware, the client
//! in Go, the Python package, the canary, and then the server with real clients in short form. It
//! works in a fresh clone without input, needs no clock to be right, and ends with one line:
//! `N passed, N failed`.

use std::path::Path;

use crate::acceptance;
use crate::clients;
use crate::failure::Failure;
use crate::go_client;
use crate::program::Program;
use crate::python;
use crate::rtl;
use crate::soak;
use crate::steps::{Counts, Steps};
use crate::tidy;

/// Runs every step and tells the sum.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let mut steps = Steps::default();
    clients::install();
    steps.run("format", || cargo(root, &["fmt", "--all", "--check"]).show().map(one));
    steps.run("tidy", || tidy::run(root).map(one));
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    steps.run("clippy", || cargo(root, &clippy).show().map(one));
    let docs = ["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"];
    steps.run("docs", || cargo(root, &docs).show().map(one));
    // A workspace of its own, for which cargo needs no nightly toolchain unless it runs.
    let fuzzers = ["check", "--quiet", "--manifest-path", "fuzz/Cargo.toml", "--bins"];
    steps.run("fuzzers", || cargo(root, &fuzzers).show().map(one));
    steps.run("tests", || tests(root));
    rtl::check(root, &mut steps);
    go_client::run(root, &mut steps);
    python::run(root, &mut steps);
    // The tests have built it; alone it would be a build of its own, with other features.
    let lab = root.join("target/debug/lab");
    steps.run("canary", || Program::new(&lab).arg("canary").show().map(one));
    acceptance::run_short(root, &mut steps);
    soak::run_short(root, &mut steps);
    steps.finish()
}

/// `cargo test`, counted test by test.
fn tests(root: &Path) -> Result<Counts, Failure> {
    let mut counts = Counts { passed: 0, failed: 0 };
    // With the feature's own tests: alone they would be a build of their own.
    let all = ["test", "--workspace", "--features", "bench/allocations", "--no-fail-fast"];
    let outcome = cargo(root, &all).watch(|line| {
        if let Some(found) = read_result(line) {
            counts.passed += found.passed;
            counts.failed += found.failed;
        }
    });
    counts.of(outcome)
}

/// Reads the line with which every test binary closes.
fn read_result(line: &str) -> Option<Counts> {
    let facts = line.strip_prefix("test result: ")?;
    let number_before = |word: &str| {
        let (before, _) = facts.split_once(word)?;
        before.split_whitespace().next_back()?.parse().ok()
    };
    Some(Counts { passed: number_before(" passed")?, failed: number_before(" failed")? })
}

fn cargo(root: &Path, arguments: &[&str]) -> Program {
    Program::new("cargo").folder(root).args(arguments.iter().copied())
}

fn one((): ()) -> Counts {
    Counts::ONE
}

#[cfg(test)]
mod tests {
    use super::read_result;
    use crate::steps::Counts;

    #[test]
    fn the_closing_line_of_a_test_binary_is_counted() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out";
        assert_eq!(read_result(line), Some(Counts { passed: 12, failed: 3 }));
        assert_eq!(read_result("test a::b ... ok"), None);
    }
}
