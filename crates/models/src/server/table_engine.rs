//! How fast the engine of the table cache is (FIDR, section 7.4 and Figure 13).
//!
//! A miss inserts one line into the tree and deletes another: two updates. One update at a time
//! gives one rate, the same for both workloads that the paper names. Of an update a part can not be
//! done beside another (it commits); more updates at once shorten the rest only. Each look-up reads
//! a leaf from the board's DRAM, which bounds what mostly hits.

use crate::parameter::Parameter;
use crate::units::GbPerSecond;

use super::workload::Workload;

/// One at a time.
pub(super) static UPDATES: Parameter = Parameter::fitted(
    "updates of the tree, one at a time",
    2.575,
    "million a second",
    "on 27.1 GB/s of Write-M and 54 GB/s of Write-H",
);
/// What is not done beside another.
pub(super) static SERIAL: Parameter = Parameter::fitted(
    "part of an update that is not done beside another",
    0.215,
    "of its time",
    "on 63.8 GB/s of Write-M with four updates, where Write-H is not bound by them",
);
/// Leaves that DRAM gives.
pub(super) static LEAVES: Parameter = Parameter::fitted(
    "leaves read from the FPGA's DRAM",
    31.0,
    "million a second",
    "on 127 GB/s of Write-H with four updates",
);
pub(super) static UPDATES_PER_MISS: Parameter =
    Parameter::derived("updates of a miss", 2.0, "", "section 5.5: insert and delete");

/// The most that the engine gives for a workload with this number of updates under way.
#[must_use]
pub fn table_engine_gb(workload: &Workload, updates: u32) -> GbPerSecond {
    let serial = SERIAL.value;
    let faster = 1.0 / (serial + (1.0 - serial) / f64::from(updates.max(1)));
    let lookups = UPDATES.value * faster / (UPDATES_PER_MISS.value * workload.miss_share());
    let writes = lookups.min(LEAVES.value);
    GbPerSecond::of_million_chunks(writes / workload.write_share)
}
