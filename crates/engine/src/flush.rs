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

use crate::core::Core;
use crate::core::flush_queue::Answer;
use crate::devices::Purpose;
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::flush::flushing::{Flushing, Round};
use crate::part::Part;

/// Unsynced data that starts a round by itself: it bounds what recovery must check.
const UNSYNCED_BYTES_MAX: u64 = 64 << 20;
/// Ticks without a flush after which what is acknowledged is made durable anyway.
pub(crate) const TICKS_UNSYNCED_MAX: u32 = 10;

impl Core {
    /// Takes a FLUSH.
    pub(crate) fn accept_flush(&mut self, done: Done<()>) {
        self.counters.flushes += 1;
        self.flushes.note_flush(self.counters.writes);
        self.flushes.wait_for(self.buffer.newest_group(), Answer::Done(done));
    }
}

impl Flushing {
    /// Starts a round when somebody waits for one, and ends it when its syncs have.
    pub(crate) fn advance(&mut self, core: &mut Core) -> bool {
        if core.stopped.is_some() {
            return false;
        }
        self.close_group_for_flush(core);
        let ended = self.end_round(core);
        self.begin_round(core) || ended
    }

    /// A flush, and one that is expected, does not wait for the open group to fill; but while
    /// closed groups are on their way it goes on filling, so that many small flushes share one
    /// record.
    fn close_group_for_flush(&self, core: &mut Core) {
        if !core.buffer.has_open() || core.buffer.closed_groups() > 0 {
            return;
        }
        let open = core.buffer.newest_group();
        let idle_long = core.flushes.ticks >= TICKS_UNSYNCED_MAX;
        let next = self.round.is_none();
        let expected = next && core.flushes.is_expected(core.counters.writes);
        if idle_long || expected || core.flushes.is_waited_for(open) {
            core.buffer.close_open();
        }
    }

    fn begin_round(&mut self, core: &mut Core) -> bool {
        if self.round.is_some() {
            return false;
        }
        let group = core.buffer.applied_group();
        let waited_for = core.flushes.waiters.iter().any(|(of, _)| *of <= group);
        let many = core.placement.unsynced_bytes > UNSYNCED_BYTES_MAX;
        let idle_long = core.flushes.ticks >= TICKS_UNSYNCED_MAX;
        if !(waited_for || core.flushes.wanted || many || idle_long) {
            issue_ahead(core);
            return false;
        }
        let loose = core.placement.has_loose_frames() && !mutant!(LeavesLooseFrames);
        let places = loose || core.flushes.wanted || many;
        core.flushes.wanted = false;
        core.flushes.ticks = 0;
        let Settled { durable_sequence, placed_sequence } = core.log.settled;
        let settled_sequence = if places { placed_sequence } else { durable_sequence };
        if core.log.appended_sequence == settled_sequence {
            core.flushes.answer_up_to(group);
            return waited_for;
        }
        let mut zones = BTreeSet::new();
        if places {
            core.issue_frames(true);
            zones = core.placement.take_unsynced_zones();
        }
        core.log.syncing = Some(core.log.appended_sequence);
        self.round = Some(Round {
            sequence: core.log.appended_sequence,
            places,
            group,
            mark: core.devices.mark(),
            zones,
            journal: std::mem::take(&mut core.log.journal_unsynced),
            syncs_left: None,
            told: core.log.told,
        });
        if mutant!(AnswersFlushUnsynced) {
            core.flushes.answer_up_to(group);
        }
        self.end_round(core);
        true
    }

    fn end_round(&mut self, core: &mut Core) -> bool {
        let Some(round) = &mut self.round else { return false };
        match round.syncs_left {
            None if core.devices.written_before(round.mark) || mutant!(SyncsBeforeWritten) => {
                let data = std::mem::take(&mut round.zones).into_iter().map(Zone::Data);
                let journal = round.journal && !mutant!(TrustsPlainRecords);
                let zones: Vec<_> =
                    journal.then_some(Zone::Journal).into_iter().chain(data).collect();
                round.syncs_left = Some(zones.len());
                for zone in zones {
                    core.devices.sync(zone, Purpose::FlushSync);
                }
                core.counters.syncs += u64::from(round.syncs_left != Some(0));
                true
            }
            Some(0) => {
                let Round { sequence, places, group, told, .. } = *round;
                self.round = None;
                core.log.syncing = None;
                core.log.settled.durable_sequence = sequence;
                if places {
                    core.log.settled.placed_sequence = sequence;
                }
                let known = if mutant!(ReusesContainerUntold) { sequence } else { told };
                core.placement.space.known_durable(known);
                let later = mutant!(AnswersWhatCameLater);
                let group = if later { core.buffer.applied_group() } else { group };
                core.log.journal_unsynced &= !mutant!(ForgetsLaterRecords);
                core.flushes.answer_up_to(group);
                true
            }
            _ => false,
        }
    }
}

impl Part for Flushing {
    /// The round is over; who waits for it is in [`Core::flushes`], and answered there.
    fn fail(&mut self, _error: &RequestError) {
        self.round = None;
    }

    /// A close asks for the mark of what is durable.
    fn is_idle(&self, _core: &Core) -> bool {
        true
    }

    fn check(&self, core: &Core) {
        let round = self.round.as_ref().map(|round| round.sequence);
        assert_eq!(round, core.log.syncing, "RoundIsPublished");
    }
}

/// The padded tail of a group that a flush will probably follow is written before it comes.
fn issue_ahead(core: &mut Core) {
    let expected = core.flushes.is_expected(core.counters.writes);
    let loose = core.placement.has_loose_frames();
    if expected && loose && core.buffer.groups.is_empty() {
        core.issue_frames(true);
    }
}
