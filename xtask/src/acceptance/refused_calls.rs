//! System calls that the kernel refuses, at set-up and in the middle: each falls back, or ends with
//! a sentence, and a server that is told to end does.
//!
//! A case is a call, an error, and from which call on it comes; `strace` injects it into an
//! unchanged `tamis`. Two things happen under it: a command imports an image, and a server is
//! started, written to and told to end. Whatever came of them, the store is then opened without
//! strace: a check finds it sound, and an image whose import was said to have succeeded is read
//! back and compared.
//!
//! A device that has no room for ever is waited for until somebody has enough: an import that has
//! not ended after a while is told to, and then has to.
//!
//! `EINTR` comes a number of times and not for ever: no kernel interrupts for ever. Calls that are
//! cut short are not among the cases, for strace can lie about a length but not write less.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::acceptance::Setting;
use crate::acceptance::server::Store;
use crate::failure::Failure;
use crate::program::Program;
use crate::table::Table;

/// What a refused call must have come to an end by; seconds, on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(90);
/// What a command has that nobody tells to end.
const UNTOLD: Duration = Duration::from_secs(15);
const GLANCE: Duration = Duration::from_millis(10);
const CAPACITY: &str = "64M";
const IMAGE_BYTES: usize = 6 << 20;
/// The highest exit code that `tamis --help` lists.
const EXIT_MAX: i32 = 10;
/// What a command that was told to end by SIGTERM ends with.
const EXIT_TOLD: i32 = 143;

/// Whether a call is made by io_uring's disk or by that of threads.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Way {
    Ring,
    /// `io_uring_setup` is refused as well, so that reads and writes are calls.
    Threads,
}

/// One call of which some are refused.
struct Call {
    name: &'static str,
    way: Way,
    /// From the first on, and from one in the middle on. Each thread counts its own calls, and the
    /// first reads of a process are those of its libraries.
    first: &'static [&'static str],
    errors: &'static [&'static str],
    /// In the short form with its first error.
    is_short: bool,
}

const fn call(
    name: &'static str,
    way: Way,
    first: &'static [&'static str],
    errors: &'static [&'static str],
    is_short: bool,
) -> Call {
    Call { name, way, first, errors, is_short }
}

const DENIED: &[&str] = &["EPERM", "ENOSYS", "EACCES", "ENOMEM"];
const MEDIUM: &[&str] = &["EIO", "ENOSPC", "EDQUOT", "ENOMEM", "EAGAIN", "EPERM"];

static CALLS: [Call; 19] = [
    call("io_uring_setup", Way::Ring, &["1+"], DENIED, true),
    call("io_uring_register", Way::Ring, &["1+", "2+"], DENIED, true),
    call("io_uring_enter", Way::Ring, &["1+", "2+", "40+"], DENIED, true),
    call("io_uring_enter", Way::Ring, &["1..20"], &["EINTR", "EAGAIN", "EBUSY"], false),
    call("pread64", Way::Threads, &["4+"], MEDIUM, true),
    call("pwrite64", Way::Threads, &["1+", "3+"], MEDIUM, true),
    call("pwrite64", Way::Threads, &["3..20"], &["EINTR", "EAGAIN"], false),
    call("fdatasync", Way::Threads, &["1+", "4+"], &["EIO", "ENOSPC", "EDQUOT", "EPERM"], true),
    call("fsync", Way::Ring, &["1+"], &["EIO", "EPERM"], false),
    call("fallocate", Way::Ring, &["1+"], &["ENOSPC", "EOPNOTSUPP", "EPERM", "EIO"], true),
    call("ftruncate", Way::Ring, &["1+"], &["EPERM", "ENOSPC"], false),
    call("flock", Way::Ring, &["1+"], &["ENOLCK", "EPERM", "ENOSYS"], true),
    call("eventfd2", Way::Ring, &["1+"], &["EMFILE", "ENOMEM", "ENOSYS"], true),
    call("getrandom", Way::Ring, &["3+"], &["ENOSYS", "EPERM"], false),
    call("sched_setscheduler", Way::Ring, &["1+"], &["EPERM", "ENOSYS"], false),
    call("clone3", Way::Ring, &["1+", "4+"], &["EAGAIN", "ENOMEM"], true),
    call("accept4", Way::Ring, &["1..50"], &["EMFILE", "ENOMEM", "EINTR"], false),
    call("bind", Way::Ring, &["1+"], &["EPERM", "EACCES"], false),
    call("listen", Way::Ring, &["1+"], &["EPERM", "EADDRINUSE"], false),
];

struct Case {
    call: &'static Call,
    error: &'static str,
    when: &'static str,
}

/// What came of something under a refused call.
enum Outcome {
    WentOn,
    Said { code: i32, sentence: String },
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::WentOn => f.write_str("went on"),
            Self::Said { code, sentence } => write!(f, "exit {code}: {sentence}"),
        }
    }
}

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let image = setting.work.join("image");
    let noise: Vec<u8> = (0..IMAGE_BYTES as u64 / 8).flat_map(noise).collect();
    fs::write(&image, noise).map_err(Failure::file(&image))?;
    let mut table = Table::default();
    table.row(["call", "error", "from", "import", "server"]);
    let mut failures = Vec::new();
    for case in cases(setting.short) {
        let told = |outcome: &Result<Outcome, Failure>| match outcome {
            Ok(outcome) => outcome.to_string(),
            Err(failure) => format!("FAILED: {failure}"),
        };
        let imported = importing(setting, &case, &image);
        let served = serving(setting, &case, &image);
        let (import, serve) = (told(&imported), told(&served));
        table.row([case.call.name, case.error, case.when, &import, &serve]);
        let name = format!("{} {} {}", case.call.name, case.error, case.when);
        let both = [imported, served].into_iter().filter_map(Result::err);
        failures.extend(both.map(|failure| format!("{name}: {failure}")));
    }
    table.print();
    if failures.is_empty() {
        return Ok(());
    }
    Err(Failure::unmet("every refused call goes on or says why", failures.join("\n")))
}

fn cases(is_short: bool) -> impl Iterator<Item = Case> {
    let of_call = move |call: &'static Call| {
        let errors = if is_short { &call.errors[..1] } else { call.errors };
        let when = if is_short { &call.first[call.first.len() - 1..] } else { call.first };
        let of_error = move |&error| when.iter().map(move |&when| Case { call, error, when });
        errors.iter().flat_map(of_error)
    };
    CALLS.iter().filter(move |call| !is_short || call.is_short).flat_map(of_call)
}

/// A number's bytes, as if thrown.
fn noise(number: u64) -> [u8; 8] {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).to_le_bytes()
}

/// A program that is `tamis` under strace, which keeps its process as it is (`-D`).
fn injected(setting: &Setting, case: &Case) -> Result<PathBuf, Failure> {
    let Case { call, error, when } = case;
    let (also, deny) = match call.way {
        Way::Ring => ("", ""),
        Way::Threads => (",io_uring_setup", "-e inject=io_uring_setup:error=ENOSYS "),
    };
    let path = setting.work.join("injected");
    let script = format!(
        "#!/bin/sh\nexec strace --seccomp-bpf -D -f -qq -o /dev/null -e trace={name}{also} {deny}\
         -e inject={name}:error={error}:when={when} '{tamis}' \"$@\"\n",
        name = call.name,
        tamis = setting.tamis().display(),
    );
    fs::write(&path, script).map_err(Failure::file(&path))?;
    fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(Failure::file(&path))?;
    Ok(path)
}

/// An import into a closed store.
fn importing(setting: &Setting, case: &Case, image: &Path) -> Result<Outcome, Failure> {
    let store = fresh(setting)?;
    let program = Program::new(injected(setting, case)?).arg("import").path(store.folder());
    let outcome = ended(program.arg("v").path(image))?;
    judge(&store, setting, image, &outcome)?;
    Ok(outcome)
}

/// A server that is written to by an import and told to end.
fn serving(setting: &Setting, case: &Case, image: &Path) -> Result<Outcome, Failure> {
    let store = fresh(setting)?;
    let injected = store.run_by(&injected(setting, case)?);
    let mut server = match injected.serve(&[]) {
        Ok(server) => server,
        // It has not started, and says why.
        Err(_) => return store.check().and_then(|()| said_by(&setting.work)),
    };
    let import = Program::new(setting.tamis()).arg("import").path(store.folder());
    let imported = ended(import.arg("v").path(image))?;
    let stopped = told_to_end(server.child())?;
    judge(&store, setting, image, &imported)?;
    Ok(match (imported, stopped) {
        (Outcome::WentOn, code) if code != 0 => said(code, &server.told()?)?,
        (imported, _) => imported,
    })
}

/// A store, and a log, of which no other case has anything.
fn fresh(setting: &Setting) -> Result<Store, Failure> {
    let (folder, log) = (setting.work.join("store"), setting.work.join("server.log"));
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(Failure::file(&folder))?;
    }
    if log.exists() {
        fs::remove_file(&log).map_err(Failure::file(&log))?;
    }
    Store::init(setting, CAPACITY)
}

/// The store is sound, and an image that is said to be there is.
fn judge(store: &Store, setting: &Setting, image: &Path, of: &Outcome) -> Result<(), Failure> {
    store.check()?;
    if matches!(of, Outcome::WentOn) {
        let copy = setting.work.join("copy");
        let export = Program::new(setting.tamis()).arg("export").path(store.folder());
        export.arg("v").path(&copy).arg("--overwrite").run()?;
        Program::new("cmp").path(image).path(&copy).run()?;
    }
    Ok(())
}

/// Runs a command to its end, which it is told to come to if it takes long.
fn ended(program: Program) -> Result<Outcome, Failure> {
    let text = program.to_string();
    let in_program = |source| Failure::Start { command: text.clone(), source };
    let mut command = program.into_command();
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(in_program)?;
    let code = match code_within(&mut child, UNTOLD)? {
        Some(code) => code,
        None => told_to_end(&mut child)?,
    };
    let mut told = String::new();
    let mut stderr = child.stderr.take();
    // strace's own grandchild may hold the other end for a moment longer.
    stderr.as_mut().map_or(Ok(0), |end| end.read_to_string(&mut told)).map_err(in_program)?;
    if code == 0 { Ok(Outcome::WentOn) } else { said(code, &told) }
}

/// Tells a command or a server to end; the code with which it does.
fn told_to_end(child: &mut Child) -> Result<i32, Failure> {
    Program::new("kill").arg("-TERM").arg(child.id().to_string()).run()?;
    if let Some(code) = code_within(child, PATIENCE)? {
        return Ok(code);
    }
    drop(child.kill());
    Err(Failure::unmet("an end within a minute and a half", "none"))
}

/// The code that a process ends with; None if it has not within this time.
fn code_within(child: &mut Child, time_max: Duration) -> Result<Option<i32>, Failure> {
    let begun = Instant::now();
    loop {
        let status = child.try_wait();
        let status = status.map_err(|source| Failure::Start { command: "tamis".into(), source })?;
        match status.map(|status| (status.code(), status)) {
            Some((Some(code), _)) => return Ok(Some(code)),
            Some((None, status)) => return Err(Failure::unmet("an exit", status.to_string())),
            None if begun.elapsed() > time_max => return Ok(None),
            None => sleep(GLANCE),
        }
    }
}

/// That who ended with this code said why.
fn said(code: i32, told: &str) -> Result<Outcome, Failure> {
    let sentence = told.lines().rev().find_map(|line| line.strip_prefix("tamis: "));
    match sentence {
        Some(sentence) if is_exit(code) && !told.contains("panicked") => {
            Ok(Outcome::Said { code, sentence: sentence.to_owned() })
        }
        _ => Err(Failure::unmet("a sentence", format!("exit {code} and {told:?}"))),
    }
}

fn is_exit(code: i32) -> bool {
    (1..=EXIT_MAX).contains(&code) || code == EXIT_TOLD
}

/// What a server that did not start has said last.
fn said_by(work: &Path) -> Result<Outcome, Failure> {
    let path = work.join("server.log");
    let told = fs::read_to_string(&path).map_err(Failure::file(&path))?;
    said(1, &told)
}
