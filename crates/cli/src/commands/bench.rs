//! `tamis bench detect`: every way to find a duplicate, side by side over the user's own data.
//!
//! ```text
//! estimate: chunks into memory, ways in memory  ──┐
//! stores.rs: the same chunks into a store each  ──┴─> report.rs (tables), plots.rs (SVG)
//!   ├─ latency.rs
//!   └─ sweep.rs: stores that read ahead of comparisons in other ways
//! ```

mod latency;
mod plots;
mod report;
mod stores;
mod sweep;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use estimate::{CHUNK_BYTES, DataChunks, DetectedBy};

use super::scratch::ScratchStore;
use crate::args::{BenchCommand, BenchDetectArgs};
use crate::error::CliError;
use crate::error::place::unwritable;
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::{Progress, Unit};
use report::Report;
use stores::{InStore, Way};
use sweep::{Sweep, Swept};

pub(super) fn run(command: &BenchCommand) -> Result<(), CliError> {
    match command {
        BenchCommand::Detect(args) => detect(args),
    }
}

fn detect(args: &BenchDetectArgs) -> Result<(), CliError> {
    super::estimate::check_paths(&args.paths)?;
    if !args.in_memory {
        ScratchStore::check_place(&args.dir, stores::COMMAND)?;
    }
    let interrupt = Interrupt::listen()?;
    // Broken off is what only a signal does.
    let Some(mut read) = read(args, &interrupt) else { return interrupt.check() };
    if read.files == 0
        && let Some(only) = read.unreadable.named.pop()
    {
        return Err(only.error.into());
    }
    if args.sweep {
        sweep(args, read.chunks(), &interrupt)?;
    } else {
        let Some(kinds) = in_memory(read.chunks(), &interrupt) else { return interrupt.check() };
        compare(args, &read, kinds, &interrupt)?;
    }
    for file in &read.unreadable.named {
        output::say(format_args!("not read: {}", file.error));
    }
    match read.unreadable.count {
        0 => Ok(()),
        count => Err(CliError::NotAllRead { count, in_part: read.unreadable.in_part }),
    }
}

/// Shows all ways, in memory and in stores.
fn compare(
    args: &BenchDetectArgs,
    read: &DataChunks,
    kinds: Vec<DetectedBy>,
    interrupt: &Interrupt,
) -> Result<(), CliError> {
    let stores = match args.in_memory {
        true => Vec::new(),
        false => in_stores(args, read.chunks(), Way::all(), interrupt)?,
    };
    let report = Report {
        files: read.files,
        data_chunks: read.chunks().len() as u64,
        zero_chunks: read.zero_chunks,
        whole: read.whole,
        unreadable_files: read.unreadable.count,
        kinds,
        stores,
    };
    if let Some(folder) = &args.plots {
        write_plots(&report, folder)?;
    }
    if args.format.json { output::print_json(&report) } else { output::print(report.text()) }
}

/// Shows one way that reads ahead in many.
fn sweep(
    args: &BenchDetectArgs,
    chunks: &[[u8; CHUNK_BYTES]],
    interrupt: &Interrupt,
) -> Result<(), CliError> {
    let stores = in_stores(args, chunks, sweep::ways(), interrupt)?;
    let stores = sweep::ways().zip(stores).map(|(way, store)| Swept::new(way, store)).collect();
    let sweep = Sweep { data_chunks: chunks.len() as u64, stores };
    if args.format.json { output::print_json(&sweep) } else { output::print(sweep.text()) }
}

fn read(args: &BenchDetectArgs, interrupt: &Interrupt) -> Option<DataChunks> {
    let total_bytes = estimate::data_bytes(&args.paths, || interrupt.check().is_ok());
    let mut progress = Progress::new("reading", Unit::Bytes, Some(total_bytes));
    DataChunks::read(&args.paths, args.memory, |done_bytes| {
        progress.set_done(done_bytes);
        go_on(interrupt)
    })
}

fn in_memory(chunks: &[[u8; CHUNK_BYTES]], interrupt: &Interrupt) -> Option<Vec<DetectedBy>> {
    let total = (estimate::WAYS * chunks.len()) as u64;
    let mut progress = Progress::new("in memory", Unit::Steps, Some(total));
    estimate::detect(chunks, |chunks| {
        progress.advance(chunks);
        go_on(interrupt)
    })
}

fn in_stores(
    args: &BenchDetectArgs,
    chunks: &[[u8; CHUNK_BYTES]],
    ways: impl Iterator<Item = Way> + Clone,
    interrupt: &Interrupt,
) -> Result<Vec<InStore>, CliError> {
    if chunks.is_empty() {
        return Ok(Vec::new());
    }
    let total = ((1 + ways.clone().count()) * chunks.len()) as u64;
    let mut progress = Progress::new("in stores", Unit::Steps, Some(total));
    let mut measure = |way: Way| {
        way.measure(chunks, &args.dir, args.writes, |chunks| {
            progress.advance(chunks);
            interrupt.check()
        })
    };
    // The first store is slower whatever its way is: its files get blocks of the disk that the
    // others get again, and this program gets its memory. So the first way has two, and the first
    // of them does not count.
    ways.clone().take(1).try_for_each(|way| measure(way).map(drop))?;
    ways.map(&mut measure).collect()
}

fn go_on(interrupt: &Interrupt) -> ControlFlow<()> {
    if interrupt.check().is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

fn write_plots(report: &Report, folder: &Path) -> Result<(), CliError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| unwritable(&path, source)
    };
    let plots = report.plots()?;
    fs::create_dir_all(folder).map_err(failed(folder))?;
    for (name, svg) in plots {
        let path = folder.join(name);
        fs::write(&path, svg).map_err(failed(&path))?;
    }
    Ok(())
}
