//! `tamis bench detect`: every way to find a duplicate, side by side over the user's own data.

use std::ops::ControlFlow;

use estimate::{Detected, DetectedBy};
use serde::Serialize;

use crate::args::{BenchCommand, BenchDetectArgs};
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::{Progress, Unit};
use crate::size::{human_bytes, human_count};
use crate::table::{Align, Table};

const CHUNK_BYTES: f64 = 4096.0;
const MIB: f64 = (1 << 20) as f64;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    files: u64,
    data_chunks: u64,
    zero_chunks: u64,
    /// Whether all data had room in --memory.
    whole: bool,
    unreadable_files: u64,
    kinds: Vec<DetectedBy>,
}

pub(super) fn run(command: &BenchCommand) -> Result<(), CliError> {
    match command {
        BenchCommand::Detect(args) => detect(args),
    }
}

fn detect(args: &BenchDetectArgs) -> Result<(), CliError> {
    super::estimate::check_paths(&args.paths)?;
    let interrupt = Interrupt::listen()?;
    let total_bytes = estimate::size_bytes(&args.paths, || interrupt.check().is_ok());
    let mut progress = Progress::new("reading", Unit::Bytes, Some(total_bytes));
    let found = estimate::detect(&args.paths, args.memory, |done_bytes| {
        progress.set_done(done_bytes);
        if interrupt.check().is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    progress.finish();
    // Broken off is what only a signal does.
    let Some(found) = found else { return interrupt.check() };
    let Detected { files, zero_chunks, data_chunks, whole, mut unreadable, kinds } = found;
    if files == 0
        && let Some(only) = unreadable.named.pop()
    {
        return Err(only.error.into());
    }
    let unreadable_files = unreadable.count;
    let report = Report { files, data_chunks, zero_chunks, whole, unreadable_files, kinds };
    if args.format.json {
        output::print_json(&report)?
    } else {
        output::print(text(&report))?
    }
    for file in &unreadable.named {
        output::say(format_args!("not read: {}", file.error));
    }
    match unreadable_files {
        0 => Ok(()),
        count => Err(CliError::NotAllRead { count }),
    }
}

fn text(report: &Report) -> String {
    let mut table = Table::with_heading([
        ("KIND", Align::Left),
        ("DUPLICATES", Align::Right),
        ("COLLISIONS", Align::Right),
        ("FINGERPRINT", Align::Right),
        ("LOOK-UP", Align::Right),
        ("COMPARE", Align::Right),
        ("TOTAL", Align::Right),
        ("A CORE", Align::Right),
    ]);
    for by in &report.kinds {
        let ns = |ns: f64| format!("{ns:.0} ns");
        let rate = CHUNK_BYTES / by.total_ns.max(1.0) * 1e9 / MIB;
        table.row([
            by.kind.to_owned(),
            human_count(by.duplicates),
            human_count(by.collisions),
            ns(by.fingerprint_ns),
            ns(by.lookup_ns),
            if by.strong { "believed".to_owned() } else { ns(by.compare_ns) },
            ns(by.total_ns),
            format!("{rate:.0} MiB/s"),
        ]);
    }
    let part = if report.whole { "" } else { "; what is behind did not fit into --memory" };
    format!(
        "{} of data in chunks of 4 KiB, {} of zeros{part}\n\n{table}\n\
         times are of one thread, per chunk that is not zeros; collisions are chunks whose\n\
         fingerprint was that of other bytes\n",
        human_bytes(report.data_chunks << 12),
        human_bytes(report.zero_chunks << 12),
    )
}
