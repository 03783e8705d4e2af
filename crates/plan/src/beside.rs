//! The planner beside a server: what `xtask/scripts/plan_beside.py` measured of one
//! (docs/measurements/056), and what is planned of the same with the calibrated costs.

use crate::{Demand, Offload, StageCosts, needs};

/// A workload, and what a chunk of it took of the server, in nanoseconds.
struct Measured {
    request_bytes: u32,
    read_share: f64,
    duplicate_share: f64,
    ns: f64,
}

const fn measured(request_bytes: u32, read_share: f64, duplicate_share: f64, ns: f64) -> Measured {
    Measured { request_bytes, read_share, duplicate_share, ns }
}

/// What the costs were chosen on.
const CALIBRATED: [Measured; 5] = [
    measured(1 << 20, 0.0, 0.0, 7324.0),
    measured(1 << 20, 0.0, 0.92, 3866.0),
    measured(1 << 20, 1.0, 0.0, 3866.0),
    measured(4 << 10, 0.0, 0.5, 13_224.0),
    measured(4 << 10, 1.0, 0.5, 18_514.0),
];
/// What they were not chosen on.
const OTHERS: [Measured; 4] = [
    measured(128 << 10, 0.0, 0.75, 5900.0),
    measured(1 << 20, 0.0, 0.21, 6307.0),
    measured(16 << 10, 0.7, 0.49, 10_783.0),
    measured(8 << 10, 0.0, 0.40, 10_783.0),
];

/// Planned by measured.
fn ratio(workload: &Measured) -> f64 {
    let demand = Demand {
        bytes_per_second: 4096.0 * 1e9,
        read_share: workload.read_share,
        duplicate_share: workload.duplicate_share,
        compressed_share: 0.5,
        request_bytes: f64::from(workload.request_bytes),
        capacity_bytes: 1e12,
    };
    // A chunk each nanosecond: so many cores are so many nanoseconds of a chunk.
    needs(&demand, &StageCosts::CALIBRATED, Offload::None).cores / workload.ns
}

#[test]
fn the_costs_are_those_that_were_calibrated() {
    let ratios = CALIBRATED.map(|workload| ratio(&workload));
    assert!(ratios.iter().all(|ratio| (0.94..1.06).contains(ratio)), "{ratios:?}");
}

#[test]
fn the_plan_is_within_a_fifth_of_what_other_workloads_took() {
    let ratios = OTHERS.map(|workload| ratio(&workload));
    assert!(ratios.iter().all(|ratio| (0.8..1.2).contains(ratio)), "{ratios:?}");
}
