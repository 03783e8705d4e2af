//! `cargo run --release -p bench -- in-process | nbd | overwrite | kinds | codecs | whole | cores |
//! allocations | latency | report`: what Tamis does per second, beside what the same machine does
//! without it in the same minutes.
//!
//! - `in-process` drives the engine without sockets, beside the sum of its kernels (a copy, BLAKE3,
//!   LZ4) on as many cores: what the thinking costs.
//! - `nbd` drives the built server with fio, beside `nbdkit file` and a raw file with `O_DIRECT` on
//!   the same disk: what a client gets.
//! - `overwrite` writes at random over a store that is nearly full: bytes written to the device, by
//!   kind, for each byte stored.
//! - `kinds` drives the functions that make fingerprints, many chunks a call and one a call.
//! - `codecs` makes frames of noise, and of chunks that are noise in part.
//! - `whole` drives Tamis in its modes and what people have instead of it, each alone, with the
//!   same jobs: raw file, nbdkit, qemu-nbd, btrfs, ZFS by FUSE; then real data, and PostgreSQL.
//! - `cores` measures what a chunk costs each kind of thread, models from that what more processors
//!   would give, and measures with more threads what they do give here.
//! - `allocations` counts who allocates for an operation; it needs a build that counts.
//! - `latency` drives the server with fio beside scrub, collection and deletion, and a server of
//!   memory with the same.
//! - `report` does the first two and writes them down with machine, command and commit.
//!
//! Nothing here passes or fails: figures are printed beside their targets. Each is a median of
//! rounds in which all contestants take turns, with its range, because a shared machine is never
//! the same twice, and with the load average, so that a reader knows how shared it was.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")
)]

mod allocations;
mod answers;
mod args;
mod codecs;
mod cores;
mod failure;
mod fio;
mod heap;
mod in_process;
mod interrupt;
mod kernels;
mod kinds;
mod latency;
mod latency_table;
mod leftovers;
mod machine;
mod nbd;
mod nbdkit;
mod overwrite;
mod overwrite_table;
mod passes;
mod program;
mod report;
mod samples;
mod served;
mod source;
mod store;
mod table;
mod whole;

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Mode};
use crate::failure::Failure;
use crate::machine::Machine;
use crate::report::Report;

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
    if matches!(args.mode, Mode::Nbd | Mode::Whole | Mode::Latency | Mode::Report) {
        interrupt::watch()?;
    }
    leftovers::clear(&args.dir)?;
    let folder = leftovers::folder(&args.dir);
    std::fs::create_dir_all(&folder).map_err(Failure::file(&folder))?;
    let report = measure(args, &folder);
    // What a round left behind is large; a folder that stays the next run clears away.
    let removed = std::fs::remove_dir_all(&folder).map_err(Failure::file(&folder));
    let report = report?;
    removed?;
    if args.json {
        println!("{}", report.json());
    } else {
        println!("{report}");
    }
    match (args.mode, &args.page) {
        (Mode::Report, _) => report.write(&args.out),
        (Mode::Whole | Mode::Cores, Some(page)) => report.write_page(page),
        _ => Ok(()),
    }
}

fn measure(args: &Args, folder: &Path) -> Result<Report, Failure> {
    let machine = Machine::look()?;
    let in_process = match args.mode {
        Mode::InProcess | Mode::Report => Some(in_process::measure(args, folder)?),
        _ => None,
    };
    let nbd = match args.mode {
        Mode::Nbd | Mode::Report => Some(nbd::measure(args, folder)?),
        _ => None,
    };
    let overwrite = match args.mode {
        Mode::Overwrite => Some(overwrite::measure(args, folder)?),
        _ => None,
    };
    let kinds = match args.mode {
        Mode::Kinds => Some(kinds::measure(args)),
        _ => None,
    };
    let codecs = match args.mode {
        Mode::Codecs => Some(codecs::measure(args)),
        _ => None,
    };
    let whole = match args.mode {
        Mode::Whole => Some(whole::measure(args, folder)?),
        _ => None,
    };
    let allocations = match args.mode {
        Mode::Allocations => Some(allocations::measure(args, folder)?),
        _ => None,
    };
    let cores = match args.mode {
        Mode::Cores => Some(cores::measure(args, folder)?),
        _ => None,
    };
    let latency = match args.mode {
        Mode::Latency => Some(latency::measure(args, folder)?),
        _ => None,
    };
    Ok(Report {
        machine,
        in_process,
        nbd,
        overwrite,
        kinds,
        codecs,
        whole,
        allocations,
        cores,
        latency,
    })
}
