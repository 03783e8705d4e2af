//! Measuring on the user's own machine and data.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::options::Format;
use super::values::{parse_bench_memory, parse_writes};

/// Measure on this machine, with your own data
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Example:
  tamis bench detect vm1.qcow2 /srv/backups")]
pub(crate) enum BenchCommand {
    Detect(BenchDetectArgs),
}

/// Compare the ways to find a duplicate (`tamis init --fingerprint`) over files
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  tamis bench detect vm1.qcow2 /srv/backups --memory 8G --dir /srv --plots plots

The files are read into memory, up to --memory of what is not zeros, and cut
into chunks of 4 KiB. Then every kind in turn makes fingerprints, looks them up,
and compares bytes where two chunks may share one, on one thread. So do two ways
that stores do not have, because they lose duplicates: sampling (CA-FTL), and
auto, which chooses among blake3, xxh3 and nothing every 4 MiB by what it finds.

After that a store is made for each kind, compared where it must be, and removed
again. Every chunk is a write. Most of them are acknowledged when they are in
the write buffer; the last ones, --writes at depth 1 and as many at depth 32 in
turn, when they are durable, which a sync is a part of: --dir decides how large.
The store has 256 MiB of memory, and needs free space for all data and 2 GiB.

With --sweep the stores differ in what a run of comparisons reads ahead instead:
how many of a group must lie in one container (EaD's trigger m), and how much of
it is read then (its distance n).")]
pub(crate) struct BenchDetectArgs {
    /// Files, directories, block devices, raw and qcow2 images
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Data to keep in memory at most, at least 16M; auto is 1G, or half of what the machine or its
    /// control group has where that is less
    #[arg(long, value_name = "SIZE", value_parser = parse_bench_memory, default_value = "auto")]
    pub(crate) memory: u64,
    /// Leave out the stores
    #[arg(long, conflicts_with_all = ["dir", "writes"])]
    pub(crate) in_memory: bool,
    /// Only stores that compare by ecc-crc64, one for each way to read ahead of comparisons
    #[arg(long, conflicts_with_all = ["in_memory", "plots"])]
    pub(crate) sweep: bool,
    /// Where the stores are made
    #[arg(long, value_name = "PATH", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Durable writes to measure at each depth; at most a quarter of all
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = parse_writes)]
    pub(crate) writes: usize,
    /// Draw bar charts as SVG into this directory, which is made if it is missing
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: Format,
}
