//! Room `estimate`: what a store would save, said before there is one.
//!
//! ```text
//! scan.rs            threads that take pieces of data, fingerprint and compress them
//!   ├─ pieces.rs     where pieces come from: all disks and files, one after the other
//!   │   └─ walk.rs   the files under the paths that were asked for
//!   └─ sample.rs     which chunks there were: all of them, or a sample that says what all are
//! figures.rs         what is made of it: sizes, ratios, standard errors
//! detect.rs          every kind of fingerprint over the same data: what it finds, what it takes
//!   ├─ index.rs      a table in memory, and what is found in it
//!   ├─ auto.rs       hash first, code first or none, window by window, which no store has
//!   ├─ sampling.rs   nor this: CA-FTL's sampling
//!   ├─ data_chunks.rs   that data
//!   └─ detected.rs   and what one way came to
//! ```
//!
//! Chunks are named by `reduce`'s fingerprint and measured by its frames: the very code of a store,
//! so that what is estimated is what an import then takes. Every chunk size is tried in the same
//! pass over the data. Memory is bounded: see `sample.rs` for what happens when it is full.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod auto;
mod data_chunks;
mod detect;
mod detected;
mod figures;
mod index;
mod pieces;
mod sample;
mod sampling;
mod scan;
mod walk;

pub use data_chunks::{CHUNK_BYTES, DataChunks};
pub use detect::{WAYS, detect};
pub use detected::DetectedBy;
pub use figures::{CodecFigures, Figure, SizeFigures};
pub use pieces::{PartRead, Unreadable, UnreadableFiles};
pub use scan::{Estimate, MEMORY_BYTES_MIN, Options, estimate};
pub use walk::data_bytes;
