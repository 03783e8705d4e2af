//! pgbench while it runs, and its own log of what it saw committed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;

use crate::failure::Failure;
use crate::program::Program;
use crate::soak::rounds::KillAt;

pub(crate) const CLIENTS: u64 = 4;

/// A run that goes on until its server is gone.
pub(crate) struct Pgbench {
    child: Child,
    logs: PathBuf,
    /// What the names of its log files begin with.
    prefix: String,
}

impl Pgbench {
    /// Starts it; `program` knows the server.
    pub(crate) fn start(
        program: Program,
        database: &str,
        logs: &Path,
        round: u64,
    ) -> Result<Pgbench, Failure> {
        let prefix = format!("commits-{round}");
        let clients = CLIENTS.to_string();
        // -n: no vacuum, which would begin by emptying the history.
        let program = program.args(["-n", "-c", &clients, "-j", "2", "-T", "3600", "-P", "1"]);
        let program = program.args(["--log", "--log-prefix", &prefix, database]);
        let command = program.to_string();
        let child = program.into_command().stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let child = child.map_err(|source| Failure::Start { command, source })?;
        Ok(Pgbench { child, logs: logs.to_path_buf(), prefix })
    }

    /// Waits for the moment, kills, waits for its end; returns how many commits it has seen.
    pub(crate) fn watch(
        mut self,
        at: KillAt,
        kill: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<u64, Failure> {
        let lines =
            self.child.stderr.take().into_iter().flat_map(|err| BufReader::new(err).lines());
        let (mut kill, mut reports) = (Some(kill), 0);
        for line in lines.map_while(Result::ok) {
            reports += u64::from(line.starts_with("progress:"));
            if reports == at.lines
                && let Some(kill) = kill.take()
            {
                sleep(at.pause);
                kill()?;
            }
        }
        self.child.wait().map_err(Failure::file(&self.logs))?;
        if kill.is_some() {
            return Err(Failure::unmet("a pgbench that runs until the kill", "one that stops"));
        }
        self.commits()
    }

    fn commits(&self) -> Result<u64, Failure> {
        let files = fs::read_dir(&self.logs).map_err(Failure::file(&self.logs))?;
        let mut commits = 0;
        for file in files.flatten() {
            if file.file_name().to_string_lossy().starts_with(&format!("{}.", self.prefix)) {
                let path = file.path();
                let text = fs::read_to_string(&path).map_err(Failure::file(&path))?;
                commits += text.lines().filter(|line| !line.contains("failed")).count() as u64;
            }
        }
        Ok(commits)
    }
}
