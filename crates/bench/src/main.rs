//! `cargo run --release -p bench -- in-process | overwrite | kinds | codecs | whole | cores |
//! allocations | instructions | latency | doors | report`: what Tamis does per second, beside what
//! the same machine does without it in the same minutes.
//!
//! - `in-process` drives the engine without sockets, beside the sum of its kernels (a copy, BLAKE3,
//!   LZ4) on as many cores: what the thinking costs.
//! - `overwrite` writes at random over a store that is nearly full: bytes written to the device, by
//!   kind, for each byte stored.
//! - `kinds` drives the functions that make fingerprints, many chunks a call and one a call.
//! - `codecs` makes frames of noise, and of chunks that are noise in part.
//! - `whole` drives Tamis in its modes and what people have instead of it, each alone, with the
//!   same jobs: raw file, nbdkit, qemu-nbd, btrfs, ZFS by FUSE; then real data, and PostgreSQL.
//! - `cores` measures what a chunk costs each kind of thread, models from that what more processors
//!   would give, and measures with more threads what they do give here.
//! - `allocations` counts who allocates for an operation; it needs a build that counts.
//! - `instructions` counts, under callgrind, what the engine takes for a chunk.
//! - `latency` drives the server at a steady rate beside scrub, collection and deletion; and with
//!   one request at a time, as a server of memory.
//! - `doors` drives Tamis through NBD, a server that does nothing, and the engine in process, with
//!   the same requests: by a client of ours that batches, and beside fio.
//! - `report` does `in-process`, `whole`, `cores`, `latency` and `doors`, and writes them down with
//!   machine, command and commit.
//!
//! Nothing here passes or fails: what is wanted stands beside what was measured. Each figure is a
//! median of rounds in which all contestants take turns, with its range, because a shared machine
//! is never the same twice, and with the load average, so that a reader knows how shared it was.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod allocations;
mod args;
mod codecs;
mod connecting;
mod cores;
mod doors;
mod failure;
mod fio;
mod heap;
mod in_process;
mod in_process_table;
mod instructions;
mod interrupt;
mod kernels;
mod kinds;
mod latency;
mod latency_table;
mod leftovers;
mod machine;
mod nbdkit;
mod nothing;
mod overwrite;
mod overwrite_table;
mod passes;
mod processors;
mod program;
mod report;
mod samples;
mod served;
mod source;
mod steady;
mod store;
mod wanted;
mod whole;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Mode};
use crate::failure::Failure;
use crate::machine::Machine;
use crate::processors::Spent;
use crate::report::{Figures, Report};

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    if let Some(work) = args.counted {
        return instructions::workload::run(work, args.counted_chunks);
    }
    if args.mode.takes_long() {
        interrupt::watch()?;
    }
    let page = args.page();
    page.as_deref().map(report::make_folder).transpose()?;
    leftovers::clear(&args.dir)?;
    let folder = leftovers::folder(&args.dir);
    std::fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    let report = measure(args, &folder);
    // What a round left behind is large; a folder that stays the next run clears away.
    let removed = std::fs::remove_dir_all(&folder).map_err(Failure::file(&folder));
    let report = report?;
    removed?;
    if let Some(file) = &args.json_file {
        std::fs::write(file, report.json()).map_err(Failure::file(file))?;
    }
    if args.json {
        println!("{}", report.json());
    } else {
        println!("{report}");
    }
    page.map_or(Ok(()), |page| report.write_page(&page))
}

fn measure(args: &Args, folder: &Path) -> Result<Report, Failure> {
    let machine = Machine::look()?;
    let wants = |mode| args.mode.includes(mode);
    let before = Spent::now();
    let figures = Figures {
        in_process: measured(wants(Mode::InProcess), || in_process::measure(args, folder))?,
        overwrite: measured(wants(Mode::Overwrite), || overwrite::measure(args, folder))?,
        kinds: measured(wants(Mode::Kinds), || Ok(kinds::measure(args)))?,
        codecs: measured(wants(Mode::Codecs), || Ok(codecs::measure(args)))?,
        whole: measured(wants(Mode::Whole), || whole::measure(args, folder))?,
        allocations: measured(wants(Mode::Allocations), || allocations::measure(args, folder))?,
        cores: measured(wants(Mode::Cores), || cores::measure(args, folder))?,
        instructions: measured(wants(Mode::Instructions), || instructions::measure(args, folder))?,
        latency: measured(wants(Mode::Latency), || latency::measure(args, folder))?,
        doors: measured(wants(Mode::Doors), || doors::measure(args, folder))?,
    };
    let stolen_percent = Spent::now().stolen_percent_since(before);
    Ok(Report { machine, stolen_percent, wanted: figures.wanted(), figures })
}

fn measured<T>(
    wanted: bool,
    measure: impl FnOnce() -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    wanted.then(measure).transpose()
}
