//! Where the core's time goes, stage by stage.
//!
//! The engine has no clock. The caller that drives it may hand one in
//! ([`crate::Engine::keep_time`]); it is read when a stage of a step has moved something and at
//! each read that is asked for, so never for a chunk of a write, and nothing is decided by it. The
//! simulator hands in none, and nothing is read.
//!
//! All time between two looks at the clock belongs to the stage that ends with the second, but for
//! what was spent [`within`](StageClock::within) it on another one; so every moment of the core's
//! thread is in one stage. Looking whether there is anything to do is counted with the next stage
//! that moves, and in a step that moves nothing with [`CoreStage::Rest`].
//!
//! It is time that passed, not time that a processor gave: what takes the processor from the
//! core is counted with the stage that he came upon.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use reduce::{JobKind, Workers};

/// A clock of the caller's.
#[derive(Copy, Clone, Debug)]
pub struct Clock {
    /// Reads it; cheap, and never less than before.
    pub ticks: fn() -> u64,
    /// So many of its ticks in nanoseconds.
    pub ns: fn(u64) -> u64,
}

/// A part of what the core does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum CoreStage {
    Devices,
    Results,
    Requests,
    Groups,
    LookUps,
    Commits,
    Pack,
    Journal,
    Merges,
    Reads,
    Background,
    Flushes,
    Checkpoints,
    Rest,
    SmallJobs,
    Asleep,
}

const COUNT: usize = CoreStage::Asleep as usize + 1;

impl CoreStage {
    const ALL: [Self; COUNT] = [
        Self::Devices,
        Self::Results,
        Self::Requests,
        Self::Groups,
        Self::LookUps,
        Self::Commits,
        Self::Pack,
        Self::Journal,
        Self::Merges,
        Self::Reads,
        Self::Background,
        Self::Flushes,
        Self::Checkpoints,
        Self::Rest,
        Self::SmallJobs,
        Self::Asleep,
    ];

    /// As figures call it.
    fn name(self) -> &'static str {
        match self {
            Self::Devices => "devices",
            Self::Results => "results",
            Self::Requests => "requests",
            Self::Groups => "groups",
            Self::LookUps => "look_ups",
            Self::Commits => "commits",
            Self::Pack => "pack",
            Self::Journal => "journal",
            Self::Merges => "merges",
            Self::Reads => "reads",
            Self::Background => "background",
            Self::Flushes => "flushes",
            Self::Checkpoints => "checkpoints",
            Self::Rest => "rest",
            Self::SmallJobs => "small_jobs",
            Self::Asleep => "asleep",
        }
    }
}

/// Where time went since the store was opened; empty when nobody keeps time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageTimes {
    /// Of the core's thread; together all of its time. `devices`: reads and writes that ended;
    /// `results`: of jobs; `requests`: taken in; `groups`: filled and handed out; `look_ups`: what
    /// becomes of each chunk; `commits`: changes of the tables, without `pack` (frames into
    /// containers) and `journal` (records made and written); `merges`: of the Hash-PBN table;
    /// `background`: collection, scrub, deletions and the like; `rest`: looking for work, and the
    /// bounds of memory and space; `small_jobs`: of a few chunks, done here; `asleep`.
    pub core: Vec<StageTime>,
    /// Of the threads that did them: workers, the core, and `expand` the threads of those who read.
    pub jobs: Vec<JobTime>,
}

/// What a stage took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageTime {
    /// Its name.
    pub stage: String,
    /// Time that passed in it.
    pub ns: u64,
}

/// What jobs of one kind took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobTime {
    /// Their name.
    pub job: String,
    /// Time that passed, all threads together.
    pub ns: u64,
    /// Chunks that they were about.
    pub chunks: u64,
}

/// The core's time.
pub(crate) struct StageClock {
    clock: Option<Clock>,
    /// When the last stage ended.
    last: u64,
    small_jobs: u64,
    spent: [u64; COUNT],
}

impl StageClock {
    pub(crate) fn none() -> Self {
        Self { clock: None, last: 0, small_jobs: 0, spent: [0; COUNT] }
    }

    /// Time is kept from now on.
    pub(crate) fn by(clock: Clock, workers: &Workers) -> Self {
        let (last, small_jobs) = ((clock.ticks)(), workers.small_ticks());
        Self { clock: Some(clock), last, small_jobs, ..Self::none() }
    }

    /// A stage has ended.
    #[inline]
    pub(crate) fn lap(&mut self, stage: CoreStage, workers: &Workers) {
        let Some(clock) = self.clock else { return };
        let (now, small_jobs) = ((clock.ticks)(), workers.small_ticks());
        let jobs = small_jobs - self.small_jobs;
        self.spent[CoreStage::SmallJobs as usize] += jobs;
        self.spent[stage as usize] += now.saturating_sub(self.last).saturating_sub(jobs);
        (self.last, self.small_jobs) = (now, small_jobs);
    }

    /// The time, for [`StageClock::within`].
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.clock.map_or(0, |clock| (clock.ticks)())
    }

    /// Converts ticks to nanoseconds; 0 where nobody keeps time.
    pub(crate) fn ns(&self, ticks: u64) -> u64 {
        self.clock.map_or(0, |clock| (clock.ns)(ticks))
    }

    /// What passed since `begun` was spent on `stage`, within another one.
    #[inline]
    pub(crate) fn within(&mut self, stage: CoreStage, begun: u64) {
        let spent = self.now().saturating_sub(begun);
        self.spent[stage as usize] += spent;
        self.last += spent;
    }
}

impl StageTimes {
    /// Where time went; nowhere, if nobody keeps it.
    pub(crate) fn of(stages: &StageClock, workers: &Workers, expanding: &Expanding) -> Self {
        let Some(clock) = stages.clock else { return Self::default() };
        let core = |stage: CoreStage| StageTime {
            stage: stage.name().to_owned(),
            ns: (clock.ns)(stages.spent[stage as usize]),
        };
        let job = |kind: JobKind| {
            let spent = workers.spent(kind);
            let ns = (clock.ns)(spent.ticks);
            JobTime { job: kind.name().to_owned(), ns, chunks: spent.chunks }
        };
        let expand = JobTime {
            job: "expand".to_owned(),
            ns: (clock.ns)(expanding.ticks.load(Ordering::Relaxed)),
            chunks: expanding.chunks.load(Ordering::Relaxed),
        };
        Self {
            core: CoreStage::ALL.map(core).to_vec(),
            jobs: JobKind::ALL.into_iter().map(job).chain([expand]).collect(),
        }
    }
}

/// What those who read have done with what they got: they are other threads.
#[derive(Debug, Default)]
pub(crate) struct Expanding {
    clock: OnceLock<Clock>,
    ticks: AtomicU64,
    chunks: AtomicU64,
    /// Chunks whose stored bytes failed their check.
    pub(crate) damaged: AtomicU64,
}

impl Expanding {
    /// Time is kept from now on.
    pub(crate) fn keep_time(&self, clock: Clock) {
        self.clock.get_or_init(|| clock);
    }

    /// The time, for [`Expanding::ended`].
    pub(crate) fn now(&self) -> u64 {
        self.clock.get().map_or(0, |clock| (clock.ticks)())
    }

    /// So many chunks were put together since `begun`.
    pub(crate) fn ended(&self, begun: u64, chunks: usize) {
        if self.clock.get().is_some() {
            self.ticks.fetch_add(self.now().saturating_sub(begun), Ordering::Relaxed);
            self.chunks.fetch_add(chunks as u64, Ordering::Relaxed);
        }
    }
}
