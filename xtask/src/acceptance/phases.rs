//! What a server was doing when it was killed, from its own log.
//!
//! `tamis serve --verbose` says when it begins to open the store, when it serves, and when a
//! checkpoint or a collection begins and ends. What has begun and not ended was cut off. The lines
//! are written by the thread that does the work, at once, so the log of a killed server is exact.

use std::collections::BTreeMap;
use std::fmt;

use crate::table::Table;

/// One thing that a kill can interrupt; a checkpoint and a collection may be on their way together.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Ord, PartialOrd)]
pub(crate) enum Phase {
    /// The process was there and had not begun to open the store.
    Starting,
    /// The store was being opened: after a kill that is its recovery.
    Recovery,
    Checkpoint,
    Collection,
    /// Served, with none of the above on its way.
    Between,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Phase::Starting => "starting",
            Phase::Recovery => "recovery",
            Phase::Checkpoint => "checkpoint",
            Phase::Collection => "collection",
            Phase::Between => "between these",
        })
    }
}

/// How many kills landed in each phase.
#[derive(Debug, Default)]
pub(crate) struct Landed {
    kills: u64,
    by_phase: BTreeMap<Phase, u64>,
}

impl Landed {
    /// Counts one kill of a server that had said `told`; returns where it landed.
    pub(crate) fn count(&mut self, told: &str) -> Vec<Phase> {
        let phases = phases_at_end(told);
        self.kills += 1;
        for &phase in &phases {
            *self.by_phase.entry(phase).or_default() += 1;
        }
        phases
    }

    /// All of them.
    pub(crate) fn kills(&self) -> u64 {
        self.kills
    }

    /// Phases that no kill has landed in, of those that must be hit.
    pub(crate) fn missed(&self) -> Vec<Phase> {
        let must = [Phase::Recovery, Phase::Checkpoint, Phase::Collection, Phase::Between];
        must.into_iter().filter(|phase| !self.by_phase.contains_key(phase)).collect()
    }

    /// Prints the counts.
    pub(crate) fn print(&self) {
        let mut table = Table::default();
        table.row(["killed during", "kills"]);
        for (phase, count) in &self.by_phase {
            table.row([&phase.to_string(), &count.to_string()]);
        }
        table.row(["in all (some in two at once)", &self.kills.to_string()]);
        table.print();
    }
}

/// What a server that said `told` in its life was doing at the end of it.
pub(crate) fn phases_at_end(told: &str) -> Vec<Phase> {
    let (mut opening, mut serving, mut checkpoint, mut collection) = (false, false, false, false);
    for line in told.lines() {
        opening |= line == "opening the store";
        serving |= line.starts_with("serving ");
        if line.starts_with("checkpoint ") {
            checkpoint = line.ends_with(" begins");
        }
        collection |= line.starts_with("collecting container ");
        if line.starts_with("container ") {
            collection = false;
        }
    }
    let mut phases = match (opening, serving) {
        (false, _) => vec![Phase::Starting],
        (true, false) => vec![Phase::Recovery],
        (true, true) => Vec::new(),
    };
    phases.extend(checkpoint.then_some(Phase::Checkpoint));
    phases.extend(collection.then_some(Phase::Collection));
    if phases.is_empty() { vec![Phase::Between] } else { phases }
}

/// Whether a line says that something of this name has begun.
pub(crate) fn has_begun(told: &str, name: &str) -> bool {
    told.lines().any(|line| line.starts_with(name) && !line.ends_with("is durable"))
}

#[cfg(test)]
mod tests {
    use super::{Landed, Phase, has_begun, phases_at_end};

    const SERVING: &str = "opening the store\nrecovered in 3 ms\nserving /s with 64 MiB\n";

    #[test]
    fn what_has_begun_and_not_ended_was_cut_off() {
        let at_end = |more: &str| phases_at_end(&format!("{SERVING}{more}"));
        assert_eq!(phases_at_end(""), [Phase::Starting]);
        assert_eq!(phases_at_end("opening the store\n"), [Phase::Recovery]);
        assert_eq!(at_end(""), [Phase::Between]);
        assert_eq!(at_end("checkpoint 2 begins\n"), [Phase::Checkpoint]);
        assert_eq!(at_end("checkpoint 2 begins\ncheckpoint 2 is durable\n"), [Phase::Between]);
        let both = "collecting container 7\ncheckpoint 3 begins\n";
        assert_eq!(at_end(both), [Phase::Checkpoint, Phase::Collection]);
        let freed = "collecting container 7\ncheckpoint 3 begins\ncontainer 7 is free\n";
        assert_eq!(at_end(freed), [Phase::Checkpoint]);
    }

    #[test]
    fn the_end_of_a_checkpoint_is_not_its_beginning() {
        assert!(!has_begun("checkpoint 7 is durable\n", "checkpoint "));
        assert!(has_begun("checkpoint 7 is durable\ncheckpoint 8 begins\n", "checkpoint "));
        assert!(has_begun("collecting container 3\n", "collecting container "));
    }

    #[test]
    fn a_phase_that_was_never_hit_is_named() {
        let mut landed = Landed::default();
        landed.count(SERVING);
        landed.count("opening the store\n");
        landed.count(&format!("{SERVING}checkpoint 2 begins\n"));
        assert_eq!(landed.missed(), [Phase::Collection]);
    }
}
