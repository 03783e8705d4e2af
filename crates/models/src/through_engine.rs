//! FIDR's workloads, and real data, through the real engine on a disk in memory: what it finds and
//! what its tables cost, beside what the models of this crate say of the same requests.
//!
//! ```text
//! drive.rs      one engine store: made on memory, written, asked for its counters
//!   ├─ workloads.rs   FIDR's four, with 2.8% of the tables cached; the same through `cache`
//!   └─ devices.rs     real data through one store, and striped over N of them (CAL'17)
//! rows.rs       the rows of `docs/reproduction.md`;  page.rs  its section
//! figures.json  what `models through-engine` measured last
//! ```
//!
//! The figures are data, since they take minutes to make and real data is not in the repository; a
//! test runs the engine beside the model on short workloads. Contents are LZ4's best case, so that
//! they fit in memory: what is found, and what tables cost, does not depend on it.
//!
//! The engine is no copy of FIDR's table. It gathers young entries and has filters (decision 018),
//! so its look-ups hit more often than Table 3 says. What Table 3 says of the requests is held by
//! FIDR's own table over the same requests (`cache::bucket_hit_percent`).

mod devices;
mod drive;
mod page;
mod rows;
mod workloads;

use serde::{Deserialize, Serialize};

pub use devices::{DeviceRun, Real, read_folder, run_devices};
pub use drive::DriveError;
pub use page::section;
pub use rows::rows;
pub use workloads::{TableUse, WorkloadRun, run_workload};

/// What was measured last.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Measured {
    /// FIDR's workloads.
    pub workloads: Vec<WorkloadRun>,
    /// Real data, by number of devices.
    pub devices: Vec<DeviceRun>,
}

impl Measured {
    /// The figures in this crate.
    ///
    /// # Errors
    /// What is wrong with the file, which a test would find.
    pub fn committed() -> Result<Self, serde_json::Error> {
        serde_json::from_str(include_str!("through_engine/figures.json"))
    }
}
