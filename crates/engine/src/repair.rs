//! `tamis check --repair`: a store made whole again from what is intact of it.
//!
//! [`Survey`] (superblock, roots, tables, journal) -> [`Ledger`] (what tables and journal say) ->
//! [`FrameAccounts`] (what containers say) -> [`MapAccounts`] (what volumes map, what of it is
//! lost) -> [`Rebuild`] (tables below new roots). Until the last step nothing is written, and that
//! step overwrites nothing that the roots name.

pub(crate) mod damage_reads;
pub(crate) mod error;
pub(crate) mod frame_accounts;
pub(crate) mod journal_image;
mod labels;
pub(crate) mod ledger;
mod left_out;
mod map_accounts;
mod next_journal;
mod page_writer;
mod rebuild;
pub(crate) mod survey;
mod tree_image;

use std::collections::{BTreeMap, BTreeSet};

use disk::Disk;
use format::BLOCK_BYTES;
use format::units::{TreeId, VolumeId, Zone};
use mutants::mutant;

use crate::check::problem::{CheckProgress, CheckReport, Problem};
use crate::devices::Devices;
use crate::geometry::{raise_version, refuse_to_write};
use crate::marks::{Marked, marked, write_mark};
use crate::open::belonging::ForeignZone;
use crate::open::open_error::OpenError;
use crate::repair::damage_reads::DamageReads;
use crate::repair::error::RepairError;
use crate::repair::frame_accounts::{FrameAccounts, stored_chunks};
use crate::repair::ledger::{Cut, Ledger, Pages};
use crate::repair::left_out::LeftOut;
use crate::repair::map_accounts::{MapAccounts, lost_leaves};
use crate::repair::next_journal::NextJournal;
use crate::repair::rebuild::Rebuild;
use crate::repair::survey::{Survey, is_device_failure};

/// What a repair did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairReport {
    /// What was wrong, as far as the rebuilding saw it.
    pub found: Vec<Problem>,
    /// Chunks of volumes that are lost: reading them is an error until they are written again.
    pub lost_chunks: u64,
    /// Records of the journal that could not be applied, although they were durable or may have
    /// been: the store is as it was before them.
    pub lost_records: u64,
    /// The journal was gone: the store is as its newest root has it, and nobody knows what was
    /// flushed since.
    pub lost_journal: bool,
    /// The journal was cut short where its next record may have stood, and nobody knows what was
    /// flushed with it and since then.
    pub short_journal: bool,
    /// Volumes and snapshots that went: those that were to be abandoned, and their snapshots.
    pub given_up: Vec<String>,
    /// Pages of tables that were written.
    pub pages_written: u64,
    /// Directories of containers that were written.
    pub directories_written: u64,
}

/// What a repair goes on without.
#[derive(Copy, Clone, Debug, Default)]
pub struct GivenUp<'a> {
    /// Zones that are lost: what stands in them may be anything. Otherwise such a store is
    /// refused, so that no chunk is lost because devices have changed places.
    pub zones: &'a [Zone],
    /// Volumes and snapshots that are deleted, a volume with its snapshots: where the tables have
    /// no room to say what of them is lost.
    pub volumes: &'a [String],
    /// What stands in zone journal from this byte on, if its file was cut short there and has been
    /// made longer since.
    pub journal_from_bytes: Option<u64>,
}

/// What is known before anything is written.
pub(crate) struct Accounts {
    pub(crate) ledger: Ledger,
    pub(crate) frames: FrameAccounts,
    pub(crate) maps: MapAccounts,
    /// What is wrong with records that are there and were not applied.
    cut: Option<Problem>,
    /// What those and the records behind damaged ones changed.
    older: Vec<Problem>,
    lost_records: u64,
}

impl Accounts {
    pub(crate) fn of(
        reads: &mut DamageReads,
        survey: &Survey,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Self {
        let ledger = Ledger::read(reads, survey, progress);
        Self::of_ledger(ledger, reads, survey, progress)
    }

    fn of_ledger(
        mut ledger: Ledger,
        reads: &mut DamageReads,
        survey: &Survey,
        progress: &mut dyn FnMut(CheckProgress),
    ) -> Self {
        let frames = FrameAccounts::read(&mut ledger, reads, &survey.geometry, progress);
        let mut pages = Pages { reads, survey };
        let maps = MapAccounts::count(&ledger, &mut pages, &frames.found_again, progress);
        let journal = &survey.base.journal;
        let mut lost_records = journal.lost_records();
        let cut = ledger.cut.and_then(|Cut { at, is_proven }| {
            let problem = survey.cut_problem(at, is_proven)?;
            lost_records += journal.end.sequence - at.sequence;
            Some(problem)
        });
        let from = ledger.cut.filter(|_| cut.is_some()).map_or(journal.end, |cut| cut.at);
        let older = match lost_records {
            0 => Vec::new(),
            _ if mutant!(TellsLossShort) => Vec::new(),
            _ => LeftOut::read(reads, &survey.geometry, from.sequence..=journal.last_sequence())
                .problems(&ledger, &survey.geometry),
        };
        Self { ledger, frames, maps, cut, older, lost_records }
    }

    /// What a check says of a store that cannot be opened.
    pub(crate) fn report(&self) -> CheckReport {
        let problems =
            [&self.older, &self.frames.problems, &self.maps.problems].into_iter().flatten();
        CheckReport {
            problems: self.cut.iter().chain(problems).cloned().collect(),
            volumes: self.ledger.volumes.len() as u64,
            mapped_chunks: self.maps.references.iter().map(|&count| u64::from(count)).sum(),
            stored_chunks: self.frames.frames_verified,
            containers: self.ledger.containers_in_use(),
            frames_verified: self.frames.frames_verified,
            records_replayed: self.ledger.records,
        }
    }
}

/// Repairs a closed store.
///
/// # Errors
/// [`RepairError`] says why it was left as it is.
pub fn repair(
    disk: Box<dyn Disk>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<RepairReport, RepairError> {
    repair_without(disk, &GivenUp::default(), progress)
}

/// Repairs a closed store without what is abandoned.
///
/// # Errors
/// As [`repair`].
pub fn repair_without(
    disk: Box<dyn Disk>,
    given_up: &GivenUp<'_>,
    progress: &mut dyn FnMut(CheckProgress),
) -> Result<RepairReport, RepairError> {
    let mut reads = DamageReads::new(Devices::new(disk));
    reads.cut_journal_at(given_up.journal_from_bytes);
    let mut survey = Survey::of(&mut reads, progress)?;
    refuse_to_write(&survey.geometry)?;
    refuse_what_cannot_be(&survey)?;
    let foreign = survey.foreign_zones(&mut reads);
    if let Some(foreign) = foreign.iter().find(|foreign| !given_up.zones.contains(&foreign.zone)) {
        return Err(OpenError::from(foreign.clone()).into());
    }
    let mut ledger = Ledger::read(&mut reads, &survey, progress);
    let gone = ledger.give_up(given_up.volumes);
    let gone = gone.map_err(|name| RepairError::NoVolume { name })?;
    let accounts = Accounts::of_ledger(ledger, &mut reads, &survey, progress);
    if let Some(error) = reads.failed.iter().find(|error| is_device_failure(error)) {
        return Err(RepairError::Device(error.clone()));
    }
    let mut found = survey.problems.clone();
    found.extend(foreign.iter().cloned().map(Problem::from));
    found.extend(accounts.report().problems);
    let lost_chunks = accounts.maps.lost_chunks;
    let Accounts { ledger, frames, maps, lost_records, .. } = accounts;
    refuse_without_room(&survey, &ledger)?;
    let unmarked = zones_to_mark(&mut reads.devices, &survey, &foreign, &ledger);
    raise_version(&mut reads.devices, &mut survey.geometry)?;
    let lost_journal = is_foreign(&foreign, Zone::Journal);
    let short_journal = survey.base.journal.is_cut_short;
    let journal = NextJournal::of(&survey, lost_journal, ledger.next_incarnation)?;
    let rebuild = Rebuild::new(&mut reads, &survey, ledger, frames, maps, journal.position);
    let written = rebuild.write(progress)?;
    journal.begin(&mut reads.devices)?;
    // Or the next opening would find nothing of ours there. They come behind the roots: until then
    // the store is refused as it was.
    for zone in unmarked {
        write_mark(&mut reads.devices, &survey.geometry, zone)?;
    }
    let (pages_written, directories_written) = (written.pages, written.directories);
    Ok(RepairReport {
        found,
        lost_chunks,
        lost_records,
        lost_journal,
        short_journal,
        given_up: gone,
        pages_written,
        directories_written,
    })
}

/// Zones of which nothing may be left one day that says whose they are: a ring in which no record
/// has been written yet, and data zones without their mark, where no chunk lies in its place.
fn zones_to_mark(
    devices: &mut Devices,
    survey: &Survey,
    foreign: &[ForeignZone],
    ledger: &Ledger,
) -> Vec<Zone> {
    let geometry = &survey.geometry;
    let begins = stored_chunks(ledger).into_iter().map(|(pba, _)| pba);
    let held: BTreeSet<_> = begins
        .filter(|pba| pba.offset_bytes < BLOCK_BYTES as u32)
        .map(|pba| pba.container)
        .collect();
    let is_free = |&zone: &Zone| {
        let first = geometry.container_at(zone, 0);
        first.is_some_and(|first| !held.contains(&first))
    };
    let is_bare = |zone: &Zone| {
        is_foreign(foreign, *zone)
            || geometry.marked
                && matches!(marked(devices, geometry, *zone), Marked::No | Marked::Other(_))
    };
    let data = (0..geometry.data.len() as u16).filter(|&number| geometry.has_data_zone(number));
    let data: Vec<Zone> = data.map(Zone::Data).filter(is_free).filter(is_bare).collect();
    let is_unwritten =
        |&ring: &Zone| !survey.base.journal.behind.is_ours() && !is_foreign(foreign, ring);
    let ring = Some(Zone::Journal).filter(is_unwritten);
    ring.into_iter().chain(data).collect()
}

fn is_foreign(foreign: &[ForeignZone], zone: Zone) -> bool {
    foreign.iter().any(|foreign| foreign.zone == zone)
}

/// A lost inner page may stand for more leaves than there are blocks. Known before anything is
/// written: the leaves that it led to are in blocks that the repair takes for free.
fn refuse_without_room(survey: &Survey, ledger: &Ledger) -> Result<(), RepairError> {
    let (mut of_lines, mut hit) = (BTreeMap::<VolumeId, u64>::new(), BTreeMap::new());
    for (id, first) in ledger.lines() {
        let Some(volume) = ledger.volumes.get(&id) else { continue };
        let lost = lost_leaves(survey, volume);
        if lost > 0 {
            hit.insert(id, &volume.entry);
        }
        let of_line = of_lines.entry(first).or_default();
        // Versions of one line share those that are alike.
        *of_line = lost.max(*of_line);
    }
    let blocks = survey.geometry.tables_blocks();
    let free = blocks.saturating_sub(survey.blocks_in_use().count());
    if of_lines.values().sum::<u64>() <= free {
        return Ok(());
    }
    // Who abandons a volume abandons its snapshots.
    let is_named = |of: Option<VolumeId>| of.is_none_or(|volume| !hit.contains_key(&volume));
    let named = hit.values().filter(|entry| is_named(entry.lineage.snapshot_of));
    let volumes = named.map(|entry| ledger.full_name(entry)).collect();
    Err(RepairError::TooMuchLost { blocks, volumes })
}

fn refuse_what_cannot_be(survey: &Survey) -> Result<(), RepairError> {
    for problem in &survey.problems {
        if let Problem::ShortZone { zone, expected_bytes, found_bytes } = problem {
            let (expected_bytes, found_bytes) = (*expected_bytes, *found_bytes);
            return Err(RepairError::ShortZone { zone: zone.clone(), expected_bytes, found_bytes });
        }
    }
    let Some(catalog) = survey.base.trees.get(&TreeId::CATALOG) else {
        return Err(OpenError::Unfinished.into());
    };
    let lost = catalog.lost().next();
    match lost.or(catalog.damaged.iter().find(|id| id.level == 0).map(|id| id.index)) {
        Some(leaf) => Err(RepairError::Catalog { leaf }),
        None => Ok(()),
    }
}
