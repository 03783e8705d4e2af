//! `tamis check`: every invariant of a closed store. It changes nothing, unless it shall repair.

use admin::{Control, GetStatus};
use std::path::{Path, PathBuf};
use std::time::Duration;

use disk::{CreateFilesError, Disk, FileError, LongerView, LongerZone, UndoDisk, ZoneName};
use engine::{CheckReport, GivenUp, OpenError, Problem, RepairError, RepairReport};
use format::units::{BLOCK_BYTES, Zone};
use serde::Serialize;

use crate::args::CheckArgs;
use crate::control;
use crate::error::{CliError, way_out};
use crate::output;
use crate::progress::{Progress, Unit, human_duration};
use crate::scrub_record::ScrubRecord;
use crate::size::{counted, human_bytes, human_count};
use crate::store;
use crate::table::{Align, Table};

mod bucket_repair;
mod bucket_report;
mod buckets;
mod outcome;
mod undo;

/// What `--json` prints.
#[derive(Serialize)]
struct Finding<'a> {
    sound: bool,
    seconds: f64,
    #[serde(flatten, serialize_with = "admin::json::serialize")]
    report: &'a CheckReport,
    /// Each problem as a sentence.
    sentences: Vec<String>,
    /// What was mended, and what is still wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    repair: Option<Repaired>,
    /// Buckets that were checked; none where the store has damage that a repair can mend first.
    buckets: Vec<bucket_report::Checked>,
}

/// What a repair did.
#[derive(Serialize)]
struct Repaired {
    #[serde(flatten, serialize_with = "admin::json::serialize")]
    report: RepairReport,
    /// What a check finds afterwards.
    #[serde(serialize_with = "admin::json::serialize")]
    left: Vec<Problem>,
    /// Where what it overwrote is kept; none where nothing was overwritten, or where the store has
    /// changed since.
    #[serde(serialize_with = "undo::as_text")]
    undo_file: Option<PathBuf>,
}

pub(super) fn run(args: &CheckArgs) -> Result<(), CliError> {
    if let Some(mut server) = control::connect(&args.store)? {
        let pid = server.ask(GetStatus {})?.pid;
        return Err(CliError::ServedNoCheck { store: args.store.clone(), pid });
    }
    if let Some(file) = &args.undo {
        return undo::take_back(args, file, &mut Stages::default());
    }
    let (mut stages, mut longer) = (Stages::default(), Vec::new());
    let report = match check(args, &mut stages) {
        Err(CliError::Open(OpenError::ZoneTooShort { zone, expected_bytes, .. }))
            if args.repair =>
        {
            longer.push(lengthen(&args.store, &ZoneName(zone).to_string(), expected_bytes)?);
            check(args, &mut stages)?
        }
        report => report?,
    };
    let mendable = args.repair && !report.problems.iter().all(is_lost);
    if !args.format.json {
        print_text(&report, stages.so_far())?;
    }
    let mut repaired =
        if mendable { Some(repair(args, &report, &mut stages, longer)?) } else { None };
    let mut left = repaired.as_ref().map_or(&report.problems, |repaired| &repaired.left).clone();
    let (buckets, is_changed) = buckets(args, &mut left, &mut stages)?;
    if let Some(repaired) = &mut repaired {
        repaired.left.clone_from(&left);
        // A bucket is repaired as it is written to, and that is not taken back.
        repaired.undo_file.take_if(|_| is_changed);
    }
    let outcome = outcome::of(args.repair, &report, repaired.as_ref(), &left, &buckets);
    match (args.format.json, &repaired) {
        (true, _) => print_json(&report, repaired, buckets, stages.finish())?,
        (false, repaired) => {
            repaired.as_ref().map_or(Ok(()), |one| print_repair(args, one))?;
            bucket_report::print(&buckets)?;
        }
    }
    outcome
}

/// Chunks that no repair of the store brings back.
fn is_lost(problem: &Problem) -> bool {
    matches!(problem, Problem::LostChunks { .. })
}

/// Checks the buckets of a store that has no problem but `lost` chunks, and repairs them if asked
/// to, which tells whether the store was written to. A new index does not name chunks that are
/// lost, so `lost` is what is lost then.
fn buckets(
    args: &CheckArgs,
    lost: &mut Vec<Problem>,
    stages: &mut Stages,
) -> Result<(Vec<bucket_report::Checked>, bool), CliError> {
    if !lost.iter().all(is_lost) {
        return Ok((Vec::new(), false)); // The store's own damage comes first.
    }
    let mut is_changed = false;
    let mut found = buckets::check(&args.store, args.memory, lost, stages)?;
    if args.repair {
        let (store, memory_bytes) = (&args.store, args.memory);
        is_changed = bucket_repair::repair(store, memory_bytes, lost, &mut found, stages)?;
        if is_changed && !lost.is_empty() {
            *lost = check(args, stages)?.problems;
        }
    }
    Ok((found, is_changed))
}

fn check(args: &CheckArgs, stages: &mut Stages) -> Result<CheckReport, CliError> {
    let store = &args.store;
    let files = store::open_files_to_read(store)?;
    let show = &mut |at: engine::CheckProgress| stages.show(at.stage, at.done, at.total);
    let report = engine::check_within(files.disk, args.memory, show);
    stages.end_stage();
    let mut report = report?;
    for problem in &mut report.problems {
        if let Problem::ShortZone { zone, .. }
        | Problem::Unreadable { zone, .. }
        | Problem::ForeignZone { zone, .. } = problem
        {
            *zone = store::zone_file_name(store, zone);
        }
    }
    Ok(report)
}

fn repair(
    args: &CheckArgs,
    report: &CheckReport,
    stages: &mut Stages,
    mut longer: Vec<LongerZone>,
) -> Result<Repaired, CliError> {
    let short_journal = ShortJournal::lengthened_last(&args.store, report)?;
    for problem in &report.problems {
        if let Problem::ShortZone { zone, expected_bytes, .. } = problem
            && !(short_journal.is_some() && is_journal(zone))
        {
            longer.push(lengthen(&args.store, zone, *expected_bytes)?);
        }
    }
    let files = store::open_files(&args.store)?;
    let show = &mut |at: engine::CheckProgress| stages.show(at.stage, at.done, at.total);
    let empty_journal = longer.iter().find(|one| is_journal(one.zone_name()));
    let journal_from_bytes = short_journal.as_ref().map(|journal| journal.bytes);
    let given_up = GivenUp {
        zones: &args.without_zone,
        volumes: &args.without_volume,
        journal_from_bytes: journal_from_bytes.or(empty_journal.map(LongerZone::before_bytes)),
    };
    let undo = undo::file_for(args, undo::short_files(&longer, journal_from_bytes))?;
    let disk = ShortJournal::view(short_journal, &args.store, files.disk)?;
    let disk = Box::new(UndoDisk::new(disk, &undo));
    let repaired = engine::repair_without(disk, &given_up, show);
    let undo_file = undo::kept(&undo);
    let report = repaired.inspect_err(|error| {
        if let Some(file) = &undo_file {
            output::say(undo::way_back(&args.store, file));
        } else if changed_nothing(error) {
            cut_back(longer);
        }
    })?;
    if let Some(journal) = short_journal {
        // A store that somebody opens meanwhile is refused: its journal is short.
        lengthen(&args.store, &ZoneName(Zone::Journal).to_string(), journal.whole_bytes)?;
    }
    if report.lost_chunks > 0 {
        let remembered = ScrubRecord::load_to_change(&args.store).and_then(|mut record| {
            record.repaired(report.lost_chunks);
            record.save(&args.store)
        });
        if let Err(error) = remembered {
            output::say(format_args!("{error}"));
        }
    }
    let left = check(args, stages)?.problems;
    Ok(Repaired { report, left, undo_file })
}

/// A journal whose file was cut short. That it is short tells of the records which went with its
/// end, and nothing else does: so it is made longer when the repair has come to its end.
#[derive(Copy, Clone, Debug)]
struct ShortJournal {
    /// Bytes of the file; of a report, whole blocks of it.
    bytes: u64,
    whole_bytes: u64,
}

impl ShortJournal {
    /// The short journal that a repair lengthens at its end. A device, or a file without one whole
    /// block, is none of them.
    fn lengthened_last(store: &Path, report: &CheckReport) -> Result<Option<Self>, CliError> {
        let Some(journal) = Self::of(report) else { return Ok(None) };
        if journal.bytes < BLOCK_BYTES as u64 || disk::zone_is_device(store, Zone::Journal, 1)? {
            return Ok(None);
        }
        let bytes = disk::zone_length_bytes(store, Zone::Journal, 1)?;
        Ok(Some(Self { bytes, ..journal }))
    }

    /// A disk on which the journal, if it is short, is as long as it is going to be.
    fn view(
        short: Option<Self>,
        store: &Path,
        disk: Box<dyn Disk>,
    ) -> Result<Box<dyn Disk>, FileError> {
        let Some(journal) = short else { return Ok(disk) };
        let tail = disk::zone_tail(store, &ZoneName(Zone::Journal).to_string())?;
        Ok(Box::new(LongerView::new(disk, Zone::Journal, journal.whole_bytes, tail)))
    }

    /// The journal of a store that is as a repair left it when it was cut off; none if it is whole.
    fn of(report: &CheckReport) -> Option<Self> {
        report.problems.iter().find_map(|problem| match problem {
            Problem::ShortZone { zone, expected_bytes, found_bytes } if is_journal(zone) => {
                Some(Self { bytes: *found_bytes, whole_bytes: *expected_bytes })
            }
            _ => None,
        })
    }
}

fn is_journal(zone_name: &str) -> bool {
    zone_name == ZoneName(Zone::Journal).to_string()
}

/// Whether an error says so.
fn changed_nothing(error: &RepairError) -> bool {
    matches!(
        error,
        RepairError::Open(OpenError::ForeignZone { .. } | OpenError::Newer(_))
            | RepairError::Catalog { .. }
            | RepairError::TooMuchLost { .. }
            | RepairError::NoVolume { .. }
            | RepairError::NoRoom { .. }
    )
}

fn cut_back(longer: Vec<LongerZone>) {
    for error in longer.into_iter().filter_map(|zone| zone.cut_back().err()) {
        output::say(format_args!("{error}"));
    }
}

/// Gives a file the length that it was made with; what was cut off is zeros, which is damage that
/// a repair can look at.
fn lengthen(store: &Path, zone: &str, expected_bytes: u64) -> Result<LongerZone, CliError> {
    disk::lengthen_zone(store, zone, expected_bytes).map_err(|error| match error {
        CreateFilesError::NoSpace { path, needed_bytes, free_bytes } => {
            CliError::NoRoomToLengthen { path, needed_bytes, free_bytes }
        }
        error => error.into(),
    })
}

/// The progress of one stage after another.
#[derive(Default)]
struct Stages {
    current: Option<(&'static str, Progress)>,
    elapsed: Duration,
}

impl Stages {
    fn show(&mut self, stage: &'static str, done: u64, total: u64) {
        let same = self.current.as_ref().is_some_and(|(name, _)| *name == stage);
        if !same {
            self.end_stage();
            self.current = Some((stage, Progress::new(stage, Unit::Steps, Some(total))));
        }
        if let Some((_, progress)) = &mut self.current {
            progress.set_done(done);
        }
    }

    fn end_stage(&mut self) {
        if let Some((_, progress)) = self.current.take() {
            self.elapsed += progress.finish();
        }
    }

    fn so_far(&mut self) -> Duration {
        self.end_stage();
        self.elapsed
    }

    fn finish(mut self) -> Duration {
        self.so_far()
    }
}

fn print_json(
    report: &CheckReport,
    repair: Option<Repaired>,
    buckets: Vec<bucket_report::Checked>,
    elapsed: Duration,
) -> Result<(), CliError> {
    let sentences: Vec<String> = report.problems.iter().map(way_out::problem).collect();
    let is_sound = sentences.is_empty() && buckets.iter().all(|one| one.problems() == 0);
    let (sound, seconds) = (is_sound, elapsed.as_secs_f64());
    output::print_json(&Finding { sound, seconds, report, sentences, repair, buckets })
}

fn print_text(report: &CheckReport, elapsed: Duration) -> Result<(), CliError> {
    print_problems(&report.problems)?;
    if report.problems.is_empty() {
        output::print_sentence(format_args!(
            "the store is sound: {} with {}, {} stored in {}, {} verified ({})",
            counted(report.volumes, "volume"),
            counted(report.mapped_chunks, "mapped chunk"),
            counted(report.stored_chunks, "chunk"),
            counted(report.containers, "container"),
            counted(report.frames_verified, "frame"),
            human_duration(elapsed),
        ))?;
    }
    Ok(())
}

/// What is damaged, in sentences; then what that means to volumes, in a table.
fn print_problems(problems: &[Problem]) -> Result<(), CliError> {
    let mut affected = Table::with_heading([
        ("volume", Align::Left),
        ("first chunk", Align::Right),
        ("chunks", Align::Right),
        ("bytes", Align::Right),
        ("what of it", Align::Left),
    ]);
    let mut row = |volume: &String, lba: u64, count: u64, bytes: u64, fate: &str| {
        let (lba, bytes) = (lba.to_string(), human_bytes(bytes));
        affected.row([volume.clone(), lba, human_count(count), bytes, fate.to_owned()]);
    };
    for problem in problems {
        match problem {
            Problem::LostChunks { volume, lba, count, bytes } => {
                row(volume, *lba, *count, *bytes, "lost");
            }
            Problem::HiddenChunks { volume, lba, count, bytes } => {
                row(volume, *lba, *count, *bytes, "not readable before a repair");
            }
            Problem::OlderChunks { volume, lba, count, bytes } => {
                row(volume, *lba, *count, *bytes, "may be older");
            }
            problem => output::print_problem(problem)?,
        }
    }
    if affected.is_empty() { Ok(()) } else { output::print_line(affected) }
}

fn print_repair(args: &CheckArgs, repaired: &Repaired) -> Result<(), CliError> {
    let Repaired { report, left, undo_file } = repaired;
    output::print_line(format_args!(
        "repaired: {} of tables and {} written again",
        counted(report.pages_written, "page"),
        match report.directories_written {
            1 => "1 directory".to_owned(),
            count => format!("{} directories", human_count(count)),
        },
    ))?;
    if let Some(file) = undo_file {
        output::print_line(undo::way_back(&args.store, file))?;
    }
    print_problems(left)
}
