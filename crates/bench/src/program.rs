//! Other programs: run to their end, or as servers that end with us.
//!
//! What must not outlive us even if we are killed is started by `setpriv --pdeathsig`: the kernel
//! then ends it. Each is in a process group of its own (`interrupt.rs` says why).

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::failure::Failure;
use crate::interrupt;

/// After this a server that neither answers nor ends is killed.
const TIME_LIMIT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(20);
/// What the names of all that a run makes begin with, before its number.
pub(crate) const PREFIX: &str = "bench-";

/// A program that ends when we do, however we end.
pub(crate) fn bound(program: impl AsRef<Path>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]).arg(program.as_ref());
    command
}

/// Runs a program that takes long and returns what it printed; a signal to us ends it.
pub(crate) fn patiently(command: &mut Command) -> Result<String, Failure> {
    interrupt::check()?;
    let text = words(command);
    let start = |source| Failure::Start { command: text.clone(), source };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(start)?;
    let (printed, said) = (child.stdout.take(), child.stderr.take());
    let (status, printed, said) = thread::scope(|scope| {
        let printed = scope.spawn(move || read_all(printed));
        let said = scope.spawn(move || read_all(said));
        let status = wait_or_end(&mut child);
        (status, printed.join().unwrap_or_default(), said.join().unwrap_or_default())
    });
    let status = status.map_err(start)?;
    interrupt::check()?;
    if status.success() {
        return Ok(printed);
    }
    Err(Failure::Command { command: text, status, said: printed + &said })
}

fn wait_or_end(child: &mut Child) -> std::io::Result<std::process::ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt::has_come() {
            child.kill()?;
        }
        sleep(PAUSE);
    }
}

fn read_all(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    // A pipe that breaks is a program that has ended: its status says how.
    let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Runs a program to its end, whatever signal comes, and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String, Failure> {
    let text = words(command);
    let output = command.stdin(Stdio::null()).process_group(0).output();
    let output = output.map_err(|source| Failure::Start { command: text.clone(), source })?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(printed);
    }
    let said = printed + &String::from_utf8_lossy(&output.stderr);
    Err(Failure::Command { command: text, status: output.status, said })
}

/// A command as one would type it.
pub(crate) fn words(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// A server of NBD that listens at a socket; killed when dropped.
pub(crate) struct Server {
    name: &'static str,
    child: Child,
    socket: PathBuf,
    log: PathBuf,
}

impl Server {
    /// Starts `command` and waits until it answers at `socket`.
    pub(crate) fn start(
        name: &'static str,
        command: &mut Command,
        socket: PathBuf,
        log: PathBuf,
    ) -> Result<Self, Failure> {
        let file = File::options().create(true).append(true).open(&log);
        let file = file.map_err(Failure::file(&log))?;
        let errors = file.try_clone().map_err(Failure::file(&log))?;
        command.stdin(Stdio::null()).stdout(file).stderr(errors).process_group(0);
        let child = command.spawn();
        let child = child.map_err(|source| Failure::Start { command: words(command), source })?;
        let mut server = Self { name, child, socket, log };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(mut self) -> Result<(), Failure> {
        output(Command::new("kill").arg("-TERM").arg(self.child.id().to_string()))?;
        let begun = Instant::now();
        while begun.elapsed() < TIME_LIMIT {
            if !self.runs() {
                return Ok(());
            }
            sleep(PAUSE);
        }
        Err(self.silent())
    }

    fn wait_until_ready(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        while begun.elapsed() < TIME_LIMIT && self.runs() {
            if UnixStream::connect(&self.socket).is_ok() {
                return Ok(());
            }
            sleep(PAUSE);
        }
        Err(self.silent())
    }

    fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn silent(&self) -> Failure {
        let said = fs::read_to_string(&self.log).unwrap_or_default();
        Failure::Silent { server: self.name, said }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // These fail when the process has already ended, and then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.socket);
    }
}

/// A program that runs beside what is measured; ended when dropped.
pub(crate) struct Beside {
    child: Child,
    command: String,
    log: PathBuf,
}

impl Beside {
    /// Starts it; what it says goes to `log`.
    pub(crate) fn begin(command: &mut Command, log: PathBuf) -> Result<Self, Failure> {
        let file = File::create(&log).map_err(Failure::file(&log))?;
        let errors = file.try_clone().map_err(Failure::file(&log))?;
        command.stdin(Stdio::null()).stdout(file).stderr(errors).process_group(0);
        let text = words(command);
        let start = |source| Failure::Start { command: text.clone(), source };
        let child = command.spawn().map_err(start)?;
        Ok(Self { child, command: text, log })
    }

    /// Ends it. Whether it still ran.
    ///
    /// # Errors
    /// [`Failure::Command`] when it had failed before: what ran beside it was alone.
    pub(crate) fn end(mut self) -> Result<bool, Failure> {
        let ended = self.child.try_wait();
        let ended =
            ended.map_err(|source| Failure::Start { command: self.command.clone(), source });
        match ended? {
            None => Ok(true),
            Some(status) if status.success() => Ok(false),
            Some(status) => {
                let said = fs::read_to_string(&self.log).unwrap_or_default();
                Err(Failure::Command { command: self.command.clone(), status, said })
            }
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // The program ends at this step; these fail when it has already ended.
        let id = self.child.id().to_string();
        let _ = Command::new("kill").arg("-INT").arg(id).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

/// A path of this run for what has a socket in it: short, for a socket's may have no more than 108
/// bytes wherever the measured disk is. `leftovers.rs` knows what these names end with.
pub(crate) fn short_path(what: &str) -> PathBuf {
    std::env::temp_dir().join(format!("{PREFIX}{}-{what}", std::process::id()))
}

/// A server's socket.
pub(crate) fn socket_path(name: &str) -> PathBuf {
    short_path(&format!("{name}.sock"))
}

/// The URI of `export` at `socket`.
pub(crate) fn uri(socket: &Path, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", socket.display())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use std::time::Duration;

    use super::{Beside, bound, output, patiently};
    use crate::failure::Failure;

    /// What became of a shell with this script, so much later.
    fn beside(name: &str, script: &str, later: Duration) -> Result<bool, Failure> {
        let log = format!("tamis-beside-{}-{name}", std::process::id());
        let log = std::env::temp_dir().join(log);
        let running = Beside::begin(Command::new("sh").args(["-c", script]), log.clone())?;
        std::thread::sleep(later);
        let ended = running.end();
        std::fs::remove_file(log).unwrap();
        ended
    }

    #[test]
    fn whether_what_ran_beside_did_so_to_the_end_is_told() {
        assert!(beside("runs", "exec sleep 60", Duration::ZERO).unwrap());
        let later = Duration::from_secs(1);
        assert!(!beside("ends", "exit 0", later).unwrap());
        let failed = beside("fails", "echo busy >&2; exit 6", later).unwrap_err().to_string();
        assert!(failed.contains("sh -c echo busy") && failed.ends_with("busy\n"), "{failed}");
    }

    #[test]
    fn what_is_long_tells_the_same_as_what_is_short() {
        let said = |run: fn(&mut Command) -> Result<String, crate::failure::Failure>| {
            let all = run(bound("sh").args(["-c", "echo out; echo err >&2; exit $0", "0"]));
            let failed = run(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]));
            (all.unwrap(), failed.unwrap_err().to_string())
        };
        assert_eq!(said(patiently), said(output));
    }

    #[test]
    fn a_program_that_fails_tells_what_it_said() {
        let failure = output(Command::new("sh").args(["-c", "echo so; exit 3"])).unwrap_err();
        let told = failure.to_string();
        assert!(told.contains("sh -c echo so") && told.ends_with("so\n"), "{told}");
    }
}
