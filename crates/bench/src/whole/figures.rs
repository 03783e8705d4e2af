//! What a run comes to: the samples of all rounds.

use serde::Serialize;

use crate::samples::Samples;

/// Figures of all rounds.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Whole {
    pub(crate) size_bytes: u64,
    pub(crate) seconds: u64,
    pub(crate) memory_mib: u64,
    pub(crate) caches_dropped: bool,
    /// Who could not take part, or not to the end, and why.
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) systems: Vec<SystemFigures>,
    /// Of real data.
    pub(crate) sets: Vec<SetFigures>,
    pub(crate) pgbench: Vec<PgbenchFigures>,
    pub(crate) pgbench_seconds: u64,
    /// Tamis, by how full its store is.
    pub(crate) levels: Vec<Level>,
    /// Of the last minute, when a turn began.
    pub(crate) load_average: Samples,
}

/// Who took no part.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Skipped {
    pub(crate) system: &'static str,
    /// In which table.
    pub(crate) table: String,
    pub(crate) reason: String,
}

/// What one system came to.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SystemFigures {
    pub(crate) system: &'static str,
    /// In the order of the plan.
    pub(crate) jobs: Vec<JobFigures>,
    /// After the first job, which writes every block once, by what was written.
    pub(crate) stored_share: Samples,
}

/// One job of one system.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JobFigures {
    pub(crate) job: &'static str,
    /// MiB a second where it is sequential, thousands of requests where it is not.
    pub(crate) speed: Samples,
    /// Of all processors, for 10^9 bytes.
    pub(crate) cpu_seconds_per_gb: Samples,
}

/// One set, by all systems.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SetFigures {
    pub(crate) set: String,
    pub(crate) size_bytes: u64,
    pub(crate) systems: Vec<SystemFigures>,
}

/// pgbench on one system.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct PgbenchFigures {
    pub(crate) system: &'static str,
    /// Seconds to fill the tables, with their keys.
    pub(crate) fill_seconds: Samples,
    pub(crate) transactions_per_second: Samples,
    pub(crate) p95_ms: Samples,
    /// Milliseconds of all processors.
    pub(crate) cpu_ms_per_transaction: Samples,
    /// Of the cluster's files, when it was stopped.
    pub(crate) files_mib: Samples,
    /// What the system needs for them.
    pub(crate) stored_mib: Samples,
}

/// Figures of a store of one fullness.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Level {
    pub(crate) name: &'static str,
    /// Of the room for frames, and for table pages, 0 to 1, when the jobs began.
    pub(crate) data_used: Samples,
    pub(crate) tables_used: Samples,
    pub(crate) jobs: Vec<JobFigures>,
}

impl Whole {
    /// Whether nobody takes part in anything.
    pub(super) fn is_empty(&self) -> bool {
        let Self { systems, sets, pgbench, levels, .. } = self;
        let no_set = sets.iter().all(|set| set.systems.is_empty());
        systems.is_empty() && no_set && pgbench.is_empty() && levels.is_empty()
    }
}

impl JobFigures {
    pub(super) fn new(job: &'static str) -> Self {
        let (speed, cpu_seconds_per_gb) = Default::default();
        Self { job, speed, cpu_seconds_per_gb }
    }

    /// Its name without the unit, where one stands behind the last comma.
    pub(super) fn words(&self) -> &'static str {
        self.job.rsplit_once(", ").map_or(self.job, |(words, _)| words)
    }
}

impl SystemFigures {
    pub(super) fn new(system: &'static str, jobs: impl IntoIterator<Item = &'static str>) -> Self {
        let jobs = jobs.into_iter().map(JobFigures::new).collect();
        Self { system, jobs, stored_share: Samples::default() }
    }

    /// The one of `systems` that is called so.
    pub(super) fn named<'a>(systems: &'a [Self], name: &str) -> Option<&'a Self> {
        systems.iter().find(|figures| figures.system == name)
    }

    /// What became of the job of this name.
    pub(super) fn of(&self, job: &str) -> Option<&JobFigures> {
        self.jobs.iter().find(|figures| figures.job == job)
    }
}
