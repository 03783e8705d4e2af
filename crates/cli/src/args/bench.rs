//! Measuring on the user's own machine and data.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::options::Format;
use super::values::parse_estimate_memory;

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
  tamis bench detect vm1.qcow2 /srv/backups --memory 8G --json

The files are read into memory, up to --memory of what is not zeros, and cut into chunks of 4 KiB.
Then every kind in turn makes fingerprints, looks them up, and compares bytes where two chunks may
share one, on one thread. Disks play no part: in a store a comparison costs a read as well.")]
pub(crate) struct BenchDetectArgs {
    /// Files, directories, block devices, raw and qcow2 images
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Data to keep in memory at most, at least 16M
    #[arg(long, value_name = "SIZE", value_parser = parse_estimate_memory, default_value = "1G")]
    pub(crate) memory: u64,
    #[command(flatten)]
    pub(crate) format: Format,
}
