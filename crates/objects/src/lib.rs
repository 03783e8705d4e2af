//! Room objects: buckets of objects over volumes (Multes++, the store half).
//!
//! ```text
//! bucket   objects with keys: put, get, list, copy, upload, expire                  bucket.rs
//! index    an ordered map in the bucket's volume: a log, a memory table, redb     index.rs
//! values   the bytes of objects: segments, extents, what is free                  values.rs
//! buffers  memory that long objects use again                                   buffers.rs
//! volume   what both need of the volume that holds the bucket                     volume.rs
//! ```
//!
//! No sockets, no protocols, no clock: doors are above this room, the engine below it.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

pub mod bucket;
pub mod buffers;
pub mod index;
#[cfg(test)]
mod test_volume;
pub mod values;
pub mod volume;
