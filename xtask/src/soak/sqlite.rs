//! SQLite on ext4: a transaction whose commit has returned is there after the kill, whole and in
//! order; its own integrity check is content. Write-ahead log and rollback journal take turns.

use crate::acceptance::Setting;
use crate::failure::Failure;
use crate::soak::crashing::{Crashing, EXT4};
use crate::soak::file_systems::append;
use crate::soak::rounds::Rounds;

const LINES_MIN: u64 = 20;
const LINES_MAX: u64 = 600;

pub(super) fn run(setting: &Setting) -> Result<(), Failure> {
    let mut rounds = Rounds::new(setting);
    let mut crashing = Crashing::make(setting, &EXT4)?;
    let database = crashing.folder().join("rows.db");
    let reports = setting.work.join("reports");
    while let Some(round) = rounds.next() {
        let at = rounds.kill_within(LINES_MIN, LINES_MAX);
        let script = |verb| setting.script("sqlite_over_kills.py").arg(verb).path(&database);
        let journal = if round % 2 == 1 { "wal" } else { "delete" };
        let reported = crashing.kill_under(script("write").arg(journal), at)?;
        append(&reports, &reported)?;
        crashing.come_back()?;
        let judged = script("judge").path(&reports).output()?;
        println!("round {round}: journal mode {journal}; {}", judged.trim());
        crashing.judge(&EXT4)?;
    }
    crashing.end()
}
