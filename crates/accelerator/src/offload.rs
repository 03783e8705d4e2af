//! Predictor, scheduler and device together: the way of a batch from the engine and back.
//!
//! The engine asks what each chunk of a group is taken for, lays them into batches and hands in the
//! jobs. What has to wait for the device waits in the scheduler; when a job comes back the engine
//! says so, and the next ones go. When the look-up has decided, it says how guesses came out.

use reduce::{Job, Workers};

use crate::device::{Accelerator, Capacity, DeviceFigures, Submission};
use crate::predictor::{Predicted, Predictor, Verdict, sample_of};
use crate::scheduler::Scheduler;

/// Samples that are kept: those of 4 GiB of chunks of 4 KiB.
const SAMPLES: usize = 1 << 20;

/// A device, and what stands before it.
pub struct Offload {
    predictor: Predictor,
    scheduler: Scheduler,
    device: Box<dyn Accelerator>,
    predicted: Predicted,
    in_vain_bytes: u64,
    waiting_max: usize,
}

/// What was guessed, and what the device has done.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct OffloadFigures {
    /// How guesses came out.
    pub predicted: Predicted,
    /// Bytes of chunks that were compressed in vain.
    pub in_vain_bytes: u64,
    /// Submissions that waited for room in the device at one time, at most.
    pub waiting_max: u64,
    /// What the device has done.
    pub device: DeviceFigures,
    /// What it has room and units for.
    pub capacity: Capacity,
}

impl Offload {
    /// Memory of the predictor.
    pub const PREDICTOR_BYTES: usize = SAMPLES * size_of::<u32>();

    /// In front of this device, which nothing was submitted to.
    #[must_use]
    pub fn new(device: Box<dyn Accelerator>) -> Self {
        Self {
            predictor: Predictor::new(SAMPLES),
            scheduler: Scheduler::default(),
            device,
            predicted: Predicted::default(),
            in_vain_bytes: 0,
            waiting_max: 0,
        }
    }

    /// What a chunk is taken for; it counts as written from now on.
    pub fn guess(&mut self, chunk: &[u8]) -> Verdict {
        self.predictor.guess(sample_of(chunk))
    }

    /// Chunks of one submission, at most.
    #[must_use]
    pub fn batch_chunks(&self) -> usize {
        self.device.capacity().batch_chunks
    }

    /// Hands in jobs that are there at the same time. Those with nothing for the device in them run
    /// on the pool's threads at once.
    pub fn submit(&mut self, jobs: Vec<Job>, lanes: &Workers, now: u64) {
        let mut others = Vec::new();
        for job in jobs {
            match Submission::new(job) {
                Ok(submission) => self.scheduler.wait(submission),
                Err(job) => others.push(*job),
            }
        }
        lanes.submit_all(others);
        self.go_on(lanes, now);
        self.waiting_max = self.waiting_max.max(self.scheduler.waiting());
    }

    /// A job has come back, the device's or another.
    pub fn ended(&mut self, tag: u64, lanes: &Workers, now: u64) {
        if self.device.ended(tag, lanes, now) {
            self.go_on(lanes, now);
        }
    }

    /// Whether a chunk of `bytes` was new, which was taken for `guessed`.
    pub fn judge(&mut self, guessed: Verdict, is_new: bool, bytes: usize) {
        self.predicted.count(guessed, is_new);
        if guessed == Verdict::New && !is_new {
            self.in_vain_bytes += bytes as u64;
        }
    }

    /// Figures until `now`.
    #[must_use]
    pub fn figures(&self, now: u64) -> OffloadFigures {
        OffloadFigures {
            predicted: self.predicted,
            in_vain_bytes: self.in_vain_bytes,
            waiting_max: self.waiting_max as u64,
            device: self.device.figures(now),
            capacity: self.device.capacity(),
        }
    }

    /// Fills the device's queue.
    fn go_on(&mut self, lanes: &Workers, now: u64) {
        let (capacity, mut backlog) = (self.device.capacity(), self.device.backlog());
        let mut chosen = Vec::new();
        while let Some(submission) = self.scheduler.choose(&capacity, &backlog) {
            backlog.add(submission.demand());
            chosen.push(submission);
        }
        if !chosen.is_empty() {
            self.device.submit(chosen, lanes, now);
        }
    }
}
