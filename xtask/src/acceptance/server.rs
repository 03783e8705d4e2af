//! A store under test and the server that serves it.
//!
//! The socket lies in the system's folder for such things, because its path may be no longer than
//! 108 bytes wherever the clone is. A server that is dropped is killed, so that no scenario that
//! fails leaves one behind; one that lives far longer than any scenario needs is killed as well, so
//! that a request it never answers turns into an error of the client that waits for it.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::acceptance::Setting;
use crate::clients;
use crate::failure::Failure;
use crate::program::Program;

/// After this a server that neither answers nor ends is taken for hung.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long a server may live before it is taken for hung, and everything that waits for it.
const LIFE_MAX: Duration = Duration::from_secs(600);
/// Between two looks at what is about to happen.
const GLANCE: Duration = Duration::from_millis(1);
const SIGKILL: i32 = 9;
const LOG: &str = "server.log";
const LOG_LINES_TOLD: usize = 20;

/// A store made for one scenario.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    tamis: PathBuf,
    folder: PathBuf,
    socket: PathBuf,
    log: PathBuf,
    /// How long the last opening took, to the answer of the doors.
    opening_took: Cell<Duration>,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    log: PathBuf,
    /// Where in the log its own words begin.
    log_start: u64,
    /// Dropped with the server, which ends its watch.
    _watched: Sender<()>,
}

impl Store {
    /// Makes a store of `capacity` (as `tamis init` takes it) in the scenario's folder.
    pub(crate) fn init(setting: &Setting, capacity: &str) -> Result<Store, Failure> {
        Store::init_with(setting, "store", capacity, &[])
    }

    /// The same with these options of `tamis init`, one of several in the scenario's folder.
    pub(crate) fn init_with(
        setting: &Setting,
        name: &str,
        capacity: &str,
        options: &[&str],
    ) -> Result<Store, Failure> {
        let socket = format!("tamis-{}-{name}.sock", std::process::id());
        // Two servers at once say each what they say.
        let log = if name == "store" { LOG.to_owned() } else { format!("{name}-{LOG}") };
        let store = Store {
            tamis: setting.tamis.clone(),
            folder: setting.work.join(name),
            socket: std::env::temp_dir().join(socket),
            log: setting.work.join(log),
            opening_took: Cell::default(),
        };
        let init = store.tamis("init").path(&store.folder).args(["--capacity", capacity]);
        init.args(options.iter().copied()).run()?;
        Ok(store)
    }

    /// The same store, of which servers are this program.
    pub(crate) fn run_by(&self, tamis: &Path) -> Store {
        Store { tamis: tamis.to_path_buf(), ..self.clone() }
    }

    /// Starts the server and waits until it answers.
    pub(crate) fn serve(&self, options: &[&str]) -> Result<Server, Failure> {
        let mut server = self.start(options)?;
        let begun = Instant::now();
        server.wait_until_ready(&self.socket)?;
        self.opening_took.set(begun.elapsed());
        Ok(server)
    }

    /// How long the last server took until it answered.
    pub(crate) fn opening_took(&self) -> Duration {
        self.opening_took.get()
    }

    /// Starts the server and kills it `pause` after it began to open the store, wherever that has
    /// come to; returns what it said. It must be one that says so.
    pub(crate) fn interrupt_opening(
        &self,
        options: &[&str],
        pause: Duration,
    ) -> Result<String, Failure> {
        let server = self.start(options)?;
        let begun = Instant::now();
        while server.told()?.is_empty() && begun.elapsed() < PATIENCE {
            sleep(GLANCE);
        }
        sleep(pause);
        server.kill()
    }

    fn start(&self, options: &[&str]) -> Result<Server, Failure> {
        if self.socket.exists() {
            fs::remove_file(&self.socket).map_err(Failure::file(&self.socket))?;
        }
        let program = dying_with_us(&self.tamis).arg("serve").path(&self.folder);
        let program = program.arg("--nbd").arg(self.listen());
        Server::start(program.args(options.iter().copied()), &self.log)
    }

    /// Makes a volume; the server runs.
    pub(crate) fn create_volume(&self, name: &str, size: &str) -> Result<(), Failure> {
        let program = self.tamis("volume").arg("create").path(&self.folder);
        program.args([name, "--size", size]).run()
    }

    /// What the running server says of itself.
    pub(crate) fn stats(&self) -> Result<Stats, Failure> {
        Stats::ask(self.tamis("stats").path(&self.folder))
    }

    /// Where the store is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of its volumes and snapshots.
    pub(crate) fn volumes(&self) -> Result<Vec<String>, Failure> {
        let listed = self.tamis("volume").arg("list").path(&self.folder).arg("--json").json()?;
        let named = |volume: &Value| volume["name"].as_str().map(str::to_owned);
        Ok(listed["volumes"].as_array().into_iter().flatten().filter_map(named).collect())
    }

    /// Has room made in it.
    pub(crate) fn collect(&self, options: &[&str]) -> Result<(), Failure> {
        self.tamis("collect").path(&self.folder).args(options.iter().copied()).run()
    }

    /// Reads all that is stored; damage is a failure.
    pub(crate) fn scrub(&self) -> Result<(), Failure> {
        self.tamis("scrub").path(&self.folder).args(["--fingerprint", "--rate", "unlimited"]).run()
    }

    /// Checks the closed store; any problem is a failure.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let report = self.tamis("check").path(&self.folder).arg("--json").json()?;
        match report["problems"].as_array() {
            Some(problems) if problems.is_empty() => Ok(()),
            _ => Err(Failure::unmet("a check without problems", report.to_string())),
        }
    }

    /// What a client calls the volume `name`.
    pub(crate) fn uri(&self, name: &str) -> String {
        format!("nbd+unix:///{name}?socket={}", self.socket.display())
    }

    /// Where the server listens.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    fn listen(&self) -> String {
        format!("unix:{}", self.socket.display())
    }

    fn tamis(&self, command: &str) -> Program {
        Program::new(&self.tamis).arg(command)
    }
}

impl Server {
    /// Starts `program`, which serves a store; what it says goes to the end of `log`.
    pub(crate) fn start(program: Program, log: &Path) -> Result<Server, Failure> {
        let output = File::options().create(true).append(true).open(log);
        let output = output.map_err(Failure::file(log))?;
        let log_start = log.metadata().map_or(0, |facts| facts.len());
        let text = program.to_string();
        let mut command = program.into_command();
        let errors = output.try_clone().map_err(Failure::file(log))?;
        let child = command.stdout(Stdio::from(output)).stderr(Stdio::from(errors)).spawn();
        let child = child.map_err(|source| Failure::Start { command: text, source })?;
        Ok(Server { _watched: watch(child.id()), child, log: log.to_path_buf(), log_start })
    }

    /// Waits until it has said these words; returns all that it has said by then.
    pub(crate) fn hear(&mut self, words: &str) -> Result<String, Failure> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let told = self.told()?;
            if told.contains(words) {
                return Ok(told);
            }
            if let Some(status) = self.child.try_wait().map_err(in_process)? {
                return Err(Failure::unmet(
                    format!("a server that says {words:?}"),
                    format!("{status}; it said:\n{told}"),
                ));
            }
            sleep(GLANCE);
        }
        Err(Failure::unmet(format!("a server that says {words:?}"), self.told()?))
    }

    /// For who waits for its end otherwise.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// What it has said so far.
    pub(crate) fn told(&self) -> Result<String, Failure> {
        let mut text = String::new();
        let mut log = File::open(&self.log).map_err(Failure::file(&self.log))?;
        let read =
            log.seek(SeekFrom::Start(self.log_start)).and_then(|_| log.read_to_string(&mut text));
        read.map(|_| text).map_err(Failure::file(&self.log))
    }

    /// kill -9: no warning, no goodbye. Returns what it had said in its life. One that had ended
    /// by itself was not killed, and that is a failure.
    pub(crate) fn kill(mut self) -> Result<String, Failure> {
        let status = self.child.kill().and_then(|()| self.child.wait()).map_err(in_process)?;
        if status.signal() == Some(SIGKILL) {
            return self.told();
        }
        Err(Failure::unmet("a server that runs until it is killed", status.to_string()))
    }

    /// Asks it to end, and expects that it does so well.
    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        Program::new("kill").arg("-TERM").arg(self.process().to_string()).run()?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().map_err(in_process)? {
                let found = format!("{status}");
                let well = status.success();
                return if well {
                    Ok(())
                } else {
                    Err(Failure::unmet("a server that ends well", found))
                };
            }
            sleep(Duration::from_millis(20));
        }
        Err(Failure::unmet("a server that ends when asked", "one that goes on"))
    }

    fn wait_until_ready(&mut self, socket: &Path) -> Result<(), Failure> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if UnixStream::connect(socket).is_ok() {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait().map_err(in_process)? {
                return Err(Failure::unmet("a server that starts", status.to_string()));
            }
            sleep(GLANCE);
        }
        Err(Failure::unmet("a server that answers", "silence"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail when the process has already ended, and then there is nothing left to do.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The answer of `tamis stats --json`.
#[derive(Clone, Debug)]
pub(crate) struct Stats {
    command: String,
    answer: Value,
}

impl Stats {
    /// That of `stats`, a command line that lacks nothing but how it is to answer.
    pub(crate) fn ask(stats: Program) -> Result<Self, Failure> {
        let stats = stats.arg("--json");
        let command = stats.to_string();
        Ok(Self { command, answer: stats.json()? })
    }

    /// One of its numbers.
    pub(crate) fn number(&self, field: &str) -> Result<u64, Failure> {
        self.answer[field].as_u64().ok_or_else(|| Failure::MissingField {
            command: self.command.clone(),
            field: field.to_owned(),
        })
    }

    /// One of its counters.
    pub(crate) fn counter(&self, field: &str) -> Result<u64, Failure> {
        let counters =
            Stats { command: self.command.clone(), answer: self.answer["counters"].clone() };
        counters.number(field)
    }
}

/// Prints the end of what each server said, for a scenario that failed.
pub(crate) fn tell_log(work: &Path) {
    let files = fs::read_dir(work).into_iter().flatten().flatten().map(|file| file.path());
    for log in files.filter(|path| path.to_string_lossy().ends_with(LOG)) {
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let told = lines.iter().skip(lines.len().saturating_sub(LOG_LINES_TOLD));
        told.for_each(|line| println!("  server: {line}"));
    }
}

/// The server's program, in a process that the kernel kills when ours dies, however that comes.
pub(crate) fn dying_with_us(tamis: &Path) -> Program {
    if clients::missing(&["setpriv"]).is_empty() {
        Program::new("setpriv").args(["--pdeathsig", "KILL"]).path(tamis)
    } else {
        Program::new(tamis)
    }
}

/// Kills the process once it has lived too long, unless what is returned is dropped before.
fn watch(process: u32) -> Sender<()> {
    let (watched, ended) = channel();
    spawn(move || {
        if ended.recv_timeout(LIFE_MAX) == Err(RecvTimeoutError::Timeout) {
            println!("the server still runs after {} s and is killed", LIFE_MAX.as_secs());
            Program::new("kill").arg("-KILL").arg(process.to_string()).succeeds();
        }
    });
    watched
}

fn in_process(source: std::io::Error) -> Failure {
    Failure::Start { command: "tamis serve".to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;
    use std::thread::sleep;

    use super::{GLANCE, SIGKILL, Server, Stats, watch};
    use crate::failure::Failure;
    use crate::program::Program;

    /// A shell in the place of a server; what it says is what is in this file.
    fn server(script: &str) -> Server {
        let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let log = PathBuf::from("/dev/null");
        Server { _watched: watch(child.id()), child, log, log_start: 0 }
    }

    #[test]
    fn a_server_that_fell_over_by_itself_was_not_killed() {
        assert_eq!(server("exec sleep 60").kill().unwrap(), "");
        for (script, told) in [("exit 101", "101"), ("kill -ABRT $$", "signal: 6")] {
            let fallen = server(script);
            let state = PathBuf::from(format!("/proc/{}/stat", fallen.process()));
            while !fs::read_to_string(&state).unwrap().contains(") Z") {
                sleep(GLANCE);
            }
            let failure = fallen.kill().unwrap_err().to_string();
            assert!(failure.contains(told), "{failure}");
        }
        let killed = server(&format!("kill -{SIGKILL} $$"));
        assert!(killed.kill().is_ok(), "by hand or by itself");
    }

    #[test]
    fn a_figure_that_is_not_there_is_none() {
        let stats = Stats::ask(Program::new("sh").args(["-c", "echo '{\"there\":7}'"])).unwrap();
        assert_eq!(stats.number("there").unwrap(), 7);
        assert!(matches!(stats.number("gone"), Err(Failure::MissingField { .. })));
    }
}
