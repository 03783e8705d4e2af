//! The Python package (`crates/python`): its wheel, its types and its tests, in an environment of
//! its own under `target/`.
//!
//! The environment is made once, from PyPI; a machine that cannot make one skips the step with a
//! sentence. What a library is not there for is skipped by pytest itself.

use std::fs;
use std::path::Path;

use crate::failure::Failure;
use crate::program::Program;
use crate::steps::{Counts, Steps};

/// What builds and tests the wheel, and the libraries that read and write by URL.
const PACKAGES: [&str; 13] = [
    "maturin>=1.9,<2",
    "pytest",
    "mypy",
    "fsspec",
    "numpy",
    "pyarrow",
    "pandas",
    "polars",
    "duckdb",
    "dask[dataframe]",
    "zarr",
    "boto3",
    "matplotlib",
];

/// Runs what belongs to the package, or says why not.
pub(crate) fn run(root: &Path, steps: &mut Steps) {
    let environment = root.join("target/python");
    match prepare(&environment) {
        Ok(()) => steps.run("python", || check(root, &environment)),
        Err(failure) => {
            let why = failure.to_string();
            let first = why.lines().last().unwrap_or_default();
            steps.skip("python", &format!("needs Python 3.9 with venv, and PyPI once: {first}"));
        }
    }
}

/// Makes the environment, unless it has all packages already.
fn prepare(environment: &Path) -> Result<(), Failure> {
    let told = environment.join("packages.txt");
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(&told).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    Program::new("python3").args(["-m", "venv", "--clear"]).path(environment).run()?;
    let pip = Program::new(environment.join("bin/pip"));
    let options = ["install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"];
    pip.args(options).args(PACKAGES).run()?;
    fs::write(&told, wanted).map_err(Failure::file(&told))
}

fn check(root: &Path, environment: &Path) -> Result<Counts, Failure> {
    let program = |name: &str| Program::new(environment.join("bin").join(name));
    // A server for the tests, and the module into the environment.
    Program::new("cargo").folder(root).args(["build", "--quiet", "-p", "cli"]).show()?;
    let module = root.join("crates/python");
    let wheels = root.join("target/wheels/debug");
    program("maturin")
        .folder(&module)
        .args(["build", "--quiet", "--profile", "dev", "--out"])
        .path(&wheels)
        .show()?;
    program("pip")
        .args(["install", "--quiet", "--disable-pip-version-check", "--force-reinstall"])
        .args(["--no-deps", "--no-index", "--find-links"])
        .path(&wheels)
        .arg("tamis")
        .show()?;
    program("mypy").folder(&module).args(["--strict", "-p", "tamis"]).show()?;
    let server = format!("TAMIS_PROGRAM={}", root.join("target/debug/tamis").display());
    let mut counts = Counts { passed: 0, failed: 0 };
    let outcome = Program::new("env")
        .folder(&module)
        .arg(server)
        .path(&environment.join("bin/pytest"))
        .args(["-q", "-p", "no:cacheprovider", "--durations", "5"])
        .watch(|line| counts = read_result(line).unwrap_or(counts));
    counts.of(outcome)
}

/// Reads the line with which pytest closes.
fn read_result(line: &str) -> Option<Counts> {
    let (facts, time) = line.rsplit_once(" in ")?;
    if !time.contains('s') {
        return None;
    }
    let number_of = |kind: &str| {
        let found = facts.trim_start_matches('=').split(',').find_map(|fact| {
            let (number, word) = fact.trim().split_once(' ')?;
            word.starts_with(kind).then(|| number.parse().ok())?
        });
        found.unwrap_or(0)
    };
    let counts =
        Counts { passed: number_of("passed"), failed: number_of("failed") + number_of("error") };
    (counts.passed + counts.failed > 0).then_some(counts)
}

#[cfg(test)]
mod tests {
    use super::read_result;
    use crate::steps::Counts;

    #[test]
    fn the_closing_line_of_pytest_is_counted() {
        let found = read_result("2 failed, 90 passed, 3 skipped, 1 error in 12.34s");
        assert_eq!(found, Some(Counts { passed: 90, failed: 3 }));
        let found = read_result("===== 7 passed in 0.10s =====");
        assert_eq!(found, Some(Counts { passed: 7, failed: 0 }));
        assert_eq!(read_result("tests/test_a.py ....   [ 10%]"), None);
        assert_eq!(read_result("what is in seconds"), None);
    }
}
