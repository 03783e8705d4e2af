//! Who waits for durability, and whether flushes are a habit.
//!
//! A database flushes after every write or two, and waits for it. Its flush is *expected* then:
//! what it writes does not wait in the open group for company, and its frames and record are on
//! their way to the disk before the flush is asked for. Everybody else's writes are gathered.

use std::sync::Arc;

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

/// Writes before a flush, if the flush is one of a habit.
const HABIT_WRITES_MAX: u64 = 4;
/// The number of such flushes that makes a habit.
const HABIT_FLUSHES: u32 = 4;

/// Who waits for a round, and whether one is wanted.
#[derive(Default)]
pub(crate) struct FlushQueue {
    pub(crate) waiters: Vec<(u64, Answer)>,
    /// Somebody wants a round that places frames.
    pub(crate) wanted: bool,
    pub(crate) ticks: u32,
    /// Requests to write that had come by the last flush.
    writes_seen: u64,
    /// Flushes one after the other with few writes before each.
    habitual: u32,
}

impl FlushQueue {
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

    /// `answer` is given when this group is durable.
    pub(crate) fn wait_for(&mut self, group: u64, answer: Answer) {
        self.waiters.push((group, answer));
    }

    /// Whether time has passed since the last round began, and nobody waits for one.
    pub(crate) fn is_idle(&self) -> bool {
        self.ticks > 0 && self.waiters.is_empty()
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

    /// Everyone who waits is told `error`.
    pub(crate) fn fail(&mut self, error: &RequestError) {
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
    use super::{FlushQueue, HABIT_FLUSHES};

    #[test]
    fn a_flush_is_expected_after_some_with_few_writes_before_each() {
        let mut flushes = FlushQueue::default();
        for flush in 1..=u64::from(HABIT_FLUSHES) {
            assert!(!flushes.is_expected(2 * flush - 1), "{flush}: no habit yet");
            flushes.note_flush(2 * flush);
        }
        let writes = 2 * u64::from(HABIT_FLUSHES);
        assert!(!flushes.is_expected(writes), "nothing has been written since");
        assert!(flushes.is_expected(writes + 1) && flushes.is_expected(writes + 4));
        assert!(!flushes.is_expected(writes + 5), "more than was written before a flush");
        flushes.note_flush(writes + 5);
        assert!(!flushes.is_expected(writes + 6), "the habit is broken");
    }
}
