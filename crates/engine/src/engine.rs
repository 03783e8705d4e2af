//! The core: one owner of all tables, one thread, no locks, no clock, no randomness.
//!
//! [`Engine::step`] does everything that can be done now and never waits: it takes what the disk,
//! the workers and the doors have brought, moves groups, reads, the running flush, the running
//! checkpoint and the running collection on, and returns whether anything moved. [`Engine::run`]
//! steps until nothing moves and then waits at the doorbell; now and then it ticks, also when it
//! never waits. A simulator drives the same steps
//! with a seeded disk and inline workers and gets the same run to the byte.
//!
//! When a write or a sync fails, or a page that a write needs is damaged, nothing can be promised
//! any more: the engine *stops writing* ([`Core::stop_writing`]), answers every write and flush
//! with the cause, and goes on reading.

use std::collections::VecDeque;
use std::sync::Arc;

use accelerator::EmulatedSettings;
use disk::{Doorbell, ErrorClass};
use format::record::Change;
use format::units::Zone;
use reduce::{JobDone, JobKind, Verdict};
use tables::{PageError, PageRead};
use threads::AdaptiveSpin;

use crate::checkpoint::checkpoints::Checkpoints;
use crate::collect::collection::Collection;
use crate::copies::Copies;
use crate::core::record_log::Durability;
use crate::core::{Core, CoreParts};
use crate::devices::{Ended, Purpose};
use crate::door::error::RequestError;
use crate::door::requests::Request;
use crate::duplicates::Duplicates;
use crate::duplicates::directories::Directories;
use crate::evacuate::evacuation::Evacuation;
use crate::explain::explaining::Explaining;
use crate::flush::flushing::Flushing;
use crate::grow::enlarging::Enlarging;
use crate::lend::lending::Lending;
use crate::merge::Merge;
use crate::notice::Observer;
use crate::options::Caches;
use crate::part::Part;
use crate::read::ahead::Ahead;
use crate::read::reads::Reads;
use crate::scrub::state::Scrub;
use crate::space::allocation::check_allocation;
use crate::space::fullness::watch_room;
use crate::space::quota::Admission;
use crate::space::wait::advance_waiting;
use crate::stats::stages::CoreStage;
use crate::volumes::give_back::GiveBack;
use crate::walk::walks::Walks;
use crate::write::buffer::Frames;
use crate::write::job_tag::untag;
use crate::write::writes::Writes;

/// How long [`Engine::run`] waits at the doorbell before it ticks.
pub(crate) const TICK_MS: u32 = 100;
/// Wake-ups without a tick after which one is made up, so that steady small traffic ticks too.
const WAKES_PER_TICK: u32 = 256;
/// Steps that found something to do, without a tick: the same for a core that never sleeps. Mostly
/// they take longer than a tick is to take, and only what is late by seconds matters.
const STEPS_PER_TICK: u32 = 4096;

/// Of the memory for frames this part is for what is read ahead.
const AHEAD_PART: u64 = 8;

/// A running store. Made by [`crate::open()`]; driven by [`Engine::run`] or step by step.
pub struct Engine {
    pub(crate) core: Core,
    pub(crate) doorbell: Doorbell,
    pub(crate) spin: AdaptiveSpin,
    pub(crate) reads: Reads,
    pub(crate) lending: Lending,
    pub(crate) ahead: Ahead,
    pub(crate) flushing: Flushing,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) merge: Merge,
    pub(crate) collection: Collection,
    pub(crate) copies: Copies,
    pub(crate) scrub: Scrub,
    pub(crate) explaining: Explaining,
    pub(crate) walks: Walks,
    pub(crate) enlarging: Enlarging,
    pub(crate) evacuation: Evacuation,
    pub(crate) give_back: GiveBack,
    pub(crate) admission: Admission,
    pub(crate) duplicates: Duplicates,
    pub(crate) writes: Writes,
    pub(crate) memory_bytes_max: u64,
    pub(crate) requests: VecDeque<Request>,
    pub(crate) closing: Closing,
    /// Whether memory is being prepared.
    pub(crate) preparing: bool,
    /// The newest group at the last tick: if it is open and still the newest, nobody fills it.
    idle_group: u64,
    ended: Vec<Ended>,
    jobs: Vec<JobDone>,
}

/// How far a close has come.
pub(crate) enum Closing {
    No,
    /// Draining; answered when the clean root is durable.
    Draining(Vec<crate::door::done::Done<()>>),
    Closed,
}

/// Everything an engine is made from.
pub(crate) struct Parts {
    pub(crate) core: CoreParts,
    pub(crate) doorbell: Doorbell,
    pub(crate) spin: AdaptiveSpin,
    pub(crate) memory_bytes_max: u64,
    pub(crate) caches: Caches,
    pub(crate) accelerator: Option<EmulatedSettings>,
}

impl Engine {
    pub(crate) fn new(parts: Parts) -> Self {
        let Caches { directory_entries, frame_bytes, .. } = parts.caches;
        let ahead_bytes = frame_bytes / AHEAD_PART;
        Self {
            core: Core::new(parts.core, frame_bytes - ahead_bytes),
            doorbell: parts.doorbell,
            spin: parts.spin,
            reads: Reads::default(),
            lending: Lending::new(&parts.caches),
            ahead: Ahead::new(ahead_bytes),
            flushing: Flushing::default(),
            checkpoints: Checkpoints::new(),
            merge: Merge::default(),
            collection: Collection::default(),
            copies: Copies::default(),
            scrub: Scrub::default(),
            explaining: Explaining::default(),
            walks: Walks::default(),
            enlarging: Enlarging::default(),
            evacuation: Evacuation::default(),
            give_back: GiveBack::default(),
            admission: Admission::default(),
            duplicates: Duplicates::new(Directories::new(directory_entries)),
            writes: Writes::new(parts.accelerator),
            memory_bytes_max: parts.memory_bytes_max,
            requests: VecDeque::new(),
            closing: Closing::No,
            preparing: false,
            idle_group: 0,
            ended: Vec::new(),
            jobs: Vec::new(),
        }
    }

    /// From now on `observer` is told what happens inside.
    pub fn observe(&mut self, observer: Observer) {
        self.core.observer = Some(observer);
    }

    /// Works until the store is closed, or abandoned ([`crate::Client::abandon`]).
    ///
    /// # Errors
    /// [`RequestError::WriteFailed`] and its kin: why the store could not be closed cleanly. It
    /// opens again by recovery.
    pub fn run(mut self) -> Result<(), RequestError> {
        self.make_ready();
        let (mut steps, mut wakes) = (0, 0);
        while !self.core.intake.is_abandoned() {
            let ticks = if self.step() {
                steps += 1;
                steps == STEPS_PER_TICK
            } else if matches!(self.closing, Closing::Closed) {
                break;
            } else {
                wakes += 1;
                let rung = self.sleep();
                self.core.stages.lap(CoreStage::Asleep, &self.core.workers);
                !rung || wakes == WAKES_PER_TICK
            };
            if ticks {
                (steps, wakes) = (0, 0);
                self.tick();
            }
        }
        self.failure().map_or(Ok(()), Err)
    }

    /// Syncs on this thread before clients have taken all threads that there may be: the kernel
    /// makes one of its own for it, and keeps that for the flushes to come.
    fn make_ready(&mut self) {
        let zone = Zone::Superblock;
        if let Err(error) = self.core.devices.sync_now(zone) {
            self.stop_writing(RequestError::of_device(zone, &error));
        }
        self.tell_degradation();
    }

    /// Whether the store is closed and steps do nothing any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.closing, Closing::Closed)
    }

    /// Does everything that can be done now; true when anything moved.
    pub fn step(&mut self) -> bool {
        let mut moved = self.timed(CoreStage::Devices, Self::take_ended);
        if self.core.is_fenced() {
            return false;
        }
        moved |= self.timed(CoreStage::Results, Self::take_jobs);
        moved |= self.timed(CoreStage::Requests, Self::take_requests);
        moved |=
            self.timed(CoreStage::Requests, |engine| engine.admission.advance(&mut engine.core));
        moved |= self.timed(CoreStage::Requests, |engine| advance_waiting(&mut engine.core));
        moved |= self.advance_groups();
        moved |= self.timed(CoreStage::Merges, |engine| {
            let moved = engine.merge.advance(&mut engine.core);
            engine.answer_stop();
            moved
        });
        moved |= self.timed(CoreStage::Reads, Self::advance_reads);
        moved |= self.timed(CoreStage::Background, Self::advance_background);
        moved |= self.timed(CoreStage::Flushes, |engine| {
            let moved = engine.flushing.advance(&mut engine.core);
            engine.answer_stop();
            moved
        });
        moved |= self.timed(CoreStage::Checkpoints, |engine| {
            let moved = engine.checkpoints.advance(&mut engine.core);
            engine.answer_stop();
            moved
        });
        moved |= self.advance_closing();
        moved = self.end_step(moved);
        if cfg!(debug_assertions) {
            self.check();
        }
        self.core.stages.lap(CoreStage::Rest, &self.core.workers);
        moved
    }

    /// The parts that have left the engine.
    pub(crate) fn parts(&self) -> [&dyn Part; 12] {
        [
            &self.scrub,
            &self.explaining,
            &self.walks,
            &self.copies,
            &self.collection,
            &self.flushing,
            &self.checkpoints,
            &self.merge,
            &self.enlarging,
            &self.evacuation,
            &self.give_back,
            &self.admission,
        ]
    }

    pub(crate) fn parts_mut(&mut self) -> [&mut dyn Part; 12] {
        [
            &mut self.scrub,
            &mut self.explaining,
            &mut self.walks,
            &mut self.copies,
            &mut self.collection,
            &mut self.flushing,
            &mut self.checkpoints,
            &mut self.merge,
            &mut self.enlarging,
            &mut self.evacuation,
            &mut self.give_back,
            &mut self.admission,
        ]
    }

    /// Asserts that what parts show in [`Core`] is what they have.
    fn check(&self) {
        self.core.log.check();
        check_allocation(&self.core);
        self.parts().iter().for_each(|part| part.check(&self.core));
        assert!(self.core.stopped.is_none() || self.core.stop_is_answered, "StopIsAnswered");
    }

    /// Time has passed: an open group that nothing was added to is closed, what has long been
    /// acknowledged is made durable, and pages that the device failed to give may be read again.
    pub fn tick(&mut self) {
        let newest = self.core.buffer.newest_group();
        if self.core.buffer.has_open() && self.idle_group == newest {
            self.core.buffer.close_open();
        }
        self.idle_group = newest;
        self.core.state.store.retry_unreadable();
        self.core.absence.tick();
        self.copies.tick();
        self.core.flushes.tick();
        watch_room(&mut self.core);
        self.watch_devices();
        self.core.intake.call_waiters();
    }

    fn take_ended(&mut self) -> bool {
        let mut ended = std::mem::take(&mut self.ended);
        self.core.devices.poll(&mut ended);
        let moved = !ended.is_empty();
        for io in ended.drain(..) {
            self.end_io(io);
        }
        self.ended = ended;
        moved
    }

    fn end_io(&mut self, io: Ended) {
        if self.core.is_fenced() {
            return;
        }
        if let Err(error) = &io.result {
            let is_fenced = error.class() == ErrorClass::Fenced;
            if is_fenced || !io.purpose.may_fail() {
                self.stop_writing(RequestError::of_device(io.zone, error));
            }
            if is_fenced {
                return;
            }
        }
        match io.purpose {
            Purpose::Page(read) => self.page_ended(read, io.buf.as_deref()),
            // Reads find it in memory only, so there it stays, as if it were still on its way. No
            // more can come to it: nothing is written any more.
            Purpose::Pages(_) | Purpose::Container(_) if io.result.is_err() => {}
            Purpose::Pages(blocks) => self.core.state.store.write_done(&blocks),
            Purpose::Frames { read, span, container } => {
                self.core.placement.space.unpin(container);
                self.frames_ended(read, span, io.buf);
            }
            Purpose::Known { read, container } => {
                self.core.placement.space.unpin(container);
                self.duplicates.known_frames_read(&mut self.core, read, io.buf);
            }
            Purpose::Ahead(at) => self.stretch_read(at, io.buf),
            Purpose::Victim => self.collection.victim_read(&mut self.core, io.buf),
            Purpose::Geometry => self.enlarging.io_ended(&mut self.core),
            Purpose::Explain(pba) => self.explaining.frame_read(&mut self.core, pba, io.buf),
            Purpose::Copy(pba) => self.copies.frame_read(&mut self.core, pba, io.buf),
            Purpose::Directory { container, sequence } => {
                let tail = io.buf.as_ref();
                self.duplicates.directory_read(&mut self.core, container, sequence, tail);
            }
            Purpose::Journal(_) => {}
            Purpose::Container(id) => self.core.placement.write_ended(id),
            Purpose::FlushSync => self.flushing.sync_ended(),
            Purpose::TablesSync | Purpose::Root | Purpose::RootSync => self.checkpoints.io_ended(),
            Purpose::Scrub(key) => self.scrub.read_ended(&mut self.core, key, io.buf),
            Purpose::ScrubWrite | Purpose::ScrubSync => {
                self.scrub.write_ended(&mut self.core, io.result.is_ok());
            }
        }
    }

    fn page_ended(&mut self, read: PageRead, bytes: Option<&[u8]>) {
        self.core.counters.table_reads += 1;
        // A damaged page is remembered by the store: what wants it is told.
        let _ = self.core.state.store.page_arrived(read, bytes.ok_or(()));
        self.reads.retry_parked();
    }

    fn take_jobs(&mut self) -> bool {
        let mut jobs = std::mem::take(&mut self.jobs);
        self.core.workers.poll(&mut jobs);
        let moved = !jobs.is_empty();
        for job in jobs.drain(..) {
            self.take_job(job);
        }
        self.jobs = jobs;
        moved
    }

    pub(crate) fn take_job(&mut self, job: JobDone) {
        match job {
            JobDone::Fingerprints { tag, fingerprints, payloads } => {
                self.fingerprints_made(tag, fingerprints, payloads);
            }
            JobDone::Compared { tag, comparisons } => {
                self.duplicates.compared(&mut self.core, tag, &comparisons)
            }
            JobDone::Frames { tag, bytes, ends, spared } => {
                self.submission_ended(tag);
                self.core.counters.chunks_spared += spared;
                let (group, job) = untag(tag);
                if let Some(group) = self.core.buffer.group_mut(group) {
                    group.frames[job] = Some(Frames { bytes: Arc::new(bytes), ends });
                    group.jobs_out -= 1;
                }
            }
            JobDone::Verified { tag, verdicts } => self.verified(tag, Some(verdicts)),
            JobDone::Recompressed { bytes, ends, .. } => {
                self.collection.slice_renewed(&mut self.core, bytes, ends)
            }
            JobDone::Packed { tag } => self.core.placement.packed(tag, &mut self.core.devices),
            JobDone::Prepared { memory } => self.memory_prepared(memory),
            JobDone::Panicked { kind, tag } => {
                if kind == JobKind::Verify {
                    self.verified(tag, None);
                }
                self.stop_writing(RequestError::WorkerLost);
                if kind == JobKind::Pack {
                    self.core.devices.give_up_promised(tag);
                }
            }
        }
    }

    /// A fence has answered the step of a scrub that these verdicts are for.
    fn verified(&mut self, tag: u64, verdicts: Option<Vec<Verdict>>) {
        if !self.core.is_fenced() {
            self.scrub.verified(&mut self.core, tag, verdicts);
        }
    }

    /// The same as [`Core::stop_writing`], and all who wait are answered at once.
    pub(crate) fn stop_writing(&mut self, error: RequestError) {
        self.core.stop_writing(error);
        self.answer_stop();
    }

    /// The same as [`Core::stop_for`], and all who wait are answered at once.
    pub(crate) fn stop_for(&mut self, error: &PageError) -> bool {
        let stops = self.core.stop_for(error);
        self.answer_stop();
        stops
    }

    /// Records changes, and answers all who wait if the journal could not take them.
    pub(crate) fn record(&mut self, changes: &[Change]) {
        self.record_with(changes, Durability::BySync);
    }

    /// The same; a record that carries all that it stores may be durable by its write.
    pub(crate) fn record_with(&mut self, changes: &[Change], durability: Durability) {
        self.core.record_with(changes, durability);
        self.answer_stop();
    }
}
