//! Acceptance: the promises of the product, shown with real clients against the built server.
//!
//! Each scenario is one file and runs alone (`cargo xtask acceptance NAME`). Rust drives; the
//! clients are the programs people use (qemu-img, nbdfuse with the kernel's file systems, libnbd,
//! fio). A scenario works in `target/acceptance/work/NAME`, which it leaves behind when it fails.
//! The short forms run inside `cargo xtask test` against the development build, whose overflow and
//! debug checks are on; the full forms run against the release build.
//!
//! Nothing here depends on timing: a server is ready when it answers, it is killed after a number
//! of events, and the only clock is a generous one that turns a hang into a failure.

mod changed;
mod clones;
mod fill;
mod first_hour;
mod full_fs;
mod full_objects;
mod hostile;
mod images;
mod kill;
mod kill_objects;
mod kill_replicas;
mod memcached;
mod memory;
pub(crate) mod mounts;
mod ordered;
mod phases;
mod prefix;
mod real_disk;
mod real_fs;
mod refused_calls;
mod s3;
mod s3_door;
mod seed;
pub(crate) mod server;
mod tagged;
mod user;
mod versions;

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use mounts::{RELEASE, release_when_orphaned};
pub(crate) use seed::Dice;

use crate::clients;
use crate::failure::Failure;
use crate::program::Program;
use crate::steps::{Counts, Steps};

/// One promise and how it is shown.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) shows: &'static str,
    /// Clients and privileges without which it cannot run.
    pub(crate) needs: &'static [&'static str],
    pub(crate) run: fn(&Setting) -> Result<(), Failure>,
}

/// They run in this order.
const SCENARIOS: [Scenario; 18] = [
    Scenario {
        name: "first-hour",
        shows: "a new user gets from the first command to a backup and back without a guess",
        needs: &["qemu-img", "mkfs.ext4", "nbdcopy", "nbdfuse", "fusermount3", "fuse"],
        run: first_hour::run,
    },
    Scenario {
        name: "hostile",
        shows: "illegal messages get errors or a closed connection, and harm nobody else",
        needs: &["python3-libnbd"],
        run: hostile::run,
    },
    Scenario {
        name: "full",
        shows: "a full store refuses writes, reads right, takes TRIM, and writes again",
        needs: &["python3-libnbd"],
        run: fill::run,
    },
    Scenario {
        name: "full-fs",
        shows: "ext4 whose store is full loses no promised file, and goes on after a TRIM",
        needs: &[
            "python3-libnbd",
            "nbdfuse",
            "fusermount3",
            "mkfs.ext4",
            "root",
            "loop devices",
            "fuse",
        ],
        run: full_fs::run,
    },
    Scenario {
        name: "kill",
        shows: "after kill -9 the store holds exactly a prefix with everything flushed",
        needs: &["python3-libnbd"],
        run: kill::run,
    },
    Scenario {
        name: "clones",
        shows: "volumes, snapshots and clones in use at once read what was written to each",
        needs: &["python3-libnbd"],
        run: clones::run,
    },
    Scenario {
        name: "snapshots",
        shows: "a thousand snapshots of a volume under writes, deleted in any order, leave nothing",
        needs: &["python3-libnbd"],
        run: versions::run_snapshots,
    },
    Scenario {
        name: "changed",
        shows: "a backup that reads only what changed since the snapshot before is the disk",
        needs: &["python3-libnbd", "nbdinfo"],
        run: changed::run,
    },
    Scenario {
        name: "trim",
        shows: "100 GB are trimmed in a moment, given back exactly, and no other client waits",
        needs: &["python3-libnbd"],
        run: versions::run_trim,
    },
    Scenario {
        name: "real-fs",
        shows: "ext4 and xfs live on a volume, through restarts, and fsck finds nothing",
        needs: &["nbdfuse", "fusermount3", "mkfs.ext4", "root", "loop devices", "fuse"],
        run: real_fs::run,
    },
    Scenario {
        name: "real-disk",
        shows: "two Debian images come back the same; savings are what an independent count says",
        needs: &["qemu-img", "mkfs.ext4"],
        run: real_disk::run,
    },
    Scenario {
        name: "memory",
        shows: "the server stays within --memory plus 64 MiB and 2 a connection",
        needs: &["fio"],
        run: memory::run,
    },
    Scenario {
        name: "s3",
        shows: "boto3, rclone, s3cmd and restic find in buckets what they put there",
        needs: &["python3-boto3", "rclone", "s3cmd", "restic"],
        run: s3::run,
    },
    Scenario {
        name: "memcached",
        shows: "clients of memcached find in a bucket what they put there, as S3 does",
        needs: &["memccapable", "python3-pymemcache", "python3-pylibmc", "python3-boto3"],
        run: memcached::run,
    },
    Scenario {
        name: "kill-objects",
        shows: "after kill -9 every change that S3 answered is there, and nothing else",
        needs: &["python3-boto3"],
        run: kill_objects::run,
    },
    Scenario {
        name: "kill-replicas",
        shows: "after kill -9 of either of two servers every acknowledged item is there",
        needs: &[],
        run: kill_replicas::run,
    },
    Scenario {
        name: "full-objects",
        shows: "a store filled over S3 is emptied by deletions, and as often filled as before",
        needs: &["python3-boto3"],
        run: full_objects::run,
    },
    Scenario {
        name: "refused-calls",
        shows: "a system call that is refused falls back or ends with a sentence, and SIGTERM ends",
        needs: &["strace", "setpriv"],
        run: refused_calls::run,
    },
];

/// Scenarios whose short form runs inside `cargo xtask test`.
const SHORT: [&str; 17] = [
    "first-hour",
    "hostile",
    "full",
    "full-fs",
    "kill",
    "clones",
    "snapshots",
    "changed",
    "real-fs",
    "real-disk",
    "memory",
    "s3",
    "memcached",
    "kill-objects",
    "kill-replicas",
    "full-objects",
    "refused-calls",
];

/// What a scenario may know of the run it is part of.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The workspace.
    root: PathBuf,
    /// The server's binary.
    tamis: PathBuf,
    /// A folder of the scenario's own, empty at its start.
    pub(crate) work: PathBuf,
    /// Run small.
    pub(crate) short: bool,
    /// How many kills `kill` makes, if said.
    kills: Option<u64>,
    /// How many rounds `kill-objects`, `kill-replicas` and `full-objects` make, if said.
    rounds: Option<u64>,
    /// How long each scenario of a soak goes on, if said.
    pub(crate) minutes: Option<u64>,
    /// Where every random choice comes from.
    pub(crate) seed: u64,
}

impl Setting {
    /// What the command line asked for, with the server built.
    pub(crate) fn new(root: &Path, wanted: &Wanted) -> Result<Setting, Failure> {
        Ok(Setting {
            root: root.to_path_buf(),
            tamis: built(root, !wanted.short)?,
            work: PathBuf::new(),
            short: wanted.short,
            kills: wanted.kills,
            rounds: wanted.rounds,
            minutes: wanted.minutes,
            seed: wanted.seed.unwrap_or_else(seed::fresh),
        })
    }

    /// That of the short forms inside `cargo xtask test`. The seed is fixed: a failure there is the
    /// change's, not the dice's. The full forms throw new dice every time.
    pub(crate) fn short(root: &Path) -> Result<Setting, Failure> {
        Setting::new(root, &Wanted { short: true, seed: Some(1), ..Wanted::default() })
    }

    /// The server's binary, which is every other command as well.
    pub(crate) fn tamis(&self) -> &Path {
        &self.tamis
    }

    /// A Python script of ours.
    pub(crate) fn script(&self, name: &str) -> Program {
        Program::new(clients::PYTHON).path(&self.root.join("xtask/scripts").join(name))
    }

    /// A folder that outlives the run: what is dear to make is made once.
    fn kept(&self) -> Result<PathBuf, Failure> {
        let folder = self.root.join("target/acceptance/images");
        fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
        Ok(folder)
    }
}

/// What the command line asked for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) names: Vec<String>,
    list: bool,
    short: bool,
    kills: Option<u64>,
    rounds: Option<u64>,
    minutes: Option<u64>,
    seed: Option<u64>,
}

/// `cargo xtask acceptance ...`.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    let wanted = parse(arguments, &names).ok_or(Failure::Usage { text: crate::USAGE })?;
    if wanted.list {
        for scenario in &SCENARIOS {
            println!("{:10} {}", scenario.name, scenario.shows);
        }
        return Ok(());
    }
    let setting = Setting::new(root, &wanted)?;
    let mut steps = Steps::default();
    let all = wanted.names.is_empty();
    for scenario in &SCENARIOS {
        if all || wanted.names.iter().any(|name| name == scenario.name) {
            step("acceptance", scenario, &setting, &mut steps);
        }
    }
    steps.finish()
}

/// The short forms, as steps of `cargo xtask test`.
pub(crate) fn run_short(root: &Path, steps: &mut Steps) {
    let setting = match Setting::short(root) {
        Ok(setting) => setting,
        Err(failure) => return steps.run("acceptance", || Err(failure)),
    };
    for scenario in SCENARIOS.iter().filter(|scenario| SHORT.contains(&scenario.name)) {
        step("acceptance", scenario, &setting, steps);
    }
}

/// Reads the command line of `acceptance` or `soak`, whose scenarios have these `names`.
pub(crate) fn parse(arguments: &[&str], names: &[&str]) -> Option<Wanted> {
    let mut wanted = Wanted::default();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "--list" => wanted.list = true,
            "--short" => wanted.short = true,
            "--kills" => wanted.kills = Some(words.next()?.parse().ok()?),
            "--rounds" => wanted.rounds = Some(words.next()?.parse().ok()?),
            "--minutes" => wanted.minutes = Some(words.next()?.parse().ok()?),
            "--seed" => wanted.seed = Some(words.next()?.parse().ok()?),
            name if names.contains(&name) => wanted.names.push(name.to_owned()),
            _ => return None,
        }
    }
    Some(wanted)
}

/// Runs one scenario `of` the acceptance or of the soak.
pub(crate) fn step(of: &str, scenario: &Scenario, setting: &Setting, steps: &mut Steps) {
    let name = format!("{of} {}", scenario.name);
    let missing = clients::missing(scenario.needs);
    if !missing.is_empty() {
        return steps.skip(&name, &format!("needs {}", missing.join(", ")));
    }
    steps.run(&name, || {
        println!("{}", scenario.shows);
        let work = setting.root.join("target/acceptance/work").join(scenario.name);
        empty(&work)?;
        let _guard = mounts::Guard::over(&work)?;
        let outcome = (scenario.run)(&Setting { work: work.clone(), ..setting.clone() });
        match outcome {
            Ok(()) => empty(&work).map(|()| Counts::ONE),
            Err(failure) => {
                println!("what the scenario worked on is in {}", work.display());
                server::tell_log(&work);
                Err(failure)
            }
        }
    });
}

fn empty(folder: &Path) -> Result<(), Failure> {
    if folder.exists() {
        mounts::release(folder);
        fs::remove_dir_all(folder).map_err(Failure::file(folder))?;
    }
    fs::create_dir_all(folder).map_err(Failure::file(folder))
}

/// Builds the server and returns its binary; `TAMIS` names another one to test instead.
fn built(root: &Path, release: bool) -> Result<PathBuf, Failure> {
    if let Some(other) = std::env::var_os("TAMIS") {
        return Ok(PathBuf::from(other));
    }
    let cargo = Program::new("cargo").folder(root).args(["build", "--package", "cli"]);
    let profile = if release { "release" } else { "debug" };
    if release { cargo.arg("--release") } else { cargo }.show()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    Ok(target.join(profile).join("tamis"))
}

#[cfg(test)]
mod tests {
    use super::{SCENARIOS, SHORT, Wanted, parse};

    #[test]
    fn the_command_line_is_read_whole_or_not_at_all() {
        let parse = |line: &[&str]| parse(line, &["kill", "full"]);
        let wanted = parse(&[
            "kill",
            "--kills",
            "7",
            "--seed",
            "3",
            "--short",
            "--minutes",
            "2",
            "--rounds",
            "5",
        ]);
        let expected = Wanted {
            names: vec!["kill".to_owned()],
            list: false,
            short: true,
            kills: Some(7),
            rounds: Some(5),
            minutes: Some(2),
            seed: Some(3),
        };
        assert_eq!(wanted, Some(expected));
        assert_eq!(parse(&["no-such-scenario"]), None);
        assert_eq!(parse(&["--kills"]), None);
    }

    #[test]
    fn every_short_form_is_a_scenario() {
        for name in SHORT {
            assert!(SCENARIOS.iter().any(|scenario| scenario.name == name));
        }
    }
}
