//! FLUSH and FUA: what was acknowledged before becomes durable.
//!
//! A flush waits for the group that was newest when it arrived. Once that group is applied, a
//! *round* makes everything applied so far durable: the container's padded tail is written, every
//! frame and journal write issued so far must have ended, then journal and data zones are synced
//! together. Frames and records need no order between them: recovery checks the frames that
//! records since the last known sync name, and stops at the first that is missing.
//!
//! One round runs at a time; flushes that arrive meanwhile share the next: group commit. (Two at a
//! time were no faster: measurements/016.) Where a flush is expected (`flushing.rs`), all but the
//! syncs is done ahead of it.

use format::units::Zone;
use mutants::mutant;

use crate::devices::Purpose;
use crate::done::Done;
use crate::engine::Engine;
use crate::flushing::Round;
use crate::outcome::Reply;

/// Unsynced data that starts a round by itself: it bounds what recovery must check.
const UNSYNCED_BYTES_MAX: u64 = 64 << 20;
/// Ticks without a flush after which what is acknowledged is made durable anyway.
const TICKS_UNSYNCED_MAX: u32 = 10;

impl Engine {
    /// Takes a FLUSH.
    pub(crate) fn accept_flush(&mut self, done: Done) {
        self.counters.flushes += 1;
        self.flushing.note_flush(self.counters.writes);
        self.flushing.wait_for_reply(self.buffer.newest_group(), done, Reply::Done);
    }

    /// Starts a round when somebody waits for one, and ends it when its syncs have.
    pub(crate) fn advance_flush(&mut self) -> bool {
        if self.stopped.is_some() {
            return false;
        }
        self.close_group_for_flush();
        let ended = self.end_round();
        self.begin_round() || ended
    }

    /// A flush, and one that is expected, does not wait for the open group to fill; but while
    /// closed groups are on their way it goes on filling, so that many small flushes share one
    /// record.
    fn close_group_for_flush(&mut self) {
        if !self.buffer.has_open() || self.buffer.closed_groups() > 0 {
            return;
        }
        let open = self.buffer.newest_group();
        let idle_long = self.flushing.ticks >= TICKS_UNSYNCED_MAX;
        let next = self.flushing.round.is_none();
        let expected = next && self.flushing.is_expected(self.counters.writes);
        if idle_long || expected || self.flushing.waiters.iter().any(|(group, _)| *group == open) {
            self.buffer.close_open();
        }
    }

    fn begin_round(&mut self) -> bool {
        if self.flushing.round.is_some() {
            return false;
        }
        let group = self.buffer.applied_group();
        let waited_for = self.flushing.waiters.iter().any(|(of, _)| *of <= group);
        let overdue = self.placement.unsynced_bytes > UNSYNCED_BYTES_MAX
            || self.flushing.ticks >= TICKS_UNSYNCED_MAX;
        if !(waited_for || self.flushing.wanted || overdue) {
            self.issue_ahead();
            return false;
        }
        self.flushing.wanted = false;
        self.flushing.ticks = 0;
        if self.appended_sequence == self.flushing.durable_sequence {
            self.flushing.answer_up_to(group);
            return waited_for;
        }
        self.issue_frames(true);
        self.flushing.round = Some(Round {
            sequence: self.appended_sequence,
            group,
            mark: self.devices.mark(),
            zones: self.placement.take_unsynced_zones(),
            syncs_left: None,
            told: self.flushing.told,
        });
        if mutant!(AnswersFlushUnsynced) {
            self.flushing.answer_up_to(group);
        }
        self.end_round();
        true
    }

    /// The padded tail of a group that a flush will probably follow is written before it comes.
    fn issue_ahead(&mut self) {
        let expected = self.flushing.is_expected(self.counters.writes);
        if expected && self.buffer.groups.is_empty() {
            self.issue_frames(true);
        }
    }

    fn end_round(&mut self) -> bool {
        let Some(round) = &mut self.flushing.round else { return false };
        match round.syncs_left {
            None if self.devices.written_before(round.mark) => {
                let zones = std::mem::take(&mut round.zones);
                round.syncs_left = Some(zones.len() + 1);
                self.devices.sync(Zone::Journal, Purpose::FlushSync);
                for number in zones {
                    self.devices.sync(Zone::Data(number), Purpose::FlushSync);
                }
                self.counters.syncs += 1;
                true
            }
            Some(0) => {
                let Round { sequence, group, told, .. } = *round;
                self.flushing.round = None;
                self.flushing.durable_sequence = sequence;
                let known = if mutant!(ReusesContainerUntold) { sequence } else { told };
                self.placement.space.known_durable(known);
                self.flushing.answer_up_to(group);
                true
            }
            _ => false,
        }
    }
}
