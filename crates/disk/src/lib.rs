//! Room disk: how bytes reach a device.
//!
//! A store is a few *zones* (superblock, journal, tables, data), each one file or block device. All
//! of them are driven through one [`Disk`]: operations are submitted without waiting and come back
//! as [`Completion`]s, in any order. There are three disks behind that trait:
//!
//! - [`UringDisk`]: one `io_uring` for all zones, past the page cache. What a server runs on.
//! - [`PsyncDisk`]: a few threads with plain `pread`/`pwrite`, where io_uring is not to be had.
//! - [`MemoryDisk`]: sparse memory with a seeded order of completion, power loss and faults. What
//!   the tests and the simulator run on.
//!
//! Five more stand over any other: [`RetryingDisk`] tries operations again that failed for a
//! passing reason, [`DelayingDisk`] gives a disk the latency of far storage, [`OverlayDisk`] keeps
//! in memory what is written, for media that are only read, [`AllocatingDisk`] has room allocated
//! for sparse files as they fill, [`UndoDisk`] keeps what a repair overwrites. A disk of another
//! kind, over objects or another machine, needs nothing of this crate but its public face.
//!
//! What every disk promises, and [`conformance`] holds it to:
//!
//! - Operations in flight together are not ordered. An owner that needs an order waits for a
//!   completion.
//! - A read submitted after a write has completed sees that write.
//! - A sync makes durable every write of its zone that had completed before the sync was
//!   *submitted*, and promises nothing about any other.
//! - A *durable* write is durable when it completes, and makes nothing else so.
//! - Every operation completes exactly once, with its tag. A read that succeeds gives its buffer
//!   back; an operation that fails comes back whole.
//! - An operation that cannot be (misaligned, out of range, no such zone) completes with an error.
//! - An error has a class ([`ErrorClass`]), which says what its owner may do.
//! - A growth is prepared beforehand and taken at once ([`ZoneGrowth`]).
//!
//! Buffers are owned by the operation from submission to completion: the kernel writes into them in
//! the meantime, so that a borrow could not be sound (`docs/decisions/002-disk.md`).
//!
//! The system calls of storage and their `unsafe` stay in this room. A thread that submits
//! operations and waits for work from other threads sleeps on a [`Doorbell`], which completions
//! ring as well.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod ahead;
mod alarm;
mod allocating;
mod allocation;
mod buffer;
mod claim;
pub mod conformance;
mod create;
mod delaying;
mod doorbell;
mod due;
mod durable_writes;
mod entering;
mod error;
mod grow;
mod growth;
mod io;
mod layout;
mod memory;
mod naming;
mod open;
mod operation;
mod overlay;
mod place;
mod pool;
mod psync;
mod resident;
mod retire;
mod retrying;
mod sparse_file;
mod splitmix;
#[cfg(test)]
mod tests;
mod undo;
mod uring;
mod zone_files;

pub use ahead::{AllocationAhead, Medium, SparseZone, ZoneAllocation, allocation_step_bytes};
pub use allocating::AllocatingDisk;
pub use buffer::{AlignedBuf, SharedBuf};
pub use create::{create_sparse_store_files, create_store_files};
pub use delaying::DelayingDisk;
pub use doorbell::Doorbell;
pub use error::{Cause, CreateFilesError, ErrorClass, FileError, IoError, OpenError, Verb};
pub use grow::{
    FileGrowth, LongerZone, grow_store_files, lengthen_zone, shorten_zone, zone_is_device,
    zone_length_bytes,
};
pub use growth::{ForeignGrowth, ZoneGrowth};
pub use io::{Completion, Disk, Io, IoKind};
pub use layout::{SUPERBLOCK_BYTES, ZoneName, zone_file};
pub use memory::{Fault, Loss, MemoryCounters, MemoryDisk};
pub use naming::{NamingError, give_name};
pub use open::{DiskIdentity, IoEngine, StoreFiles, open_further_files, open_store_files};
pub use overlay::OverlayDisk;
pub use place::{Access, claim_device, free_bytes};
pub use psync::PsyncDisk;
pub use resident::rss_bytes;
pub use retire::retire_zone_file;
pub use retrying::{RetryPolicy, RetryingDisk};
pub use sparse_file::taken_bytes;
pub use undo::{LongerView, UndoDisk, UndoError, UndoFile, UndoImage, zone_tail};
pub use uring::UringDisk;
