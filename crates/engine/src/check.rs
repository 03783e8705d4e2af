//! `tamis check`: every invariant between tables, containers, counts and space, from the disk.
//!
//! First a survey: both copies of the geometry, both roots, every page below either of them, and
//! the journal from the older root to its end and behind it. If an opening would succeed, the store
//! is loaded as at opening, its journal applied in memory, nothing written. Then each
//! table is walked once: maps give reference counts, the PBN-PBA table must have the same; what it
//! places in containers must not overlap and must sum up to their live bytes; the Hash-PBN table
//! and it must name each other; every live frame is read and verified, and every directory. If
//! frames are lost, the maps are walked again to say which chunks of which volumes they were.
//!
//! Where a zone is another store's, nothing is said but that ([`crate::open::belonging`]).
//!
//! A store that would not open is not walked so: the accounts of a repair say what is lost, and
//! what cannot be read before one.
//!
//! Memory: pages of the tables in what the caller allows for them, beside it 60 bytes a leaf page;
//! 15 bytes a PBN, 19 where there are domains, and 32 bytes a stored chunk. The accounts take 57
//! bytes a PBN instead, and 64 a stored chunk.

pub(crate) mod problem;
pub(crate) mod structures;

mod checker;
mod copies;
mod directories;
mod fingerprints;
mod mapped_in;
mod maps;

use disk::Disk;

use crate::check::checker::Checker;
use crate::check::problem::{CheckProgress, CheckReport, Problem};
use crate::devices::Devices;
use crate::open::load;
use crate::open::open_error::OpenError;
use crate::options::{Caches, Options, PAGE_COST_BYTES};
use crate::repair::Accounts;
use crate::repair::damage_reads::DamageReads;
use crate::repair::survey::Survey;

/// All of the memory is for pages.
fn caches(memory_bytes: u64) -> Caches {
    let pages = usize::try_from(memory_bytes / PAGE_COST_BYTES).unwrap_or(usize::MAX);
    Caches {
        pages,
        dirty_pages_max: pages / 4 * 3,
        young_max: usize::MAX,
        directory_entries: 0,
        frame_bytes: 0,
        lends: false,
    }
}

/// Checks a closed store, writing nothing, with the memory that an engine has by default.
///
/// # Errors
/// [`OpenError`] when nothing is left to check: no geometry, or no root.
pub fn check(
    disk: Box<dyn Disk>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<CheckReport, OpenError> {
    check_within(disk, Options::default().memory_bytes, progress)
}

/// As [`check`], with so much memory for pages of the tables.
///
/// # Errors
/// As [`check`].
pub fn check_within(
    disk: Box<dyn Disk>,
    memory_bytes: u64,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<CheckReport, OpenError> {
    let mut reads = DamageReads::new(Devices::new(disk));
    let survey = Survey::of(&mut reads, progress)?;
    let mut problems = survey.problems.clone();
    let foreign = survey.foreign_zones(&mut reads);
    if !foreign.is_empty() {
        problems.extend(foreign.into_iter().map(Problem::from));
        let volumes = survey.base.volumes.len() as u64;
        return Ok(CheckReport { problems, volumes, ..CheckReport::default() });
    }
    let mut report = if survey.is_fatal() || !reads.failed.is_empty() {
        let report = Accounts::of(&mut reads, &survey, progress).report();
        problems.extend(reads.problems());
        report
    } else {
        invariants(reads.devices, &survey, caches(memory_bytes), progress)?
    };
    problems.append(&mut report.problems);
    Ok(CheckReport { problems, ..report })
}

/// Walks the tables of a store that loads.
fn invariants(
    devices: Devices,
    survey: &Survey,
    caches: Caches,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<CheckReport, OpenError> {
    let opened = load(devices, caches, false)?;
    let cut = opened.report.cut.then_some(opened.recovered.position);
    let mut checker = Checker::new(opened);
    cut.and_then(|at| survey.cut_problem(at, false)).into_iter().for_each(|at| checker.found(at));
    checker.check_maps(progress)?;
    checker.check_chunks(progress)?;
    checker.check_copies()?;
    checker.check_fingerprints(progress)?;
    checker.check_free_pbns()?;
    checker.check_containers(progress)?;
    checker.check_totals();
    checker.name_losses(progress)?;
    Ok(checker.into_report())
}
