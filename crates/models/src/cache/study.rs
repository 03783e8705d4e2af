//! All runs of a study, on several threads, in an order that does not show.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::filter::{FilterRow, trial};
use super::hot::{HotBuckets, hot_buckets};
use super::plan::{Company, FILTERS, Task, tasks};
use super::record::{Question, Record};
use super::stream::{Neighbour, Stream};

/// Entries of a bucket for which filters are tried.
const FILTER_MEAN: u64 = 78;
const TRIAL_BLOCKS: u64 = 2_048;
const TRIAL_PROBES: u64 = 500_000;

/// What was found out.
#[derive(Clone, Debug, Serialize)]
pub struct Study {
    /// Everything by chance follows from it.
    pub seed: u64,
    /// One for each run.
    pub runs: Vec<Record>,
    /// One for each workload.
    pub hot_buckets: Vec<HotBuckets>,
    /// One for each size of the filter.
    pub filters: Vec<FilterRow>,
}

/// A stream with a neighbour, kept as long as runs of it follow one another.
type Kept = Mutex<Option<(usize, Neighbour, bool, Arc<Stream>)>>;

impl Study {
    /// Makes all runs over these streams, or those of one question, with `jobs` threads. `told`
    /// hears how many runs have been made of how many, from any thread.
    #[must_use]
    pub fn run(
        streams: &[Stream],
        question: Option<Question>,
        seed: u64,
        jobs: usize,
        told: impl Fn(usize, usize) + Sync,
    ) -> Self {
        let mut tasks = tasks(streams.len(), seed);
        tasks.retain(|task| question.is_none_or(|question| task.question == question));
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let found: Mutex<Vec<Option<Record>>> = Mutex::new(vec![None; tasks.len()]);
        let kept = Kept::default();
        let work = || {
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(task) = tasks.get(place) else { return };
                let record = make(task, &streams[task.stream], &kept, seed);
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found[place] = Some(record);
                told(done.fetch_add(1, Ordering::Relaxed) + 1, tasks.len());
            }
        };
        std::thread::scope(|scope| {
            (0..jobs.max(1)).for_each(|_| drop(scope.spawn(work)));
        });
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        Self {
            seed,
            runs: found.into_iter().flatten().collect(),
            hot_buckets: streams.iter().map(|stream| hot_buckets(stream, seed)).collect(),
            filters: FILTERS
                .map(|bits| trial(bits, FILTER_MEAN, TRIAL_BLOCKS, TRIAL_PROBES, seed))
                .to_vec(),
        }
    }
}

fn make(task: &Task, alone: &Stream, kept: &Kept, seed: u64) -> Record {
    let (neighbour, asks) = match task.company {
        Company::None => return task.run(alone, alone),
        Company::Busy(neighbour) => (neighbour, true),
        Company::Silent(neighbour) | Company::SilentHalf(neighbour) => (neighbour, false),
    };
    let stream = {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((of, with, doing, stream))
                if (*of, *with, *doing) == (task.stream, neighbour, asks) =>
            {
                Arc::clone(stream)
            }
            _ => {
                let stream = Arc::new(alone.beside(neighbour, asks, seed));
                *kept = Some((task.stream, neighbour, asks, Arc::clone(&stream)));
                stream
            }
        }
    };
    task.run(alone, &stream)
}
