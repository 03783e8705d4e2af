//! Files on ext4, xfs and btrfs, replaced, appended and removed with fsync, over kills.
//!
//! `files_over_kills.py` reports what it tries and what the file system has promised it; after each
//! kill it judges what it finds against all its reports. Then comes the file system's own tool.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::acceptance::Setting;
use crate::failure::Failure;
use crate::program::Program;
use crate::soak::crashing::{Crashing, EXT4, Kind};
use crate::soak::rounds::Rounds;

const XFS: Kind = Kind { make: &["mkfs.xfs", "-q"], judge: &["xfs_repair", "-n"] };
const BTRFS: Kind = Kind {
    make: &["mkfs.btrfs", "-q"],
    judge: &["btrfs", "check", "--readonly", "--check-data-csum"],
};
const LINES_MIN: u64 = 20;
const LINES_MAX: u64 = 1_200;

pub(super) fn ext4(setting: &Setting) -> Result<(), Failure> {
    soak(setting, &EXT4, |_| Ok(()))
}

pub(super) fn xfs(setting: &Setting) -> Result<(), Failure> {
    soak(setting, &XFS, |_| Ok(()))
}

pub(super) fn btrfs(setting: &Setting) -> Result<(), Failure> {
    // `-B` waits, and its exit code tells of errors that could not be mended.
    soak(setting, &BTRFS, |place| {
        Program::new("btrfs").args(["scrub", "start", "-B", "-r"]).path(place).run()
    })
}

fn soak(
    setting: &Setting,
    kind: &Kind,
    judge_mounted: fn(&Path) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut rounds = Rounds::new(setting);
    let mut crashing = Crashing::make(setting, kind)?;
    let reports = setting.work.join("reports");
    while let Some(round) = rounds.next() {
        let at = rounds.kill_within(LINES_MIN, LINES_MAX);
        let script = |verb| setting.script("files_over_kills.py").arg(verb);
        let seed = rounds.dice.next() >> 32;
        let write = script("write").path(crashing.folder());
        let write = write.args([round.to_string().as_str(), seed.to_string().as_str()]);
        let reported = crashing.kill_under(write, at)?;
        append(&reports, &reported)?;
        crashing.come_back()?;
        let judged = script("judge").path(crashing.folder()).path(&reports).output()?;
        println!("round {round}: killed after {} reports; {}", reported.len(), judged.trim());
        judge_mounted(crashing.folder())?;
        crashing.judge(kind)?;
    }
    crashing.end()
}

/// Adds what was reported to the file of all reports.
pub(crate) fn append(file: &Path, lines: &[String]) -> Result<(), Failure> {
    let opened = File::options().create(true).append(true).open(file);
    let mut opened = opened.map_err(Failure::file(file))?;
    let mut text = lines.join("\n");
    text.push('\n');
    opened.write_all(text.as_bytes()).map_err(Failure::file(file))
}
