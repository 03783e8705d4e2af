//! The steps of scrubs: those that wait, the one under way, and the reads and writes it waits for.

use std::collections::{BTreeMap, VecDeque};

use disk::AlignedBuf;
use format::units::Zone;
use tables::PinSet;

use crate::check::problem::Problem;
use crate::devices::{Devices, Purpose};
use crate::door::done::Done;
use crate::door::error::RequestError;
use crate::scrub::stages::{ContainerScrub, LossesScrub, SuperblockScrub, TablesScrub};
use crate::scrub::{ScrubFinding, ScrubPosition, ScrubRequest, ScrubStep};

/// Findings after which a step ends early: a reply stays small.
pub(crate) const FINDINGS_PER_STEP: usize = 4096;

/// Steps asked for, and what scrubs have found.
#[derive(Default)]
pub(crate) struct Scrub {
    pub(crate) waiting: VecDeque<(ScrubRequest, Done<ScrubStep>)>,
    /// The step under way, and its stage.
    pub(crate) running: Option<(Box<Running>, Work)>,
}

/// The step under way.
pub(crate) struct Running {
    pub(crate) done: Done<ScrubStep>,
    pub(crate) fingerprints: bool,
    pub(crate) step: ScrubStep,
    pub(crate) io: ScrubIo,
    /// Pages held from one attempt to the next.
    pub(crate) pins: PinSet,
    /// Verdicts of workers, by the number of their job; None of one that panicked.
    pub(crate) verdicts: BTreeMap<u64, Option<Vec<reduce::Verdict>>>,
    pub(crate) jobs_out: usize,
}

/// What a step reads next, reads, and has read.
#[derive(Default)]
pub(crate) struct ScrubIo {
    to_read: VecDeque<ScrubRead>,
    reading: BTreeMap<u64, ScrubRead>,
    next_key: u64,
    arrived: VecDeque<(ScrubRead, Option<AlignedBuf>)>,
    writes_out: usize,
    write_failed: bool,
}

/// A stretch of a zone.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ScrubRead {
    pub(crate) zone: Zone,
    pub(crate) offset_bytes: u64,
    pub(crate) length_bytes: usize,
    /// What the stage knows it by.
    pub(crate) mark: usize,
}

/// The stage of a step.
pub(crate) enum Work {
    Superblock(SuperblockScrub),
    Tables(TablesScrub),
    Container(Box<ContainerScrub>),
    Losses(LossesScrub),
}

/// What an attempt to go on came to.
pub(crate) enum Progress {
    Waits,
    Moved,
    /// The stage is over for this step; where the next one begins.
    Done(Option<ScrubPosition>),
    /// The step has no end but this; nothing of it is under way.
    Failed(RequestError),
}

impl ScrubIo {
    pub(crate) fn read(&mut self, read: ScrubRead) {
        self.to_read.push_back(read);
    }

    /// The next stretch to read, by its key, while fewer than that are read.
    pub(crate) fn next_read(&mut self, out_max: usize) -> Option<(u64, ScrubRead)> {
        if self.reading.len() >= out_max {
            return None;
        }
        let read = self.to_read.pop_front()?;
        let key = self.next_key;
        self.next_key += 1;
        self.reading.insert(key, read);
        Some((key, read))
    }

    /// A stretch has come, without bytes if it could not be read; false if it is none of these.
    pub(crate) fn arrive(&mut self, key: u64, buf: Option<AlignedBuf>) -> bool {
        let read = self.reading.remove(&key);
        let is_known = read.is_some();
        self.arrived.extend(read.map(|read| (read, buf)));
        is_known
    }

    /// Writes whole blocks that heal something, outside of all that is promised.
    pub(crate) fn write(
        &mut self,
        devices: &mut Devices,
        zone: Zone,
        offset_bytes: u64,
        buf: AlignedBuf,
    ) {
        self.writes_out += 1;
        devices.write(zone, offset_bytes, buf.into(), Purpose::ScrubWrite);
    }

    /// Makes durable what [`Self::write`] has written.
    pub(crate) fn sync(&mut self, devices: &mut Devices, zone: Zone) {
        self.writes_out += 1;
        devices.sync(zone, Purpose::ScrubSync);
    }

    /// A write or sync has ended; false if none was on its way.
    pub(crate) fn write_ended(&mut self, ok: bool) -> bool {
        let was_out = self.writes();
        self.writes_out = self.writes_out.saturating_sub(1);
        self.write_failed |= !ok;
        was_out
    }

    /// A stretch that has come; without bytes if it could not be read.
    pub(crate) fn take_arrived(&mut self) -> Option<(ScrubRead, Option<AlignedBuf>)> {
        self.arrived.pop_front()
    }

    /// Whether all that was asked for has come and been taken.
    pub(crate) fn is_over(&self) -> bool {
        self.to_read.is_empty() && self.reading.is_empty() && self.arrived.is_empty()
    }

    /// Whether a write or sync is on its way.
    pub(crate) fn writes(&self) -> bool {
        self.writes_out > 0
    }

    /// Whether a write or sync has failed since this was last asked.
    pub(crate) fn take_write_failed(&mut self) -> bool {
        std::mem::take(&mut self.write_failed)
    }
}

impl Running {
    pub(crate) fn new(done: Done<ScrubStep>, fingerprints: bool) -> Self {
        Self {
            done,
            fingerprints,
            step: ScrubStep::default(),
            io: ScrubIo::default(),
            pins: PinSet::default(),
            verdicts: BTreeMap::new(),
            jobs_out: 0,
        }
    }

    /// Whether a job is under way whose verdicts have not come.
    pub(crate) fn awaits_verdicts(&self) -> bool {
        self.verdicts.len() < self.jobs_out
    }

    pub(crate) fn found(&mut self, problem: Problem, healed: bool) {
        self.step.findings.push(ScrubFinding { problem, healed });
    }
}
