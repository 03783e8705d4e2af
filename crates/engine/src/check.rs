//! `tamis check`: every invariant between tables, containers, counts and space, from the disk.
//!
//! The store is loaded as at opening, its journal applied in memory, nothing written. Then each
//! table is walked once: maps give reference counts, the PBN-PBA table must have the same; what it
//! places in containers must not overlap and must sum up to their live bytes; the Hash-PBN table
//! and it must name each other; every live frame is read and verified, and every directory. If
//! frames are lost, the maps are walked again to say which chunks of which volumes they were.
//!
//! Memory: four bytes a PBN and 24 bytes a stored chunk.

use disk::Disk;
use serde::Serialize;

use crate::checker::Checker;
use crate::open::{OpenError, load};
pub use crate::problem::Problem;

/// Pages of the table cache while checking: 256 MiB.
const CACHE_PAGES: usize = 64 << 10;

/// How far a check has come.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CheckProgress {
    /// What is being checked.
    pub stage: &'static str,
    /// Of `total`.
    pub done: u64,
    /// Steps of this stage.
    pub total: u64,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Every broken invariant; none in a sound store.
    pub problems: Vec<Problem>,
    /// Volumes checked.
    pub volumes: u64,
    /// Mapped chunks of all volumes.
    pub mapped_chunks: u64,
    /// Stored chunks, dead ones included.
    pub stored_chunks: u64,
    /// Containers that hold something.
    pub containers: u64,
    /// Frames read and verified.
    pub frames_verified: u64,
    /// Journal records that were applied in memory.
    pub records_replayed: u64,
}

/// Checks a closed store, writing nothing.
///
/// # Errors
/// [`OpenError`] when it cannot even be loaded.
pub fn check(
    disk: Box<dyn Disk>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<CheckReport, OpenError> {
    let opened = load(disk, CACHE_PAGES)?;
    let mut checker = Checker::new(opened);
    checker.check_maps(progress)?;
    checker.check_chunks(progress)?;
    checker.check_fingerprints(progress)?;
    checker.check_free_pbns()?;
    checker.check_containers(progress)?;
    checker.check_totals();
    checker.name_losses(progress)?;
    Ok(checker.into_report())
}
