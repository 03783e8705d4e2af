//! pgbench: PostgreSQL on every system, with clients that wait for each commit to be durable.
//!
//! A turn begins with a new system and an empty cluster on it: in a file system where the system
//! is one, on ext4 where it is a disk. pgbench fills its tables, a checkpoint is taken, and four
//! clients make transactions for a time. Afterwards the sums that each transaction leaves equal
//! must be equal, and the history must have a row for each commit that was reported.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::contestant::{Contestant, is_there, kernel_knows};
use super::ext4::Ext4;
use super::figures::PgbenchFigures;
use super::postgres::{self, Postgres};
use super::roster::{Notes, Roster};
use crate::args::{Args, Table};
use crate::failure::Failure;
use crate::fio::Target;
use crate::processors::Spent;
use crate::program::patiently;

/// Room of each system: several times what is written.
const SIZE_BYTES: u64 = 2 << 30;
/// 100,000 accounts each, 16 MB in all.
pub(super) const SCALE: &str = "10";
pub(super) const CLIENTS: &str = "4";
const THREADS: &str = "2";
/// Who takes part unless others are named.
const USUAL: [Contestant; 6] = [
    Contestant::Raw,
    Contestant::Nbdkit,
    Contestant::Qcow2,
    Contestant::BtrfsZstd,
    Contestant::ZfsFuse,
    Contestant::Tamis,
];
/// What its log files are called.
const LOGS: &str = "transactions";
/// Of the latencies, the one that so many of a hundred do not exceed.
const PERCENTILE: usize = 95;

/// What pgbench says at its end.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Outcome {
    transactions: u64,
    per_second: f64,
}

/// Who takes part, and their figures, which are empty.
pub(super) fn prepare(args: &Args, notes: &mut Notes) -> (Roster, Vec<PgbenchFigures>) {
    let wanted = |one: &Contestant| match args.names_systems() {
        true => one.keeps_data() && args.takes_part(one.name()),
        false => USUAL.contains(one),
    };
    let asked = args.has_table(Table::Pgbench);
    let wanted = Contestant::ALL.into_iter().filter(|one| asked && wanted(one));
    let roster = Roster::new(Table::Pgbench.name(), wanted, missing, notes);
    let of = |system| PgbenchFigures { system, ..PgbenchFigures::default() };
    let figures = roster.names().map(of).collect();
    (roster, figures)
}

/// Why it cannot take part here, if so.
fn missing(contestant: Contestant) -> Option<String> {
    let needs_served: &[&str] = &["mkfs.ext4", "losetup", "nbdfuse", "fusermount3"];
    let needs = match contestant {
        Contestant::BtrfsZstd | Contestant::BtrfsLzo | Contestant::ZfsFuse => &[],
        Contestant::Raw => &needs_served[..2],
        _ => needs_served,
    };
    let program = needs.iter().find(|program| !is_there(program));
    let reason = match program {
        _ if contestant == Contestant::Qcow2Compressed => {
            Some("it takes whole clusters only".to_owned())
        }
        Some(program) => Some(format!("there is no {program} here")),
        None if !needs.is_empty() && !kernel_knows("ext4") => {
            Some("the kernel has no ext4".to_owned())
        }
        None => postgres::missing().map(str::to_owned),
    };
    contestant.missing().or(reason)
}

/// The turn of one.
pub(super) fn take_turn(
    args: &Args,
    folder: &Path,
    round: u64,
    contestant: Contestant,
    figures: &mut PgbenchFigures,
) -> Result<(), Failure> {
    let system = contestant.start(args, folder, SIZE_BYTES)?;
    let (ext4, place) = match system.target() {
        Target::Buffered { path } => (None, path.parent().unwrap_or(Path::new("/")).to_owned()),
        target => {
            let place = folder.join("ext4");
            (Some(Ext4::make(&target, &place)?), place)
        }
    };
    let postgres = Postgres::make(&place)?;
    let begun = Instant::now();
    patiently(&mut postgres.client("pgbench", &["-i", "-q", "-s", SCALE]))?;
    figures.fill_seconds.push(begun.elapsed().as_secs_f64());
    postgres.sql("checkpoint")?;
    run(args, round, &postgres, figures)?;
    figures.files_mib.push(mib(postgres.stop()?));
    ext4.map_or(Ok(()), Ext4::remove)?;
    figures.stored_mib.push(mib(system.stored_bytes()?));
    system.remove()
}

/// The measured transactions, and whether all of them are there.
fn run(
    args: &Args,
    round: u64,
    postgres: &Postgres,
    figures: &mut PgbenchFigures,
) -> Result<(), Failure> {
    let prefix = postgres.logs().join(LOGS);
    let (prefix, seconds) = (prefix.to_string_lossy(), args.pgbench_seconds.to_string());
    let seed = (round + 1).to_string();
    let mut command = postgres.client(
        "pgbench",
        &[
            "-n",
            "-c",
            CLIENTS,
            "-j",
            THREADS,
            "-T",
            &seconds,
            "--random-seed",
            &seed,
            "--log",
            "--log-prefix",
            &prefix,
        ],
    );
    let before = Spent::now();
    let answer = patiently(&mut command)?;
    let busy = Spent::now().busy_since(before);
    let missing = |missing| Failure::Answer { command: "pgbench".to_owned(), missing };
    let outcome = read_outcome(&answer).ok_or_else(|| missing("transactions without failures"))?;
    let p95_us = p95(latencies(postgres.logs())?).ok_or_else(|| missing("a log"))?;
    figures.transactions_per_second.push(outcome.per_second);
    figures.p95_ms.push(p95_us as f64 / 1000.0);
    figures.cpu_ms_per_transaction.push(1000.0 * busy / outcome.transactions as f64);
    judge(postgres, outcome.transactions)
}

/// Every transaction adds the same to four sums, and a row to the history.
fn judge(postgres: &Postgres, transactions: u64) -> Result<(), Failure> {
    let found = postgres.sql(
        "select (select count(*) from pgbench_history), \
         (select sum(delta) from pgbench_history), \
         (select sum(abalance) from pgbench_accounts), \
         (select sum(tbalance) from pgbench_tellers), \
         (select sum(bbalance) from pgbench_branches)",
    )?;
    let mut parts = found.split('|');
    let rows = parts.next().and_then(|rows| rows.parse().ok());
    let sum = parts.next();
    if rows == Some(transactions) && parts.all(|other| Some(other) == sum) {
        return Ok(());
    }
    let said = format!("after {transactions} commits: rows and four sums that are {found}");
    Err(Failure::Differs { said })
}

fn read_outcome(answer: &str) -> Option<Outcome> {
    let fact = |name: &str| answer.lines().find_map(|line| line.strip_prefix(name));
    let word = |text: &str| text.split_whitespace().next().map(str::to_owned);
    let failed = fact("number of failed transactions: ").and_then(word);
    let processed = fact("number of transactions actually processed: ").and_then(word)?;
    let outcome = Outcome {
        transactions: processed.parse().ok()?,
        per_second: fact("tps = ").and_then(word)?.parse().ok()?,
    };
    (failed.is_none_or(|failed| failed == "0") && outcome.transactions > 0).then_some(outcome)
}

/// In microseconds, of all its log files.
fn latencies(logs: &Path) -> Result<Vec<u64>, Failure> {
    let entries = fs::read_dir(logs).map_err(Failure::file(logs))?;
    let ours = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(LOGS))
    };
    let mut latencies = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()).filter(ours) {
        let text = fs::read_to_string(&path).map_err(Failure::file(&path))?;
        latencies.extend(text.lines().filter_map(read_latency));
    }
    Ok(latencies)
}

/// The third word of a line.
fn read_latency(line: &str) -> Option<u64> {
    line.split(' ').nth(2)?.parse().ok()
}

fn p95(mut latencies: Vec<u64>) -> Option<u64> {
    latencies.sort_unstable();
    let rank = (latencies.len() * PERCENTILE).div_ceil(100);
    latencies.get(rank.checked_sub(1)?).copied()
}

fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Notes, Outcome, p95, prepare, read_latency, read_outcome};
    use crate::args::Args;

    /// What version 15 said here.
    const ANSWER: &str = "pgbench (15.18 (Debian 15.18-0+deb12u1))
transaction type: <builtin: TPC-B (sort of)>
scaling factor: 1
query mode: simple
number of clients: 4
number of threads: 2
maximum number of tries: 1
duration: 2 s
number of transactions actually processed: 1040
number of failed transactions: 0 (0.000%)
latency average = 7.719 ms
initial connection time = 10.866 ms
tps = 518.190221 (without initial connection time)
";

    #[test]
    fn what_pgbench_says_is_read() {
        let outcome = Outcome { transactions: 1040, per_second: 518.190_221 };
        assert_eq!(read_outcome(ANSWER), Some(outcome));
        // Version 14 counts no failures.
        let older: Vec<&str> = ANSWER.lines().filter(|line| !line.contains("failed")).collect();
        assert_eq!(read_outcome(&older.join("\n")), Some(outcome));
        assert_eq!(
            read_outcome(&ANSWER.replace("failed transactions: 0", "failed transactions: 2")),
            None
        );
        assert_eq!(read_outcome(&ANSWER.replace("processed: 1040", "processed: 0")), None);
        assert_eq!(read_outcome("pgbench: error: connection to server failed\n"), None);
    }

    #[test]
    fn latencies_are_read_from_its_log() {
        let log = "0 1 7713 0 1795423466 912928\n1 1 8254 0 1795423466 913509\n0 2 failed 0 1 2\n";
        let read: Vec<u64> = log.lines().filter_map(read_latency).collect();
        assert_eq!(read, [7713, 8254]);
        assert_eq!(p95((1..=100).rev().collect()), Some(95));
        assert_eq!((p95(vec![7]), p95(Vec::new())), (Some(7), None));
    }

    #[test]
    fn six_systems_take_part_unless_others_are_named() {
        let taking_part = |only: &[&str]| {
            let args = Args::parse_from(["bench", "whole"].iter().chain(only));
            let mut notes = Notes::default();
            let (roster, figures) = prepare(&args, &mut notes);
            assert!(roster.names().eq(figures.iter().map(|system| system.system)));
            // Here or not, they were meant.
            let mut names: Vec<&str> = roster.names().collect();
            names.extend(notes.skipped.iter().map(|one| one.system));
            names.sort_unstable();
            names
        };
        let usual = ["btrfs-zstd", "nbdkit", "qcow2", "raw", "tamis", "zfs-fuse"];
        assert_eq!(taking_part(&[]), usual);
        assert_eq!(taking_part(&["--only=pgbench"]), usual);
        assert_eq!(taking_part(&["--only=tamis-sync,raw"]), ["raw", "tamis-sync"]);
        assert_eq!(taking_part(&["--only=data"]), [""; 0]);
    }
}
