//! FLUSH and FUA: what was acknowledged before becomes durable.
//!
//! A flush waits for the group that was newest when it arrived. Once that group is applied, a
//! *round* makes everything applied so far durable: the container's padded tail is written, every
//! frame and journal write issued so far must have ended, then journal and data zones are synced
//! together. Frames and records need no order between them: recovery checks the frames that
//! records since the last known sync name, and stops at the first that is missing.
//!
//! One round runs at a time; flushes that arrive meanwhile share the next: group commit.

use std::sync::Arc;

use format::units::Zone;

use crate::buffer::Ack;
use crate::client::Done;
use crate::devices::Purpose;
use crate::engine::Engine;
use crate::outcome::{Reply, RequestError};

/// Unsynced data that starts a round by itself: it bounds what recovery must check.
const UNSYNCED_BYTES_MAX: u64 = 64 << 20;
/// Ticks without a flush after which what is acknowledged is made durable anyway.
const TICKS_UNSYNCED_MAX: u32 = 10;

enum Answer {
    Ack(Arc<Ack>),
    Reply(Done, Reply),
}

impl Answer {
    fn ok(self) {
        match self {
            Self::Ack(ack) => ack.part_done(),
            Self::Reply(done, reply) => done.reply(reply),
        }
    }

    fn fail(self, error: &RequestError) {
        match self {
            Self::Ack(ack) => ack.fail(error),
            Self::Reply(done, _) => done.fail(error.clone()),
        }
    }
}

struct Round {
    /// Records up to this one become durable.
    sequence: u64,
    /// Groups up to this one become durable.
    group: u64,
    /// I/O issued before this mark must have ended.
    mark: u64,
    syncs_left: Option<usize>,
}

/// Who waits for durability, and the round that runs.
pub(crate) struct Flushing {
    waiters: Vec<(u64, Answer)>,
    round: Option<Round>,
    durable_sequence: u64,
    wanted: bool,
    ticks: u32,
}

impl Flushing {
    pub(crate) fn new(durable_sequence: u64) -> Self {
        Self { waiters: Vec::new(), round: None, durable_sequence, wanted: false, ticks: 0 }
    }

    /// All records up to this one are durable, with the frames they name.
    pub(crate) fn durable_sequence(&self) -> u64 {
        self.durable_sequence
    }

    pub(crate) fn wait_for_ack(&mut self, group: u64, ack: Arc<Ack>) {
        self.waiters.push((group, Answer::Ack(ack)));
    }

    pub(crate) fn wait_for_reply(&mut self, group: u64, done: Done, reply: Reply) {
        self.waiters.push((group, Answer::Reply(done, reply)));
    }

    /// Whether time has passed since the last round, and nobody waits for one.
    pub(crate) fn is_idle(&self) -> bool {
        self.ticks > 0 && self.waiters.is_empty() && self.round.is_none()
    }

    /// A round is wanted even if nobody waits.
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

    fn answer_up_to(&mut self, group: u64) {
        let (ready, later) =
            std::mem::take(&mut self.waiters).into_iter().partition(|(of, _)| *of <= group);
        self.waiters = later;
        let ready: Vec<(u64, Answer)> = ready;
        for (_, answer) in ready {
            answer.ok();
        }
    }
}

impl Engine {
    /// Takes a FLUSH.
    pub(crate) fn accept_flush(&mut self, done: Done) {
        self.counters.flushes += 1;
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

    /// A flush does not wait for the open group to fill; but while closed groups are still on
    /// their way it goes on filling, so that many small flushes share one record.
    fn close_group_for_flush(&mut self) {
        if !self.buffer.has_open() || self.buffer.closed_groups() > 0 {
            return;
        }
        let open = self.buffer.newest_group();
        let idle_long = self.flushing.ticks >= TICKS_UNSYNCED_MAX;
        if idle_long || self.flushing.waiters.iter().any(|(group, _)| *group == open) {
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
            return false;
        }
        self.flushing.wanted = false;
        self.flushing.ticks = 0;
        if self.appended_sequence == self.flushing.durable_sequence {
            self.flushing.answer_up_to(group);
            return waited_for;
        }
        let bytes = self.placement.issue(true, &self.geometry, &mut self.devices);
        self.counters.data_bytes_written += bytes;
        self.flushing.round = Some(Round {
            sequence: self.appended_sequence,
            group,
            mark: self.devices.mark(),
            syncs_left: None,
        });
        self.end_round();
        true
    }

    fn end_round(&mut self) -> bool {
        let Some(round) = &mut self.flushing.round else { return false };
        match round.syncs_left {
            None if self.devices.written_before(round.mark) => {
                let zones = self.placement.take_unsynced_zones();
                round.syncs_left = Some(zones.len() + 1);
                self.devices.sync(Zone::Journal, Purpose::FlushSync);
                for number in zones {
                    self.devices.sync(Zone::Data(number), Purpose::FlushSync);
                }
                self.counters.syncs += 1;
                true
            }
            Some(0) => {
                let (sequence, group) = (round.sequence, round.group);
                self.flushing.round = None;
                self.flushing.durable_sequence = sequence;
                self.flushing.answer_up_to(group);
                true
            }
            _ => false,
        }
    }
}
