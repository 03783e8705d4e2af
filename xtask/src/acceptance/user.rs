//! A user at a terminal, in a folder of his own.
//!
//! He types lines of the shell, as README, a help, a banner or an error shows them, with relative
//! paths and with `tamis` found on the path. Each line is printed, so that the run reads as what
//! it shows. What a command answers must fit a terminal of 80 columns.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::acceptance::Setting;
use crate::acceptance::server::{Server, dying_with_us};
use crate::failure::Failure;
use crate::program::Program;

const COLUMNS_MAX: usize = 80;
/// After this something that was begun in the background is taken for hung.
const PATIENCE: Duration = Duration::from_secs(60);
const GLANCE: Duration = Duration::from_millis(5);
/// The last line of what `tamis serve` prints when it is ready.
const READY: &str = "Ctrl-C ends it.";

/// The user and where he is.
#[derive(Debug)]
pub(crate) struct User {
    tamis: PathBuf,
    folder: PathBuf,
}

/// Something that was begun with `&`.
#[derive(Debug)]
pub(crate) struct Background {
    line: String,
    child: Child,
}

impl User {
    /// One whose folder is the scenario's, and who has installed the program under test.
    pub(crate) fn new(setting: &Setting) -> Result<User, Failure> {
        let installed = setting.work.join("bin");
        fs::create_dir_all(&installed).map_err(Failure::file(&installed))?;
        let tamis = installed.join("tamis");
        symlink(setting.tamis(), &tamis).map_err(Failure::file(&tamis))?;
        Ok(User { tamis, folder: setting.work.clone() })
    }

    /// Where he is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Types a line that is to succeed; returns what was printed.
    pub(crate) fn types(&self, line: &str) -> Result<String, Failure> {
        println!("$ {line}");
        let told = self.shell(line).output()?;
        if line.starts_with("tamis ") {
            self.check_width(&told)?;
        }
        Ok(told)
    }

    /// Types a line that is to fail with this exit code and these words; returns what was printed.
    pub(crate) fn is_refused(&self, line: &str, code: i32, words: &str) -> Result<String, Failure> {
        println!("$ {line}   # is refused");
        let expected = format!("`{line}` to end with {code} and to say {words:?}");
        match self.shell(line).output() {
            Err(Failure::Command { status, output_tail, .. })
                if status.code() == Some(code) && output_tail.contains(words) =>
            {
                Ok(output_tail)
            }
            Err(failure @ Failure::Command { .. }) => {
                Err(Failure::unmet(expected, failure.to_string()))
            }
            Ok(told) => Err(Failure::unmet(expected, format!("success:\n{told}"))),
            Err(failure) => Err(failure),
        }
    }

    /// Serves a store in another terminal, and waits until it is ready; returns what it said.
    /// `line` is a whole command line, of which the words have no quotes.
    pub(crate) fn serves(&self, line: &str) -> Result<(Server, String), Failure> {
        println!("$ {line}");
        let mut words = line.split_whitespace();
        assert_eq!(words.next(), Some("tamis"), "only tamis serves: {line}");
        let program = dying_with_us(&self.tamis).args(words).folder(&self.folder);
        let mut server = Server::start(program, &self.folder.join("server.log"))?;
        let told = server.hear(READY)?;
        let banner = told.lines().filter(|line| !line.starts_with("note: "));
        self.check_width(&banner.collect::<Vec<_>>().join("\n"))?;
        Ok((server, told))
    }

    /// Types a line that ends with `&`, and waits until it has made `file`.
    pub(crate) fn begins(&self, line: &str, file: &str) -> Result<Background, Failure> {
        println!("$ {line}");
        let program = self.shell(line.trim_end().trim_end_matches('&'));
        let mut command = program.into_command();
        let started = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let line = line.to_owned();
        let mut child =
            started.map_err(|source| Failure::Start { command: line.clone(), source })?;
        let (begun, file) = (Instant::now(), self.folder.join(file));
        while !file.exists() {
            let ended = child.try_wait().map_err(Failure::file(&file))?;
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let expected = format!("`{line}` to make {}", file.display());
                return Err(Failure::unmet(expected, format!("{ended:?}")));
            }
            sleep(GLANCE);
        }
        Ok(Background { line, child })
    }

    fn shell(&self, line: &str) -> Program {
        let installed = self.tamis.parent().unwrap_or(&self.folder).display();
        let path = std::env::var("PATH").unwrap_or_default();
        // What administrators have on their path, and other users find there by name.
        let path = format!("PATH={installed}:{path}:/usr/sbin:/sbin");
        Program::new("env").arg(path).args(["sh", "-c", line]).folder(&self.folder)
    }

    /// A line with a path of ours in it is as long as that makes it.
    fn check_width(&self, told: &str) -> Result<(), Failure> {
        let ours = self.folder.display().to_string();
        let mut lines = told.lines().filter(|line| !line.contains(&ours));
        match lines.find(|line| line.chars().count() > COLUMNS_MAX) {
            Some(line) => Err(Failure::unmet(format!("lines of {COLUMNS_MAX} columns"), line)),
            None => Ok(()),
        }
    }
}

impl Background {
    /// Waits until it has ended, and ended well.
    pub(crate) fn ends(mut self) -> Result<(), Failure> {
        let waited = self.child.wait();
        let status = waited.map_err(|source| Failure::Start { command: self.line.clone(), source });
        match status? {
            status if status.success() => Ok(()),
            status => {
                Err(Failure::unmet(format!("`{}` to end well", self.line), format!("{status}")))
            }
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Both fail when it has already ended, and then there is nothing left to do.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The line in `told` that begins with these words, as it would be copied.
pub(crate) fn shown(told: &str, words: &str) -> Result<String, Failure> {
    let found = told.lines().map(str::trim).find(|line| line.starts_with(words));
    found.map(str::to_owned).ok_or_else(|| {
        Failure::unmet(format!("a line to copy that begins with {words:?}"), told.to_owned())
    })
}

/// What stands between backquotes in `told` and begins with these words.
pub(crate) fn quoted(told: &str, words: &str) -> Result<String, Failure> {
    let found = told.split('`').skip(1).step_by(2).find(|part| part.starts_with(words));
    found.map(str::to_owned).ok_or_else(|| {
        Failure::unmet(format!("a command in backquotes that begins with {words:?}"), told)
    })
}

#[cfg(test)]
mod tests {
    use super::{quoted, shown};

    #[test]
    fn lines_and_commands_are_copied_as_they_stand() {
        let told = "attach it (`umount it` detaches it):\n  mount it\nfull: use `grow it` or `x`\n";
        assert_eq!(shown(told, "mount").unwrap(), "mount it");
        assert!(shown(told, "import").is_err());
        assert_eq!(quoted(told, "umount").unwrap(), "umount it");
        assert_eq!(quoted(told, "grow").unwrap(), "grow it");
        assert!(quoted(told, "mount").is_err());
    }
}
