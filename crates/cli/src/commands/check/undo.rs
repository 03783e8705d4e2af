//! Taking a repair back: the file that it keeps what it overwrites in, and the way from there.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use disk::{FileError, LongerZone, UndoFile, UndoImage, ZoneName};
use format::units::Zone;
use serde::{Serialize, Serializer};

use super::{ShortJournal, Stages, check};
use crate::args::CheckArgs;
use crate::error::CliError;
use crate::output;
use crate::shell::shell_path;
use crate::store;

/// In the directory of the store, if nothing else is asked for.
const FILE_NAME: &str = "repair.undo";
/// Files of repairs before that are there still.
const FILES_MAX: u32 = 1000;

/// What `--undo --json` prints.
#[derive(Serialize)]
struct Undone<'a> {
    /// The file of the repair that was taken back.
    #[serde(serialize_with = "output::path_as_text")]
    undone: &'a Path,
}

/// Files that a repair has made longer, and the journal if it is about to, with their bytes before.
pub(super) fn short_files(longer: &[LongerZone], journal_bytes: Option<u64>) -> Vec<(Zone, u64)> {
    let zone = |one: &LongerZone| {
        let ZoneName(zone) = ZoneName::of_file(one.zone_name())?;
        Some((zone, one.before_bytes()))
    };
    let journal = journal_bytes.map(|bytes| (Zone::Journal, bytes));
    longer.iter().filter_map(zone).chain(journal).collect()
}

/// Makes the file for what a repair overwrites that makes these files longer.
pub(super) fn file_for(args: &CheckArgs, short: Vec<(Zone, u64)>) -> Result<UndoFile, CliError> {
    if let Some(path) = &args.undo_file {
        return Ok(UndoFile::create(path, short)?);
    }
    let names = (1..FILES_MAX).map(|number| match number {
        1 => FILE_NAME.to_owned(),
        number => format!("{FILE_NAME}.{number}"),
    });
    let mut is_taken = Err(taken(&args.store.join(FILE_NAME)));
    for name in names {
        is_taken = UndoFile::create(&args.store.join(name), short.clone());
        match &is_taken {
            Err(error) if error.source.kind() == ErrorKind::AlreadyExists => {}
            _ => break,
        }
    }
    Ok(is_taken?)
}

fn taken(path: &Path) -> FileError {
    let source = ErrorKind::AlreadyExists.into();
    FileError { action: "make", path: path.to_owned(), source }
}

/// A path in JSON, or none.
pub(super) fn as_text<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => output::path_as_text(path, to),
        None => to.serialize_none(),
    }
}

/// The line that says how a repair is taken back.
pub(super) fn way_back(store: &Path, file: &Path) -> String {
    let (store, file) = (shell_path(store), shell_path(file));
    format!("what it overwrote is kept: `tamis check {store} --undo {file}` takes the repair back")
}

/// Takes the repair back that wrote this file.
pub(super) fn take_back(
    args: &CheckArgs,
    path: &Path,
    stages: &mut Stages,
) -> Result<(), CliError> {
    let image = UndoImage::read(path)?;
    // A repair that was cut off may have left the journal as short as it was.
    let may_be_short = image.short().iter().any(|(zone, _)| *zone == Zone::Journal);
    let found = may_be_short.then(|| check(args, stages).ok()).flatten();
    let short_journal = found.as_ref().and_then(ShortJournal::of);
    let files = store::open_files(&args.store)?;
    let mut disk = ShortJournal::view(short_journal, &args.store, files.disk)?;
    image.go_back(&mut *disk)?;
    drop(disk);
    for (zone, before_bytes) in image.short() {
        disk::shorten_zone(&args.store, &ZoneName(*zone).to_string(), *before_bytes)?;
    }
    if args.format.json {
        return output::print_json(&Undone { undone: path });
    }
    output::print_sentence(format_args!(
        "the store is as it was before the repair; {} is not needed any more",
        path.display()
    ))
}

/// What a repair kept of what it overwrote; none if nothing was overwritten.
pub(super) fn kept(undo: &UndoFile) -> Option<PathBuf> {
    undo.finish().unwrap_or_else(|error| {
        output::say(format_args!("{error}"));
        None
    })
}
