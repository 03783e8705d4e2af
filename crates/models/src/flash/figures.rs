//! What is counted in a run.

use serde::Serialize;

/// Counts and times of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// From a write's coming to its answer, one each; sorted at the end.
    #[serde(skip)]
    pub writes_ns: Vec<u64>,
    /// The same of reads.
    #[serde(skip)]
    pub reads_ns: Vec<u64>,
    /// Writes whose chunk was found.
    pub duplicates: u64,
    /// Chunks that were hashed whole.
    pub hashed: u64,
    /// EaD's four cases: the filter knows nothing; the table knows nothing; the contents differ;
    /// they are equal.
    pub cases: [u64; 4],
    /// Pages read from a die to be compared with.
    pub compare_reads: u64,
    /// Pages read ahead.
    pub prefetch_reads: u64,
    /// Pages written for requests.
    pub programs: u64,
    /// Pages that collections moved.
    pub moved: u64,
    /// Collections; each erases a block.
    pub erases: u64,
}

impl Figures {
    /// Microseconds of an average write.
    #[must_use]
    pub fn write_us(&self) -> f64 {
        mean_us(&self.writes_ns)
    }

    /// Microseconds that 99 of 100 writes do not exceed.
    #[must_use]
    pub fn write_p99_us(&self) -> f64 {
        let place = (self.writes_ns.len() * 99).div_ceil(100).saturating_sub(1);
        self.writes_ns.get(place).map_or(0.0, |&ns| ns as f64 / 1e3)
    }

    /// Microseconds of an average read; none if there was none.
    #[must_use]
    pub fn read_us(&self) -> Option<f64> {
        (!self.reads_ns.is_empty()).then(|| mean_us(&self.reads_ns))
    }

    /// Pages written, by those that requests wrote.
    #[must_use]
    pub fn amplification(&self) -> f64 {
        (self.programs + self.moved) as f64 / self.programs.max(1) as f64
    }

    /// Duplicates found, in percent of the writes.
    #[must_use]
    pub fn duplicate_percent(&self) -> f64 {
        self.percent_of_writes(self.duplicates)
    }

    /// In percent of the writes.
    #[must_use]
    pub fn percent_of_writes(&self, count: u64) -> f64 {
        100.0 * count as f64 / self.writes_ns.len().max(1) as f64
    }
}

fn mean_us(all_ns: &[u64]) -> f64 {
    all_ns.iter().sum::<u64>() as f64 / all_ns.len().max(1) as f64 / 1e3
}
