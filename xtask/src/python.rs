//! The Python package (`crates/python`): its wheel, its types and its tests, in an environment of
//! its own under `target/`, and the tests once more with another version of Python, where the
//! machine has one: one wheel is for all of them (abi3).
//!
//! The environments are made once, from PyPI; a machine that cannot make one skips the step with a
//! sentence. What a library is not there for is skipped by pytest itself.

use std::fs;
use std::path::{Path, PathBuf};

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

/// The package, and where its wheels are put.
const MODULE: &str = "crates/python";
const WHEELS: &str = "target/wheels/debug";

/// What the tests need of another version of Python; those of other libraries are skipped there.
const SECOND_PACKAGES: [&str; 4] = ["pytest", "fsspec", "numpy", "pyarrow"];
/// What is tested there: what rests on Python itself, and not what Parquet's readers do.
const SECOND_TESTS: [&str; 4] = [
    "tests/test_embedded.py",
    "tests/test_filesystem.py",
    "tests/test_processes.py",
    "tests/test_tables.py",
];
/// The versions that the wheel is for, the oldest first.
const VERSIONS: [&str; 5] = ["3.9", "3.10", "3.11", "3.12", "3.13"];

/// Runs what belongs to the package, or says why not.
pub(crate) fn run(root: &Path, steps: &mut Steps) {
    let environment = root.join("target/python");
    match prepare(&environment, Path::new("python3"), &PACKAGES) {
        Ok(()) => steps.run("python", || check(root, &environment)),
        Err(failure) => return skip(steps, "python", &failure),
    }
    let Some(python) = second_python() else {
        let why = "needs a second version of Python from 3.9 on, on the path or of pyenv";
        return steps.skip("python, second version", why);
    };
    let environment = root.join("target/python-second");
    match prepare(&environment, &python, &SECOND_PACKAGES) {
        Ok(()) => steps.run("python, second version", || {
            install(root, &environment)?;
            test(root, &environment, &SECOND_TESTS)
        }),
        Err(failure) => skip(steps, "python, second version", &failure),
    }
}

fn skip(steps: &mut Steps, name: &str, failure: &Failure) {
    let why = failure.to_string();
    let first = why.lines().last().unwrap_or_default();
    steps.skip(name, &format!("needs Python 3.9 with venv, and PyPI once: {first}"));
}

/// The oldest Python of those that the wheel is for, and of another version than `python3`.
fn second_python() -> Option<PathBuf> {
    let version = |python: &Path| {
        let code = "import sys; print('%d.%d' % sys.version_info[:2])";
        let said = Program::new(python).args(["-c", code]).output().ok()?;
        Some(said.trim().to_owned())
    };
    let first = version(Path::new("python3"))?;
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let pyenv = fs::read_dir(home.join(".pyenv/versions")).into_iter().flatten().flatten();
    let of_pyenv = pyenv.map(|entry| entry.path().join("bin/python3"));
    let on_path = VERSIONS.map(|wanted| PathBuf::from(format!("python{wanted}")));
    let found = on_path.into_iter().chain(of_pyenv).filter_map(|python| {
        let version = version(&python).filter(|version| *version != first)?;
        let age = VERSIONS.iter().position(|wanted| *wanted == version)?;
        Some((age, python))
    });
    found.min_by_key(|(age, _)| *age).map(|(_, python)| python)
}

/// Makes the environment, unless it has all packages already.
fn prepare(environment: &Path, python: &Path, packages: &[&str]) -> Result<(), Failure> {
    let told = environment.join("packages.txt");
    let wanted = packages.join("\n");
    if fs::read_to_string(&told).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    Program::new(python).args(["-m", "venv", "--clear"]).path(environment).run()?;
    let pip = Program::new(environment.join("bin/pip"));
    let options = ["install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"];
    pip.args(options).args(packages.iter().copied()).run()?;
    fs::write(&told, wanted).map_err(Failure::file(&told))
}

fn check(root: &Path, environment: &Path) -> Result<Counts, Failure> {
    let program = |name: &str| Program::new(environment.join("bin").join(name));
    // A server for the tests, and the module into the environment.
    Program::new("cargo").folder(root).args(["build", "--quiet", "-p", "cli"]).show()?;
    let module = root.join(MODULE);
    program("maturin")
        .folder(&module)
        .args(["build", "--quiet", "--profile", "dev", "--out"])
        .path(&root.join(WHEELS))
        .show()?;
    install(root, environment)?;
    program("mypy").folder(&module).args(["--strict", "-p", "tamis"]).show()?;
    test(root, environment, &[])
}

/// Installs the wheel that was built last.
fn install(root: &Path, environment: &Path) -> Result<(), Failure> {
    Program::new(environment.join("bin/pip"))
        .args(["install", "--quiet", "--disable-pip-version-check", "--force-reinstall"])
        .args(["--no-deps", "--no-index", "--find-links"])
        .path(&root.join(WHEELS))
        .arg("tamis")
        .show()
}

/// Runs these files of tests; none: all.
fn test(root: &Path, environment: &Path, files: &[&str]) -> Result<Counts, Failure> {
    let server = format!("TAMIS_PROGRAM={}", root.join("target/debug/tamis").display());
    let mut counts = Counts { passed: 0, failed: 0 };
    let outcome = Program::new("env")
        .folder(&root.join(MODULE))
        .arg(server)
        .path(&environment.join("bin/pytest"))
        .args(["-q", "-p", "no:cacheprovider", "--durations", "5"])
        .args(files.iter().copied())
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
