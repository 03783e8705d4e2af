//! The journal as parts see it: what has been appended, and how far it is durable.
//!
//! ```text
//! placed <= durable <= appended      and      told <= durable
//! ```
//!
//! A round of syncs moves *durable* and *placed* on, and while it runs all know up to which record
//! it goes; the next record that is appended *tells* what is durable by then.

use format::record::Settled;
use journal::Writer;

/// How a record becomes durable (decision 035).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// By the sync of a round.
    BySync,
    /// By its write: somebody waits for it, and no sync is left to wait for.
    ByWrite,
}

/// The journal, and how far what it holds is durable.
pub(crate) struct RecordLog {
    pub(crate) journal: Writer,
    /// Incarnation that records carry: one per opening.
    pub(crate) incarnation: u64,
    /// Sequence of the newest record appended.
    pub(crate) appended_sequence: u64,
    /// Sequence of the newest record that changes anything.
    pub(crate) newest_change: u64,
    pub(crate) settled: Settled,
    /// The durable sequence that the newest record carries.
    pub(crate) told: u64,
    /// Records were written since the last round began that a sync has to make durable.
    pub(crate) journal_unsynced: bool,
    /// Up to where the round under way makes records durable.
    pub(crate) syncing: Option<u64>,
}

impl RecordLog {
    /// All that `journal` holds is durable, and its frames are placed.
    pub(crate) fn new(journal: Writer, incarnation: u64) -> Self {
        let sequence = journal.next().sequence - 1;
        Self {
            journal,
            incarnation,
            appended_sequence: sequence,
            newest_change: 0,
            settled: Settled { durable_sequence: sequence, placed_sequence: sequence },
            told: sequence,
            journal_unsynced: false,
            syncing: None,
        }
    }

    /// How the next record becomes durable, if it carries its frames or not. Beside others that a
    /// sync makes durable one more costs nothing, and a flush of the device of its own would.
    pub(crate) fn durability_of_next(&self, carries: bool) -> Durability {
        let is_alone = self.syncing.is_none() && !self.journal_unsynced;
        if carries && is_alone { Durability::ByWrite } else { Durability::BySync }
    }

    /// Where what the journal keeps begins.
    pub(crate) fn begin_bytes(&self) -> u64 {
        self.journal.next().offset_bytes - self.journal.used_bytes()
    }

    /// Whether a record that changes something is durable, and none says so.
    pub(crate) fn is_unmarked(&self) -> bool {
        self.told < self.newest_change && self.newest_change <= self.settled.durable_sequence
    }

    /// Asserts that marks are in order, and that the journal goes on where records ended.
    pub(crate) fn check(&self) {
        let Settled { durable_sequence, placed_sequence } = self.settled;
        let appended = self.appended_sequence;
        let in_order = placed_sequence <= durable_sequence && durable_sequence <= appended;
        assert!(in_order, "MarksInOrder: placed <= durable <= appended");
        assert!(self.told <= durable_sequence, "MarksInOrder: no record tells what is not durable");
        assert_eq!(appended + 1, self.journal.next().sequence, "SequenceFollows");
        let syncing =
            self.syncing.is_none_or(|syncing| (durable_sequence..=appended).contains(&syncing));
        assert!(syncing, "MarksInOrder: a round syncs what is appended and not durable");
    }
}

#[cfg(test)]
mod tests {
    use format::root::JournalPosition;
    use journal::Writer;

    use super::{Durability, RecordLog};

    fn empty() -> RecordLog {
        let next = JournalPosition { sequence: 1, offset_bytes: 0, previous_crc: 0 };
        RecordLog::new(Writer::resume(1 << 20, [1; 16], next, 0, 1), 1)
    }

    #[test]
    fn a_record_is_durable_by_its_write_where_no_sync_would_cover_it() {
        let mut log = empty();
        log.check();
        assert_eq!(log.durability_of_next(true), Durability::ByWrite);
        assert_eq!(log.durability_of_next(false), Durability::BySync, "frames are elsewhere");
        log.journal_unsynced = true;
        assert_eq!(log.durability_of_next(true), Durability::BySync);
        (log.journal_unsynced, log.syncing) = (false, Some(0));
        assert_eq!(log.durability_of_next(true), Durability::BySync, "a round is under way");
    }

    #[test]
    #[should_panic(expected = "MarksInOrder")]
    fn no_record_tells_what_is_not_durable() {
        RecordLog { told: 1, ..empty() }.check();
    }

    #[test]
    #[should_panic(expected = "MarksInOrder")]
    fn no_round_syncs_what_is_not_appended() {
        RecordLog { syncing: Some(1), ..empty() }.check();
    }

    #[test]
    #[should_panic(expected = "SequenceFollows")]
    fn the_journal_goes_on_where_records_ended() {
        RecordLog { appended_sequence: 1, ..empty() }.check();
    }
}
