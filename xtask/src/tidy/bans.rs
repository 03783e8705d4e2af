//! What may not be said where: the ban list, each with what to say instead.
//!
//! Determinism below the engine is a ban list, not a promise: where no clock, no randomness and no
//! thread can be named, a seed replays a run exactly. The same goes for the system calls, which
//! stay in one room so that one room has to be audited for them.

use super::finding::Finding;
use super::source::{SourceFile, contains_word};

/// The rooms that run under the seeded simulator. (`disk` waits for devices, with time-outs.)
const DETERMINISTIC: [&str; 7] =
    ["format", "reduce", "accelerator", "tables", "journal", "containers", "engine"];
/// Those of them that own no threads: the rings of `disk` and the pool of `reduce` are theirs.
const SINGLE_THREADED: [&str; 5] = ["format", "tables", "journal", "containers", "engine"];
/// The rooms that talk to people, and one whose build script is told where to build.
const PROGRAMS: [&str; 6] = ["cli", "xtask", "lab", "models", "bench", "cosim"];

/// The rooms with sockets or disks. (`images` asks the files that it reads for their holes.)
const SYSTEM_CALLERS: [&str; 6] = ["disk", "threads", "nbd", "admin", "memcached_door", "images"];

/// Where a ban holds.
#[derive(Clone, Copy, Debug)]
enum Reach {
    Everywhere,
    Only(&'static [&'static str]),
    Except(&'static [&'static str]),
}

/// One thing not to say.
#[derive(Clone, Copy, Debug)]
struct Ban {
    word: &'static str,
    reach: Reach,
    /// Does it hold in tests as well.
    in_tests: bool,
    instead: &'static str,
}

const fn ban(word: &'static str, reach: Reach, instead: &'static str) -> Ban {
    Ban { word, reach, in_tests: false, instead }
}

const fn always(word: &'static str, reach: Reach, instead: &'static str) -> Ban {
    Ban { word, reach, in_tests: true, instead }
}

const CLOCK: &str = "no clock in engine and below: let the caller count or pass the time in";
const CHANCE: &str = "no randomness in engine and below: take a seed from the caller";
const THREAD: &str =
    "no thread in engine and below but in disk, threads and reduce: one owner thinks";
const SYSCALL: &str =
    "system calls belong to disk and threads, sockets to the doors: call those rooms";
const PROGRAM: &str = "argv, env and exit belong to the programs (bans.rs): pass it in or return";
const FINISHED: &str = "leave nothing open in the code: finish it, or open an issue";

const BANS: [Ban; 22] = [
    ban("std::time", Reach::Only(&DETERMINISTIC), CLOCK),
    ban("Instant", Reach::Only(&DETERMINISTIC), CLOCK),
    ban("SystemTime", Reach::Only(&DETERMINISTIC), CLOCK),
    ban("rand::", Reach::Only(&DETERMINISTIC), CHANCE),
    ban("getrandom", Reach::Only(&DETERMINISTIC), CHANCE),
    ban("RandomState", Reach::Only(&DETERMINISTIC), CHANCE),
    ban("thread::", Reach::Only(&SINGLE_THREADED), THREAD),
    ban("std::thread", Reach::Only(&SINGLE_THREADED), THREAD),
    ban("rayon", Reach::Only(&SINGLE_THREADED), THREAD),
    // `cosim` calls the C++ that Verilator makes.
    always(
        "unsafe",
        Reach::Except(&["disk", "threads", "cosim"]),
        "unsafe belongs to disk and threads",
    ),
    ban("libc::", Reach::Except(&["disk", "threads", "nbd", "admin"]), SYSCALL),
    ban("rustix::", Reach::Except(&SYSTEM_CALLERS), SYSCALL),
    ban("io_uring::", Reach::Except(&["disk"]), SYSCALL),
    ban("std::env", Reach::Except(&PROGRAMS), PROGRAM),
    ban("env::", Reach::Except(&PROGRAMS), PROGRAM),
    ban("process::exit", Reach::Except(&PROGRAMS), PROGRAM),
    ban("println!", Reach::Except(&PROGRAMS), PROGRAM),
    ban("eprintln!", Reach::Except(&PROGRAMS), PROGRAM),
    always("todo!", Reach::Everywhere, FINISHED),
    always("unimplemented!", Reach::Everywhere, FINISHED),
    ban(
        "#[allow(",
        Reach::Everywhere,
        "write #[expect(lint, reason = \"...\")]: it ends with its cause",
    ),
    ban(
        "::*",
        Reach::Everywhere,
        "name what you import, so that a reader sees where it comes from",
    ),
];

/// Marks of unfinished work, which hide in comments. Split, so that this file does not hold them.
const MARKS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// How a sentence names a command or an option of the program.
const COMMANDS: [&str; 2] = ["`tamis ", "`--"];
/// Below the programs no sentence does: errors carry the facts, and `cli` adds the way out.
/// (`images` says what else reads an image that it does not.)
const MAY_NAME_COMMANDS: [&str; 5] = ["cli", "xtask", "lab", "bench", "images"];
const COMMAND: &str =
    "no command below cli: carry the facts, and say the way out in cli (way_out.rs)";

/// Every banned word in reach.
pub(crate) fn check(sources: &[SourceFile]) -> Vec<Finding> {
    let of_file =
        |file| check_file(file).into_iter().chain(check_marks(file)).chain(check_commands(file));
    sources.iter().flat_map(of_file).collect()
}

/// Commands that strings name; comments may.
fn check_commands(file: &SourceFile) -> Vec<Finding> {
    if MAY_NAME_COMMANDS.contains(&file.room()) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (index, (text, line)) in file.text.lines().zip(file.lines()).enumerate() {
        let is_comment = text.trim_start().starts_with("//");
        let names = COMMANDS.iter().any(|command| text.contains(command));
        if names && !is_comment && !line.test {
            findings.push(Finding::at(&file.path, index + 1, COMMAND.to_owned()));
        }
    }
    findings
}

fn check_file(file: &SourceFile) -> Vec<Finding> {
    let bans: Vec<&Ban> = BANS.iter().filter(|ban| reaches(ban.reach, file.room())).collect();
    let mut findings = Vec::new();
    for line in file.lines() {
        let said = bans
            .iter()
            .filter(|ban| (ban.in_tests || !line.test) && contains_word(line.code, ban.word));
        findings.extend(said.map(|ban| {
            Finding::at(&file.path, line.number, format!("`{}`: {}", ban.word, ban.instead))
        }));
    }
    findings
}

fn check_marks(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for mark in MARKS.iter().filter(|mark| contains_word(line, mark)) {
            findings.push(Finding::at(&file.path, index + 1, format!("`{mark}`: {FINISHED}")));
        }
    }
    findings
}

fn reaches(reach: Reach, room: &str) -> bool {
    match reach {
        Reach::Everywhere => true,
        Reach::Only(rooms) => rooms.contains(&room),
        Reach::Except(rooms) => !rooms.contains(&room),
    }
}

#[cfg(test)]
mod tests {
    use super::{BANS, MARKS, Reach, check};
    use crate::tidy::source::SourceFile;

    fn findings(path: &str, text: &str) -> usize {
        check(&[SourceFile::new(path, text)]).len()
    }

    #[test]
    fn every_ban_finds_its_own_word_where_it_reaches() {
        for ban in &BANS {
            let room = match ban.reach {
                Reach::Only(rooms) => rooms[0],
                Reach::Everywhere | Reach::Except(_) => "tables",
            };
            let text = format!("fn f() {{ {} }}\n", ban.word);
            assert!(findings(&format!("crates/{room}/src/a.rs"), &text) > 0, "{}", ban.word);
        }
    }

    #[test]
    fn a_ban_stops_at_its_border() {
        assert_eq!(findings("crates/disk/src/a.rs", "unsafe { libc::close(1) }\n"), 0);
        assert_eq!(findings("crates/threads/src/a.rs", "unsafe { libc::close(1) }\n"), 0);
        assert_eq!(findings("crates/tables/src/a.rs", "unsafe { libc::close(1) }\n"), 2);
        assert_eq!(findings("crates/cli/src/a.rs", "let a = std::env::args();\n"), 0);
        assert_eq!(findings("crates/reduce/src/a.rs", "std::thread::spawn(f);\n"), 0);
    }

    #[test]
    fn tests_comments_and_strings_may_say_more() {
        let test = "#[cfg(test)]\nmod tests { use super::*; use std::time::Instant; }\n";
        assert_eq!(findings("crates/engine/src/a.rs", test), 0);
        assert_eq!(findings("crates/engine/src/a.rs", "// no Instant here\n\"unsafe\";\n"), 0);
        assert_eq!(findings("crates/engine/src/a.rs", "#[cfg(test)]\nfn f() { unsafe {} }\n"), 1);
    }

    #[test]
    fn a_sentence_that_names_a_command_is_found_below_the_programs() {
        let sentence = "#[error(\"it is damaged; run `tamis check`\")]\n";
        assert_eq!(findings("crates/engine/src/a.rs", sentence), 1);
        assert_eq!(findings("crates/nbd/src/a.rs", "let a = \"add `--force`\";\n"), 1);
        assert_eq!(findings("crates/cli/src/a.rs", sentence), 0);
        assert_eq!(findings("crates/engine/src/a.rs", "//! `tamis check` asks for it.\n"), 0);
    }

    #[test]
    fn marks_of_unfinished_work_are_found_in_comments() {
        for mark in MARKS {
            assert_eq!(findings("crates/engine/src/a.rs", &format!("// {mark}: later\n")), 1);
        }
    }

    #[test]
    fn a_glob_is_found_and_a_product_is_not() {
        assert_eq!(findings("crates/engine/src/a.rs", "use crate::a::*;\n"), 1);
        assert_eq!(findings("crates/engine/src/a.rs", "let a = b * c;\n"), 0);
    }
}
