//! Soak: programs that people trust their data to, over a server that is killed again and again.
//!
//! Each scenario is a loop of rounds: a program works on a volume, the server is killed -9 under
//! it, the store is checked and served again, and the program judges what it finds. A round takes
//! seconds; `--minutes` says how long each scenario goes on, a few rounds at least. Nothing stays
//! behind: what a scenario has mounted, its own fall releases, and when the whole run is
//! interrupted or killed a second process does (`acceptance/mounts.rs`).

mod crashing;
mod file_systems;
mod fio;
mod pgbench;
mod postgres;
mod rounds;
mod sqlite;

use std::path::Path;

use crate::acceptance::{self, Scenario, Setting};
use crate::clients;
use crate::failure::Failure;
use crate::steps::Steps;

/// What everything that mounts a volume needs.
const MOUNTED: [&str; 5] = ["nbdfuse", "fusermount3", "root", "loop devices", "fuse"];

const SCENARIOS: [Scenario; 6] = [
    Scenario {
        name: "fio",
        shows: "with --sync what fio saw answered is there after kill -9 (verify_state)",
        needs: &["fio"],
        run: fio::run,
    },
    Scenario {
        name: "ext4",
        shows: "files that were fsynced are there, whole, after kill -9, and fsck.ext4 is content",
        needs: &["mkfs.ext4", "python3"],
        run: file_systems::ext4,
    },
    Scenario {
        name: "sqlite",
        shows: "SQLite's committed transactions are there after kill -9; integrity_check says ok",
        needs: &["mkfs.ext4", "python3-sqlite3"],
        run: sqlite::run,
    },
    Scenario {
        name: "xfs",
        shows: "the same on xfs, judged by xfs_repair",
        needs: &["mkfs.xfs", "xfs in the kernel", "python3"],
        run: file_systems::xfs,
    },
    Scenario {
        name: "btrfs",
        shows: "the same on btrfs, judged by its scrub and btrfs check, data checksums included",
        needs: &["mkfs.btrfs", "btrfs in the kernel", "python3"],
        run: file_systems::btrfs,
    },
    Scenario {
        name: "postgres",
        shows: "PostgreSQL recovers; pg_amcheck is content, pgbench's sums agree, no commit lost",
        needs: &["mkfs.ext4", "postgres"],
        run: postgres::run,
    },
];

/// Scenarios whose short form runs inside `cargo xtask test`.
const SHORT: [&str; 3] = ["fio", "ext4", "sqlite"];

/// `cargo xtask soak ...`.
pub(crate) fn run(root: &Path, arguments: &[&str]) -> Result<(), Failure> {
    if arguments == ["--list"] {
        for scenario in &SCENARIOS {
            println!("{:10} {}", scenario.name, scenario.shows);
        }
        return Ok(());
    }
    clients::install_for_soak();
    let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    let wanted =
        acceptance::parse(arguments, &names).ok_or(Failure::Usage { text: crate::USAGE })?;
    let setting = Setting::new(root, &wanted)?;
    let mut steps = Steps::default();
    for scenario in &SCENARIOS {
        if wanted.names.is_empty() || wanted.names.iter().any(|name| name == scenario.name) {
            step(scenario, &setting, &mut steps);
        }
    }
    steps.finish()
}

/// The short forms, as steps of `cargo xtask test`, with dice that always fall the same.
pub(crate) fn run_short(root: &Path, steps: &mut Steps) {
    match Setting::short(root) {
        Ok(setting) => SCENARIOS
            .iter()
            .filter(|scenario| SHORT.contains(&scenario.name))
            .for_each(|scenario| step(scenario, &setting, steps)),
        Err(failure) => steps.run("soak", || Err(failure)),
    }
}

fn step(scenario: &Scenario, setting: &Setting, steps: &mut Steps) {
    let mounts = scenario.name != "fio";
    let missing = clients::missing(if mounts { &MOUNTED } else { &[] });
    if missing.is_empty() {
        acceptance::step("soak", scenario, setting, steps);
    } else {
        steps.skip(&format!("soak {}", scenario.name), &format!("needs {}", missing.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use super::{SCENARIOS, SHORT};

    #[test]
    fn every_short_form_is_a_scenario() {
        for name in SHORT {
            assert!(SCENARIOS.iter().any(|scenario| scenario.name == name));
        }
    }
}
