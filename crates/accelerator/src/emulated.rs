//! A device whose work the threads of `reduce` do, which stand for its units.
//!
//! ```text
//! submit > queue, in order > at work: a unit that hashes, one that compresses, or both > ended
//! ```
//!
//! The first in the queue begins when all units that it wants are free, and nothing overtakes it:
//! that is what a scheduler in front of the device is for. A submission has its units until it
//! has come back, also while it waits for a thread. The device counts and bounds; it computes
//! nothing, so results are those of the pool. Invariants: it never holds more than its queue
//! (`QueueIsBounded`), no more than its units are at work (`UnitsAreBounded`), and when none is at
//! work none waits (`DeviceGoesOn`).

use std::collections::VecDeque;

use reduce::Workers;

use crate::device::{Accelerator, Backlog, Capacity, Demand, DeviceFigures, Submission};

/// The device.
pub struct Emulated {
    capacity: Capacity,
    queued: VecDeque<Submission>,
    at_work: Vec<(u64, Demand)>,
    /// Until when time is counted.
    counted: u64,
    figures: DeviceFigures,
}

impl Emulated {
    /// Idle, with this capacity; of each of it there is at least one.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        let Capacity { batch_chunks, queue, hash_units, compress_units } = capacity;
        assert!(
            batch_chunks > 0 && queue > 0 && hash_units > 0 && compress_units > 0,
            "DeviceGoesOn: {capacity:?}"
        );
        let (queued, at_work) = (VecDeque::new(), Vec::new());
        Self { capacity, queued, at_work, counted: 0, figures: DeviceFigures::default() }
    }

    fn working(&self) -> Backlog {
        let mut backlog = Backlog::default();
        self.at_work.iter().for_each(|(_, demand)| backlog.add(*demand));
        backlog
    }

    fn has_units_for(&self, demand: Demand) -> bool {
        let working = self.working();
        (!demand.hash || working.hash < self.capacity.hash_units)
            && (!demand.compress || working.compress < self.capacity.compress_units)
    }

    /// Begins with what has its units.
    fn begin(&mut self, lanes: &Workers) {
        let mut jobs = Vec::new();
        while let Some(first) = self.queued.front()
            && self.has_units_for(first.demand())
            && let Some(submission) = self.queued.pop_front()
        {
            self.at_work.push((submission.tag(), submission.demand()));
            self.figures.submissions += 1;
            self.figures.chunks += submission.chunks() as u64;
            self.figures.chunks_hashed += submission.hashed as u64;
            self.figures.chunks_compressed += submission.compressed as u64;
            jobs.push(submission.job);
        }
        assert!(self.queued.is_empty() || !self.at_work.is_empty(), "DeviceGoesOn");
        lanes.submit_all(jobs);
    }

    /// Figures until `now`, since when nothing has begun or ended.
    fn until(&self, now: u64) -> DeviceFigures {
        let mut figures = self.figures;
        let passed = now.saturating_sub(self.counted);
        let Backlog { held, hash, compress } = self.working();
        figures.active_ticks += if held > 0 { passed } else { 0 };
        figures.hash_ticks += passed * hash as u64;
        figures.compress_ticks += passed * compress as u64;
        figures
    }

    fn pass(&mut self, now: u64) {
        self.figures = self.until(now);
        self.counted = now;
    }
}

impl Accelerator for Emulated {
    fn capacity(&self) -> Capacity {
        self.capacity
    }

    fn backlog(&self) -> Backlog {
        let mut backlog = self.working();
        self.queued.iter().for_each(|submission| backlog.add(submission.demand()));
        backlog
    }

    fn submit(&mut self, submissions: Vec<Submission>, lanes: &Workers, now: u64) {
        self.pass(now);
        for submission in submissions {
            assert!(submission.chunks() <= self.capacity.batch_chunks, "BatchIsBounded");
            self.queued.push_back(submission);
        }
        let held = self.queued.len() + self.at_work.len();
        assert!(held <= self.capacity.queue, "QueueIsBounded: {held}");
        self.figures.held_max = self.figures.held_max.max(held as u64);
        self.begin(lanes);
    }

    fn ended(&mut self, tag: u64, lanes: &Workers, now: u64) -> bool {
        let Some(at) = self.at_work.iter().position(|(of, _)| *of == tag) else { return false };
        self.pass(now);
        self.at_work.swap_remove(at);
        self.begin(lanes);
        true
    }

    fn figures(&self, now: u64) -> DeviceFigures {
        self.until(now)
    }
}
