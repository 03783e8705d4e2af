//! `tamis init`: a new store. Sizes are planned first, then files are made (nothing that is there
//! is ever overwritten), then the first root is written.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use ::store::CreateOptions;
use disk::ZoneName;
use format::superblock::Geometry;
use format::units::{CONTAINER_BYTES, Zone};
use serde::Serialize;

use super::confirm::confirm;
use crate::args::{Confirm, InitArgs, Making, StoreShape};
use crate::error::{CliError, PlaceError};
use crate::output;
use crate::shell::shell_path;
use crate::size::human_bytes;
use crate::store;

/// Largest capacity that is taken without being asked for.
const CAPACITY_BYTES_DEFAULT_MAX: u64 = 100 << 30;
/// Smallest capacity that a store can have.
const CAPACITY_BYTES_MIN: u64 = 64 << 20;
/// A journal gains nothing beyond this; the rest of its device stays unused.
const JOURNAL_BYTES_MAX: u64 = 256 << 20;
/// What file systems have in their root from the beginning.
const LOST_AND_FOUND: &str = "lost+found";
/// Files of somebody else that are named.
const NAMES_MAX: usize = 4;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct NewStore {
    #[serde(serialize_with = "output::path_as_text")]
    store: PathBuf,
    uuid: String,
    capacity_bytes: u64,
    /// What its files and devices take now.
    allocated_bytes: u64,
    data_zones: usize,
    tables_bytes: u64,
    journal_bytes: u64,
    chunk_bytes: u32,
    compression: String,
    fingerprint: &'static str,
    verify: bool,
    filter_bits_per_chunk: f64,
}

pub(super) fn run(args: &InitArgs) -> Result<(), CliError> {
    let Made { geometry, allocated_bytes } = make(&args.store, &args.shape, &args.making)?;
    let new = NewStore {
        store: store::absolute(&args.store),
        uuid: geometry.uuid.iter().map(|byte| format!("{byte:02x}")).collect(),
        capacity_bytes: geometry.capacity_bytes(),
        allocated_bytes,
        data_zones: geometry.data.len(),
        tables_bytes: geometry.tables_bytes,
        journal_bytes: geometry.journal_bytes,
        chunk_bytes: geometry.chunk_bytes,
        compression: args.shape.compression.to_string(),
        fingerprint: geometry.detection.kind.name(),
        verify: geometry.detection.verify,
        filter_bits_per_chunk: geometry.detection.filter.bits_per_chunk(),
    };
    if args.format.json { output::print_json(&new) } else { print_text(&new, &args.store) }
}

fn print_text(new: &NewStore, path: &Path) -> Result<(), CliError> {
    output::print_sentence(format_args!(
        "made a store at {}: {} for data, {} for tables, {} for the journal, chunks of {}, {}, {}",
        new.store.display(),
        human_bytes(new.capacity_bytes),
        human_bytes(new.tables_bytes),
        human_bytes(new.journal_bytes),
        human_bytes(u64::from(new.chunk_bytes)),
        new.compression,
        new.fingerprint,
    ))?;
    let full_bytes = new.capacity_bytes + new.tables_bytes + new.journal_bytes;
    output::print_sentence(takes(new.allocated_bytes, full_bytes))?;
    let word = shell_path(path);
    output::print_line(format_args!(
        "next:\n  tamis volume create {word} NAME --size 40G\n  tamis serve {word}"
    ))
}

/// What the files and devices of a new store take now, and what they will.
pub(super) fn takes(allocated_bytes: u64, full_bytes: u64) -> String {
    let now = human_bytes(allocated_bytes);
    if allocated_bytes >= full_bytes {
        return format!("it takes {now}, which it will not exceed");
    }
    format!(
        "it takes {now} now and, as data is written, up to {}; --preallocate takes all at once",
        human_bytes(full_bytes)
    )
}

/// A new store.
pub(super) struct Made {
    pub(super) geometry: Geometry,
    /// What its files and devices take now.
    pub(super) allocated_bytes: u64,
}

/// Makes a store of this shape at `path`.
pub(super) fn make(path: &Path, shape: &StoreShape, making: &Making) -> Result<Made, CliError> {
    if store::is_there(path) {
        return Err(CliError::StoreExists { store: path.to_owned() });
    }
    check_distinct(&shape.places())?;
    ask_about_others(path, making)?;
    let options = CreateOptions {
        capacity_bytes: data_sizes(path, shape)?,
        chunk_bytes: shape.chunk_size,
        compression: shape.compression,
        detection: shape.detection(),
        tables_bytes: device_bytes(shape.tables.as_deref())?,
        journal_bytes: device_bytes(shape.journal.as_deref())?
            .map(|bytes| bytes.min(JOURNAL_BYTES_MAX)),
        preallocate: making.preallocate,
        places: links(shape),
        uuid: None,
        bucket_seed: None,
    };
    let geometry = ::store::create(path, &options)?;
    let taken = |(zone, zone_bytes)| {
        let file = disk::zone_file(path, &ZoneName(zone).to_string());
        match fs::metadata(file) {
            Ok(found) if found.is_file() => disk::taken_bytes(&found),
            _ => zone_bytes,
        }
    };
    let allocated_bytes = geometry.zones().map(taken).sum();
    Ok(Made { geometry, allocated_bytes })
}

/// A store is made of several files: among those of somebody else it is made only if that is meant.
fn ask_about_others(path: &Path, making: &Making) -> Result<(), CliError> {
    let names = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut others: Vec<_> = names.filter(|name| name != LOST_AND_FOUND).collect();
    others.sort();
    if others.is_empty() {
        return Ok(());
    }
    let named: Vec<_> =
        others.iter().take(NAMES_MAX).map(|name| shell_path(name.as_ref())).collect();
    let more = match others.len().saturating_sub(NAMES_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    confirm(
        &Confirm { yes: making.yes },
        format_args!(
            "{} is not empty: make the files of a store beside {}{more}?",
            path.display(),
            named.join(", ")
        ),
    )
}

/// The capacity of each data zone: devices are used whole, files share what is asked for, in whole
/// containers, so that together they have no less.
fn data_sizes(path: &Path, shape: &StoreShape) -> Result<Vec<u64>, CliError> {
    let devices: Result<Vec<Option<u64>>, CliError> =
        shape.data.iter().map(|path| device_bytes(Some(path))).collect();
    let mut devices = devices?;
    if devices.is_empty() {
        devices.push(None);
    }
    let files = devices.iter().filter(|device| device.is_none()).count() as u64;
    let asked = match shape.capacity {
        Some(capacity) => capacity,
        None => default_capacity(shape.data.first().map_or(path, PathBuf::as_path))?,
    };
    let share_bytes = share_bytes(asked, files);
    Ok(devices.into_iter().map(|device| device.unwrap_or(share_bytes)).collect())
}

/// What each of some files gets of a capacity: whole containers, so that all of it is there. One
/// file gets it as it is.
pub(crate) fn share_bytes(capacity_bytes: u64, files: u64) -> u64 {
    let container_bytes = u64::from(CONTAINER_BYTES);
    match files {
        0 | 1 => capacity_bytes,
        _ => capacity_bytes.div_ceil(files).next_multiple_of(container_bytes),
    }
}

/// Half of the free space at `path`, and no more than 100 GiB.
fn default_capacity(path: &Path) -> Result<u64, CliError> {
    let free_bytes = disk::free_bytes(path)?;
    match free_bytes / 2 {
        half_bytes if half_bytes < CAPACITY_BYTES_MIN => {
            Err(PlaceError::NoRoomForStore { path: path.to_owned(), free_bytes }.into())
        }
        half_bytes => Ok(half_bytes.min(CAPACITY_BYTES_DEFAULT_MAX)),
    }
}

/// Checks that no two parts of a store are to be in one place.
pub(super) fn check_distinct(places: &[&Path]) -> Result<(), CliError> {
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path)).ok();
    for (at, path) in places.iter().enumerate() {
        if places[..at].iter().any(|other| whole(other) == whole(path)) {
            return Err(PlaceError::Twice { path: path.to_path_buf() }.into());
        }
    }
    Ok(())
}

/// The size of the block device at `path`, if it is one.
pub(super) fn device_bytes(path: Option<&Path>) -> Result<Option<u64>, CliError> {
    let is_device = |path: &Path| {
        fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
    };
    match path.filter(|path| is_device(path)) {
        Some(path) => Ok(Some(disk::free_bytes(path)?)),
        None => Ok(None),
    }
}

fn links(shape: &StoreShape) -> Vec<(Zone, PathBuf)> {
    let data = (0..).map(Zone::Data).zip(shape.data.iter().cloned());
    let tables = shape.tables.iter().map(|path| (Zone::Tables, path.clone()));
    let journal = shape.journal.iter().map(|path| (Zone::Journal, path.clone()));
    data.chain(tables).chain(journal).collect()
}
