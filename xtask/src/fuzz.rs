//! `cargo xtask fuzz [--seconds N] [TARGET...]`: every fuzz target for a while, then a table.
//!
//! The targets are those of the folder `fuzz`, which is built once with the nightly toolchain and
//! debug assertions. They run one after another, each on its seeds in `fuzz/corpus` and on what
//! earlier runs found, which grows outside the repository (`fuzz/target/grown`). The first target
//! that crashes does not keep the others from their turn; the task then fails and names the inputs.
//! So it does when a target executed nothing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::program::Program;
use crate::table::Table;

const USAGE: &str = "\
usage: cargo xtask fuzz [--seconds N] [TARGET...]
       N seconds for each target, 60 unless told; all targets of fuzz/fuzz_targets unless named";
const SECONDS: u64 = 60;
/// How libFuzzer says which input crashed, and how much it did.
const CRASHING_INPUT: &str = "Test unit written to ";
const EXECUTIONS: &str = "stat::number_of_executed_units:";

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    seconds: u64,
    targets: Vec<String>,
}

/// What one target did.
#[derive(Debug, Default, PartialEq, Eq)]
struct Run {
    executions: Option<u64>,
    crashing_input: Option<String>,
}

/// Builds the targets and runs those that are asked for.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), Failure> {
    let folder = root.join("fuzz");
    let all = targets(&folder)?;
    let Request { seconds, targets } = request(words, &all)?;
    if !cargo_fuzz(root, &["--version"]).succeeds() {
        return Err(Failure::unmet(
            "cargo-fuzz and the nightly toolchain (cargo install cargo-fuzz --locked; \
             rustup toolchain install nightly)",
            "that `cargo +nightly fuzz` does not run",
        ));
    }
    cargo_fuzz(root, &["build"]).show()?;
    let mut table = Table::default();
    table.row(["target", "executions", "crashing input"]);
    let mut failed = false;
    for target in &targets {
        println!("{target}: {seconds} s");
        let run = run_target(root, &folder, target, seconds)?;
        failed |= !run.is_good();
        let executions = run.executions.map_or("-".to_owned(), |count| count.to_string());
        table.row([target, &executions, run.crashing_input.as_deref().unwrap_or("none")]);
    }
    table.print();
    if failed { Err(Failure::Told) } else { Ok(()) }
}

/// The names of all targets, in order.
fn targets(folder: &Path) -> Result<Vec<String>, Failure> {
    let folder = folder.join("fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(Failure::file(&folder))?;
    let files = entries.flatten().map(|entry| entry.path());
    let stem = |path: PathBuf| path.file_stem()?.to_str().map(str::to_owned);
    let mut names: Vec<String> = files.filter_map(stem).collect();
    names.sort();
    Ok(names)
}

fn request(words: &[&str], all: &[String]) -> Result<Request, Failure> {
    let mut request = Request { seconds: SECONDS, targets: Vec::new() };
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "--seconds" => {
                let seconds = words.next().and_then(|word| word.parse().ok());
                request.seconds = seconds.ok_or(Failure::Usage { text: USAGE })?;
            }
            name if all.iter().any(|target| target == name) => {
                request.targets.push(name.to_owned());
            }
            name if name.starts_with('-') => return Err(Failure::Usage { text: USAGE }),
            name => {
                return Err(Failure::unmet(format!("one of {}", all.join(", ")), name));
            }
        }
    }
    if request.targets.is_empty() {
        request.targets = all.to_vec();
    }
    Ok(request)
}

fn run_target(root: &Path, folder: &Path, target: &str, seconds: u64) -> Result<Run, Failure> {
    let grown = folder.join("target/grown").join(target);
    let seeds = folder.join("corpus").join(target);
    for corpus in [&grown, &seeds] {
        fs::create_dir_all(corpus).map_err(Failure::file(corpus))?;
    }
    let time = format!("-max_total_time={seconds}");
    let fuzzer = cargo_fuzz(root, &["run", target]).path(&grown).path(&seeds);
    let mut run = Run::default();
    let ended = fuzzer.args(["--", &time, "-print_final_stats=1"]).overhear(|line| run.read(line));
    match ended {
        // A crash is a result; whatever else went wrong is told as it is.
        Err(failure) if run.crashing_input.is_none() => Err(failure),
        _ => Ok(run),
    }
}

impl Run {
    /// A target that executed nothing has shown nothing.
    fn is_good(&self) -> bool {
        self.crashing_input.is_none() && self.executions.is_some_and(|count| count > 0)
    }

    fn read(&mut self, line: &str) {
        if let Some((_, path)) = line.split_once(CRASHING_INPUT) {
            self.crashing_input = Some(path.trim().to_owned());
        }
        if let Some(count) = line.trim().strip_prefix(EXECUTIONS) {
            self.executions = count.trim().parse().ok();
        }
    }
}

/// The nightly toolchain's, whichever runs this task.
fn cargo_fuzz(root: &Path, words: &[&str]) -> Program {
    let program = Program::new("rustup").folder(root).args(["run", "nightly", "cargo", "fuzz"]);
    program.args(words.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::{Request, Run, request};

    #[test]
    fn the_words_name_seconds_and_targets() {
        let all = ["frame".to_owned(), "record".to_owned()];
        let every = request(&["--seconds", "5"], &all).unwrap();
        assert_eq!(every, Request { seconds: 5, targets: all.to_vec() });
        let one = request(&["record"], &all).unwrap();
        assert_eq!(one, Request { seconds: 60, targets: vec!["record".to_owned()] });
        let told = request(&["recrod"], &all).unwrap_err().to_string();
        assert!(told.contains("frame, record") && told.contains("recrod"), "{told}");
        assert!(request(&["--seconds"], &all).is_err());
        assert!(request(&["--second", "5"], &all).is_err());
    }

    #[test]
    fn a_target_that_executed_nothing_has_failed() {
        let run = |executions| Run { executions, crashing_input: None };
        assert!(run(Some(1)).is_good() && !run(Some(0)).is_good() && !run(None).is_good());
    }

    #[test]
    fn what_the_fuzzer_says_is_read() {
        let mut run = Run::default();
        run.read("artifact_prefix='/a/'; Test unit written to /a/crash-1f");
        run.read("stat::number_of_executed_units: 1254");
        run.read("stat::average_exec_per_sec:     12");
        assert!(!run.is_good());
        let crashing_input = Some("/a/crash-1f".to_owned());
        assert_eq!(run, Run { executions: Some(1254), crashing_input });
    }
}
