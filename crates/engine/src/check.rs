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

use crate::checker::Checker;
use crate::open::load;
use crate::open_error::OpenError;
use crate::problem::{CheckProgress, CheckReport};

/// Pages of the table cache while checking: 256 MiB.
const CACHE_PAGES: usize = 64 << 10;

/// Checks a closed store, writing nothing.
///
/// # Errors
/// [`OpenError`] when it cannot even be loaded.
pub fn check(
    disk: Box<dyn Disk>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<CheckReport, OpenError> {
    let opened = load(disk, CACHE_PAGES, false)?;
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
