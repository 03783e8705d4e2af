//! FLUSH and FUA: what was acknowledged before becomes durable.
//!
//! A flush waits for the group that was newest when it arrived. Once that group is applied, a
//! *round* makes everything applied so far durable: every frame and journal write issued so far
//! must have ended, then the zones are synced. Frames and records need no order between them:
//! recovery checks the frames that records since the last known sync name, and stops at the first
//! that is missing.
//!
//! Few and small frames that a flush waits for are *carried* in their record (`commit.rs`). If all
//! frames since the last sync of the data zones were, a round is the journal's alone: one write and
//! one sync, or one write that is durable by itself (decision 035). The frames stay in memory, and
//! go to their container when a segment is full, or with the next round that *places* frames: one
//! with frames that no record carries, one that a checkpoint asks for since the journal will end
//! behind the record, or one for the bytes that recovery would have to place. It writes the
//! containers' padded tails first and syncs the data zones too. So there are two marks: up to which
//! record all is durable, and up to which the frames are durable in their places; the second never
//! passes the first.
//!
//! One round runs at a time; flushes that arrive meanwhile share the next: group commit. (Two at a
//! time were no faster: measurements/016.) Where a flush is expected (`flushing.rs`), all but the
//! syncs is done ahead of it.

pub(crate) mod flushing;
pub(crate) mod marking;

use std::collections::BTreeSet;

use format::record::Settled;
use format::units::Zone;
use mutants::mutant;

use crate::core::flush_queue::Answer;
use crate::devices::Purpose;
use crate::door::done::Done;
use crate::engine::Engine;
use crate::flush::flushing::Round;

/// Unsynced data that starts a round by itself: it bounds what recovery must check.
const UNSYNCED_BYTES_MAX: u64 = 64 << 20;
/// Ticks without a flush after which what is acknowledged is made durable anyway.
pub(crate) const TICKS_UNSYNCED_MAX: u32 = 10;

impl Engine {
    /// Takes a FLUSH.
    pub(crate) fn accept_flush(&mut self, done: Done<()>) {
        self.core.counters.flushes += 1;
        self.core.flushes.note_flush(self.core.counters.writes);
        self.core.flushes.wait_for(self.core.buffer.newest_group(), Answer::Done(done));
    }

    /// Starts a round when somebody waits for one, and ends it when its syncs have.
    pub(crate) fn advance_flush(&mut self) -> bool {
        if self.core.stopped.is_some() {
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
        if !self.core.buffer.has_open() || self.core.buffer.closed_groups() > 0 {
            return;
        }
        let open = self.core.buffer.newest_group();
        let idle_long = self.core.flushes.ticks >= TICKS_UNSYNCED_MAX;
        let next = self.flushing.round.is_none();
        let expected = next && self.core.flushes.is_expected(self.core.counters.writes);
        if idle_long || expected || self.core.flushes.is_waited_for(open) {
            self.core.buffer.close_open();
        }
    }

    fn begin_round(&mut self) -> bool {
        if self.flushing.round.is_some() {
            return false;
        }
        let group = self.core.buffer.applied_group();
        let waited_for = self.core.flushes.waiters.iter().any(|(of, _)| *of <= group);
        let many = self.core.placement.unsynced_bytes > UNSYNCED_BYTES_MAX;
        let idle_long = self.core.flushes.ticks >= TICKS_UNSYNCED_MAX;
        if !(waited_for || self.core.flushes.wanted || many || idle_long) {
            self.issue_ahead();
            return false;
        }
        let loose = self.core.placement.has_loose_frames() && !mutant!(LeavesLooseFrames);
        let places = loose || self.core.flushes.wanted || many;
        self.core.flushes.wanted = false;
        self.core.flushes.ticks = 0;
        let Settled { durable_sequence, placed_sequence } = self.core.log.settled;
        let settled_sequence = if places { placed_sequence } else { durable_sequence };
        if self.core.log.appended_sequence == settled_sequence {
            self.core.flushes.answer_up_to(group);
            return waited_for;
        }
        let mut zones = BTreeSet::new();
        if places {
            self.core.issue_frames(true);
            zones = self.core.placement.take_unsynced_zones();
        }
        self.core.log.syncing = Some(self.core.log.appended_sequence);
        self.flushing.round = Some(Round {
            sequence: self.core.log.appended_sequence,
            places,
            group,
            mark: self.core.devices.mark(),
            zones,
            journal: std::mem::take(&mut self.core.log.journal_unsynced),
            syncs_left: None,
            told: self.core.log.told,
        });
        if mutant!(AnswersFlushUnsynced) {
            self.core.flushes.answer_up_to(group);
        }
        self.end_round();
        true
    }

    /// The padded tail of a group that a flush will probably follow is written before it comes.
    fn issue_ahead(&mut self) {
        let expected = self.core.flushes.is_expected(self.core.counters.writes);
        let loose = self.core.placement.has_loose_frames();
        if expected && loose && self.core.buffer.groups.is_empty() {
            self.core.issue_frames(true);
        }
    }

    fn end_round(&mut self) -> bool {
        let Some(round) = &mut self.flushing.round else { return false };
        match round.syncs_left {
            None if self.core.devices.written_before(round.mark) || mutant!(SyncsBeforeWritten) => {
                let data = std::mem::take(&mut round.zones).into_iter().map(Zone::Data);
                let journal = round.journal && !mutant!(TrustsPlainRecords);
                let zones: Vec<_> =
                    journal.then_some(Zone::Journal).into_iter().chain(data).collect();
                round.syncs_left = Some(zones.len());
                for zone in zones {
                    self.core.devices.sync(zone, Purpose::FlushSync);
                }
                self.core.counters.syncs += u64::from(round.syncs_left != Some(0));
                true
            }
            Some(0) => {
                let Round { sequence, places, group, told, .. } = *round;
                self.flushing.round = None;
                self.core.log.syncing = None;
                self.core.log.settled.durable_sequence = sequence;
                if places {
                    self.core.log.settled.placed_sequence = sequence;
                }
                let known = if mutant!(ReusesContainerUntold) { sequence } else { told };
                self.core.placement.space.known_durable(known);
                let later = mutant!(AnswersWhatCameLater);
                let group = if later { self.core.buffer.applied_group() } else { group };
                self.core.log.journal_unsynced &= !mutant!(ForgetsLaterRecords);
                self.core.flushes.answer_up_to(group);
                true
            }
            _ => false,
        }
    }
}
