//! `tamis plan`: what hardware a workload needs, what saturates first, and what it costs.
//!
//! Duplicates and compressibility are given, or estimated as `tamis estimate` does at chunks of
//! 4 KiB with lz4. The model is room `plan`'s.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use estimate::Options;
use format::units::{Codec, Compression};
use images::ImageError;
use plan::{Bill, Carried, Demand, Machine, Needs, Offload, Prices, Sample, StageCosts};
use serde::Serialize;

use super::estimate::check_paths;
use crate::args::PlanArgs;
use crate::error::place::unwritable;
use crate::error::{CliError, Unplannable};
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::{Progress, Unit};
use crate::size::human_bytes;
use crate::store::processors;
use crate::table::{Align, Table};

const CHUNK_BYTES: u32 = 4096;
const ESTIMATE_MEMORY_BYTES: u64 = 256 << 20;
const LZ4: Compression = Compression { codec: Codec::Lz4, level: 0 };
/// How long each stage is timed.
const STAGE: Duration = Duration::from_secs(2);

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    demand: Demand,
    machine: Machine,
    costs: StageCosts,
    /// Whether fingerprints and compression were timed here.
    measured: bool,
    prices: Prices,
    /// One for each stage that may be offloaded.
    plans: Vec<Plan>,
}

#[derive(Debug, Serialize)]
struct Plan {
    offload: Offload,
    needs: Needs,
    bill: Bill,
    carried: Vec<Carried>,
}

pub(super) fn run(args: &PlanArgs) -> Result<(), CliError> {
    let prices = match &args.prices {
        Some(path) => read_prices(path)?,
        None => Prices::default(),
    };
    let demand = demand(args)?;
    let costs = match args.measure {
        true => {
            let sample = Sample { compressed_share: demand.compressed_share, stage: STAGE };
            plan::measure(&sample, &StageCosts::CALIBRATED)
        }
        false => StageCosts::CALIBRATED,
    };
    let bound = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64);
    let machine = Machine {
        dram_bytes_per_second: bound(args.dram),
        data_write_bytes_per_second: bound(args.device_writes),
        data_read_bytes_per_second: bound(args.device_reads),
    };
    if let Some(path) = &args.plot {
        let svg = plan::plot(&demand, &costs, &machine)?;
        fs::write(path, svg).map_err(|source| unwritable(path, source))?;
    }
    let plans = Offload::ALL.map(|offload| Plan::of(&demand, &costs, &machine, &prices, offload));
    let report =
        Report { demand, machine, costs, measured: args.measure, prices, plans: plans.into() };
    match args.format.json {
        true => output::print_json(&report),
        false => output::print(text(&report)),
    }
}

impl Plan {
    fn of(
        demand: &Demand,
        costs: &StageCosts,
        machine: &Machine,
        prices: &Prices,
        offload: Offload,
    ) -> Self {
        let needs = plan::needs(demand, costs, offload);
        let carried =
            plan::CORES.map(|cores| plan::carried(demand, costs, machine, offload, cores));
        let bill = plan::bill(demand, &needs, prices, offload);
        Self { offload, needs, bill, carried: carried.into() }
    }
}

fn demand(args: &PlanArgs) -> Result<Demand, CliError> {
    let share = |percent: u8| f64::from(percent) / 100.0;
    let mut demand = Demand {
        bytes_per_second: args.throughput as f64,
        read_share: share(args.reads),
        duplicate_share: share(args.duplicates),
        compressed_share: share(args.compressed),
        request_bytes: args.request as f64,
        capacity_bytes: args.capacity as f64,
    };
    if !args.paths.is_empty() {
        (demand.duplicate_share, demand.compressed_share) = estimated_shares(&args.paths)?;
    }
    Ok(demand)
}

/// Of the data under `paths`, what is duplicate, and of the rest what compression leaves.
fn estimated_shares(paths: &[PathBuf]) -> Result<(f64, f64), CliError> {
    check_paths(paths)?;
    let interrupt = Interrupt::listen()?;
    let options = Options {
        chunk_bytes: vec![CHUNK_BYTES],
        compressions: vec![("lz4".to_owned(), LZ4)],
        memory_bytes: ESTIMATE_MEMORY_BYTES,
        threads: processors(),
    };
    let total_bytes = estimate::data_bytes(paths, || interrupt.check().is_ok());
    let mut progress = Progress::new("reading", Unit::Bytes, Some(total_bytes));
    let found = estimate::estimate(paths, &options, |done_bytes| {
        progress.set_done(done_bytes.min(total_bytes));
        if interrupt.check().is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    progress.finish();
    // Broken off is what only a signal does.
    interrupt.check()?;
    let size = found.as_ref().and_then(|found| found.sizes.first());
    let codec = size.and_then(|size| size.codecs.first());
    let (Some(size), Some(codec)) = (size, codec) else {
        return Err(Unplannable::NoData.into());
    };
    if size.data_chunks == 0 {
        return Err(Unplannable::NoData.into());
    }
    let (unique, data) = (size.unique_bytes.value, size.data_bytes as f64);
    let compressed = codec.stored_bytes.value / unique.max(1.0);
    Ok(((1.0 - unique / data).clamp(0.0, 1.0), compressed.clamp(0.0, 1.0)))
}

fn read_prices(path: &Path) -> Result<Prices, CliError> {
    let text = fs::read_to_string(path)
        .map_err(|source| ImageError::Io { path: path.to_owned(), source })?;
    let unusable = |reason: String| Unplannable::NoPrices { path: path.to_owned(), reason };
    let prices: Prices =
        serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))?;
    match prices.are_payable() {
        true => Ok(prices),
        false => Err(unusable("a price is below 0".to_owned()).into()),
    }
}

fn text(report: &Report) -> String {
    let mut text = summary(report);
    let mut needs = Table::with_heading([
        ("OFFLOADED", Align::Left),
        ("CORES", Align::Right),
        ("DRAM", Align::Right),
        ("CORES $", Align::Right),
        ("ACCEL. $", Align::Right),
        ("ALL $", Align::Right),
        ("SAVED", Align::Right),
    ]);
    let dollars = |dollars: f64| format!("{dollars:.0}");
    for plan in &report.plans {
        needs.row([
            plan.offload.name().to_owned(),
            format!("{:.1}", plan.needs.cores),
            per_second(plan.needs.dram_bytes_per_second),
            dollars(plan.bill.cores_dollars),
            dollars(plan.bill.accelerators_dollars),
            dollars(plan.bill.with_dollars),
            format!("{:.0}%", plan.bill.saved_percent),
        ]);
    }
    text += &format!("\n{needs}\n");
    let mut carried = Table::with_heading([
        ("CORES", Align::Right),
        ("NOTHING OFFLOADED", Align::Right),
        ("SATURATED", Align::Left),
        ("ALL OFFLOADED", Align::Right),
        ("SATURATED", Align::Left),
    ]);
    let (Some(here), Some(elsewhere)) = (report.plans.first(), report.plans.last()) else {
        return text;
    };
    for (here, elsewhere) in here.carried.iter().zip(&elsewhere.carried) {
        carried.row([
            here.cores.to_string(),
            per_second(here.bytes_per_second),
            here.bottleneck.name().to_owned(),
            per_second(elsewhere.bytes_per_second),
            elsewhere.bottleneck.name().to_owned(),
        ]);
    }
    text + &format!("{carried}")
}

/// What does not depend on what is offloaded.
fn summary(report: &Report) -> String {
    let Some(Plan { needs, bill, .. }) = report.plans.first() else { return String::new() };
    let bytes = |bytes: f64| human_bytes(bytes as u64);
    let rows = [
        ("data devices", bytes(needs.data_bytes), bill.data_dollars),
        ("tables", bytes(needs.tables_bytes), bill.tables_dollars),
        ("memory", bytes(needs.memory_bytes), bill.memory_dollars),
        ("without reduction", bytes(report.demand.capacity_bytes), bill.without_dollars),
    ];
    let mut table = Table::plain([Align::Left, Align::Right, Align::Right]);
    for (name, size, dollars) in rows {
        table.row([name.to_owned(), size, format!("{dollars:.0} $")]);
    }
    let rates = [
        ("written to data devices", needs.data_write_bytes_per_second),
        ("read from data devices", needs.data_read_bytes_per_second),
        ("tables' device", needs.tables_bytes_per_second),
    ];
    for (name, rate) in rates {
        table.row([name.to_owned(), per_second(rate), String::new()]);
    }
    format!("{table}")
}

fn per_second(bytes: f64) -> String {
    format!("{}/s", human_bytes(bytes as u64))
}
