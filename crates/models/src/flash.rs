//! `models flash`: ways to find a duplicate, on a simulated flash device, over traces. EaD's
//! simulator tables beside the paper's own figures. No engine, no bytes.
//!
//! ```text
//! geometry.rs latency.rs    the device, what its steps take (Table 5); formula.rs  without queues
//!   ├─ plane.rs ─ ftl.rs    which page holds what; collections
//!   ├─ dies.rs servers.rs   queues: of the dies, reads first; of the hash engine and the others
//!   └─ device.rs            events; device/flow.rs: what every request goes through;
//!        device/ead.rs      EaD's four cases, with bloom.rs and prefetch.rs
//! strategy.rs               the ways that are compared;  figures.rs  what is counted
//! trace.rs made.rs          what is asked for: FIU's traces, and made ones
//! rows.rs *_rows.rs         the rows of `docs/reproduction.md`
//! study.rs                  which runs;  paper.rs  the paper's figures;  report.rs plots.rs
//! ```
//!
//! Everything follows from the traces and a seed; there is no clock.

mod bloom;
mod data_rows;
mod device;
mod dies;
mod figures;
mod formula;
mod ftl;
mod geometry;
mod latency;
mod made;
mod paper;
mod plane;
mod platform_rows;
mod plots;
mod prefetch;
mod report;
mod rows;
mod servers;
mod strategy;
mod study;
mod trace;

pub use bloom::BLOOM_BITS;
pub use device::{Setup, run};
pub use figures::Figures;
pub use formula::{ead_ns, hashed_ns};
pub use ftl::Full;
pub use geometry::{Geometry, PAGE_BYTES};
pub use latency::Latency;
pub use made::{BURST_MEAN, Original};
pub use paper::INCONSISTENCIES;
pub use prefetch::PrefetchSetup;
pub use rows::{PARAMETERS, rows};
pub use strategy::Strategy;
pub use study::{Part, Row, Study};
pub use trace::{Request, Trace};
