//! A PostgreSQL of its own: its cluster in a given folder, its socket and its logs in another.
//!
//! It does not run as root, so it runs as the user that Debian's package makes. It syncs what it
//! commits, as it always does, and listens at a Unix socket only.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::program::{output, patiently, short_path, words};

const USER: &str = "postgres";
const DATABASE: &str = "postgres";
/// Where Debian keeps the programs, a folder for each version.
const PROGRAMS: &str = "/usr/lib/postgresql";
/// Less than the data, so that pages are written and read.
const SETTINGS: [&str; 4] = ["-c", "listen_addresses=", "-c", "shared_buffers=32MB"];
const TIME_LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// A running cluster; it is ended when dropped.
pub(super) struct Postgres {
    programs: PathBuf,
    /// Of its user, at a short path: its socket, its log, and those of clients.
    logs: PathBuf,
    cluster: PathBuf,
    server: Option<Child>,
}

/// Why there can be none here, if so.
pub(super) fn missing() -> Option<&'static str> {
    let is_root = || output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if programs().is_none() {
        return Some("there is no PostgreSQL here (Debian's package: postgresql)");
    }
    if output(Command::new("id").arg(USER)).is_err() {
        return Some("there is no user postgres here");
    }
    (!is_root()).then_some("only root may become the user postgres")
}

impl Postgres {
    /// Makes a cluster in a folder `postgres` of `place`, and starts it.
    pub(super) fn make(place: &Path) -> Result<Self, Failure> {
        let (logs, cluster) = (short_path("postgres"), place.join("postgres"));
        let programs = programs().unwrap_or_default();
        let mut postgres = Self { programs, logs, cluster, server: None };
        for folder in [&postgres.logs, &postgres.cluster] {
            fs::create_dir(folder).map_err(Failure::file(folder))?;
            output(Command::new("chown").arg(USER).arg(folder))?;
        }
        let mut init = postgres.program("initdb");
        init.args(["--no-locale", "--encoding=UTF8", "--auth=trust", "-D"]);
        patiently(init.arg(&postgres.cluster))?;
        postgres.start()?;
        Ok(postgres)
    }

    /// Where clients may leave files.
    pub(super) fn logs(&self) -> &Path {
        &self.logs
    }

    /// A program that talks to the server about its database, which is the last word.
    pub(super) fn client(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = self.program(name);
        command.arg("-h").arg(&self.logs).args(["-U", USER]).args(arguments).arg(DATABASE);
        command
    }

    /// What a statement returns, columns parted by `|`.
    pub(super) fn sql(&self, statement: &str) -> Result<String, Failure> {
        let answer = patiently(&mut self.client("psql", &["-XAtqc", statement]))?;
        Ok(answer.trim().to_owned())
    }

    /// Writes everything out and ends the server; returns the bytes of the cluster's files.
    pub(super) fn stop(mut self) -> Result<u64, Failure> {
        self.end("-INT")?;
        let answer = output(Command::new("du").args(["-s", "-b"]).arg(&self.cluster))?;
        let bytes = answer.split_whitespace().next().and_then(|word| word.parse().ok());
        bytes.ok_or_else(|| Failure::Answer { command: "du".to_owned(), missing: "a size" })
    }

    /// One of its programs, under its user, that ends when we do.
    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("setpriv");
        let user = ["--reuid", USER, "--regid", USER, "--init-groups", "--pdeathsig", "QUIT"];
        // Its user may not be allowed to stand where we do.
        command.args(user).arg(self.programs.join(name)).current_dir("/");
        command
    }

    fn start(&mut self) -> Result<(), Failure> {
        let log = self.logs.join("log");
        let file = File::options().create(true).append(true).open(&log);
        let file = file.map_err(Failure::file(&log))?;
        let errors = file.try_clone().map_err(Failure::file(&log))?;
        let mut command = self.program("postgres");
        command.arg("-D").arg(&self.cluster).arg("-k").arg(&self.logs).args(SETTINGS);
        command.stdin(Stdio::null()).stdout(file).stderr(errors).process_group(0);
        let server = command.spawn();
        let server =
            server.map_err(|source| Failure::Start { command: words(&command), source })?;
        let server = self.server.insert(server);
        let begun = Instant::now();
        loop {
            let runs = matches!(server.try_wait(), Ok(None));
            let mut ready = Command::new(self.programs.join("pg_isready"));
            if runs && output(ready.arg("-q").arg("-h").arg(&self.logs)).is_ok() {
                return Ok(());
            }
            if !runs || begun.elapsed() > TIME_LIMIT {
                let said = fs::read_to_string(&log).unwrap_or_default();
                return Err(Failure::Silent { server: USER, said });
            }
            sleep(PAUSE);
        }
    }

    fn end(&mut self, signal: &str) -> Result<(), Failure> {
        let Some(mut server) = self.server.take() else { return Ok(()) };
        let asked = output(Command::new("kill").arg(signal).arg(server.id().to_string()));
        let begun = Instant::now();
        while matches!(server.try_wait(), Ok(None)) {
            if begun.elapsed() > TIME_LIMIT {
                // Its children see that it has gone, and end.
                let _ = server.kill();
                let _ = server.wait();
                let said = "it was asked to end and did not".to_owned();
                return Err(Failure::Silent { server: USER, said });
            }
            sleep(PAUSE);
        }
        asked.map(drop)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // At once, and after a failure, which is what is told.
        let _ = self.end("-QUIT");
        let _ = fs::remove_dir_all(&self.logs);
    }
}

/// The programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(PROGRAMS).ok()?.flatten().map(|version| version.path());
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let folder = versions.max_by_key(number)?.join("bin");
    folder.join("pgbench").is_file().then_some(folder)
}
