//! Room `reduce`: what makes data small, as pure functions over batches, and the threads they run
//! on.
//!
//! * [`Fingerprinter`] names chunks by their content, many at a time, in the way that the store was
//!   made with ([`fingerprint`]);
//! * [`compress_frame`] and [`expand_frame`] turn a chunk into its stored frame and back
//!   ([`compress`]);
//! * [`ChunkBuf`], [`ChunkRef`] and [`ChunkBatch`] carry chunks from a door to the workers without
//!   copying ([`chunk`], [`pool`]);
//! * [`Payload`] is a chunk that was compressed before it had a name ([`payload`]);
//! * [`Comparison`] says whether a chunk is what it is taken for ([`comparison`]);
//! * [`verify_frames`] says of stored frames which are damaged ([`verify`]), and
//!   [`recompress_frames`] makes them shorter ([`recompress`]);
//! * [`MemoryWanted`] touches memory before it is needed ([`memory`]);
//! * [`Workers`] runs batches on a pool of threads, or inline ([`workers`]), and what other rooms
//!   leave to them ([`Errand`]).
//!
//! The functions are pure: the same input gives the same bytes, whatever was computed before, on
//! whichever thread, with however many threads. The simulator replays a run from its seed because
//! of it.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

pub mod chunk;
pub mod comparison;
pub mod compress;
mod errand;
pub mod error;
pub mod fingerprint;
mod job_times;
mod lane;
pub mod memory;
pub mod payload;
pub mod pool;
pub mod recompress;
pub mod verify;
pub mod workers;

pub use chunk::{ChunkBatch, ChunkBuf, ChunkRef, Permit};
pub use comparison::{Comparison, Known, KnownFrame};
pub use compress::{FrameEnd, compress_frame, expand_frame, frame_bytes_max};
pub use errand::Errand;
pub use error::ReduceError;
pub use fingerprint::{Fingerprinter, Fingerprinters};
pub use job_times::{JobKind, Spent};
pub use memory::{MemoryWanted, PreparedMemory};
pub use payload::Payload;
pub use recompress::recompress_frames;
pub use verify::{FramePlace, Image, Verdict, verify_frames};
pub use workers::{Job, JobDone, Workers};
