//! `tamis data`: the files and disks that hold a store's data.
//!
//! ```text
//! replace: grow by NEW ──┐
//! remove: ───────────────┴─ step ── pace ── step ... until nothing is left ── removed ── file cut
//!                             └ an error, or a signal: the file is used again
//! ```
//!
//! The engine makes one step at a time, here or in the server of the store, and nothing durable
//! says how far it has come: what has moved has moved, and the same command goes on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use admin::{DataRemoved, GrowthWish, RemoveData};
use disk::ZoneName;
use engine::{EvacuateZone, KeepZone, ListZones, Zone, ZoneInfo, ZoneState};
use serde::Serialize;

use super::grow;
use super::init::device_bytes;
use crate::args::{DataCommand, DataListArgs, DataRemoveArgs, DataReplaceArgs, Rate};
use crate::control::Store;
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output;
use crate::pace::Pace;
use crate::progress::{Progress, Unit, human_duration};
use crate::size::{human_bytes, human_count};
use crate::store;
use crate::table::{Align, Table};

const CONTAINER_BYTES: u64 = format::CONTAINER_BYTES as u64;

/// What `--json` prints of all.
#[derive(Serialize)]
struct DataFiles {
    data_files: Vec<DataFile>,
}

#[derive(Serialize)]
struct DataFile {
    name: String,
    #[serde(serialize_with = "output::path_as_text")]
    path: PathBuf,
    state: &'static str,
    capacity_bytes: u64,
    used_bytes: u64,
    stored_bytes: u64,
}

/// What `--json` prints of a removal.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(serialize_with = "output::path_as_text")]
    store: PathBuf,
    name: String,
    containers_collected: u64,
    read_bytes: u64,
    moved_bytes: u64,
    capacity_bytes: u64,
    capacity_bytes_before: u64,
    seconds: f64,
}

pub(super) fn run(command: &DataCommand) -> Result<(), CliError> {
    match command {
        DataCommand::List(args) => list(args),
        DataCommand::Remove(args) => remove(args),
        DataCommand::Replace(args) => replace(args),
    }
}

fn list(args: &DataListArgs) -> Result<(), CliError> {
    store::check_there(&args.store)?;
    let zones = Store::with(&args.store, |store| store.ask(ListZones {}))?;
    let data_files: Vec<_> = zones.iter().map(|zone| data_file(&args.store, zone)).collect();
    if args.format.json {
        return output::print_json(&DataFiles { data_files });
    }
    let mut table = Table::with_heading([
        ("NAME", Align::Left),
        ("STATE", Align::Left),
        ("ROOM", Align::Right),
        ("USED", Align::Right),
        ("STORED", Align::Right),
        ("PATH", Align::Left),
    ]);
    for file in data_files {
        let [room, used, stored] =
            [file.capacity_bytes, file.used_bytes, file.stored_bytes].map(human_bytes);
        let path = file.path.display().to_string();
        table.row([file.name, file.state.replace('_', " "), room, used, stored, path]);
    }
    output::print_table(&table)
}

fn data_file(store: &Path, zone: &ZoneInfo) -> DataFile {
    let path = path_of(store, zone.zone);
    DataFile {
        name: name_of(zone.zone),
        path: path.read_link().map_or(path, |target| store.join(target)),
        state: match zone.state {
            ZoneState::InUse => "in_use",
            ZoneState::Leaving => "leaving",
            ZoneState::Gone => "removed",
        },
        capacity_bytes: if zone.state == ZoneState::Gone { 0 } else { zone.capacity_bytes },
        used_bytes: zone.used_bytes,
        stored_bytes: zone.live_bytes,
    }
}

fn name_of(zone: u16) -> String {
    ZoneName(Zone::Data(zone)).to_string()
}

fn path_of(store: &Path, zone: u16) -> PathBuf {
    store.join(store::zone_file_name(store, &name_of(zone)))
}

/// The data file that is called so, or lies there.
fn find(store: &Path, zones: &[ZoneInfo], file: &Path) -> Option<ZoneInfo> {
    let named = file.to_str().and_then(ZoneName::of_file);
    let there = file.canonicalize().ok();
    let is_meant = |zone: &&ZoneInfo| match named {
        Some(ZoneName(named)) => named == Zone::Data(zone.zone),
        None => there.is_some() && path_of(store, zone.zone).canonicalize().ok() == there,
    };
    zones.iter().find(is_meant).copied()
}

fn find_old(store: &Path, zones: &[ZoneInfo], file: &Path) -> Result<ZoneInfo, CliError> {
    find(store, zones, file)
        .ok_or_else(|| CliError::NoDataFile { store: store.to_owned(), file: file.to_owned() })
}

fn replace(args: &DataReplaceArgs) -> Result<(), CliError> {
    store::check_there(&args.store)?;
    let zones = Store::with(&args.store, |store| store.ask(ListZones {}))?;
    let old = find_old(&args.store, &zones, &args.old)?;
    // By its number: NEW may take the place that a path leads to.
    let file = PathBuf::from(name_of(old.zone));
    if old.state != ZoneState::Gone && find(&args.store, &zones, &args.new).is_none() {
        let new = std::path::absolute(&args.new).map_err(|source| CliError::System {
            action: "a path cannot be made absolute",
            source,
        })?;
        let there = zones.iter().filter(|zone| zone.state != ZoneState::Gone);
        let present_bytes: u64 = there.map(|zone| zone.capacity_bytes).sum();
        let capacity_bytes = match device_bytes(Some(&new))? {
            Some(_) => None,
            None => Some(present_bytes + old.capacity_bytes),
        };
        grow::grow(&args.store, GrowthWish { capacity_bytes, data: vec![new] })?;
    }
    let DataReplaceArgs { store, rate, format, .. } = args;
    let (store, rate) = (store.clone(), *rate);
    remove(&DataRemoveArgs { store, file, rate, format: *format })
}

fn remove(args: &DataRemoveArgs) -> Result<(), CliError> {
    store::check_there(&args.store)?;
    let interrupt = Interrupt::listen()?;
    let report = Store::with(&args.store, |store| {
        let zones = store.ask(ListZones {})?;
        let zone = find_old(&args.store, &zones, &args.file)?;
        remove_from(args, store, &zone, &interrupt)
    })?;
    if args.format.json {
        return output::print_json(&report);
    }
    output::print_sentence(format_args!(
        "{} is removed from {} in {}: {} containers emptied, {} moved; the store has room for {} \
         of data now ({} before)",
        report.name,
        report.store.display(),
        human_duration(Duration::from_secs_f64(report.seconds.max(0.0))),
        human_count(report.containers_collected),
        human_bytes(report.moved_bytes),
        human_bytes(report.capacity_bytes),
        human_bytes(report.capacity_bytes_before),
    ))
}

fn remove_from(
    args: &DataRemoveArgs,
    store: &Store,
    zone: &ZoneInfo,
    interrupt: &Interrupt,
) -> Result<Report, CliError> {
    let mut report = Report {
        store: store::absolute(&args.store),
        name: name_of(zone.zone),
        containers_collected: 0,
        read_bytes: 0,
        moved_bytes: 0,
        capacity_bytes: 0,
        capacity_bytes_before: 0,
        seconds: 0.0,
    };
    let mut progress = Progress::new("emptying", Unit::Bytes, Some(zone.used_bytes));
    let emptied = match zone.state {
        // Killed before the file was cut.
        ZoneState::Gone => Ok(()),
        _ => empty(args.rate, store, zone.zone, interrupt, &mut progress, &mut report),
    };
    match emptied.and_then(|()| store.ask(RemoveData { zone: zone.zone })) {
        Ok(DataRemoved { capacity_bytes, capacity_bytes_before, .. }) => {
            report.capacity_bytes = capacity_bytes;
            report.capacity_bytes_before = capacity_bytes_before;
            report.seconds = progress.finish().as_secs_f64();
            Ok(report)
        }
        Err(error) => {
            // Why it ended is what is told: the zone is used again after the next opening at the
            // latest.
            let _ = store.ask(KeepZone { zone: zone.zone });
            Err(error)
        }
    }
}

/// Empties the data zone, container by container.
fn empty(
    rate: Option<Rate>,
    store: &Store,
    zone: u16,
    interrupt: &Interrupt,
    progress: &mut Progress,
    report: &mut Report,
) -> Result<(), CliError> {
    let mut pace = Pace::new(rate, store.is_served());
    loop {
        pace.wait(interrupt)?;
        let step = store.ask(EvacuateZone { zone })?;
        let Some(collected) = step.collected else {
            return match step.containers_used {
                0 => Ok(()),
                containers => Err(CliError::DataFileDamaged { name: name_of(zone), containers }),
            };
        };
        report.containers_collected += u64::from(collected.freed);
        report.read_bytes += collected.used_bytes;
        report.moved_bytes += collected.moved_bytes;
        progress.set_total(report.read_bytes + step.containers_used * CONTAINER_BYTES);
        progress.set_done(report.read_bytes);
        progress.note_now_and_then(|| Some(format!("{} moved", human_bytes(report.moved_bytes))));
        pace.spend(collected.used_bytes);
    }
}
