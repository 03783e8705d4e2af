//! Cores that a GB/s of a client keeps busy, task by task.
//!
//! FIDR profiles one workload of writes: 67 cores for 75 GB/s (section 3.2). Of them the predictor
//! has 32.7%, the table cache 52.4%; Table 2 says what of the latter is the tree, the table SSDs,
//! the scanning of buckets and replacement. Only the table SSDs' part depends on misses here. Two
//! parameters are fitted: the hits in that profile (`workload.rs`), and what a read takes.

use crate::parameter::Parameter;
use crate::units::CoresPerGbPerSecond;

use super::design::Design;
use super::workload::{WRITES_PROFILED, Workload};

/// 67 cores for 75 GB/s.
pub(super) static PROFILED: Parameter =
    Parameter::stated("cores of the profiled writes", 67.0 / 75.0, "for a GB/s", "3.2.2");
pub(super) static PREDICTOR: Parameter =
    Parameter::stated("predictor", 0.327, "of the profile", "3.2.2");
pub(super) static TABLE_CACHE: Parameter =
    Parameter::stated("table cache", 0.524, "of the profile", "3.2.2");
pub(super) static TREE: Parameter =
    Parameter::stated("tree indexing", 0.439, "of the table cache", "Table 2");
pub(super) static TABLE_SSD: Parameter =
    Parameter::stated("table-SSD access", 0.247, "of the table cache", "Table 2");
pub(super) static REPLACEMENT: Parameter =
    Parameter::stated("replacement", 0.010, "of the table cache", "Table 2");
/// What a read takes.
pub(super) static READ: Parameter = Parameter::fitted(
    "cores of reads",
    0.641,
    "for a GB/s of reads",
    "on Figure 12: what removing the predictor saves, Read-Mixed",
);

/// By task.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct CoreCost {
    /// Guessing which chunks are unique.
    pub predictor: CoresPerGbPerSecond,
    /// The tree from buckets to cache lines, and replacement.
    pub tree: CoresPerGbPerSecond,
    /// Fetching and flushing buckets.
    pub table_ssd: CoresPerGbPerSecond,
    /// Scanning buckets, and what else writes take.
    pub writes: CoresPerGbPerSecond,
    /// All that reads take.
    pub reads: CoresPerGbPerSecond,
}

/// Of a design under a workload.
#[must_use]
pub fn core_cost(design: Design, workload: &Workload) -> CoreCost {
    let profile = |share: f64| CoresPerGbPerSecond(workload.write_share * PROFILED.value * share);
    let none = CoresPerGbPerSecond(0.0);
    let of_cache = TREE.value + REPLACEMENT.value;
    let moved = of_cache + TABLE_SSD.value;
    let misses = workload.miss_share() / WRITES_PROFILED.miss_share();
    let engine = design.has_table_engine();
    CoreCost {
        predictor: if design.hashes_in_nic() { none } else { profile(PREDICTOR.value) },
        tree: if engine { none } else { profile(TABLE_CACHE.value * of_cache) },
        table_ssd: match engine {
            true => none,
            false => profile(TABLE_CACHE.value * TABLE_SSD.value * misses),
        },
        writes: profile(1.0 - PREDICTOR.value - TABLE_CACHE.value * moved),
        reads: CoresPerGbPerSecond(workload.read_share() * READ.value),
    }
}

impl CoreCost {
    /// Of all tasks.
    #[must_use]
    pub fn total(&self) -> CoresPerGbPerSecond {
        self.predictor + self.tree + self.table_ssd + self.writes + self.reads
    }

    /// What the paper calls memory management and accelerator scheduling, in percent, where the
    /// whole table cache is in software under the profiled hits.
    #[must_use]
    pub fn profiled_overhead_percent(&self, write_share: f64) -> f64 {
        let overhead = write_share * PROFILED.value * (PREDICTOR.value + TABLE_CACHE.value);
        100.0 * overhead / self.total().0
    }
}
