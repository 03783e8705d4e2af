//! Where figures were made: no figure means anything without it.

use std::fs;
use std::process::Command;

use serde::Serialize;

use crate::failure::Failure;
use crate::heap;
use crate::program::output;

/// The machine, the day and the code.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: String,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
    pub(crate) date: String,
    pub(crate) commit: String,
    pub(crate) command: String,
}

impl Machine {
    /// Asks the machine.
    pub(crate) fn look() -> Result<Self, Failure> {
        let facts = output(Command::new("lscpu").env("LC_ALL", "C"))?;
        Ok(Self {
            processor: fact(&facts, "Model name:"),
            cores: fact(&facts, "CPU(s):"),
            memory_mib: memory_mib(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
            kernel: line(Command::new("uname").arg("-sr"))?,
            date: line(Command::new("date").args(["-u", "+%F %H:%M UTC"]))?,
            commit: commit().unwrap_or_else(|_| "unknown: no repository here".to_owned()),
            command: command(),
        })
    }
}

/// Processes that wanted to run, on average over the last minute.
pub(crate) fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or_default()
}

/// Empties the page cache; false when that is not allowed here.
pub(crate) fn drop_caches() -> bool {
    output(&mut Command::new("sync")).is_ok() && fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

fn line(command: &mut Command) -> Result<String, Failure> {
    Ok(output(command)?.trim().to_owned())
}

fn commit() -> Result<String, Failure> {
    let commit = line(Command::new("git").args(["rev-parse", "--short=12", "HEAD"]))?;
    let changed =
        line(Command::new("git").args(["status", "--porcelain", "--untracked-files=no"]))?;
    Ok(if changed.is_empty() { commit } else { format!("{commit} with changes") })
}

fn command() -> String {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let build = match heap::RECORDS {
        true => "--profile counting -p bench --features allocations",
        false => "--release -p bench",
    };
    format!("cargo run {build} -- {}", arguments.join(" "))
}

fn fact(facts: &str, name: &str) -> String {
    let value = facts.lines().find_map(|line| line.trim().strip_prefix(name));
    value.map_or_else(|| "unknown".to_owned(), |value| value.trim().to_owned())
}

fn memory_mib(meminfo: &str) -> u64 {
    let kib = fact(meminfo, "MemTotal:");
    kib.trim_end_matches(" kB").parse::<u64>().unwrap_or_default() / 1024
}

#[cfg(test)]
mod tests {
    use super::{fact, memory_mib};

    #[test]
    fn facts_are_found_by_name() {
        let facts = "Architecture: x\nCPU(s):    2\nOn-line CPU(s) list: 0,1\n";
        assert_eq!(fact(facts, "CPU(s):"), "2");
        assert_eq!(fact(facts, "Model name:"), "unknown");
        assert_eq!(memory_mib("MemTotal:       24000 kB\n"), 23);
    }
}
