//! Planning: what hardware a store would need.

use std::path::PathBuf;

use clap::Args;

use super::options::Format;
use super::values::parse_whole_percent;
use crate::size::parse_size;

/// Say what hardware a workload needs, what saturates first, and what it costs
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tamis plan --throughput 5G --capacity 100T --duplicates 60 --compressed 50
  tamis plan /srv/images --throughput 2G --measure --plot plan.svg
      takes duplicates and compressibility from what lies there, and times
      fingerprints and compression on this machine
  tamis plan --throughput 5G --prices prices.json --json

Stages add up: each chunk of 4 KiB is taken from the client, fingerprinted,
looked up and, if it is new, compressed. All but the look-up spread over cores.
What requests, devices and look-ups take is never timed here: it is what one
server took. Queues are not modelled, so nothing is said of latency. Prices are
those of FIDR's paper, of 2019, unless a file says otherwise: a JSON object with
any of ssd_dollars_per_gb, dram_dollars_per_gb, core_dollars,
hashing_dollars_per_gb_per_second, compression_dollars_per_gb_per_second and
table_cache_dollars.")]
pub(crate) struct PlanArgs {
    /// Files, directories, devices and images that say how much is duplicate and compressible
    #[arg(value_name = "PATH", conflicts_with_all = ["duplicates", "compressed"])]
    pub(crate) paths: Vec<PathBuf>,
    /// What clients read and write together, each second
    #[arg(long, value_name = "SIZE", value_parser = parse_some_bytes)]
    pub(crate) throughput: u64,
    /// What clients see of the store when it is full
    #[arg(long, value_name = "SIZE", value_parser = parse_some_bytes, default_value = "10T")]
    pub(crate) capacity: u64,
    /// What one request of theirs reads or writes, on average
    #[arg(long, value_name = "SIZE", value_parser = parse_some_bytes, default_value = "64K")]
    pub(crate) request: u64,
    /// Of the throughput, what is read
    #[arg(long, value_name = "PERCENT", value_parser = parse_whole_percent, default_value = "30")]
    pub(crate) reads: u8,
    /// Of what is written, what is stored already
    #[arg(long, value_name = "PERCENT", value_parser = parse_whole_percent, default_value = "50")]
    pub(crate) duplicates: u8,
    /// Of what is new, what compression leaves
    #[arg(long, value_name = "PERCENT", value_parser = parse_whole_percent, default_value = "50")]
    pub(crate) compressed: u8,
    /// DRAM bandwidth of the machine, each second [default: no bound]
    #[arg(long, value_name = "SIZE", value_parser = parse_some_bytes)]
    pub(crate) dram: Option<u64>,
    /// What its data devices write, each second [default: no bound]
    #[arg(long, value_name = "SIZE", value_parser = parse_some_bytes)]
    pub(crate) device_writes: Option<u64>,
    /// What its data devices read, each second [default: no bound]
    #[arg(long, value_name = "SIZE", value_parser = parse_some_bytes)]
    pub(crate) device_reads: Option<u64>,
    /// Time fingerprints and compression on this machine, a few seconds
    #[arg(long)]
    pub(crate) measure: bool,
    /// Prices in dollars, as a JSON object
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Draw what 1 to 64 cores carry as SVG into this file
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: Format,
}

fn parse_some_bytes(text: &str) -> Result<u64, String> {
    match parse_size(text).map_err(|error| error.to_string())? {
        0 => Err("use more than 0 bytes".to_owned()),
        bytes => Ok(bytes),
    }
}
