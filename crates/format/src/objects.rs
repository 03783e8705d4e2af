//! Buckets: what a volume of that kind holds, apart from structures of stores.
//!
//! ```text
//! 0        header, twice                                        header.rs
//! 16 KiB   how it is replicated, if it is                       replica.rs
//! 64 KiB   ring of the log                                      log.rs
//! 1 TiB    the index: its length, then pages of redb            header.rs, index_page.rs
//! 8 TiB    the same again
//! 16 TiB   values                                               segments.rs
//! ```
//!
//! The index holds records of objects (`record.rs`), which have lists of segments (`segments.rs`),
//! extents that are free, to be freed, or shared (`extents.rs`), objects by the time when they
//! expire (`expiry.rs`), multi-part uploads (`uploads.rs`) and settings (`settings.rs`). Addresses
//! of the value space are *chunks*: bytes of the volume divided by [`CHUNK_BYTES`].

pub mod expiry;
pub mod extents;
pub mod header;
pub mod index_page;
pub mod log;
pub mod record;
pub mod replica;
pub mod segments;
pub mod settings;
pub mod uploads;

use crate::units::BLOCK_BYTES;

/// Length of a chunk of a bucket, in bytes.
pub const CHUNK_BYTES: u64 = BLOCK_BYTES as u64;

/// First byte of the value space in the volume: 16 TiB.
pub const VALUES_START_BYTES: u64 = 16 << 40;

/// Byte behind the value space: 1 PiB.
pub const VALUES_END_BYTES: u64 = 1 << 50;

/// Most bytes that an object has: 5 TiB.
pub const OBJECT_BYTES_MAX: u64 = 5 << 40;

/// Most bytes that the key of an object has; it has one at least.
pub const OBJECT_KEY_BYTES_MAX: usize = 1024;

/// Chunks up to here have an address.
pub(crate) const CHUNKS_END: u64 = VALUES_END_BYTES / CHUNK_BYTES;

const _: () = assert!(VALUES_START_BYTES.is_multiple_of(CHUNK_BYTES));
const _: () = assert!(VALUES_END_BYTES.is_multiple_of(CHUNK_BYTES));
