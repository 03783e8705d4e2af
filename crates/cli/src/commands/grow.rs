//! `tamis grow`: more room in a store that is not being served.
//!
//! The lock is held from the first look to the last write. Files become larger first, then the
//! store is told; whatever fails in between leaves it as it was.

use std::path::PathBuf;

use disk::FileGrowth;
use engine::{GrowOptions, Growing, plan_growth};
use format::superblock::Geometry;
use format::units::Zone;
use serde::Serialize;

use super::init::device_bytes;
use crate::args::GrowArgs;
use crate::error::CliError;
use crate::output;
use crate::size::human_bytes;
use crate::store;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Grown {
    store: PathBuf,
    capacity_bytes: u64,
    capacity_bytes_before: u64,
    data_zones: usize,
    tables_bytes: u64,
}

pub(super) fn run(args: &GrowArgs) -> Result<(), CliError> {
    let path = &args.store;
    let files = store::open_files(path, &store::new_doorbell()?)?;
    let growing = Growing::begin(files.disk)?;
    let before = growing.geometry().clone();
    let grown = plan_growth(&before, &options(args, &growing)?)?;
    disk::grow_store_files(path, &growth(&before, &grown, &args.data))?;
    growing.finish(&grown)?;
    let result = Grown {
        store: store::absolute(path),
        capacity_bytes: grown.capacity_bytes(),
        capacity_bytes_before: before.capacity_bytes(),
        data_zones: grown.data.len(),
        tables_bytes: grown.tables_bytes,
    };
    if args.format.json { output::print_json(&result) } else { print_text(&result) }
}

fn print_text(grown: &Grown) -> Result<(), CliError> {
    output::print_line(format_args!(
        "{} has room for {} of data now, {} more, and {} for tables",
        grown.store.display(),
        human_bytes(grown.capacity_bytes),
        human_bytes(grown.capacity_bytes - grown.capacity_bytes_before),
        human_bytes(grown.tables_bytes),
    ))
}

/// The lengths that the data zones are to have: devices are used whole, files share what is asked
/// for beside them.
fn options(args: &GrowArgs, growing: &Growing) -> Result<GrowOptions, CliError> {
    let geometry = growing.geometry();
    let present_bytes = geometry.capacity_bytes();
    let zones = geometry.data.len();
    let last = last_zone(geometry);
    let last_bytes = geometry.zone_bytes(last);
    let is_device = disk::zone_is_device(&args.store, last, zones)?;
    let device_growth_bytes =
        if is_device { growing.zone_bytes(last).saturating_sub(last_bytes) } else { 0 };

    let devices: Result<Vec<Option<u64>>, CliError> =
        args.data.iter().map(|path| device_bytes(Some(path))).collect();
    let devices = devices?;
    let added_files = devices.iter().filter(|device| device.is_none()).count() as u64;
    let lengthens = args.data.is_empty() && !is_device;
    let asked_bytes = match args.capacity {
        Some(capacity) => capacity.saturating_sub(present_bytes),
        None if lengthens || added_files > 0 => {
            return Err(CliError::GrowToWhat { present_bytes });
        }
        None => 0,
    };
    let beside_bytes = device_growth_bytes + devices.iter().flatten().sum::<u64>();
    let share_bytes = asked_bytes.saturating_sub(beside_bytes) / added_files.max(1);
    let tables_fixed = disk::zone_is_device(&args.store, Zone::Tables, zones)?;
    Ok(GrowOptions {
        last_zone_bytes: Some(
            last_bytes + if lengthens { asked_bytes } else { device_growth_bytes },
        ),
        added_bytes: devices.into_iter().map(|device| device.unwrap_or(share_bytes)).collect(),
        tables_bytes_max: tables_fixed.then(|| growing.zone_bytes(Zone::Tables)),
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
        data_zones,
        longer: longer.into(),
        added: added.map(|(zone, path)| (zone, grown.zone_bytes(zone), path.clone())).collect(),
    }
}
