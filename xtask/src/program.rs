//! Other programs, run to their end: one builder, so that every command line that fails is told
//! the same way, with what it said.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};

use serde_json::Value;

use crate::failure::Failure;

/// How much of a failed program's output is told.
const TAIL_LINES_MAX: usize = 30;

/// A command line in the making.
#[derive(Debug)]
pub(crate) struct Program {
    command: Command,
}

impl Program {
    /// Runs `name`, found on the path, with no input.
    pub(crate) fn new(name: impl Into<OsString>) -> Program {
        let mut command = Command::new(name.into());
        command.stdin(Stdio::null());
        Program { command }
    }

    /// Adds one argument.
    pub(crate) fn arg(mut self, argument: impl Into<OsString>) -> Program {
        self.command.arg(argument.into());
        self
    }

    /// Adds arguments.
    pub(crate) fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Program {
        self.command.args(arguments);
        self
    }

    /// Adds a path as an argument.
    pub(crate) fn path(self, path: &Path) -> Program {
        self.arg(path.as_os_str())
    }

    /// Sets the folder to run in.
    pub(crate) fn folder(mut self, folder: &Path) -> Program {
        self.command.current_dir(folder);
        self
    }

    /// Runs it in silence; what it said is told only when it fails.
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.output().map(drop)
    }

    /// Runs it and returns what it printed.
    pub(crate) fn output(self) -> Result<String, Failure> {
        let (text, output) = self.finish()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        Err(refused(text, output.status, &said))
    }

    /// Runs it and reads the JSON it printed.
    pub(crate) fn json(self) -> Result<Value, Failure> {
        let command = self.to_string();
        let text = self.output()?;
        serde_json::from_str(&text).map_err(|source| Failure::Json { command, source })
    }

    /// Runs it and says only whether it succeeded; a program that is not there did not.
    pub(crate) fn succeeds(self) -> bool {
        self.finish().is_ok_and(|(_, output)| output.status.success())
    }

    /// Runs it in plain sight: all it prints goes where ours goes.
    pub(crate) fn show(mut self) -> Result<(), Failure> {
        let text = self.to_string();
        let status = self.command.status().map_err(|source| start(&text, source))?;
        if status.success() { Ok(()) } else { Err(refused(text, status, "")) }
    }

    /// Runs it in plain sight, with a look at every line it prints on its standard output.
    pub(crate) fn watch(mut self, mut look: impl FnMut(&str)) -> Result<(), Failure> {
        let text = self.to_string();
        self.command.stdout(Stdio::piped());
        let mut child = self.command.spawn().map_err(|source| start(&text, source))?;
        for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
            let line = line.map_err(|source| start(&text, source))?;
            println!("{line}");
            look(&line);
        }
        let status = child.wait().map_err(|source| start(&text, source))?;
        if status.success() { Ok(()) } else { Err(refused(text, status, "")) }
    }

    /// Runs it in silence, with a look at every line of its standard error.
    pub(crate) fn overhear(mut self, mut look: impl FnMut(&str)) -> Result<(), Failure> {
        let text = self.to_string();
        self.command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = self.command.spawn().map_err(|source| start(&text, source))?;
        let mut said = String::new();
        for line in child.stderr.take().into_iter().flat_map(|err| BufReader::new(err).lines()) {
            let line = line.map_err(|source| start(&text, source))?;
            look(&line);
            said.push_str(&line);
            said.push('\n');
        }
        let status = child.wait().map_err(|source| start(&text, source))?;
        if status.success() { Ok(()) } else { Err(refused(text, status, &said)) }
    }

    /// The command itself, for those that must talk to it while it runs.
    pub(crate) fn into_command(self) -> Command {
        self.command
    }

    fn finish(mut self) -> Result<(String, Output), Failure> {
        let text = self.to_string();
        let output = self.command.output().map_err(|source| start(&text, source))?;
        Ok((text, output))
    }
}

impl std::fmt::Display for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.command.get_program().to_string_lossy())?;
        for argument in self.command.get_args() {
            write!(f, " {}", argument.to_string_lossy())?;
        }
        Ok(())
    }
}

fn start(command: &str, source: std::io::Error) -> Failure {
    Failure::Start { command: command.to_owned(), source }
}

fn refused(command: String, status: ExitStatus, said: &str) -> Failure {
    let lines: Vec<&str> = said.lines().collect();
    let tail = lines.len().saturating_sub(TAIL_LINES_MAX);
    Failure::Command { command, status, output_tail: lines[tail..].join("\n") }
}

#[cfg(test)]
mod tests {
    use super::Program;
    use crate::failure::Failure;

    #[test]
    fn a_failure_tells_the_command_and_what_it_said() {
        let failure = Program::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]).run();
        let told = failure.unwrap_err().to_string();
        assert!(told.contains("sh -c echo out"), "{told}");
        assert!(told.contains("out\nerr"), "{told}");
    }

    #[test]
    fn a_program_that_is_not_there_is_told_apart() {
        let failure = Program::new("no-such-program-here").run().unwrap_err();
        assert!(matches!(failure, Failure::Start { .. }));
        assert!(!Program::new("no-such-program-here").succeeds());
    }

    #[test]
    fn lines_are_seen_as_they_come() {
        let mut seen = Vec::new();
        let program = Program::new("sh").args(["-c", "echo a; echo b"]);
        program.watch(|line| seen.push(line.to_owned())).unwrap();
        assert_eq!(seen, ["a", "b"]);
        let mut overheard = Vec::new();
        let program = Program::new("sh").args(["-c", "echo a; echo b >&2; exit 1"]);
        assert!(program.overhear(|line| overheard.push(line.to_owned())).is_err());
        assert_eq!(overheard, ["b"]);
    }
}
