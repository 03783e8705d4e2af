//! The steps of scrubs: those that wait, the one under way, and the reads and writes it waits for.

use std::collections::{BTreeMap, VecDeque};

use disk::AlignedBuf;
use format::units::Zone;
use tables::PinSet;

use crate::check::problem::Problem;
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
    pub(crate) running: Option<Box<Running>>,
}

/// The step under way.
pub(crate) struct Running {
    pub(crate) done: Done<ScrubStep>,
    pub(crate) work: Option<Work>,
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
    pub(crate) to_read: VecDeque<ScrubRead>,
    pub(crate) reading: BTreeMap<u64, ScrubRead>,
    pub(crate) next_key: u64,
    arrived: VecDeque<(ScrubRead, Option<AlignedBuf>)>,
    pub(crate) writes_out: usize,
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
    pub(crate) fn new(done: Done<ScrubStep>, work: Work, fingerprints: bool) -> Self {
        Self {
            done,
            work: Some(work),
            fingerprints,
            step: ScrubStep::default(),
            io: ScrubIo::default(),
            pins: PinSet::default(),
            verdicts: BTreeMap::new(),
            jobs_out: 0,
        }
    }

    pub(crate) fn found(&mut self, problem: Problem, healed: bool) {
        self.step.findings.push(ScrubFinding { problem, healed });
    }
}

impl Scrub {
    pub(crate) fn is_busy(&self) -> bool {
        self.running.is_some() || !self.waiting.is_empty()
    }

    /// Whether the step under way is about the superblock.
    pub(crate) fn is_at_superblock(&self) -> bool {
        let work = self.running.as_ref().and_then(|running| running.work.as_ref());
        matches!(work, Some(Work::Superblock(_)))
    }

    /// A caller that waits for a step hears that there will be none.
    pub(crate) fn fail(&mut self, error: &RequestError) {
        let running = self.running.take().map(|running| running.done);
        let waiting = self.waiting.drain(..).map(|(_, done)| done);
        running.into_iter().chain(waiting).for_each(|done| done.fail(error.clone()));
    }

    pub(crate) fn read_ended(&mut self, key: u64, buf: Option<AlignedBuf>) {
        let Some(running) = &mut self.running else { return };
        let Some(read) = running.io.reading.remove(&key) else { return };
        running.io.arrived.push_back((read, buf));
    }

    pub(crate) fn write_ended(&mut self, ok: bool) {
        let Some(running) = &mut self.running else { return };
        running.io.writes_out -= 1;
        running.io.write_failed |= !ok;
    }

    pub(crate) fn verified(&mut self, job: u64, verdicts: Option<Vec<reduce::Verdict>>) {
        if let Some(running) = &mut self.running {
            running.verdicts.insert(job, verdicts);
        }
    }
}
