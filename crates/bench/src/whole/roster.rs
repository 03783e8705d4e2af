//! Who has turns in a table: another one first in each round, and out after a failure.

use std::fs;
use std::path::Path;

use super::contestant::Contestant;
use super::figures::Skipped;
use crate::args::Args;
use crate::failure::Failure;
use crate::machine::load_average;
use crate::samples::Samples;

/// What is noted of the turns of all tables.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) skipped: Vec<Skipped>,
    /// Of the last minute, when a turn began.
    pub(super) load_average: Samples,
}

/// Those who take part in one table.
pub(super) struct Roster {
    table: String,
    places: Vec<Option<Contestant>>,
}

impl Roster {
    /// Those of `wanted` that nothing keeps out; `notes` are taken of the others.
    pub(super) fn new(
        table: &str,
        wanted: impl Iterator<Item = Contestant>,
        missing: impl Fn(Contestant) -> Option<String>,
        notes: &mut Notes,
    ) -> Self {
        let mut roster = Self { table: table.to_owned(), places: Vec::new() };
        for contestant in wanted {
            match missing(contestant) {
                None => roster.places.push(Some(contestant)),
                Some(reason) => notes.skipped.push(roster.skipped(contestant, reason)),
            }
        }
        roster
    }

    /// Their names, in the order in which turns name them.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.places.iter().flatten().map(|contestant| contestant.name())
    }

    /// Lets each have a turn, which is told its place among the names, and a folder in `folder`
    /// that is removed with all that a turn leaves.
    pub(super) fn take_turns(
        &mut self,
        args: &Args,
        folder: &Path,
        round: u64,
        notes: &mut Notes,
        mut turn: impl FnMut(usize, Contestant, &Path) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let folder = folder.join("turn");
        for number in 0..self.places.len() {
            let at = (number + round as usize) % self.places.len();
            let Some(contestant) = self.places[at] else { continue };
            let (name, table) = (contestant.name(), &self.table);
            eprintln!("round {} of {}, {table}: {name}", round + 1, args.rounds);
            notes.load_average.push(load_average());
            fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
            let outcome = turn(at, contestant, &folder);
            // A system that failed has left large files. If they cannot be removed now, they are
            // with the run's folder, which tells why.
            let _ = fs::remove_dir_all(&folder);
            match outcome {
                Ok(()) => {}
                Err(Failure::Interrupted) => return Err(Failure::Interrupted),
                // No figure of a system that loses what it was given means anything.
                Err(Failure::Differs { said }) => {
                    return Err(Failure::Differs { said: format!("{name}, {table}: {said}") });
                }
                // Half an hour of others' figures is not lost by it.
                Err(failure) => {
                    self.places[at] = None;
                    let reason = format!("failed in round {}: {failure}", round + 1);
                    eprintln!("{name} {reason}");
                    notes.skipped.push(self.skipped(contestant, reason));
                }
            }
        }
        Ok(())
    }

    fn skipped(&self, contestant: Contestant, reason: String) -> Skipped {
        Skipped { system: contestant.name(), table: self.table.clone(), reason }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use clap::Parser;

    use super::{Notes, Roster};
    use crate::args::Args;
    use crate::failure::Failure;
    use crate::whole::contestant::Contestant;

    fn folder(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tamis-roster-{}-{test}", std::process::id()))
    }

    fn roster(notes: &mut Notes) -> Roster {
        let wanted = [Contestant::Raw, Contestant::Nbdkit, Contestant::Tamis];
        let missing = |one| (one == Contestant::Nbdkit).then(|| "none here".to_owned());
        Roster::new("table", wanted.into_iter(), missing, notes)
    }

    #[test]
    fn who_fails_is_out_and_the_others_go_on() {
        let args = Args::parse_from(["bench", "whole"]);
        let folder = folder("fails");
        let (mut notes, mut turns) = (Notes::default(), Vec::new());
        let mut roster = roster(&mut notes);
        assert_eq!(roster.names().collect::<Vec<_>>(), ["raw", "tamis"]);
        for round in 0..2 {
            let turn = |at, contestant: Contestant, folder: &Path| {
                assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
                fs::create_dir(folder.join("left")).unwrap();
                turns.push((at, contestant.name()));
                match contestant {
                    Contestant::Tamis => Ok(()),
                    _ => Err(Failure::NoSystem("broken".to_owned())),
                }
            };
            roster.take_turns(&args, &folder, round, &mut notes, turn).unwrap();
        }
        fs::remove_dir(&folder).unwrap();
        assert_eq!(turns, [(0, "raw"), (1, "tamis"), (1, "tamis")]);
        let told: Vec<_> =
            notes.skipped.iter().map(|one| (one.system, one.table.as_str())).collect();
        assert_eq!(told, [("nbdkit", "table"), ("raw", "table")]);
    }

    #[test]
    fn a_wrong_byte_ends_the_run() {
        let args = Args::parse_from(["bench", "whole"]);
        let mut notes = Notes::default();
        let turn = |_, _, _: &Path| Err(Failure::Differs { said: "byte 1".to_owned() });
        let folder = folder("differs");
        let ended = roster(&mut notes).take_turns(&args, &folder, 0, &mut notes, turn);
        fs::remove_dir(&folder).unwrap();
        assert!(matches!(ended, Err(Failure::Differs { .. })), "{ended:?}");
    }
}
