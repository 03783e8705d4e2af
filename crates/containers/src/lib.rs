//! Room `containers`: where frames lie.
//!
//! A container is 4 MiB of a data zone, written front to back and never changed until it is free
//! again: first frames, at its very end a directory of them. Its life:
//!
//! ```text
//! free --allocate--> open --seal--> sealed --collect, free--> quarantined --known durable--> free
//! ```
//!
//! * [`OpenContainer`] takes frames, names their places, and hands out what is to be written;
//!   sealed, it becomes a [`SealedImage`] until its writes are done ([`open`], [`segments`],
//!   [`unpacked`]);
//! * [`sealed`] reads the directory of a container back, [`scan()`] walks the frames of one that
//!   has none;
//! * [`Space`] knows which containers are free, which to collect next, and when a freed one may be
//!   written again ([`space`], [`emptiness`]); [`promise`] counts what fits in the worst case,
//!   [`compaction`] says what is worth moving.
//!
//! Nothing here does I/O or waits: ranges to write and bytes that were read pass through the
//! caller.
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

pub mod compaction;
mod emptiness;
pub mod error;
mod free_list;
pub mod open;
pub mod promise;
pub mod scan;
pub mod sealed;
mod segments;
pub mod space;
mod unpacked;

pub use compaction::{SLICE_BYTES, SLICE_ENTRIES, room_to_move_bytes};
pub use error::{DirectoryError, DoesNotFit};
pub use open::{ContainerWrite, NewFrame, OpenContainer, Sealed, SealedImage};
pub use promise::{usable_bytes_per_container, worst_case_bytes};
pub use scan::{Scanned, scan};
pub use sealed::{directory, directory_in_tail, directory_of, directory_range, footer};
pub use segments::{WriteBytes, prepare_memory};
pub use space::{ContainerUse, SealedUse, Space, ZoneUse};
pub use unpacked::{SharedBytes, Unpacked};
