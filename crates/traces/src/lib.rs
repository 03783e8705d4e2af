//! Room `traces`: what clients did, or might do: requests with what they carry known by digests.
//!
//! ```text
//! request.rs   one request: where, how much, and a digest for each piece of its content
//!   ├─ fiu.rs ─ reader.rs   traces in the format of FIU's IODedup, line by line
//!   ├─ workload.rs          made ones: FIDR's four, each a function of its number and a seed
//!   └─ content.rs           the bytes that a digest stands for, as compressible as one likes
//! ```
//!
//! Traces hold no contents. What makes a trace worth replaying is that equal digests become equal
//! bytes and different digests different ones; so duplicates are where they were, and the holder of
//! the digests knows what every later read must give.
//!
//! Traces are foreign: whatever their bytes, reading one comes to its end, in bounded memory. There
//! is no clock, randomness or thread in this room, and no engine.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod content;
mod digest;
mod fiu;
mod reader;
mod request;
mod workload;

pub use content::Content;
pub use digest::Digest;
pub use fiu::{LineError, SECTORS_MAX, parse_line, write_line};
pub use reader::{Skipped, TraceReader};
pub use request::{BLOCK_BYTES, BLOCK_SECTORS, Direction, Grain, Request, SECTOR_BYTES};
pub use workload::{Access, Workload, WorkloadKind};
