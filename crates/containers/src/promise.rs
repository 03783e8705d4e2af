//! How much a container holds in the worst case: the arithmetic behind acknowledging a write before
//! it is stored.
//!
//! A write is acknowledged only when its space is certain: every chunk of it new and
//! incompressible, and every request followed by a flush, which may leave the rest of a block
//! empty. The two functions are made for each other: writes whose [`worst_case_bytes`] add up to no
//! more than `n * usable_bytes_per_container` fit into n empty containers, in whatever order and
//! however they are flushed. Why: a container refuses a frame only when frames, padding, entries
//! and the footer, with the fill rounded up to a block, would not fit with it. What it has taken by
//! then, counted as [`worst_case_bytes`] counts, is more than everything but the footer, that
//! rounding and that frame.

use format::directory::{DIRECTORY_ENTRY_BYTES, FOOTER_BYTES};
use format::frame::FRAME_HEADER_BYTES;
use format::units::{BLOCK_BYTES, CONTAINER_BYTES};

/// Most that rounding up to a block adds.
const PADDING_BYTES_MAX: u64 = BLOCK_BYTES as u64 - 1;

/// Bytes of [`worst_case_bytes`] that an empty container certainly takes.
#[must_use]
pub const fn usable_bytes_per_container(chunk_bytes: u32) -> u64 {
    let refused = stored_bytes_max(chunk_bytes) - 1;
    CONTAINER_BYTES as u64 - FOOTER_BYTES as u64 - PADDING_BYTES_MAX - refused
}

/// Bytes that `chunks` chunks of `chunk_bytes` take at most when they were written by `requests`
/// requests.
#[must_use]
pub const fn worst_case_bytes(chunks: u64, chunk_bytes: u32, requests: u64) -> u64 {
    chunks * stored_bytes_max(chunk_bytes) + requests * PADDING_BYTES_MAX
}

/// An incompressible chunk: header, itself, its entry in the directory.
const fn stored_bytes_max(chunk_bytes: u32) -> u64 {
    (FRAME_HEADER_BYTES + DIRECTORY_ENTRY_BYTES) as u64 + chunk_bytes as u64
}
