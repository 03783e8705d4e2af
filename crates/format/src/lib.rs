//! Room format: what the bytes of a store mean.
//!
//! Every on-disk structure lives here, with its offsets, its encoder and its decoder side by side;
//! no other room knows an offset. Nothing here does I/O, so offline tools and fuzzers use
//! the same code as the server. `docs/format.md` tells the same to people, and a test of this
//! crate holds the two together.
//!
//! What holds for all structures:
//!
//! - Integers are little endian; 24- and 48-bit ones take 3 and 6 bytes.
//! - Everything that is read from a medium carries a CRC32C and is checked before it is believed.
//!   Inside a checked structure a field that no encoder writes is an error too, never a guess.
//! - A decoder is given bytes from a device: whatever they are, it returns, and never panics.
//!   An encoder is given values from this program: one that does not fit is a bug, and panics.
//! - Bytes that are unused are written as zeros and not looked at, so that a later version may
//!   use them; a version that would be misread has a higher number in the superblock.
//!
//! | structure | file | where |
//! |---|---|---|
//! | geometry, roots | [`superblock`], [`root`] | zone superblock |
//! | marks | [`mark`] | all other zones, until something else is written there |
//! | journal records and the changes in them | [`record`] | zone journal |
//! | labels: geometry and root once more | [`label`] | zone tables |
//! | table pages: pointers, maps, PBAs, buckets, ... | [`page`] and its kinds | zone tables |
//! | frames, directories | [`frame`], [`directory`] | zones data |
//! | buckets | [`objects`] | volumes of that kind |
//! | what stood where a repair wrote | [`undo`] | no zone |
//! | snapshots on their way to another store | [`stream`] | no zone |
//! | buckets: records of objects, lists of segments, extents | [`objects`] | volumes of buckets |

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

pub mod bucket;
pub mod byte_count;
pub mod catalog;
pub mod checksum;
mod compression;
pub mod container_page;
pub mod detection;
pub mod directory;
pub mod domain;
mod error;
pub mod features;
mod field;
pub mod frame;
pub mod label;
pub mod map_page;
pub mod mark;
mod name;
pub mod objects;
pub mod page;
pub mod pba_page;
pub mod pointer_page;
pub mod record;
pub mod replication;
pub mod root;
pub mod shown;
pub mod stream;
pub mod superblock;
pub mod undo;
pub mod units;
mod volume_kind;
pub mod zone_start;

#[cfg(test)]
mod tests;

pub use error::{FeatureClass, FormatError, Structure};
pub use units::{BLOCK_BYTES, CONTAINER_BYTES};

/// The newest version of the format that this program reads.
///
/// | version | what changed |
/// |---|---|
/// | 1 | the first |
/// | 2 | a PBN-PBA entry and the changes that make one carry the frame's check |
/// | 3 | only of stores that have them: other fingerprints, comparing, other filters, domains |
/// | 4 | only of stores that have them: [`features`], of which each has a bit from now on |
pub const FORMAT_VERSION: u32 = 4;

/// The version of a store that finds duplicates otherwise than version 2 did.
pub(crate) const FORMAT_VERSION_DETECTION: u32 = 3;

/// The version of a store that has nothing of a newer one, and of roots, pages and footers in every
/// store: nothing in those has changed since.
pub const FORMAT_VERSION_COMMON: u32 = 2;
