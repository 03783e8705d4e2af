//! Who waits for durability, the round that makes it, and whether flushes are a habit.
//!
//! A database flushes after every write or two, and waits for it. Its flush is *expected* then:
//! what it writes does not wait in the open group for company, and its frames and record are on
//! their way to the disk before the flush is asked for. Everybody else's writes are gathered.

use std::collections::BTreeSet;
use std::sync::Arc;

use format::record::Settled;

use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::door::outcome::VolumeInfo;
use crate::write::partial::Ack;

/// How one who waits is answered.
pub(crate) enum Answer {
    Ack(Arc<Ack>),
    Done(Done<()>),
    Volume(Done<VolumeInfo>, Box<VolumeInfo>),
}

impl Answer {
    fn ok(self) {
        match self {
            Self::Ack(ack) => ack.part_done(),
            Self::Done(done) => done.reply(()),
            Self::Volume(done, volume) => done.reply(*volume),
        }
    }

    fn fail(self, error: &RequestError) {
        match self {
            Self::Ack(ack) => ack.fail(error),
            Self::Done(done) => done.fail(error.clone()),
            Self::Volume(done, _) => done.fail(error.clone()),
        }
    }
}

/// How a record becomes durable (decision 035).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Durability {
    /// By the sync of a round.
    BySync,
    /// By its write: somebody waits for it, and no sync is left to wait for.
    ByWrite,
}

/// A round under way.
pub(crate) struct Round {
    /// Records up to this one become durable.
    pub(crate) sequence: u64,
    /// Whether their frames become durable in their containers as well.
    pub(crate) places: bool,
    /// Groups up to this one become durable.
    pub(crate) group: u64,
    /// I/O issued before this mark must have ended.
    pub(crate) mark: u64,
    /// Data zones that were written before the mark. What is written to them later may not have
    /// ended when they are synced, so it counts for the next round.
    pub(crate) zones: BTreeSet<u16>,
    /// Whether the journal is to be synced.
    pub(crate) journal: bool,
    pub(crate) syncs_left: Option<usize>,
    /// What the records that become durable say of durability themselves.
    pub(crate) told: u64,
}

/// Writes before a flush, if the flush is one of a habit.
const HABIT_WRITES_MAX: u64 = 4;
/// So many flushes like that make a habit.
const HABIT_FLUSHES: u32 = 4;

/// Who waits for durability, and the round that runs.
pub(crate) struct Flushing {
    pub(crate) waiters: Vec<(u64, Answer)>,
    pub(crate) round: Option<Round>,
    pub(crate) settled: Settled,
    /// The durable sequence that the newest record carries.
    pub(crate) told: u64,
    /// The newest record that changes anything.
    pub(crate) newest_change: u64,
    /// Records were written since the last round began that a sync has to make durable.
    pub(crate) journal_unsynced: bool,
    /// Somebody wants a round that places frames.
    pub(crate) wanted: bool,
    pub(crate) ticks: u32,
    /// Requests to write that had come by the last flush.
    writes_seen: u64,
    /// Flushes one after the other with few writes before each.
    habitual: u32,
}

impl Flushing {
    /// Nothing waits, and all records up to this one are durable and their frames placed.
    pub(crate) fn new(sequence: u64) -> Self {
        Self {
            waiters: Vec::new(),
            round: None,
            settled: Settled { durable_sequence: sequence, placed_sequence: sequence },
            told: sequence,
            newest_change: 0,
            journal_unsynced: false,
            wanted: false,
            ticks: 0,
            writes_seen: 0,
            habitual: 0,
        }
    }

    /// A flush has come, behind `writes` writes in all.
    pub(crate) fn note_flush(&mut self, writes: u64) {
        let since = writes - std::mem::replace(&mut self.writes_seen, writes);
        self.habitual = if since <= HABIT_WRITES_MAX { self.habitual.saturating_add(1) } else { 0 };
    }

    /// Whether a flush will probably come, of the `writes` that have come in all.
    pub(crate) fn is_expected(&self, writes: u64) -> bool {
        let pending = (1..=HABIT_WRITES_MAX).contains(&(writes - self.writes_seen));
        self.habitual >= HABIT_FLUSHES && pending
    }

    /// How the next record becomes durable, if it carries its frames or not. Beside others that a
    /// sync makes durable one more costs nothing, and a flush of the device of its own would.
    pub(crate) fn durability_of_next(&self, carries: bool) -> Durability {
        let is_alone = self.round.is_none() && !self.journal_unsynced;
        if carries && is_alone { Durability::ByWrite } else { Durability::BySync }
    }

    /// `answer` is given when this group is durable.
    pub(crate) fn wait_for(&mut self, group: u64, answer: Answer) {
        self.waiters.push((group, answer));
    }

    /// Whether time has passed since the last round, and nobody waits for one.
    pub(crate) fn is_idle(&self) -> bool {
        self.ticks > 0 && self.waiters.is_empty() && self.round.is_none()
    }

    /// Whether a record that changes something is durable, and none says so.
    pub(crate) fn is_unmarked(&self) -> bool {
        self.told < self.newest_change && self.newest_change <= self.settled.durable_sequence
    }

    /// Whether a flush waits for this group.
    pub(crate) fn is_waited_for(&self, group: u64) -> bool {
        self.waiters.iter().any(|(of, _)| *of == group)
    }

    /// A round that places frames is wanted even if nobody waits.
    pub(crate) fn ask(&mut self) {
        self.wanted = true;
    }

    pub(crate) fn tick(&mut self) {
        self.ticks += 1;
    }

    pub(crate) fn sync_ended(&mut self) {
        if let Some(Round { syncs_left: Some(left), .. }) = &mut self.round {
            *left -= 1;
        }
    }

    /// Everyone who waits is told `error`, and no round runs any more.
    pub(crate) fn fail(&mut self, error: &RequestError) {
        self.round = None;
        for (_, answer) in self.waiters.drain(..) {
            answer.fail(error);
        }
    }

    pub(crate) fn answer_up_to(&mut self, group: u64) {
        for (_, answer) in self.waiters.extract_if(.., |(of, _)| *of <= group) {
            answer.ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Durability, Flushing, HABIT_FLUSHES};

    #[test]
    fn a_record_is_durable_by_its_write_where_no_sync_would_cover_it() {
        let mut flushing = Flushing::new(0);
        assert_eq!(flushing.durability_of_next(true), Durability::ByWrite);
        assert_eq!(flushing.durability_of_next(false), Durability::BySync, "frames are elsewhere");
        flushing.journal_unsynced = true;
        assert_eq!(flushing.durability_of_next(true), Durability::BySync);
    }

    #[test]
    fn a_flush_is_expected_after_some_with_few_writes_before_each() {
        let mut flushing = Flushing::new(0);
        for flush in 1..=u64::from(HABIT_FLUSHES) {
            assert!(!flushing.is_expected(2 * flush - 1), "{flush}: no habit yet");
            flushing.note_flush(2 * flush);
        }
        let writes = 2 * u64::from(HABIT_FLUSHES);
        assert!(!flushing.is_expected(writes), "nothing has been written since");
        assert!(flushing.is_expected(writes + 1) && flushing.is_expected(writes + 4));
        assert!(!flushing.is_expected(writes + 5), "more than was written before a flush");
        flushing.note_flush(writes + 5);
        assert!(!flushing.is_expected(writes + 6), "the habit is broken");
    }
}
