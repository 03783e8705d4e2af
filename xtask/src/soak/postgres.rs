//! PostgreSQL with pgbench on ext4, over kills: no commit that pgbench saw is lost, its sums agree,
//! `pg_amcheck` finds nothing.
//!
//! Each of pgbench's transactions changes an account, a teller and a branch by the same amount and
//! enters it into the history; the four sums are therefore the same at every moment, and the
//! history has a row for each commit. pgbench logs what it saw committed. When the server dies,
//! PostgreSQL can write no more, and panics or is shut down at once; after the kill it recovers
//! from its write-ahead log by itself. Pages carry its own checksums.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::acceptance::Setting;
use crate::clients;
use crate::failure::Failure;
use crate::program::Program;
use crate::soak::crashing::{Crashing, EXT4};
use crate::soak::pgbench::{CLIENTS, Pgbench};
use crate::soak::rounds::Rounds;

const USER: &str = "postgres";
const SCALE: &str = "5";
const DATABASE: &str = "postgres";
const PATIENCE: Duration = Duration::from_secs(120);
/// What makes kills land in checkpoints too, and keeps the store small.
const SETTINGS: [&str; 5] = [
    "listen_addresses=",
    "max_wal_size=64MB",
    "checkpoint_timeout=30s",
    "shared_buffers=32MB",
    "restart_after_crash=off",
];
/// pgbench reports its progress once a second.
const SECONDS_MIN: u64 = 3;
const SECONDS_MAX: u64 = 9;

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let mut rounds = Rounds::new(setting);
    let mut crashing = Crashing::make(setting, &EXT4)?;
    let postgres = Postgres::new(setting, crashing.folder())?;
    postgres.program("initdb").args(["-k", "-A", "trust", "-D"]).path(&postgres.data).run()?;
    let mut running = postgres.start()?;
    postgres.client("pgbench").args(["-i", "-q", "-s", SCALE, DATABASE]).run()?;
    postgres.sql("create extension amcheck")?;
    let mut committed = 0;
    while let Some(round) = rounds.next() {
        let at = rounds.kill_within(SECONDS_MIN, SECONDS_MAX);
        let bench = Pgbench::start(postgres.client("pgbench"), DATABASE, &postgres.logs, round)?;
        let seen = bench.watch(at, || crashing.kill())?;
        running.fall()?;
        committed += seen;
        crashing.come_back()?;
        running = postgres.start()?;
        let found = postgres.judge(committed, round)?;
        println!("round {round}: {seen} commits seen; {committed} in all, {found} in the history");
        committed = found;
    }
    running.stop()?;
    crashing.judge(&EXT4)?;
    crashing.end()
}

/// The program and where its things are.
struct Postgres {
    data: PathBuf,
    /// On a disk that stays.
    logs: PathBuf,
}

impl Postgres {
    fn new(setting: &Setting, mounted: &Path) -> Result<Postgres, Failure> {
        let (data, logs) = (mounted.join("postgres"), setting.work.join("logs"));
        for folder in [&data, &logs] {
            fs::create_dir_all(folder).map_err(Failure::file(folder))?;
            Program::new("chown").arg(USER).path(folder).run()?;
        }
        Ok(Postgres { data, logs })
    }

    /// One of its programs, under its user, dying when ours does.
    fn program(&self, name: &str) -> Program {
        let folder = clients::postgres_programs().unwrap_or_default();
        let uid = ["--reuid", USER, "--regid", USER, "--init-groups", "--pdeathsig", "KILL"];
        Program::new("setpriv").args(uid).path(&folder.join(name)).folder(&self.logs)
    }

    /// One that talks to the running server; its socket lies in the logs' folder.
    fn client(&self, name: &str) -> Program {
        self.program(name).arg("-h").path(&self.logs).args(["-U", USER])
    }

    fn sql(&self, statement: &str) -> Result<String, Failure> {
        self.client("psql").args(["-XAtqc", statement, DATABASE]).output()
    }

    /// Starts it and waits until it has recovered.
    fn start(&self) -> Result<Running, Failure> {
        let log = self.logs.join("postgres.log");
        let file = File::options().create(true).append(true).open(&log);
        let file = file.map_err(Failure::file(&log))?;
        let program =
            self.program("postgres").arg("-D").path(&self.data).arg("-k").path(&self.logs);
        let program = SETTINGS.iter().fold(program, |program, one| program.args(["-c", one]));
        let command = program.to_string();
        let output = file.try_clone().map_err(Failure::file(&log))?;
        let child = program.into_command().stdout(output).stderr(Stdio::from(file)).spawn();
        let mut running =
            Running { child: child.map_err(|source| Failure::Start { command, source })? };
        let begun = Instant::now();
        while self.client("pg_isready").run().is_err() {
            let ended = running.child.try_wait().map_err(Failure::file(&log))?;
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let said = fs::read_to_string(&log).unwrap_or_default();
                let tail = said.lines().rev().take(12).collect::<Vec<_>>().join("\n");
                return Err(Failure::unmet("a PostgreSQL that recovers", tail));
            }
            sleep(Duration::from_millis(50));
        }
        Ok(running)
    }

    /// Everything that must hold after a crash; returns the rows of the history.
    fn judge(&self, committed: u64, round: u64) -> Result<u64, Failure> {
        let amcheck = self.client("pg_amcheck").args(["--heapallindexed", "--rootdescend"]);
        amcheck.arg(DATABASE).run()?;
        let sums = self.sql(
            "select (select sum(abalance) from pgbench_accounts), \
             (select sum(tbalance) from pgbench_tellers), \
             (select sum(bbalance) from pgbench_branches), \
             (select coalesce(sum(delta), 0) from pgbench_history)",
        )?;
        let mut parts = sums.trim().split('|');
        let first = parts.next().unwrap_or_default();
        if !parts.all(|part| part == first) {
            return Err(Failure::unmet("four sums that are the same", sums));
        }
        let rows = self.sql("select count(*) from pgbench_history")?;
        let found: u64 =
            rows.trim().parse().map_err(|_| Failure::unmet("a count", rows.as_str()))?;
        // What was committed when the answer could not be given any more: one per client.
        let expected = committed..=committed + CLIENTS;
        if !expected.contains(&found) {
            let expected = format!("{expected:?} rows of history in round {round}");
            return Err(Failure::unmet(expected, rows));
        }
        Ok(found)
    }
}

/// The running server; killed when dropped.
struct Running {
    child: Child,
}

impl Running {
    /// Its disk has gone: if it has not fallen by itself, it is made to, at once.
    fn fall(self) -> Result<(), Failure> {
        self.end("-QUIT")
    }

    /// Ends it in good order.
    fn stop(self) -> Result<(), Failure> {
        self.end("-INT")
    }

    fn end(mut self, signal: &str) -> Result<(), Failure> {
        Program::new("kill").arg(signal).arg(self.child.id().to_string()).succeeds();
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if self.child.try_wait().is_ok_and(|status| status.is_some()) {
                return Ok(());
            }
            sleep(Duration::from_millis(20));
        }
        Err(Failure::unmet("a PostgreSQL that ends", "one that goes on"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail when it has ended, and then there is nothing left to do.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
