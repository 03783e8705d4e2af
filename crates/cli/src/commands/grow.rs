//! `tamis grow`: more room in a store, also in one that is being served.
//!
//! Files become larger first, then the store is told; whatever fails in between leaves it as it
//! was. With a store that is closed all is done here, under its lock from the first look to the
//! last write. One that is served is made larger by its server, which holds the lock: it is asked
//! over the control socket, and does the same ([`grow_served`]).

use admin::Control;
use std::fs;
use std::path::{Path, PathBuf};

use admin::{Grown, GrowthWish};
use disk::{FileGrowth, ZoneName};
use engine::{Client, GrowOptions, Growing, PlanError, control, plan_growth};
use format::superblock::Geometry;
use format::units::Zone;
use serde::Serialize;

use super::init::{check_distinct, device_bytes, share_bytes};
use crate::args::GrowArgs;
use crate::control as served;
use crate::error::{CliError, PlaceError};
use crate::output;
use crate::size::human_bytes;
use crate::store;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(serialize_with = "output::path_as_text")]
    store: PathBuf,
    #[serde(flatten)]
    grown: Grown,
}

pub(super) fn run(args: &GrowArgs) -> Result<(), CliError> {
    let data: Result<Vec<_>, _> = args.data.iter().map(std::path::absolute).collect();
    let data = data
        .map_err(|source| CliError::System { action: "a path cannot be made absolute", source })?;
    check_distinct(&data.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    let wish = GrowthWish { capacity_bytes: args.capacity, data };
    let grown = grow(&args.store, wish)?;
    let report = Report { store: store::absolute(&args.store), grown };
    if args.format.json { output::print_json(&report) } else { print_text(&report) }
}

/// Makes the store at `path` larger, served or not.
pub(super) fn grow(path: &Path, wish: GrowthWish) -> Result<Grown, CliError> {
    match served::connect(path)? {
        Some(mut server) => Ok(server.ask(wish)?),
        None => grow_closed(path, &wish),
    }
}

fn print_text(Report { store, grown }: &Report) -> Result<(), CliError> {
    output::print_sentence(format_args!(
        "{} has room for {} of data now, {} more, and {} for tables",
        store.display(),
        human_bytes(grown.capacity_bytes),
        human_bytes(grown.capacity_bytes - grown.capacity_bytes_before),
        human_bytes(grown.tables_bytes),
    ))
}

/// Checks that what is to be added is no part of the store. A file that a growth has made which was
/// not completed is none yet.
fn check_places(store: &Path, data: &[PathBuf], geometry: &Geometry) -> Result<(), CliError> {
    let zones = geometry.data.len() as u16;
    let is_part = |entry: &fs::DirEntry, there: &Path| {
        let zone = ZoneName::of_file(&entry.file_name().to_string_lossy());
        let is_of_store = match zone {
            Some(ZoneName(Zone::Data(number))) => number < zones,
            zone => zone.is_some(),
        };
        is_of_store && entry.path().canonicalize().is_ok_and(|zone| zone == there)
    };
    for path in data {
        let Ok(there) = path.canonicalize() else { continue };
        let mut entries = fs::read_dir(store).into_iter().flatten().flatten();
        if entries.any(|entry| is_part(&entry, &there)) {
            let (path, store) = (path.clone(), store.to_owned());
            return Err(PlaceError::PartOfStore { path, store }.into());
        }
    }
    Ok(())
}

fn grow_closed(path: &Path, wish: &GrowthWish) -> Result<Grown, CliError> {
    let files = store::open_files(path)?;
    let growing = Growing::begin(files.disk)?;
    let before = growing.geometry().clone();
    let grown = plan(&before, &options(path, wish, &before)?, wish)?;
    disk::grow_store_files(path, &growth(&before, &grown, &wish.data))?;
    growing.finish(&grown)?;
    Ok(outcome(&before, &grown))
}

/// Makes the store at `path`, which `client` serves, larger.
pub(super) fn grow_served(
    path: &Path,
    client: &Client,
    wish: &GrowthWish,
) -> Result<Grown, CliError> {
    let before = client.geometry()?;
    let options = options(path, wish, &before)?;
    let planned = plan(&before, &options, wish)?;
    disk::grow_store_files(path, &growth(&before, &planned, &wish.data))?;
    let numbers = before.data.len() as u16..planned.data.len() as u16;
    let zones = disk::open_further_files(path, numbers).map_err(CliError::OpenFiles)?;
    let grown = client.ask(control::Grow { options, zones })?;
    Ok(outcome(&before, &grown))
}

/// What is refused is told by what was asked for, not by what that would come to.
fn plan(
    before: &Geometry,
    options: &GrowOptions,
    wish: &GrowthWish,
) -> Result<Geometry, PlanError> {
    plan_growth(before, options).map_err(|error| match (error, wish.capacity_bytes) {
        (PlanError::NotLarger { present_bytes, .. }, Some(capacity_bytes)) => {
            PlanError::NotLarger { capacity_bytes, present_bytes }
        }
        (error, _) => error,
    })
}

fn outcome(before: &Geometry, grown: &Geometry) -> Grown {
    Grown {
        capacity_bytes: grown.capacity_bytes(),
        capacity_bytes_before: before.capacity_bytes(),
        data_zones: grown.data.len(),
        tables_bytes: grown.tables_bytes,
    }
}

/// The lengths that the data zones are to have: devices are used whole, files share what is asked
/// for beside them.
fn options(path: &Path, wish: &GrowthWish, geometry: &Geometry) -> Result<GrowOptions, CliError> {
    check_places(path, &wish.data, geometry)?;
    let present_bytes = geometry.capacity_bytes();
    let zones = geometry.data.len();
    let last = last_zone(geometry);
    let last_bytes = geometry.zone_bytes(last);
    let is_device = disk::zone_is_device(path, last, zones)?;
    let device_growth_bytes = match is_device {
        true => disk::zone_length_bytes(path, last, zones)?.saturating_sub(last_bytes),
        false => 0,
    };

    let devices: Result<Vec<Option<u64>>, CliError> =
        wish.data.iter().map(|path| device_bytes(Some(path))).collect();
    let devices = devices?;
    let added_files = devices.iter().filter(|device| device.is_none()).count() as u64;
    let lengthens = wish.data.is_empty() && !is_device;
    let asked_bytes = match wish.capacity_bytes {
        Some(capacity) => capacity.saturating_sub(present_bytes),
        None if lengthens || added_files > 0 => {
            return Err(CliError::GrowToWhat { present_bytes });
        }
        None => 0,
    };
    let beside_bytes = device_growth_bytes + devices.iter().flatten().sum::<u64>();
    let share_bytes = share_bytes(asked_bytes.saturating_sub(beside_bytes), added_files);
    let tables_fixed = disk::zone_is_device(path, Zone::Tables, zones)?;
    let tables_bytes = match tables_fixed {
        true => Some(disk::zone_length_bytes(path, Zone::Tables, zones)?),
        false => None,
    };
    Ok(GrowOptions {
        last_zone_bytes: Some(
            last_bytes + if lengthens { asked_bytes } else { device_growth_bytes },
        ),
        added_bytes: devices.into_iter().map(|device| device.unwrap_or(share_bytes)).collect(),
        tables_bytes_max: tables_bytes,
    })
}

fn last_zone(geometry: &Geometry) -> Zone {
    Zone::Data((geometry.data.len() - 1) as u16)
}

/// What that means for the files.
fn growth(before: &Geometry, grown: &Geometry, paths: &[PathBuf]) -> FileGrowth {
    let data_zones = before.data.len();
    let longer = [last_zone(before), Zone::Tables].map(|zone| (zone, grown.zone_bytes(zone)));
    let added = (data_zones..grown.data.len()).map(|zone| Zone::Data(zone as u16)).zip(paths);
    FileGrowth {
        uuid: before.uuid,
        data_zones,
        longer: longer.into(),
        added: added.map(|(zone, path)| (zone, grown.zone_bytes(zone), path.clone())).collect(),
    }
}
