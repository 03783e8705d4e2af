//! `tamis replay`: a store is driven by what clients did, or might do, and judged by it.
//!
//! ```text
//! source.rs (requests) -> driver.rs -> engine        target.rs (the store, new or there already)
//!     request_buffer.rs  ──┘   └── ../in_flight.rs   truth.rs (what must come back)
//! figures.rs (what was measured) -> report.rs (for people)
//! ```

mod driver;
mod figures;
mod report;
mod request_buffer;
mod source;
mod target;
mod truth;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use engine::VOLUME_BYTES_MAX;
use serde::Serialize;
use threads::cpu_times_ns;
use traces::{BLOCK_BYTES, Content, Request, write_line};

use crate::args::ReplayArgs;
use crate::error::CliError;
use crate::error::place::unwritable;
use crate::interrupt::Interrupt;
use crate::opener::opener;
use crate::output;
use crate::progress::{Progress, Unit};
use crate::store::{OpenStore, engine_options};
use driver::Driver;
use figures::{Duplicates, Measured, Run};
use request_buffer::RequestBuffer;
use source::Source;
use target::Target;
use truth::Truth;

const CHUNK_BYTES_DEFAULT: u32 = 4096;
/// The request buffer of FIDR's Figure 3.
const REQUEST_BUFFER_BYTES: u64 = 4 << 20;
/// Requests between two looks at signals and at the bar.
const REQUESTS_PER_LOOK: u64 = 256;

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    source: String,
    compressible_percent: u8,
    runs: Vec<Run>,
}

pub(super) fn run(args: &ReplayArgs) -> Result<(), CliError> {
    let interrupt = Interrupt::listen()?;
    if let Some(path) = &args.to {
        return match write_trace(args, path, &interrupt) {
            // As with results: a reader that stopped listening is no failure of ours.
            Err(CliError::OutputFailed { source, .. })
                if source.kind() == io::ErrorKind::BrokenPipe =>
            {
                Ok(())
            }
            written => written,
        };
    }
    let report = replay(args, &interrupt)?;
    if args.format.json {
        output::print_json(&report)?;
    } else {
        match report.runs.as_slice() {
            [run] => output::print(report::run_text(&report.source, run))?,
            runs => output::print(report::runs_text(&report.source, runs))?,
        }
    }
    report.runs.iter().try_for_each(judge)
}

/// Fails when something came back that was not written, or a duplicate was not found.
fn judge(run: &Run) -> Result<(), CliError> {
    for compared in [Some(&run.compared), run.verified.as_ref()].into_iter().flatten() {
        if let Some(first_bytes) = compared.first_wrong_bytes {
            return Err(CliError::WrongBytes { wrong_bytes: compared.wrong_bytes, first_bytes });
        }
    }
    let Duplicates { unique_stored: stored, unique_written, store_is_new, .. } = run.duplicates;
    match unique_written {
        // What other volumes hold is not known here.
        Some(written) if store_is_new && written != stored => {
            Err(CliError::NotExact { stored, written })
        }
        _ => Ok(()),
    }
}

fn replay(args: &ReplayArgs, interrupt: &Interrupt) -> Result<Report, CliError> {
    let is_stdin = args.trace.as_deref().is_some_and(|path| path.as_os_str() == "-");
    if is_stdin && args.chunk_size.len() > 1 {
        return Err(CliError::TraceOnce);
    }
    let mut chunk_sizes = args.chunk_size.clone();
    if chunk_sizes.is_empty() {
        chunk_sizes.push(CHUNK_BYTES_DEFAULT);
    }
    let of_several = (chunk_sizes.len() > 1).then_some(REQUEST_BUFFER_BYTES);
    let request_buffer_bytes = args.request_buffer.or(of_several);
    let mut report =
        Report { source: String::new(), compressible_percent: args.compressible, runs: Vec::new() };
    for chunk_bytes in chunk_sizes {
        let source = Source::open(args)?;
        report.source = source.name(args);
        let target = Target::make(args, chunk_bytes, source.workload())?;
        let options = engine_options(&args.engine, false);
        let run = OpenStore::with(target.path(), options, |store| {
            drive(args, store, &target, source, request_buffer_bytes, interrupt)
        })?;
        report.runs.push(run);
    }
    Ok(report)
}

/// One replay into a store.
fn drive(
    args: &ReplayArgs,
    store: &OpenStore,
    target: &Target,
    mut source: Source,
    request_buffer_bytes: Option<u64>,
    interrupt: &Interrupt,
) -> Result<Run, CliError> {
    let mut request = Request::default();
    if !source.read(&mut request)? {
        return Err(CliError::TraceEmpty { first_bad: source.skipped().first_bad });
    }
    let client = store.client();
    let blocks = source.workload().map(traces::Workload::volume_blocks);
    let size_bytes = blocks.map_or(VOLUME_BYTES_MAX, |blocks| blocks * BLOCK_BYTES);
    client.create_volume(&args.volume, size_bytes, false)?;
    let volume = client.open_volume(&args.volume, opener("replay"))?;
    let chunk_bytes = client.geometry()?.chunk_bytes;
    let content = Content::new(args.compressible);
    let truth = Truth::new(source.workload(), content, chunk_bytes, request.grain);
    let buffer = request_buffer_bytes.map(RequestBuffer::new);
    let mut driver = Driver::new(client, volume, content, truth, buffer);
    let times_before_ns = cpu_times_ns();
    let started = Instant::now();
    let saved = || client.stats().ok()?.written_into(&args.volume).saved_note();
    make_all(&mut driver, &mut source, request, interrupt, saved)?;
    let carried = driver.finish()?;
    let elapsed = started.elapsed();
    let times_after_ns = cpu_times_ns();
    let stats = client.stats()?;
    let skipped = source.skipped();
    let measured = Measured { carried, elapsed, times_before_ns, times_after_ns, stats, skipped };
    let mut run = measured.figures(&args.volume, &driver.truth, request_buffer_bytes);
    run.duplicates.store_is_new = target.is_new();
    if args.verify {
        run.verified = Some(verify(&mut driver, carried.written_bytes, interrupt)?.into());
    }
    drop(driver);
    if !target.is_new() && source.workload().is_none() {
        // Now it is known how long the disk of the trace was.
        let size_bytes = carried.end_bytes.next_multiple_of(BLOCK_BYTES);
        client.resize_volume(&args.volume, size_bytes)?;
    }
    Ok(run)
}

/// Makes `request`, which was read already, and all that follow.
fn make_all(
    driver: &mut Driver<'_>,
    source: &mut Source,
    mut request: Request,
    interrupt: &Interrupt,
    saved: impl Fn() -> Option<String>,
) -> Result<(), CliError> {
    let (unit, total, _) = source.progress();
    let mut progress = Progress::new("replaying", unit, total);
    let mut made = 0_u64;
    loop {
        driver.make(&request)?;
        made += 1;
        if made.is_multiple_of(REQUESTS_PER_LOOK) {
            interrupt.check()?;
            progress.set_done(source.progress().2);
            progress.note_now_and_then(&saved);
        }
        if !source.read(&mut request)? {
            return Ok(());
        }
    }
}

fn verify(
    driver: &mut Driver<'_>,
    written_bytes: u64,
    interrupt: &Interrupt,
) -> Result<truth::Compared, CliError> {
    let mut progress = Progress::new("verifying", Unit::Bytes, Some(written_bytes));
    driver.verify(|bytes| {
        progress.advance(bytes);
        interrupt.check()
    })
}

/// `--to`: the requests of a workload, for those who know traces only.
fn write_trace(args: &ReplayArgs, path: &Path, interrupt: &Interrupt) -> Result<(), CliError> {
    let failed = |source| unwritable(path, source);
    let mut out: Box<dyn Write> = match path.as_os_str() == "-" {
        true => Box::new(io::stdout().lock()),
        false => Box::new(File::create_new(path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => CliError::TraceExists { path: path.to_owned() },
            _ => failed(source),
        })?),
    };
    let mut out = BufWriter::with_capacity(1 << 20, &mut out);
    let mut source = Source::open(args)?;
    let (unit, total, _) = source.progress();
    let mut progress = Progress::new("writing", unit, total);
    let mut request = Request::default();
    while source.read(&mut request)? {
        write_line(&mut out, &request).map_err(failed)?;
        let done = source.progress().2;
        if done.is_multiple_of(REQUESTS_PER_LOOK) {
            interrupt.check()?;
            progress.set_done(done);
        }
    }
    out.flush().map_err(failed)
}
